package guest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// TestGPUFacts reads what guests with and without a GPU, a driver and a perftest with CUDA print.
func TestGPUFacts(t *testing.T) {
	const modules = "§modules\nib_core 442368 1 mlx5_ib, Live 0x0\n"
	query := func(name, virtual string) string {
		return "§smiquery\n==============NVSMI LOG==============\n\nAttached GPUs : 1\nGPU 00000000:0B:00.0\n    Product Name : " + name +
			"\n    GPU Virtualization Mode\n        Virtualization Mode : " + virtual + "\n    FB Memory Usage\n        Total : 81920 MiB\n"
	}
	for _, c := range []struct {
		name, text string
		want       *backends.NVIDIA
		tests      *backends.CUDAPerftest
		api        *bool
	}{
		{name: "no driver", text: modules + "§peerapi\nread\n", api: new(false)},
		{name: "a driver whose GPU is not there yet",
			text: "§kernel\n5.15.0-100-generic\n§smi\nNo devices were found\nfailed\n§nvversion\n570.86.15\n§nvlicense\nDual MIT/GPL\n",
			want: &backends.NVIDIA{GPUs: []string{}, Driver: "570.86.15", Error: "No devices were found", DMABuf: true}},
		{name: "no GPU, which nvidia-smi -L does not report by its status",
			text: "§kernel\n6.8.0-60-generic\n§smi\nNo devices found.\n§smidriver\nNo devices were found\n" +
				"§nvloaded\nNVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (dvs-builder@x)  \nGCC " +
				"version:  gcc 13\n",
			want: &backends.NVIDIA{GPUs: []string{}, Driver: "580.159.04", Error: "No devices found.", DMABuf: true}},
		{name: "the module that is loaded, which modinfo does not find",
			text: "§kernel\n6.18.44\n§smi\nGPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n§smidriver\n580.159.04\n" +
				"§nvloaded\nNVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (builder@)  \nGCC version:  gcc " +
				"version 15.3.0 (GCC) \n",
			want: &backends.NVIDIA{GPUs: []string{"NVIDIA H100 80GB HBM3"}, Driver: "580.159.04", DMABuf: true}},
		{name: "the loaded module is not the one that an update left on disk",
			text: "§kernel\n6.8.0-60-generic\n§nvversion\n580.65.06\n§nvlicense\nDual MIT/GPL\n" +
				"§nvloaded\nNVRM version: NVIDIA UNIX x86_64 Kernel Module  570.133.20  Sun Mar 30 07:41:53 UTC 2025\n",
			want: &backends.NVIDIA{GPUs: []string{}, Driver: "570.133.20", Error: "the kernel module is loaded, but nvidia-smi is missing"}},
		{name: "an ib_core that is built into the kernel and has no peer memory",
			text: "§modules\nnvidia 14299136 - - Live 0x0 (O)\n§peerapi\nread\nib_register_device\n", api: new(false)},
		{name: "an ib_core that is built into the kernel and has peer memory",
			text: "§modules\nvmxnet3 1 0 - Live 0x0\n§peerapi\nread\nib_register_device\nib_register_peer_memory_client\n", api: new(true)},
		{name: "no ib_core", text: "§modules\nvmxnet3 1 0 - Live 0x0\n§peerapi\nread\n"},
		{name: "open modules on a kernel before DMA-BUF", text: "§kernel\n5.4.0-190-generic\n§nvversion\n535.1\n§nvlicense\nDual MIT/GPL\n",
			want: &backends.NVIDIA{GPUs: []string{}, Driver: "535.1", Error: "the kernel module is loaded, but nvidia-smi is missing"}},
		{name: "passed through, with everything",
			text: modules + "nvidia_peermem 16384 0 - Live 0x0\n§peerapi\nread\nib_register_peer_memory_client\n" +
				"§smi\nGPU 0: NVIDIA A100 80GB PCIe (UUID: GPU-1)\n§smidriver\n550.54.15\n§nvlicense\nNVIDIA\n" +
				query("NVIDIA A100 80GB PCIe", "Pass-Through") +
				"§smitopo\n\tGPU0\tNIC0\tCPU Affinity\nGPU0\t X \tPIX\t0-7\nNIC0\tPIX\t X \t\n\nLegend:\n\nNIC Legend:\n\n  NIC0: mlx5_0\n" +
				"§cudaperftest\ndir /usr/local/bin/\n--use_cuda\n--use_cuda_bus_id\n--use_cuda_dmabuf\n",
			want: &backends.NVIDIA{GPUs: []string{"NVIDIA A100 80GB PCIe"}, Driver: "550.54.15", Peermem: "nvidia_peermem",
				Devices:  []backends.GuestGPU{{Name: "NVIDIA A100 80GB PCIe", PCI: "0000:0b:00.0", MemoryMB: 81920}},
				Topology: map[string]string{"mlx5_0 GPU0": "PIX"}},
			tests: &backends.CUDAPerftest{Dir: "/usr/local/bin", DMABuf: true}, api: new(true)},
		{name: "a vGPU", text: "§smi\nGPU 0: GRID A100-40C (UUID: GPU-1)\n§smidriver\n550.54.15\n" + query("GRID A100-40C", "VGPU") +
			"§cudaperftest\ndir \n--use_cuda\n",
			want: &backends.NVIDIA{GPUs: []string{"GRID A100-40C"}, Driver: "550.54.15",
				Devices: []backends.GuestGPU{{Name: "GRID A100-40C", PCI: "0000:0b:00.0", MemoryMB: 81920, VGPU: true}}},
			tests: &backends.CUDAPerftest{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got backends.Guest
			sections(strings.ReplaceAll(c.text, "§", mark)).fill(&got, Options{})
			if d := cmp.Diff(c.want, got.NVIDIA); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(c.tests, got.CUDATests); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(c.api, got.PeerAPI); d != "" {
				t.Error(d)
			}
		})
	}
}

// What modprobe says of peer memory modules is turned into the one thing to do (nv_peer_memory issues 8, 28, 84).
func TestWhyPeerMemoryIsNotLoaded(t *testing.T) {
	for _, c := range []struct{ said, hint string }{
		{"modprobe: ERROR: could not insert 'nv_peer_mem': Invalid argument", "MLNX_OFED or DOCA first"},
		{"modprobe: ERROR: could not insert 'nvidia_peermem': Unknown symbol in module, or unknown parameter (see dmesg)",
			"MLNX_OFED or DOCA first"},
		{"modprobe: ERROR: could not insert 'nvidia': No such device", "none of the GPUs"},
		{"modprobe: ERROR: could not insert 'nvidia_peermem': Key was rejected by service", "Secure Boot"},
		{"modprobe: FATAL: Module nvidia_peermem not found in directory /lib/modules/5.15.0-100-generic", "from release 470 on"},
	} {
		if got := backends.HintOf(moduleError("vm-01", ssh.Result{ExitCode: 1, Stderr: c.said})); !strings.Contains(got, c.hint) {
			t.Errorf("%s: hint %q, want %q", c.said, got, c.hint)
		}
	}
}
