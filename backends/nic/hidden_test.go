package nic_test

import (
	"maps"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
)

// vpi is a host with a ConnectX-4 Lx of two ports and, between its ports by address, a ConnectX-5 whose ports are in InfiniBand
// mode; none of the other PCI functions could become a pNIC.
func vpi(list string) *backends.Host {
	h := &backends.Host{
		NICs: []backends.NIC{{Device: "vmnic0", PCI: "0000:1a:00.0", Driver: "nmlx5_core"},
			{Device: "vmnic1", PCI: "0000:5e:00.0", Driver: "nmlx5_core"}},
		PCI: []backends.PCIDevice{
			{Address: "0000:1a:00.0", Vendor: "15b3", Device: "1015", Class: "0200"},
			{Address: "0000:3b:00.0", Vendor: "15b3", Device: "1017", Class: "0207", Name: "ConnectX-5"},
			{Address: "0000:3b:00.1", Vendor: "15b3", Device: "1017", Class: "0207", Name: "ConnectX-5"},
			{Address: "0000:3b:00.2", Vendor: "15b3", Device: "1018", Class: "0207", Name: "a VF"},
			{Address: "0000:5e:00.0", Vendor: "15b3", Device: "1015", Class: "0200"},
			{Address: "0000:86:00.0", Vendor: "15b3", Device: "1017", Class: "0207", Name: "passed through", Enabled: true, Active: true},
			{Address: "0000:87:00.0", Vendor: "15b3", Device: "1017", Class: "0200", Name: "unclaimed"},
			{Address: "0000:88:00.0", Vendor: "8086", Device: "1521", Class: "0200", Name: "I350, no RDMA card"},
		},
		System: &backends.HostSystem{Modules: map[string]backends.Fact[backends.Module]{
			"nmlx5_core": backends.FactOf(backends.Module{Known: []string{"max_vfs"}, Params: map[string]string{"max_vfs": list}}),
		}},
	}
	if list == "" {
		delete(h.System.Modules["nmlx5_core"].Value.Params, "max_vfs")
	}
	h.Hidden = nic.Hidden(h)
	return h
}

// TestHidden: NVIDIA's driver for ESXi supports only Ethernet ports, and VPI cards are delivered with InfiniBand ports (native ESXi
// driver user manual, Introduction and Port Type Management).
func TestHidden(t *testing.T) {
	h := vpi("")
	got := map[string]string{}
	for _, n := range h.Hidden {
		got[n.Device] = n.Hidden + " / " + (nic.Known{}).ToEthernet(&n)
	}
	want := map[string]string{
		"0000:3b:00.0": "is a port in InfiniBand mode / /opt/mellanox/bin/mlxconfig -d 0000:3b:00.0 -y set LINK_TYPE_P1=2",
		"0000:3b:00.1": "is a port in InfiniBand mode / /opt/mellanox/bin/mlxconfig -d 0000:3b:00.0 -y set LINK_TYPE_P2=2",
		"0000:87:00.0": "is a PCI function without a driver / ",
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if nic.Hidden(&backends.Host{PCI: h.PCI}) != nil {
		t.Error("a host whose pNICs were not read has hidden ones")
	}
}

// TestVFsOfPortsToCome: max_vfs has one number for each function that the driver will serve, by PCI address (KB 309346); other
// ports keep their numbers although their positions in the list change.
func TestVFsOfPortsToCome(t *testing.T) {
	for name, c := range map[string]struct{ list, want string }{
		"unset":                          {"", "0,8,0,0"},
		"another port has VFs":           {"2,4", "2,8,0,4"},
		"the list is written already":    {"2,8,0,4", "2,8,0,4"},
		"a list for a card that is gone": {"2,4,1", "0,8,0,3"},
	} {
		h := vpi(c.list)
		will := nic.WithHidden(h, []string{"0000:3b:00.0"})
		params, err := nic.WithVFs(will, nic.Of("nmlx5_core"), nil,
			nic.Wish{VFs: map[string]int{"0000:3b:00.0": 8}, Used: map[string]int{"0000:5e:00.0": 3}})
		if err != nil || params["max_vfs"] != c.want {
			t.Errorf("%s: max_vfs=%s, want %s (%v)", name, params["max_vfs"], c.want, err)
		}
	}
}
