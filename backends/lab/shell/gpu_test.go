package shell_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

// A passed-through port and a passed-through GPU are PCI functions of the VM. The ports can communicate at line rate.
func TestHCAAndGPUInTheGuest(t *testing.T) {
	l := start(t, scenario.Spec{Scenario: "gpudirect-done"})
	for n, vm := range []string{"vm-01", "vm-02"} {
		c := l.dial(vm, "root")
		for command, want := range map[string]string{
			"lspci -nn | grep 15b3:":                            "13:00.0 Ethernet controller [0200]: Mellanox Technologies MT27800 Family [ConnectX-5] [15b3:1017]",
			"lspci -nn | grep 10de:":                            "1b:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 PCIe 80GB] [10de:20b5] (rev a1)",
			"cat /sys/bus/pci/devices/0000:1b:00.0/vendor":      "0x10de",
			"ls /sys/firmware":                                  "efi",
			"ls /sys/class/infiniband/*/device/net":             "ens224",
			"cat /sys/class/infiniband/*/hca_type /dev/null":    "MT4119",
			"cat /sys/class/net/ens224/address; ip -br l; true": "b8:59:9f:00:0" + string(rune('0'+n)) + ":02",
		} {
			if got := ok(t, c, command); !strings.Contains(got, want) {
				t.Errorf("%s: %s: %q is not in\n%s", vm, command, want, got)
			}
		}
	}
}

// gpuLab returns a lab whose guests are set up for GPUDirect. keys are additional settings of the guests.
func gpuLab(t *testing.T, name string, keys map[string]string) (*lab, map[int]float64) {
	t.Helper()
	l := start(t, scenario.Spec{Scenario: name})
	for _, vm := range []string{"vm-01", "vm-02"} {
		l.world.View(func(s *world.State) {
			for key, value := range keys {
				s.VM(vm).Extra[key] = value
			}
		})
	}
	client, server := pair(t, l, "vm-01", "vm-02", "192.168.50.12", "/opt/perftest/bin/ib_write_bw -F --report_gbits --use_cuda=0 --use_cuda_dmabuf -s 65536")
	if client.status != 0 {
		t.Logf("client %+v\nserver %+v", client, server)
	}
	return l, gbps(client.out)
}

// GPU memory is nearly as fast as host memory below the same switch, slower if ACS redirects requests upstream, and far slower
// across sockets, regardless of the configuration keys.
func TestPeerToPeer(t *testing.T) {
	for name, tc := range map[string]struct {
		scenario string
		keys     map[string]string
		from, to float64
	}{
		"one switch":                  {"gpudirect-done", nil, 93, 98},
		"ACS is not relaxed":          {"gpudirect-done", map[string]string{"pciPassthru.RelaxACSforP2P": "FALSE"}, 35, 60},
		"quotes are no part of TRUE":  {"gpudirect-done", map[string]string{"pciPassthru.RelaxACSforP2P": `"TRUE"`}, 35, 60},
		"below the other socket":      {"gpudirect-far", nil, 10, 25},
		"devices not mapped for each": {"gpudirect-done", map[string]string{"pciPassthru.allowP2P": ""}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, rates := gpuLab(t, tc.scenario, tc.keys)
			if got := rates[65536]; got < tc.from || got > tc.to {
				t.Errorf("%.2f Gb/s, not %.0f to %.0f", got, tc.from, tc.to)
			}
		})
	}
}
