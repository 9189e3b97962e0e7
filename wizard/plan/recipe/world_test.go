package recipe_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic/mlx5"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// connectX knows the names of the drivers of the cards in these tests.
var connectX = mlx5.Family{}

// newInventory returns a small healthy data centre: ConnectX-4 Lx 25G with management and a free ConnectX-5 100G, one Ubuntu VM for
// each host, all powered on.
func newInventory(hosts int) *backends.Inventory {
	inv := &backends.Inventory{VCenter: backends.VCenter{DVSVersions: []string{"7.0.0", "7.0.2", "7.0.3", "8.0.0", "8.0.3"}}}
	for i := 1; i <= hosts; i++ {
		name := fmt.Sprintf("esx-%02d", i)
		inv.Hosts = append(inv.Hosts, backends.Host{
			Name: name, Datacenter: "DC", Cluster: "compute", Version: "8.0.3", State: "connected", MemoryMB: 1 << 19,
			NICs: []backends.NIC{
				{Device: "vmnic0", MAC: fmt.Sprintf("0c:42:a1:1a:%02x:00", i), SpeedMbps: 25000, MaxSpeedMbps: 25000, Driver: connectX.Driver(),
					PCI: "0000:1a:00.0", RDMADevice: "vmrdma0", RoCEv1: true, RoCEv2: true, Switch: "vSwitch0", Roles: []string{"management"}},
				{Device: "vmnic2", MAC: fmt.Sprintf("0c:42:a1:3b:%02x:00", i), SpeedMbps: 100000, MaxSpeedMbps: 100000, Driver: connectX.Driver(),
					PCI: "0000:3b:00.0", RDMADevice: "vmrdma2", RoCEv1: true, RoCEv2: true},
				{Device: "vmnic3", MAC: fmt.Sprintf("0c:42:a1:3b:%02x:01", i), MaxSpeedMbps: 100000, Driver: connectX.Driver(),
					PCI: "0000:3b:00.1", RDMADevice: "vmrdma3", RoCEv1: true, RoCEv2: true},
			},
			VMKs:     []backends.VMKernelNIC{{Device: "vmk0", IP: fmt.Sprintf("10.0.1.%d", i), PrefixLen: 24, MTU: 1500}},
			Options:  map[string]string{"Net.PVRDMAVmknic": ""},
			Firewall: map[string]backends.Ruleset{"pvrdma": {AllIP: true}},
		})
		inv.VMs = append(inv.VMs, newVM(i, name))
		inv.Guests = append(inv.Guests, newGuest(i))
	}
	return inv
}

func newVM(i int, host string) backends.VM {
	name := fmt.Sprintf("vm-%02d", i)
	return backends.VM{
		Name: name, Path: "/DC/vm/" + name, Datacenter: "DC", Cluster: "compute", Host: host, Power: "poweredOn", Hardware: 19,
		CPUs: 8, MemoryMB: 16384, Firmware: "efi",
		Adapters: []backends.Adapter{{Label: "Network adapter 1", Type: "vmxnet3", MAC: fmt.Sprintf("00:50:56:00:%02x:00", i),
			PortGroup: "VM Network", Start: true}},
	}
}

func newGuest(i int) backends.Guest {
	return backends.Guest{
		VM: fmt.Sprintf("vm-%02d", i), User: "ubuntu", OS: "ubuntu", Version: "22.04", Like: []string{"debian"}, Kernel: "5.15.0-100-generic",
		Sudo: "nopasswd", Packages: map[string]string{}, MemlockKB: 65536,
		Available: []string{"ib_umad", "rdma_cm", "rdma_ucm", "vmw_pvrdma"},
		Interfaces: []backends.Interface{{Name: "ens192", MAC: fmt.Sprintf("00:50:56:00:%02x:00", i), MTU: 1500, Up: true,
			Addresses: []string{fmt.Sprintf("10.0.0.%d/24", i)}, Persistent: true}},
	}
}

func newAnswers(inv *backends.Inventory) *answers.Answers {
	a := answers.Default(answers.PVRDMA)
	a.Hosts.Datacenter = "DC"
	a.NIC.Speed = 100000
	for i, v := range inv.VMs {
		vm := answers.DefaultVM(v.Name)
		vm.IP.Prefix = netip.MustParsePrefix(fmt.Sprintf("192.168.50.%d/24", 10+i))
		a.VMs = append(a.VMs, vm)
	}
	return a
}

// clone returns a copy of an inventory that shares nothing with it.
func clone(t *testing.T, inv *backends.Inventory) *backends.Inventory {
	t.Helper()
	b, err := json.Marshal(inv)
	if err != nil {
		t.Fatal(err)
	}
	var out backends.Inventory
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

// setWorld sets one value in the inventory, as vCenter and a guest would.
func setWorld(t *testing.T, inv *backends.Inventory, s backends.Setting, to backends.Value) {
	t.Helper()
	switch s.Target.Type {
	case backends.TypeSwitch, backends.TypePortGroup:
		setNetwork(t, inv, s, to)
	case backends.TypeHost:
		setHost(t, inv, s, to)
	case backends.TypeVM:
		setVM(t, inv, s, to)
	case backends.TypeGuest:
		setGuest(t, inv, s, to)
	}
}

func decode[T any](t *testing.T, v backends.Value) T {
	t.Helper()
	var out T
	if err := v.Decode(&out); err != nil {
		t.Fatalf("value %s: %v", v, err)
	}
	return out
}

func setNetwork(t *testing.T, inv *backends.Inventory, s backends.Setting, to backends.Value) {
	name := s.Target.Name
	if to.IsAbsent() {
		for _, h := range inv.Hosts {
			if k := slices.IndexFunc(h.VMKs,
				func(k backends.VMKernelNIC) bool { return s.Kind == backends.KindPortGroup && k.PortGroup == name }); k >= 0 {
				t.Fatalf("%s is removed while %s of %s is on it", s.ID(), h.VMKs[k].Device, h.Name)
			}
		}
		inv.Switches = slices.DeleteFunc(inv.Switches, func(x backends.Switch) bool { return s.Kind == backends.KindSwitch && x.Name == name })
		inv.PortGroups = slices.DeleteFunc(inv.PortGroups,
			func(x backends.PortGroup) bool { return s.Kind == backends.KindPortGroup && x.Name == name })
		for i := range inv.Switches {
			inv.Switches[i].PortGroups = slices.DeleteFunc(inv.Switches[i].PortGroups, func(p string) bool { return p == name })
		}
		return
	}
	if s.Kind == backends.KindPortGroup {
		spec := decode[backends.PortGroupSpec](t, to)
		sw := inv.Switch(spec.Switch)
		if sw == nil {
			t.Fatalf("%s before its switch", s.ID())
		}
		if spec.Active == nil {
			spec.Active = sw.Uplinks[:1]
		}
		if inv.PortGroup(name) == nil {
			inv.PortGroups = append(inv.PortGroups, backends.PortGroup{Name: name, Switch: spec.Switch})
			sw.PortGroups = append(sw.PortGroups, name)
		}
		pg := inv.PortGroup(name)
		pg.VLAN, pg.Active, pg.Binding = fmt.Sprint(spec.VLAN), spec.Active, spec.Binding
		return
	}
	spec := decode[backends.SwitchSpec](t, to)
	if inv.Switch(name) == nil {
		inv.Switches = append(inv.Switches, backends.Switch{Name: name, Datacenter: spec.Datacenter, Members: map[string]backends.Member{},
			Note: backends.SwitchMark})
	}
	sw := inv.Switch(name)
	sw.Version, sw.MTU, sw.NIOC, sw.Discovery = spec.Version, spec.MTU, spec.NIOC, spec.Discovery
	for len(sw.Uplinks) < spec.Uplinks {
		sw.Uplinks = append(sw.Uplinks, fmt.Sprintf("Uplink %d", len(sw.Uplinks)+1))
	}
	sw.Uplinks = sw.Uplinks[:spec.Uplinks]
}

func setHost(t *testing.T, inv *backends.Inventory, s backends.Setting, to backends.Value) {
	h := inv.Host(s.Target.Name)
	switch s.Kind {
	case backends.KindOption:
		h.Options[s.Name] = decode[string](t, to)
	case backends.KindFirewall:
		r := h.Firewall[s.Name]
		r.Enabled = decode[bool](t, to)
		h.Firewall[s.Name] = r
	case backends.KindVMKNic:
		h.VMKs = slices.DeleteFunc(h.VMKs, func(k backends.VMKernelNIC) bool { return k.IP == s.Name })
		if !to.IsAbsent() {
			spec := decode[backends.VMKSpec](t, to)
			h.VMKs = append(h.VMKs, backends.VMKernelNIC{Device: fmt.Sprintf("vmk%d", len(h.VMKs)), IP: s.Name, PrefixLen: spec.PrefixLen,
				MTU:       spec.MTU,
				PortGroup: spec.PortGroup, Switch: inv.PortGroup(spec.PortGroup).Switch})
		}
	case backends.KindMember:
		sw := inv.Switch(s.Name)
		if sw == nil {
			t.Fatalf("%s before its switch", s.ID())
		}
		for _, v := range inv.VMs {
			for _, a := range v.Adapters {
				if a.Type == "pvrdma" && a.Switch == sw.Name && v.Host == h.Name && v.Power == "poweredOn" {
					t.Fatalf("%s while %s is on: RDMA uplinks change only with PVRDMA VMs off", s.ID(), v.Name)
				}
			}
		}
		var spec backends.MemberSpec
		if to.IsAbsent() {
			delete(sw.Members, h.Name)
		} else {
			spec = decode[backends.MemberSpec](t, to)
			sw.Members[h.Name] = backends.Member{PNICs: spec.PNICs, Status: "up"}
		}
		for i := range h.NICs {
			n := &h.NICs[i]
			if slices.Contains(spec.PNICs, n.Device) {
				n.Switch = sw.Name
			} else if n.Switch == sw.Name {
				n.Switch = ""
			}
		}
	}
}

func setVM(t *testing.T, inv *backends.Inventory, s backends.Setting, to backends.Value) {
	v := inv.VM(s.Target.Name)
	if v.Power != "poweredOff" {
		t.Fatalf("%s while the VM is %s", s.ID(), v.Power)
	}
	switch s.Kind {
	case backends.KindHardware:
		v.Hardware = decode[int](t, to)
	case backends.KindMemory:
		m := decode[backends.MemorySpec](t, to)
		v.MemoryLocked, v.Reservation = m.Locked, m.ReservationMB
	case backends.KindCPU:
		mhz := decode[int64](t, to)
		v.CPUReserved = &mhz
	case backends.KindLatency:
		v.Latency = decode[string](t, to)
	case backends.KindExtra:
		affinity := ""
		if !to.IsAbsent() {
			affinity = decode[string](t, to)
		}
		v.NodeAffinity = &affinity
	case backends.KindAdapter:
		v.Adapters = slices.DeleteFunc(v.Adapters, func(a backends.Adapter) bool { return a.Type == "pvrdma" && a.PortGroup == s.Name })
		if to.IsAbsent() {
			return
		}
		spec := decode[backends.AdapterSpec](t, to)
		sw := inv.Switch(spec.Switch)
		if sw == nil || inv.PortGroup(s.Name) == nil {
			t.Fatalf("%s before its port group", s.ID())
		}
		if _, member := sw.Members[v.Host]; !member {
			t.Fatalf("%s before %s is a member", s.ID(), v.Host)
		}
		v.Adapters = append(v.Adapters, backends.Adapter{Type: spec.Type, PortGroup: spec.PortGroup, Switch: spec.Switch,
			Protocol: spec.Protocol, Start: spec.Start, MAC: fmt.Sprintf("00:50:56:aa:%02x:%02x", len(v.Adapters), v.Name[len(v.Name)-1])})
	}
}

func setGuest(t *testing.T, inv *backends.Inventory, s backends.Setting, to backends.Value) {
	v, g := inv.VM(s.Target.Name), inv.Guest(s.Target.Name)
	if v.Power != "poweredOn" {
		t.Fatalf("%s while the VM is %s", s.ID(), v.Power)
	}
	switch s.Kind {
	case backends.KindPackages:
		g.Packages = map[string]string{}
		for _, p := range decode[backends.PackageSpec](t, to).Installed {
			g.Packages[p] = "1"
		}
	case backends.KindModules:
		g.Loaded = decode[[]string](t, to)
	case backends.KindPersist:
		g.Persist = backends.Persist{}
		if !to.IsAbsent() {
			g.Persist = decode[backends.Persist](t, to)
		}
	case backends.KindMemlock:
		g.MemlockKB = -1
		if text := decode[string](t, to); text != "unlimited" {
			if _, err := fmt.Sscan(text, &g.MemlockKB); err != nil {
				t.Fatal(err)
			}
		}
	case backends.KindAddress, backends.KindPort:
		setPort(t, v, g, s, to)
	}
}

func setPort(t *testing.T, v *backends.VM, g *backends.Guest, s backends.Setting, to backends.Value) {
	k := slices.IndexFunc(v.Adapters, func(a backends.Adapter) bool { return a.PortGroup == s.Name })
	if k < 0 {
		t.Fatalf("%s without an adapter", s.ID())
	}
	mac := v.Adapters[k].MAC
	if s.Kind == backends.KindPort {
		if !slices.Contains(g.Loaded, "vmw_pvrdma") {
			t.Fatalf("%s before the modules", s.ID())
		}
		g.Verbs(mac).State = decode[string](t, to)
		return
	}
	i := g.Interface(mac)
	if to.IsAbsent() {
		i.Addresses, i.MTU, i.Persistent = nil, 1500, false
		return
	}
	spec := decode[backends.AddressSpec](t, to)
	i.Addresses, i.MTU, i.Persistent, i.Up = []string{spec.CIDR}, spec.MTU, true, true
}

// boot changes the inventory as a guest's power-on does.
func boot(inv *backends.Inventory, v *backends.VM) {
	g := inv.Guest(v.Name)
	if g == nil {
		return
	}
	g.Loaded, g.RDMA = nil, nil
	g.Interfaces = slices.DeleteFunc(g.Interfaces, func(i backends.Interface) bool {
		return !slices.ContainsFunc(v.Adapters, func(a backends.Adapter) bool { return a.MAC == i.MAC })
	})
	g.Loaded = append(g.Loaded, g.Persist.Modules...)
	for _, a := range v.Adapters {
		if a.Type != "pvrdma" {
			continue
		}
		if g.Interface(a.MAC) == nil {
			g.Interfaces = append(g.Interfaces, backends.Interface{Name: "ens224f0", MAC: a.MAC, MTU: 1500})
		}
		if !slices.Contains(g.Loaded, "vmw_pvrdma") {
			g.Loaded = append(g.Loaded, "vmw_pvrdma")
		}
		state := "PORT_DOWN"
		if g.Persist.Reload != "" {
			state = "PORT_ACTIVE"
		}
		g.RDMA = append(g.RDMA, backends.VerbsDevice{Name: "rocep19s0f1", MAC: a.MAC, State: state})
	}
}

// reboot restarts every guest, so that inventories can be compared except for the state of kernels.
func reboot(invs ...*backends.Inventory) {
	for _, inv := range invs {
		for i := range inv.VMs {
			boot(inv, &inv.VMs[i])
		}
	}
}
