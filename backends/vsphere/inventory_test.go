package vsphere_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
)

func inventory(t *testing.T, c *vsphere.Client, scope backends.Scope) *backends.Inventory {
	t.Helper()
	inv, err := c.Inventory(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

func TestInventoryOfStock(t *testing.T) {
	// vcsim reports itself with this name (govmomi, vcsim/main.go): it is not a lab of this program.
	w := start(t, func(m *simulator.Model) { m.ServiceContent.About.Name += " (govmomi simulator)" }, nil)
	inv := inventory(t, w.dial(t), backends.Scope{Details: true})
	if len(inv.Hosts) != 4 || len(inv.VMs) != 4 || len(inv.Switches) != 1 || inv.VCenter.Simulated {
		t.Errorf("%d hosts, %d VMs, %d switches", len(inv.Hosts), len(inv.VMs), len(inv.Switches))
	}
	for _, h := range inv.Hosts {
		for _, n := range h.NICs {
			if n.Eligible || !strings.Contains(n.Why, "no RDMA device") {
				t.Errorf("%s %s: %v, %s", h.Name, n.Device, n.Eligible, n.Why)
			}
		}
	}
	if alone := inv.Host("DC0_H0"); alone == nil || alone.Cluster != "" || alone.Datacenter != "DC0" ||
		alone.Path != "/DC0/host/DC0_H0/DC0_H0" {
		t.Errorf("%+v", alone)
	}
	// Facts that this vCenter cannot report are gaps, not errors.
	if !slices.ContainsFunc(inv.Gaps, func(g backends.Gap) bool { return g.What == "DVS versions on offer" }) {
		t.Errorf("gaps: %+v", inv.Gaps)
	}
}

func TestInventoryOfLab(t *testing.T) {
	_, c := startLab(t, lab.Options{Scenario: "done"})
	inv := inventory(t, c, backends.Scope{Details: true})
	if !inv.VCenter.Simulated || len(inv.VCenter.DVSVersions) == 0 || inv.VCenter.DVSVersions[0] != "6.6.0" {
		t.Errorf("%+v", inv.VCenter)
	}
	if skew := inv.VCenter.Clock.Sub(inv.VCenter.ClockAsked).Abs(); skew.Seconds() > 5 {
		t.Errorf("the clocks differ by %s", skew)
	}
	h := inv.Host("esx-01")
	if h == nil || h.Cluster == "" || h.Version != "8.0.3" || h.Options[option] != "vmk0" || !h.Firewall["pvrdma"].Enabled {
		t.Fatalf("%+v", h)
	}
	want := backends.NIC{
		Device: "vmnic2", MAC: h.NIC("vmnic2").MAC, SpeedMbps: 100000, MaxSpeedMbps: 100000, FullDuplex: true,
		Driver: "nmlx5_core", DriverVersion: h.NIC("vmnic2").DriverVersion, Firmware: h.NIC("vmnic2").Firmware,
		PCI: "0000:3b:00.0", Vendor: "15b3", PCIDeviceID: "1017", Model: "MT27800 Family [ConnectX-5]", NUMA: 0,
		RDMADevice: "vmrdma0", RoCEv1: true, RoCEv2: true, RDMAState: "active", SRIOV: h.NIC("vmnic2").SRIOV,
		Switch: "RDMA-DVS", Roles: []string{}, Eligible: true, Why: "RoCE v2 (vmrdma0), 100G, link up, uplink of RDMA-DVS",
	}
	if diff := cmp.Diff(want, *h.NIC("vmnic2")); diff != "" {
		t.Error(diff)
	}
	if n := h.NIC("vmnic0"); n.Eligible || n.Switch != "vSwitch0" || !slices.Equal(n.Roles, []string{"management"}) {
		t.Errorf("%+v", n)
	}
	if n := h.NIC("vmnic3"); n.SpeedMbps != 0 || n.Eligible || !strings.Contains(n.Why, "no link") {
		t.Errorf("%+v", n)
	}
	if len(h.GPUs) != 2 || h.GPUs[0].RootPort == h.GPUs[1].RootPort || h.GPUs[0].MemoryMB != 81920 || h.GPUs[1].NUMA != 1 {
		t.Errorf("%+v", h.GPUs)
	}
	s, g := inv.Switch("RDMA-DVS"), inv.PortGroup("RDMA-PG")
	if s == nil || g == nil || s.MTU != 9000 || s.Members["esx-02"].PNICs[0] != "vmnic2" || g.Switch != s.Name ||
		g.Free != g.Ports-len(inv.VMs) || len(s.VMs) != len(inv.VMs) {
		t.Errorf("%+v\n%+v", s, g)
	}
	v := inv.VM("vm-01")
	if v == nil || v.Hardware != 19 || v.Firmware != "efi" || !v.MemoryLocked || v.Reservation != v.MemoryMB || len(v.Adapters) != 2 {
		t.Fatalf("%+v", v)
	}
	if a := v.Adapters[1]; a.Type != "pvrdma" || a.PortGroup != "RDMA-PG" || a.Switch != "RDMA-DVS" || a.Protocol != "rocev2" || !a.Connected {
		t.Errorf("%+v", a)
	}
}

func TestReasonsOfUnfitHosts(t *testing.T) {
	_, c := startLab(t, lab.Options{Scenario: "mixed"})
	inv := inventory(t, c, backends.Scope{})
	for host, why := range map[string]string{
		"esx-01": "free", "esx-03": "no RDMA device", "esx-04": "iWARP only", "esx-05": "no link", "esx-06": "carries management",
	} {
		n := inv.Host(host).NIC("vmnic2")
		if n.Eligible != (host == "esx-01") || !strings.Contains(n.Why, why) {
			t.Errorf("%s: eligible %v, %s", host, n.Eligible, n.Why)
		}
	}
}

func TestScope(t *testing.T) {
	testclass.Plain(t)
	w := start(t, func(m *simulator.Model) { m.Datacenter, m.Cluster = 2, 2 }, listOption)
	c := w.dial(t)
	for _, tt := range []struct {
		name  string
		scope backends.Scope
		hosts int
		kind  backends.ErrorKind
	}{
		{"all", backends.Scope{}, 14, ""},
		{"one datacenter", backends.Scope{Datacenter: "DC1"}, 7, ""},
		{"one datacenter by path", backends.Scope{Datacenter: "/DC1"}, 7, ""},
		{"one cluster", backends.Scope{Cluster: "DC1_C0"}, 3, ""},
		{"a cluster of another datacenter", backends.Scope{Datacenter: "DC0", Cluster: "DC1_C0"}, 0, backends.KindRefused},
		{"no such datacenter", backends.Scope{Datacenter: "DC9"}, 0, backends.KindRefused},
		{"no such cluster", backends.Scope{Cluster: "none"}, 0, backends.KindRefused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inv, err := c.Inventory(t.Context(), tt.scope)
			check(t, err, tt.kind, "there is no")
			if tt.kind == "" && len(inv.Hosts) != tt.hosts {
				t.Errorf("%d hosts", len(inv.Hosts))
			}
		})
	}
	inv := inventory(t, c, backends.Scope{Hosts: []string{"DC1_H0"}, VMs: []string{}, Details: true})
	for _, h := range inv.Hosts {
		if (h.Options != nil) != (h.Name == "DC1_H0") {
			t.Errorf("%s: details %v", h.Name, h.Options)
		}
	}
}

func TestNames(t *testing.T) {
	w := start(t, nil, func(m *simulator.Model) {
		names := []string{"rack 1%2fdb %25", "twin", "twin"}
		for i, e := range m.Map().All("VirtualMachine")[:3] {
			vm := m.Map().Get(e.Reference()).(*simulator.VirtualMachine)
			vm.Name = names[i]
			if i == 2 { // a second VM of that name, in a folder of its own
				folder := &simulator.Folder{}
				folder.Name, folder.Parent = "old", vm.Parent
				top := m.Map().Get(*vm.Parent).(*simulator.Folder)
				m.Map().Put(folder)
				top.ChildEntity = append(slices.DeleteFunc(top.ChildEntity, func(r types.ManagedObjectReference) bool { return r == vm.Self }),
					folder.Self)
				folder.ChildEntity = []types.ManagedObjectReference{vm.Self}
				vm.Parent = &folder.Self
			}
		}
	})
	c := w.dial(t)
	inv := inventory(t, c, backends.Scope{})
	var names []string
	for _, v := range inv.VMs {
		names = append(names, v.Name)
	}
	for _, want := range []string{"rack 1/db %", "/DC0/vm/twin", "/DC0/vm/old/twin"} {
		if !slices.Contains(names, want) {
			t.Errorf("no VM %q among %q", want, names)
			continue
		}
		s := backends.Setting{Target: backends.VMRef(want), Kind: backends.KindHardware}
		if _, err := c.Setters()[s.Kind].Read(t.Context(), s); err != nil {
			t.Errorf("%q cannot be read: %v", want, err)
		}
	}
	s := backends.Setting{Target: backends.VMRef("twin"), Kind: backends.KindHardware}
	_, err := c.Setters()[s.Kind].Read(t.Context(), s)
	check(t, err, backends.KindRefused, "/DC0/vm/old/twin, /DC0/vm/twin")
}

func TestOlderVCenter(t *testing.T) {
	w := start(t, nil, nil)
	p := between(t, w)
	c := p.dial(t)
	// 6.7 does not have rdmaDevice and refuses the complete read.
	p.refuse("config.network.rdmaDevice")
	inv := inventory(t, c, backends.Scope{})
	if len(inv.Hosts) != 4 || len(inv.Hosts[0].NICs) == 0 {
		t.Errorf("%d hosts", len(inv.Hosts))
	}
	if !slices.ContainsFunc(inv.Gaps, func(g backends.Gap) bool { return strings.Contains(g.What, "rdmaDevice") }) {
		t.Errorf("gaps: %+v", inv.Gaps)
	}
}
