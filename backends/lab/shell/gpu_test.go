package shell_test

import (
	"fmt"
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
			"lspci -nn | grep 15b3:": "13:00.0 Ethernet controller [0200]: Mellanox Technologies MT27800 Family " +
				"[ConnectX-5] [15b3:1017]",
			"lspci -nn | grep 10de:": "1b:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 PCIe 80GB] " +
				"[10de:20b5] (rev a1)",
			"cat /sys/bus/pci/devices/0000:1b:00.0/vendor": "0x10de",
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
	client, server := pair(t, l, "vm-01", "vm-02", "192.168.50.12",
		"/opt/perftest/bin/ib_write_bw -F --report_gbits --use_cuda=0 --use_cuda_dmabuf -s 65536")
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

// virtual returns a lab in which two VMs on two hosts have one VF each and were restarted.
func virtual(t *testing.T, mayMTU bool) *lab {
	t.Helper()
	l := start(t, scenario.Spec{Hosts: 2, VMs: 2, Scenario: "sriov-ready"})
	err := l.world.Update(func(s *world.State) ([]world.Event, error) {
		d := &world.DVS{Name: "D", MTU: 9000, Uplinks: []string{"u1"}, PortGroups: []*world.PortGroup{{Name: "P", Active: []string{"u1"}}}}
		for _, h := range s.Hosts {
			d.Members = append(d.Members, &world.Member{Host: h.Name, PNICs: []string{"vmnic2"}})
		}
		s.Switches = append(s.Switches, d)
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, vm := range []string{"vm-01", "vm-02"} {
		if err := l.world.PowerOff(vm); err != nil {
			t.Fatal(err)
		}
		l.world.View(func(s *world.State) {
			v := s.VM(vm)
			v.Guest.OS = "ubuntu-22.04"
			v.Adapters = append(v.Adapters, &world.Adapter{Type: world.SRIOV, MAC: world.MAC(v.Index, 1), DVS: "D", PortGroup: "P",
				Start: true, Slot: 224, GuestMTU: mayMTU, PF: "0000:3b:00.0"})
		})
		if err := l.world.PowerOn(vm); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "both guests up", func() bool {
		up := 0
		l.world.View(func(s *world.State) {
			for _, v := range s.VMs {
				if v.Guest.Up {
					up++
				}
			}
		})
		return up == 2
	})
	return l
}

// An mlx5 device and its netdev are one PCI function. The state of the port follows the netdev, and the measured rate is that
// of the card.
func TestVFInTheGuest(t *testing.T) {
	l := virtual(t, true)
	for n, vm := range []string{"vm-01", "vm-02"} {
		c := l.dial(vm, "root")
		if got := ok(t, c, "ls /sys/class/infiniband; lsmod | grep -c ^mlx5_ib"); got != "mlx5_0\n1\n" {
			t.Errorf("%s: %q", vm, got)
		}
		ok(t, c, "apt-get install -y rdma-core ibverbs-providers ibverbs-utils infiniband-diags perftest")
		if got := ok(t, c, "rdma link"); !strings.Contains(got, "state DOWN") {
			t.Errorf("%s before its interface is up: %q", vm, got)
		}
		ok(t, c, fmt.Sprintf("ip link set ens224 mtu 9000 && ip link set ens224 up && ip addr add 192.168.50.%d/24 dev ens224", 11+n))
		info := ok(t, c, "ibv_devinfo")
		for _, want := range []string{"PORT_ACTIVE (4)", "vendor_part_id:\t\t\t4120", "fw_ver:\t\t\t\t16.35.4030", "active_mtu:\t\t4096",
			"board_id:\t\t\tMT_0000000009"} {
			if !strings.Contains(info, want) {
				t.Errorf("%s: %q is not in\n%s", vm, want, info)
			}
		}
		if got := ok(t, c,
			"basename $(readlink /sys/class/net/ens224/device/driver); cat /sys/class/net/ens224/device/vendor; lspci | grep -c 'Virtual "+
				"Function'; ls /sys/class/infiniband/*/device/net"); !strings.Contains(got, "mlx5_core\n") ||
			!strings.Contains(got, "0x15b3\n1\nens224\n") {
			t.Errorf("%s: %q", vm, got)
		}
	}
	client, server := pair(t, l, "vm-01", "vm-02", "192.168.50.12", "ib_send_bw -a -F --report_gbits -x 3")
	if client.status != 0 || server.status != 0 {
		t.Fatalf("client %+v\nserver %+v", client, server)
	}
	if got := gbps(client.out)[65536]; got < 95 || got > 98 {
		t.Errorf("64 KiB: %.2f Gb/s", got)
	}
	l.world.View(func(s *world.State) {
		if c := s.Host("esx-01").PNIC("vmnic2").RDMA.Stats; c.PacketsSent != 0 {
			t.Errorf("VFs moved the counters of vmrdma0: %+v", c)
		}
	})
	c := l.dial("vm-01", "root")
	ok(t, c, "modprobe -r mlx5_ib")
	if got := ok(t, c, "ls /sys/class/infiniband"); got != "" {
		t.Errorf("devices without the driver: %q", got)
	}
	ok(t, c, "modprobe mlx5_ib")
	if got := ok(t, c, "rdma link"); !strings.Contains(got, "state ACTIVE") {
		t.Errorf("after loading the driver again: %q", got)
	}
}

// allowGuestOSMtuChange is disabled by default.
func TestVFWithoutTheRightToItsMTU(t *testing.T) {
	l := virtual(t, false)
	c := l.dial("vm-01", "root")
	if r := run(t, c, "ip link set ens224 mtu 9000", ""); r.status == 0 {
		t.Error("the guest changed the MTU")
	}
	if got := ok(t, c, "cat /sys/class/net/ens224/mtu"); got != "1500\n" {
		t.Errorf("MTU %q", got)
	}
}
