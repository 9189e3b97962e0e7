package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Current gives the value that a setting has in an inventory, in the shape in which plans ask for it: Absent where the
// thing does not exist, and a value that is not Known where the inventory does not say.
func Current(inv *backends.Inventory, s backends.Setting) backends.Value {
	unread := backends.Unknown(s.Target.String() + " is read")
	switch s.Target.Type {
	case backends.TypeSwitch:
		if sw := inv.Switch(s.Target.Name); sw != nil {
			return backends.ValueOf(switchSpec(sw))
		}
		return backends.Absent
	case backends.TypePortGroup:
		if pg := inv.PortGroup(s.Target.Name); pg != nil {
			return portGroupValue(pg)
		}
		return backends.Absent
	case backends.TypeHost:
		if h := inv.Host(s.Target.Name); h != nil {
			return hostValue(inv, h, s, unread)
		}
	case backends.TypeVM:
		if v := inv.VM(s.Target.Name); v != nil {
			return vmValue(inv, v, s, unread)
		}
	case backends.TypeGuest:
		v, g := inv.VM(s.Target.Name), inv.Guest(s.Target.Name)
		if v != nil && g != nil && g.Error == "" {
			return guestValue(v, g, s, unread)
		}
	}
	return unread
}

func switchSpec(sw *backends.Switch) backends.SwitchSpec {
	return backends.SwitchSpec{
		Datacenter: sw.Datacenter, Version: sw.Version, Uplinks: len(sw.Uplinks), MTU: sw.MTU, NIOC: sw.NIOC, Discovery: sw.Discovery,
	}
}

// portGroupValue is a PortGroupSpec; a trunk or private VLAN, which the spec cannot hold, stands as text.
func portGroupValue(pg *backends.PortGroup) backends.Value {
	vlan, err := strconv.Atoi(pg.VLAN)
	if err != nil {
		return backends.ValueOf(map[string]any{"switch": pg.Switch, "vlan": pg.VLAN, "active": pg.Active, "binding": pg.Binding})
	}
	return backends.ValueOf(backends.PortGroupSpec{Switch: pg.Switch, VLAN: vlan, Active: pg.Active, Binding: pg.Binding})
}

func hostValue(inv *backends.Inventory, h *backends.Host, s backends.Setting, unread backends.Value) backends.Value {
	switch s.Kind {
	case backends.KindMember:
		sw := inv.Switch(s.Name)
		if sw == nil {
			return backends.Absent
		}
		m, is := sw.Members[h.Name]
		if !is {
			return backends.Absent
		}
		return backends.ValueOf(backends.MemberSpec{PNICs: append([]string{}, m.PNICs...)})
	case backends.KindOption:
		if v, ok := h.Options[s.Name]; ok {
			return backends.ValueOf(v)
		}
	case backends.KindFirewall:
		if r, ok := h.Firewall[s.Name]; ok {
			return backends.ValueOf(r.Enabled)
		}
	case backends.KindPower:
		if h.PowerPolicy != "" {
			return backends.ValueOf(h.PowerPolicy)
		}
	case backends.KindVFs, backends.KindActiveVFs:
		return vfsValue(h, s, unread)
	case backends.KindPassthrough, backends.KindActivePassthrough:
		return passedValue(h, s, unread)
	case backends.KindComponent, backends.KindModuleParams, backends.KindFirmware, backends.KindPause:
		if h.System != nil && h.System.Error == "" {
			return systemValue(h.System, s, unread)
		}
	}
	return unread
}

func passedValue(h *backends.Host, s backends.Setting, unread backends.Value) backends.Value {
	i := slices.IndexFunc(h.PCI, func(d backends.PCIDevice) bool { return strings.EqualFold(d.Address, s.Name) })
	switch {
	case i < 0:
		return unread
	case s.Kind == backends.KindActivePassthrough:
		return backends.ValueOf(h.PCI[i].Active)
	}
	return backends.ValueOf(h.PCI[i].Enabled)
}

func vfsValue(h *backends.Host, s backends.Setting, unread backends.Value) backends.Value {
	i := slices.IndexFunc(h.NICs, func(n backends.NIC) bool { return strings.EqualFold(n.PCI, s.Name) })
	if i < 0 {
		return unread
	}
	n := h.NICs[i].SRIOV
	if n == nil {
		n = &backends.SRIOV{}
	}
	if s.Kind == backends.KindActiveVFs {
		return backends.ValueOf(n.VFs)
	}
	if !n.Enabled {
		return backends.ValueOf(backends.VFSpec{})
	}
	return backends.ValueOf(backends.VFSpec{Enabled: true, VFs: n.Requested})
}

// systemValue is what the next boot will have.
func systemValue(sys *backends.HostSystem, s backends.Setting, unread backends.Value) backends.Value {
	switch s.Kind {
	case backends.KindComponent:
		image := sys.VIBs
		if sys.NextVIBs != nil {
			image = sys.NextVIBs
		}
		if v, there := image[s.Name]; there {
			return backends.ValueOf(v)
		}
		return backends.Absent
	case backends.KindModuleParams:
		if m, there := sys.Modules[s.Name]; there {
			return paramsValue(m.Params)
		}
	case backends.KindPause:
		if p, there := sys.Pause[s.Name]; there {
			return backends.ValueOf(p)
		}
	case backends.KindFirmware:
		if f, there := sys.Firmware[s.Name]; there {
			return backends.ValueOf(f.Next)
		}
	}
	return unread
}

func vmValue(inv *backends.Inventory, v *backends.VM, s backends.Setting, unread backends.Value) backends.Value {
	switch s.Kind {
	case backends.KindHardware:
		return backends.ValueOf(v.Hardware)
	case backends.KindNested:
		return backends.ValueOf(v.Nested)
	case backends.KindDevice:
		return deviceValue(inv.Host(v.Host), v, s.Name)
	case backends.KindMemory:
		return backends.ValueOf(backends.MemorySpec{Locked: v.MemoryLocked, ReservationMB: v.Reservation})
	case backends.KindCPU:
		if v.CPUReserved != nil {
			return backends.ValueOf(*v.CPUReserved)
		}
	case backends.KindLatency:
		return backends.ValueOf(orElse(v.Latency, latencyNormal))
	case backends.KindExtra:
		if strings.EqualFold(s.Name, backends.NodeAffinityKey) && v.NodeAffinity != nil {
			if *v.NodeAffinity == "" {
				return backends.Absent
			}
			return backends.ValueOf(*v.NodeAffinity)
		}
		if v.Extra != nil {
			return extraValue(v, s.Name)
		}
	case backends.KindAdapter:
		if a := rdmaAdapter(v, s.Name); a != nil {
			return backends.ValueOf(adapterSpec(a))
		}
		return backends.Absent
	}
	return unread
}

// extraValue is a VMX key, whatever its spelling.
func extraValue(v *backends.VM, key string) backends.Value {
	for _, k := range sortedKeys(v.Extra) {
		if strings.EqualFold(k, key) && v.Extra[k] != "" {
			return backends.ValueOf(v.Extra[k])
		}
	}
	return backends.Absent
}

// deviceValue is the device that a VM has at an address of its host. A dynamic one that has no address, because the VM is
// off, counts as the one at an address of its make.
func deviceValue(h *backends.Host, v *backends.VM, pci string) backends.Value {
	for _, d := range v.Devices {
		at := d.PCI
		if at == "" && d.Backing == backends.DynamicBacking && h != nil {
			if i := slices.IndexFunc(h.PCI, func(c backends.PCIDevice) bool {
				return c.Address == pci && c.Vendor == d.Vendor && c.Device == d.Device
			}); i >= 0 {
				at = pci
			}
		}
		if strings.EqualFold(at, pci) {
			return backends.ValueOf(backends.DeviceSpec{Backing: d.Backing, Vendor: d.Vendor, Device: d.Device})
		}
	}
	return backends.Absent
}

func adapterSpec(a *backends.Adapter) backends.AdapterSpec {
	return backends.AdapterSpec{
		Type: a.Type, PortGroup: a.PortGroup, Switch: a.Switch, Protocol: a.Protocol, Start: a.Start, GuestMTU: a.GuestMTU, PF: a.PF,
	}
}

// rdmaAdapter finds a VM's RDMA adapter on a port group.
func rdmaAdapter(v *backends.VM, portgroup string) *backends.Adapter {
	i := slices.IndexFunc(v.Adapters, func(a backends.Adapter) bool {
		return a.PortGroup == portgroup && (a.Type == "pvrdma" || a.Type == "sriov")
	})
	if i < 0 {
		return nil
	}
	return &v.Adapters[i]
}

// rdmaMAC is the MAC by which a guest's RDMA interface is known: that of the adapter on the port group, else that of a card
// that is passed through; "" where there is neither.
func rdmaMAC(v *backends.VM, g *backends.Guest, portgroup string) string {
	if a := rdmaAdapter(v, portgroup); a != nil {
		return a.MAC
	}
	if len(v.Passthrough) == 0 || g == nil {
		return ""
	}
	if d := g.Card(v); d != nil {
		return d.MAC
	}
	return ""
}

func guestValue(v *backends.VM, g *backends.Guest, s backends.Setting, unread backends.Value) backends.Value {
	switch s.Kind {
	case backends.KindPersist:
		return persistValue(g.Persist)
	case backends.KindMemlock:
		return backends.ValueOf(memlock(g.MemlockKB))
	case backends.KindBuild:
		if g.Built == nil {
			return unread
		}
		if file := g.Built[s.Name]; file != "" {
			return backends.ValueOf(file)
		}
		return backends.Absent
	case backends.KindOFED:
		return ofedValue(g)
	case backends.KindModules, backends.KindPackages:
		return unread // a matter of which ones were asked for: see membersOf
	case backends.KindImage:
		return imageValue(g, s.Name)
	}
	mac := rdmaMAC(v, g, s.Name)
	if mac == "" {
		return backends.Absent
	}
	switch s.Kind {
	case backends.KindAddress:
		return addressValue(g.Interface(mac), "")
	case backends.KindTrafficClass:
		if d := g.Verbs(mac); d != nil && d.ClassKept {
			return backends.ValueOf(*d.Class)
		}
		return backends.Absent
	case backends.KindPort:
		if d := g.Verbs(mac); d != nil {
			return backends.ValueOf(d.State)
		}
		return backends.Absent
	}
	return unread
}

// imageValue is the Dockerfile that an image was built by, Absent where there is no such image.
func imageValue(g *backends.Guest, name string) backends.Value {
	if g.Engine == nil {
		return backends.Absent
	}
	text, there := g.Engine.Images[name]
	if !there {
		return backends.Absent
	}
	return backends.ValueOf(text)
}

func persistValue(p backends.Persist) backends.Value {
	if len(p.Modules) == 0 && p.Reload == "" && len(p.Options) == 0 {
		return backends.Absent
	}
	p.Modules = append([]string{}, p.Modules...)
	if len(p.Options) == 0 {
		p.Options = nil
	}
	return backends.ValueOf(p)
}

func memlock(kb int64) string {
	if kb < 0 {
		return "unlimited"
	}
	return strconv.FormatInt(kb, 10)
}

// addressValue is what an interface keeps over a reboot: the wanted address where it is one of several, else the first.
func addressValue(i *backends.Interface, want string) backends.Value {
	if i == nil || !i.Persistent || len(i.Addresses) == 0 {
		return backends.Absent
	}
	cidr := i.Addresses[0]
	if slices.Contains(i.Addresses, want) {
		cidr = want
	}
	return backends.ValueOf(backends.AddressSpec{CIDR: cidr, MTU: i.MTU})
}

// membersOf gives those of the wanted packages or modules that a guest has, as the value of their setting.
func membersOf(g *backends.Guest, kind backends.Kind, wanted []string) backends.Value {
	if kind == backends.KindModules {
		return backends.ValueOf(held(wanted, func(m string) bool { return slices.Contains(g.Loaded, m) }))
	}
	sorted := slices.Sorted(slices.Values(wanted))
	return backends.ValueOf(backends.PackageSpec{Installed: held(sorted, func(p string) bool { return g.Packages[p] != "" })})
}

// held gives those of the wanted names that are there, in the order of wanted.
func held(wanted []string, there func(string) bool) []string {
	out := []string{}
	for _, w := range wanted {
		if there(w) {
			out = append(out, w)
		}
	}
	return out
}
