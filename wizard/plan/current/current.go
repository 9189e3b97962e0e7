// Package current returns the current value of a setting from the inventory, and compares values.
package current

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Value returns the value of a setting in an inventory, in the shape that plans use: Absent if the thing does not exist, and a
// value that is not Known if the inventory does not contain it.
func Value(inv *backends.Inventory, s backends.Setting) backends.Value {
	unread := backends.Unknown(s.Target.String() + " is read")
	switch s.Target.Type {
	case backends.TypeSwitch:
		if sw := inv.Switch(s.Target.Name); sw != nil {
			return backends.ValueOf(Switch(sw))
		}
		return backends.Absent
	case backends.TypePortGroup:
		if pg := inv.PortGroup(s.Target.Name); pg != nil {
			return PortGroup(pg)
		}
		return backends.Absent
	case backends.TypeCluster:
		if c := inv.Cluster(s.Target.Name); c != nil && c.Image != nil {
			if c.Image.Error != "" {
				return unread
			}
			return c.Image.Component(s.Name)
		}
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

// Switch returns the spec of a switch.
func Switch(sw *backends.Switch) backends.SwitchSpec {
	return backends.SwitchSpec{
		Datacenter: sw.Datacenter, Version: sw.Version, Uplinks: len(sw.Uplinks), MTU: sw.MTU, NIOC: sw.NIOC, Discovery: sw.Discovery,
	}
}

// PortGroup returns a PortGroupSpec; for a trunk or private VLAN, which the spec cannot represent, it returns text.
func PortGroup(pg *backends.PortGroup) backends.Value {
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
	case backends.KindVMKNic:
		i := slices.IndexFunc(h.VMKs, func(k backends.VMKernelNIC) bool { return k.IP == s.Name })
		if i < 0 {
			return backends.Absent
		}
		return backends.ValueOf(backends.VMKSpec{PortGroup: h.VMKs[i].PortGroup, PrefixLen: h.VMKs[i].PrefixLen, MTU: h.VMKs[i].MTU})
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
	case backends.KindGraphics:
		if h.GraphicsType != "" {
			return backends.ValueOf(backends.GraphicsSpec{Default: h.GraphicsType, Devices: h.GraphicsDevices})
		}
	case backends.KindActiveGraphics:
		return backends.ValueOf(h.ServesVGPUs())
	case backends.KindVFs, backends.KindActiveVFs:
		return vfsValue(h, s, unread)
	case backends.KindPassthrough, backends.KindActivePassthrough:
		return passedValue(h, s, unread)
	case backends.KindImageComponent, backends.KindComponent, backends.KindModuleParams, backends.KindFirmware, backends.KindPause:
		if h.System != nil {
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
	switch hidden := slices.ContainsFunc(h.Hidden, func(n backends.NIC) bool { return strings.EqualFold(n.PCI, s.Name) }); {
	case i < 0 && hidden && s.Kind == backends.KindActiveVFs:
		return backends.ValueOf(0)
	case i < 0:
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

// systemValue returns the value as of the next boot.
func systemValue(sys *backends.HostSystem, s backends.Setting, unread backends.Value) backends.Value {
	switch s.Kind {
	case backends.KindComponent:
		image := sys.Image()
		if v, there := image.Value[s.Name]; there {
			return backends.ValueOf(v.Version)
		}
		if image.Known() {
			return backends.Absent
		}
	case backends.KindImageComponent:
		if v, there := sys.Components.Value[s.Name]; there {
			return backends.ValueOf(v)
		}
		if sys.Components.Known() {
			return backends.Absent
		}
	case backends.KindModuleParams:
		if m := sys.Modules[s.Name]; m.Known() {
			return Params(m.Value.Params)
		}
	case backends.KindPause:
		if p, there := sys.Pause.Value[s.Name]; there {
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
	case backends.KindVGPU:
		if n := v.VGPUs(s.Name); n > 0 {
			return backends.ValueOf(n)
		}
		return backends.Absent
	case backends.KindDeviceGroup:
		if v.HasGroup(s.Name) {
			return backends.ValueOf(true)
		}
		return backends.Absent
	case backends.KindMemory:
		return backends.ValueOf(backends.MemorySpec{Locked: v.MemoryLocked, ReservationMB: v.Reservation})
	case backends.KindCPU:
		if v.CPUReserved != nil {
			return backends.ValueOf(*v.CPUReserved)
		}
	case backends.KindLatency:
		return backends.ValueOf(cmp.Or(v.Latency, "normal"))
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
		if a := RDMAAdapter(v, s.Name); a != nil {
			return backends.ValueOf(backends.AdapterSpec{
				Type: a.Type, PortGroup: a.PortGroup, Switch: a.Switch, Protocol: a.Protocol, Start: a.Start, GuestMTU: a.GuestMTU, PF: a.PF,
			})
		}
		return backends.Absent
	}
	return unread
}

func extraValue(v *backends.VM, key string) backends.Value {
	for _, k := range slices.Sorted(maps.Keys(v.Extra)) {
		if strings.EqualFold(k, key) && v.Extra[k] != "" {
			return backends.ValueOf(v.Extra[k])
		}
	}
	return backends.Absent
}

// deviceValue returns the device of a VM at a PCI address of its host. A dynamic one without an address, because the VM is off,
// matches the address of a device of its model.
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

// RDMAAdapter returns a VM's RDMA adapter on a port group, or nil.
func RDMAAdapter(v *backends.VM, portgroup string) *backends.Adapter {
	i := slices.IndexFunc(v.Adapters, func(a backends.Adapter) bool {
		return a.PortGroup == portgroup && (a.Type == "pvrdma" || a.Type == "sriov")
	})
	if i < 0 {
		return nil
	}
	return &v.Adapters[i]
}

// Same compares two values of a kind without fields that are documented as not compared.
func Same(kind backends.Kind, x, y backends.Value) bool {
	if x == y {
		return true
	}
	if kind == backends.KindOFED {
		return sameOFED(x, y)
	}
	if kind == backends.KindFirmwareImage {
		return sameImage(x, y)
	}
	var a, b backends.SwitchSpec
	if kind != backends.KindSwitch || x.Decode(&a) != nil || y.Decode(&b) != nil {
		return false
	}
	a.Datacenter = b.Datacenter
	return a == b
}

// sameImage compares the firmware of a card without its file.
func sameImage(x, y backends.Value) bool {
	var a, b backends.FirmwareImage
	if x.Decode(&a) != nil || y.Decode(&b) != nil {
		return false
	}
	a.File, b.File, a.Running, b.Running = "", "", "", ""
	return a == b
}

// Params returns the value of a module's parameters; none is an empty map.
func Params(p map[string]string) backends.Value {
	if p == nil {
		p = map[string]string{}
	}
	return backends.ValueOf(p)
}

// PVRDMAVMs returns the running VMs with a PVRDMA adapter on a switch.
func PVRDMAVMs(inv *backends.Inventory, dvs, host string) []*backends.VM {
	var out []*backends.VM
	for i := range inv.VMs {
		v := &inv.VMs[i]
		if v.Power != "poweredOn" || host != "" && v.Host != host {
			continue
		}
		if slices.ContainsFunc(v.Adapters, func(a backends.Adapter) bool { return a.Type == "pvrdma" && a.Switch == dvs }) {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(x, y *backends.VM) int { return strings.Compare(x.Name, y.Name) })
	return out
}
