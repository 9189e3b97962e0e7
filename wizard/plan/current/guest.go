package current

import (
	"slices"
	"strconv"

	"github.com/rdma-setup/rdma-setup/backends"
)

// OFED returns the value of a guest's MLNX_OFED.
func OFED(f *backends.Guest) backends.Value {
	switch spec := (backends.OFEDSpec{Version: f.MOFED}); {
	case f.OFEDUnfinished:
		return backends.Partial(spec)
	case f.MOFED != "":
		return backends.ValueOf(spec)
	}
	return backends.Absent
}

// sameOFED compares without the archive.
func sameOFED(x, y backends.Value) bool {
	var a, b backends.OFEDSpec
	if x.IsAbsent() || y.IsAbsent() || x.Decode(&a) != nil || y.Decode(&b) != nil {
		return false
	}
	a.Archive, b.Archive = "", ""
	return a == b
}

// RDMAMAC returns the MAC that identifies a guest's RDMA interface: that of the adapter on the port group, else that of a card
// that is passed through; "" if there is neither. A card without an RDMA device, because its module is not loaded, is known by the file
// that this program wrote for its interface.
func RDMAMAC(v *backends.VM, g *backends.Guest, portgroup string) string {
	if a := RDMAAdapter(v, portgroup); a != nil {
		return a.MAC
	}
	if len(v.Passthrough) == 0 || g == nil {
		return ""
	}
	if d := g.CardAt(v, portgroup); d != nil {
		return d.MAC
	}
	for _, i := range g.Interfaces {
		slug, ours := backends.NetFileOf(i.Config)
		if ours && slug == backends.Slug(portgroup) && !i.Virtual &&
			!slices.ContainsFunc(v.Adapters, func(a backends.Adapter) bool { return a.MAC == i.MAC }) {
			return i.MAC
		}
	}
	return ""
}

func guestValue(v *backends.VM, g *backends.Guest, s backends.Setting, unread backends.Value) backends.Value {
	switch s.Kind {
	case backends.KindPersist:
		return Persist(g.Persist)
	case backends.KindMemlock:
		return Memlock(g.MemlockKB)
	case backends.KindEnvironment:
		return Environment(g)
	case backends.KindNICName, backends.KindRestart:
		return backends.Absent // the run reads it: it matters once, before an upgrade
	case backends.KindNouveau:
		return g.Nouveau.Value()
	case backends.KindGPUPersist:
		if g.NVIDIA == nil {
			return g.GPUUnit.Persistence(nil)
		}
		return g.GPUUnit.Persistence(g.NVIDIA.Devices)
	case backends.KindBuild:
		if g.Built == nil {
			return unread
		}
		return g.Built[s.Name]
	case backends.KindOFED:
		return OFED(g)
	case backends.KindModules, backends.KindPackages:
		return unread // depends on the requested names: see membersOf
	case backends.KindImage:
		return Image(g, s.Name)
	}
	mac := RDMAMAC(v, g, s.Name)
	if mac == "" {
		return backends.Absent
	}
	switch s.Kind {
	case backends.KindAddress:
		return g.Interface(mac).Address(backends.AddressSpec{})
	case backends.KindARP:
		return g.Interface(mac).ARPValue()
	case backends.KindTrafficClass:
		switch d := g.Verbs(mac); {
		case d != nil && d.ClassKept:
			return backends.ValueOf(*d.Class)
		case d != nil && d.ClassPartly:
			return backends.Partial(nil)
		}
		return backends.Absent
	case backends.KindPortQoS:
		if d := g.Verbs(mac); d != nil {
			return d.QoS.Value()
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

// Environment returns the traffic class that is set for applications in a guest.
func Environment(g *backends.Guest) backends.Value {
	switch {
	case g.AppClassPartly:
		return backends.Partial(nil)
	case g.AppClass != nil:
		return backends.ValueOf(*g.AppClass)
	}
	return backends.Absent
}

// Image returns the Dockerfile of an image, Absent if the image does not exist.
func Image(g *backends.Guest, name string) backends.Value {
	if g.Engine == nil {
		return backends.Absent
	}
	text, there := g.Engine.Images[name]
	if !there {
		return backends.Absent
	}
	return backends.ValueOf(text)
}

// Persist returns the value of what is loaded at boot; Absent if nothing is.
func Persist(p backends.Persist) backends.Value {
	if len(p.Modules) == 0 && p.Reload == "" && len(p.Options) == 0 {
		return backends.Absent
	}
	p.Modules = append([]string{}, p.Modules...)
	if len(p.Options) == 0 {
		p.Options = nil
	}
	return backends.ValueOf(p)
}

// Memlock returns a limit of locked memory as the value of its setting; 0 was not read.
func Memlock(kb int64) backends.Value {
	switch {
	case kb < 0:
		return backends.ValueOf("unlimited")
	case kb == 0:
		return backends.Unknown("the limit of the guest is read")
	}
	return backends.ValueOf(strconv.FormatInt(kb, 10))
}

// Members returns which of the wanted packages or modules a guest has, as the value of their setting.
func Members(g *backends.Guest, kind backends.Kind, wanted []string) backends.Value {
	if kind == backends.KindModules {
		return backends.ValueOf(Held(wanted, func(m string) bool { return slices.Contains(g.Loaded, m) }))
	}
	if g.Packages == nil {
		return backends.Unknown("the packages of the guest are read")
	}
	sorted := slices.Sorted(slices.Values(wanted))
	return backends.ValueOf(backends.PackageSpec{Installed: Held(sorted, func(p string) bool { return g.Packages[p] != "" })})
}

// Held returns which of the wanted names are in a list, in the order of wanted.
func Held(wanted []string, there func(string) bool) []string {
	return slices.DeleteFunc(append([]string{}, wanted...), func(w string) bool { return !there(w) })
}
