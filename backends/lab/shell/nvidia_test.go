package shell_test

import (
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

// said runs a command that may fail and returns its output and exit status.
func said(t *testing.T, c *ssh.Client, command string) (string, int) {
	t.Helper()
	r := run(t, c, command, "")
	return r.out + r.err, r.status
}

// Output and errors of NVIDIA's programs depend on the installed packages.
func TestDriverInTheGuest(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 2, Scenario: "gpudirect-done"})
	c, bare := l.dial("vm-01", "root"), l.dial("vm-02", "root")
	for _, tc := range []struct {
		c       *ssh.Client
		command string
		status  int
		want    string
	}{
		{c, "nvidia-smi -L", 0, "GPU 0: NVIDIA A100 80GB PCIe (UUID: GPU-"},
		{c, "nvidia-smi -q", 0, "    BAR1 Memory Usage\n        Total                                          : 131072 MiB\n"},
		{c, "nvidia-smi topo -m", 0, "GPU0\t X \tPHB\t0-15\t0\t\tN/A\nNIC0\tPHB\t X "},
		{c, "nvidia-smi --query-gpu=colour --format=csv", 2, "Field \"colour\" is not a valid field to query.\n"},
		{c, "nvidia-smi -i 3", 6, "No devices were found\n"},
		{c, "nvidia-smi -L -i 0", 2, "ERROR: Option -i is not valid for this command. Please run 'nvidia-smi -h' for help.\n"},
		{c, "nvidia-smi --bogus", 255, "ERROR: Option --bogus is not recognized. Please run 'nvidia-smi -h'.\n"},
		{c, "nvidia-smi bogus", 255, "ERROR: Option bogus is not recognized. Please run 'nvidia-smi -h'.\n"},
		{c, "nvidia-smi -pm 7", 2, "Invalid persistence mode: 7\nTerminating early due to previous errors.\n"},
		{c, "nvidia-smi -pm 1", 0, "Persistence mode is already Enabled for GPU 00000000:1B:00.0.\nAll done.\n"},
		{c, "nvidia-smi topo -m | head -n 1", 0, "\t\x1b[4mGPU0\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"},
		{c, "nvidia-smi topo -p2p r", 0, " \t\x1b[4mGPU0\t\x1b[0m\n GPU0\tX\t\n\nLegend:\n"},
		{c, "nvidia-smi topo -p2p x", 2, "Invalid p2p capability index specified at the command-line\n"},
		{c, "nvidia-smi topo -z", 2, "Option \"-z\" is not recognized.\n"},
		{c, "nvidia-smi topo", 0, "Usage: nvidia-smi topo [options]\n"},
		{c, "modinfo -F license nvidia", 0, "Dual MIT/GPL\n"},
		{c, "cat /proc/driver/nvidia/version", 0, "Open Kernel Module for x86_64  570.133.20"},
		{c, "ib_write_bw --use_cuda=0 192.168.50.12", 1, "unrecognized option '--use_cuda=0'\n Invalid Command or flag.\n"},
		{c, "/opt/perftest/bin/ib_write_bw --use_cuda_dmabuf --use_cuda=0", 1,
			"CUDA DMA-BUF cannot be used without CUDA\n Parser function exited with Error\n"},
		{c, "/opt/perftest/bin/ib_write_bw --use_cuda=x", 1, " CUDA device argument x should be int\n Parser function exited with Error\n"},
		{c, "/opt/perftest/bin/ib_write_lat --use_cuda=0", 1, "Perftest supports CUDA latency tests with read/send verbs only\n"},
		{c, "/opt/perftest/bin/ib_write_bw --use_cuda=4 192.168.50.12", 1,
			"No such device ID (4) exists in system\nCouldn't init GPU context: 1\n"},
		{c, "modprobe -r nvidia_peermem && /opt/perftest/bin/ib_write_bw --use_cuda=0 192.168.50.12", 1,
			"Couldn't allocate MR with error=14\nfailed to create mr\n"},
		{bare, "command -v nvidia-smi", 1, ""},
		{bare, "modprobe nvidia_peermem", 1, "FATAL: Module nvidia_peermem not found in directory"},
		{bare, "apt-get install -y nvidia-headless-570-server-open && modprobe nvidia", 1, "could not insert 'nvidia': No such device\n"},
		{bare, "apt-get install -y nvidia-utils-570-server && nvidia-smi", 9,
			"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."},
	} {
		if got, status := said(t, tc.c, tc.command); status != tc.status || !strings.Contains(got, tc.want) {
			t.Errorf("%s: status %d, want %d; %q is not in\n%s", tc.command, status, tc.status, tc.want, got)
		}
	}
}

// nvidia_peermem works only with the ib_core for which it was built (nv_peer_memory issues 79 and 84, gpu-operator issue 2868).
func TestPeermemRequiresItsOwnCore(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1, Scenario: "gpudirect-done"})
	c := l.dial("vm-01", "root")
	ok(t, c, "modprobe -r nvidia_peermem")
	ok(t, c, "apt-get install -y mlnx-ofed-all")
	if got := ok(t, c, "ofed_info -s"); got != "MLNX_OFED_LINUX-24.10-1.1.4.0:\n" {
		t.Errorf("%q", got)
	}
	if got, status := said(t, c, "modprobe nvidia_peermem"); status == 0 ||
		!strings.Contains(got, "could not insert 'nvidia_peermem': Invalid argument\n") {
		t.Errorf("built for another ib_core: %d %q", status, got)
	}
	if got := ok(t, c, "dmesg | tail -n 4"); !strings.Contains(got,
		"nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client") {
		t.Errorf("%q", got)
	}
	ok(t, c, "dkms install nvidia/570.133.20 --force")
	ok(t, c, "modprobe nvidia_peermem")
	if got := ok(t, c, "lsmod | grep -c ^nvidia_peermem"); got != "1\n" {
		t.Errorf("%q", got)
	}
}
