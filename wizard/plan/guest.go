package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// PVRDMAModules are the kernel modules of a PVRDMA guest in the order of loading; vmw_pvrdma comes last, so that its
// port sees the interface come up (guide 000; the guide's mlx4_ib plays no part in PVRDMA and is left out).
func PVRDMAModules() []string { return []string{"ib_umad", "rdma_cm", "rdma_ucm", "vmw_pvrdma"} }

// VFModules are those of a guest with a VF or the whole card: the driver that is in the kernel, and what user space talks to.
func VFModules() []string { return []string{"mlx5_ib", "ib_umad", "rdma_cm", "rdma_ucm"} }

// driverOf is the module that makes the guest's RDMA device.
func (g *guestPart) driverOf() string {
	if g.a.Mode != answers.PVRDMA {
		return "mlx5_ib"
	}
	return "vmw_pvrdma"
}

const (
	setRDMA    = "rdma" // the one set of packages and of modules
	portActive = "PORT_ACTIVE"
)

// guestPart plans the guest of one VM.
type guestPart struct {
	*draft
	v      *vmPart
	ref    backends.Ref
	after  []string       // the VM's power cycle, when there is one
	until  backends.Value // stands for what only the started and asked guest can say
	asked  bool           // the guest's facts are known
	cycled bool           // the VM is off, or its drivers are replaced, in between: what lives in the kernel starts anew
	coming bool           // MLNX_OFED is to be installed
	peer   backends.Value // the peer memory module of GPUs; Absent where none is wanted
}

// planGuest plans what happens inside a VM's guest. Facts that survive a reboot are taken as they are now; the others
// are unknown until a planned power cycle is over.
func planGuest(d *draft, v *vmPart) {
	g := &guestPart{draft: d, v: v, ref: backends.GuestRef(v.Name)}
	g.asked = v.on() && v.guest != nil && v.guest.Error == ""
	g.until = backends.Unknown(g.ref.String() + " is asked")
	if id, there := d.powered(v.VM); there {
		g.cycled, g.after, g.until = true, []string{id}, backends.Unknown(id)
	}
	if v.on() && v.guest != nil && v.guest.Error != "" {
		d.refuse(g.ref, "", cmp.Or(v.guest.Hint, "check address, port, user and key under vms of the answers"), "the guest is on but cannot be asked: %s", strings.TrimPrefix(v.guest.Error, "guest "+v.Name+": "))
		d.refusals[len(d.refusals)-1].Kind = v.guest.ErrKind
		return
	}
	if g.asked && !g.usable() {
		return
	}
	system, known := g.distro()
	switch {
	case len(d.a.Guest.OFED) > 0:
		g.ofed(system, known)
	case d.a.Guest.Install:
		g.packages(system, known)
	}
	g.modules()
	g.gpu()
	if d.a.Guest.Persist {
		g.persist(system, known)
	}
	for _, n := range v.nets {
		g.address(n)
	}
	g.memlock()
	for _, n := range v.nets {
		g.port(n)
		g.class(n)
	}
	g.image()
}

// usable refuses guests in which nothing can be done.
func (g *guestPart) usable() bool {
	f, ok := g.v.guest, true
	if f.Sudo == "none" {
		why, remedy := f.User+" may not use sudo", "let "+f.User+" use sudo, or name another user"
		if f.SudoError != "" {
			why, remedy = f.SudoError, cmp.Or(f.Hint, remedy) // a password that is missing or wrong is another matter
		}
		g.refuse(g.ref, "GST-SUDO-002", remedy, "%s", why)
		ok = false
	}
	if f.MOFED != "" && g.a.Mode == answers.PVRDMA {
		g.object(g.ref, "GST-MOFED-006", "remove it (ofed_uninstall.sh) and let the distribution's rdma-core in",
			"has %s, whose libraries do not know PVRDMA", f.MOFED)
		ok = ok && slices.Contains(g.opts.Skip, "GST-MOFED-006")
	}
	if driver := g.driverOf(); len(g.a.Guest.OFED) == 0 && len(f.Available) > 0 && !slices.Contains(f.Available, driver) && !slices.Contains(f.Loaded, driver) {
		remedy := "use a kernel that has it"
		if d, found := assets.DistroFor(f.OS, f.Version, f.Like); found && d.ModulesPackage != "" {
			remedy = "install " + strings.ReplaceAll(d.ModulesPackage, "KERNEL", f.Kernel)
		}
		g.refuse(g.ref, "GST-OS-001", remedy, "kernel %s has no driver %s", f.Kernel, driver)
		ok = false
	}
	for _, n := range g.v.nets {
		ok = g.subnet(n) && ok
	}
	return ok
}

// subnet refuses a second interface in one subnet: the two would answer for each other (guide 002, reference 15).
func (g *guestPart) subnet(n answers.Adapter) bool {
	own := rdmaMAC(g.v.VM, g.v.guest, n.PortGroup)
	for _, i := range g.v.guest.Interfaces {
		for _, cidr := range i.Addresses {
			p, err := netip.ParsePrefix(cidr)
			if err != nil || i.MAC == own || !p.Overlaps(n.IP) {
				continue
			}
			g.object(g.ref, "GST-SUBNET-015", "choose an address in a subnet of its own", "%s lies in the subnet of %s (%s)", n.IP, i.Name, cidr)
			return slices.Contains(g.opts.Skip, "GST-SUBNET-015")
		}
	}
	return true
}

func (g *guestPart) distro() (assets.Distro, bool) {
	if !g.asked {
		return assets.Distro{}, false
	}
	f := g.v.guest
	d, ok := assets.DistroFor(f.OS, f.Version, f.Like)
	if !ok && g.a.Guest.Install {
		g.object(g.ref, "GST-PKG-005", "install rdma-core, its tools and perftest yourself and set guest.install to false",
			"no list of packages is known for %s %s", cmp.Or(f.OS, "this system"), f.Version)
	}
	return d, ok
}

func (g *guestPart) set(kind backends.Kind, name string) backends.Setting {
	return backends.Setting{Target: g.ref, Kind: kind, Name: name}
}

func (g *guestPart) id(kind backends.Kind, name string) string { return g.set(kind, name).ID() }

func (g *guestPart) change(kind backends.Kind, name string, from, to backends.Value, why string, more func(*Change)) {
	c := Change{Setting: g.set(kind, name), From: from, To: to, Why: why, After: slices.Clone(g.after)}
	if more != nil {
		more(&c)
	}
	g.add(c)
}

func (g *guestPart) packages(d assets.Distro, known bool) {
	from, to := g.until, g.until
	switch {
	case g.asked && !known:
		return // refused, or left to the operator by --skip
	case g.asked && g.v.guest.MOFED != "":
		g.note("%s has %s, which brings its own libraries and tools: no packages are installed", g.v.Name, g.v.guest.MOFED)
		return
	case g.asked:
		from = membersOf(g.v.guest, backends.KindPackages, d.Packages)
		to = backends.ValueOf(backends.PackageSpec{Installed: slices.Sorted(slices.Values(d.Packages))})
	}
	g.change(backends.KindPackages, setRDMA, from, to, "user space of RDMA and the tools that measure it", nil)
}

func (g *guestPart) modules() {
	wanted, why := PVRDMAModules(), "in this order, vmw_pvrdma last"
	if g.a.Mode != answers.PVRDMA {
		wanted, why = VFModules(), "the driver of the VF or card, which the kernel has, and what user space talks to"
	}
	from := g.until
	if g.asked {
		if f := g.v.guest; len(f.Available) > 0 {
			wanted = held(wanted, func(m string) bool { return slices.Contains(f.Available, m) || slices.Contains(f.Loaded, m) })
		}
		if !g.cycled {
			from = membersOf(g.v.guest, backends.KindModules, wanted)
		}
	}
	g.change(backends.KindModules, setRDMA, from, backends.ValueOf(wanted), why, func(c *Change) {
		c.Disrupts = []Disruption{GuestNetwork}
		c.After = append(c.After, g.id(backends.KindPackages, setRDMA))
	})
}

func (g *guestPart) persist(d assets.Distro, known bool) {
	from, to := g.until, g.until
	if g.asked {
		want := backends.Persist{Modules: []string{"ib_umad", "rdma_cm", "rdma_ucm"}}
		if f := g.v.guest; len(f.Available) > 0 {
			want.Modules = held(want.Modules, func(m string) bool { return slices.Contains(f.Available, m) || slices.Contains(f.Loaded, m) })
		}
		if known && d.Reload && g.a.Mode == answers.PVRDMA {
			want.Reload = "vmw_pvrdma"
		}
		from, to = persistValue(g.v.guest.Persist), persistValue(want)
		var peer []string
		if !g.peer.Known() {
			to = g.peer
		} else if !g.peer.IsAbsent() && g.peer.Decode(&peer) == nil {
			want.Modules = append(want.Modules, peer...)
			to = persistValue(want)
		}
	}
	why := "the modules come back after a reboot"
	if known && d.Reload && g.a.Mode == answers.PVRDMA {
		why += ", and vmw_pvrdma is loaded once more at boot: without that its port may stay down, or its device be missing"
	}
	g.change(backends.KindPersist, "", from, to, why, func(c *Change) {
		c.After = append(c.After, g.id(backends.KindModules, setRDMA), g.id(backends.KindModules, PeerModules))
	})
}

func (g *guestPart) address(n answers.Adapter) {
	from := g.until
	if mac := rdmaMAC(g.v.VM, g.v.guest, n.PortGroup); mac != "" && g.asked {
		from = addressValue(g.v.guest.Interface(mac), n.IP.String())
	}
	to := backends.ValueOf(backends.AddressSpec{CIDR: n.IP.String(), MTU: g.a.Switch.MTU})
	g.change(backends.KindAddress, n.PortGroup, from, to, "found by its MAC, kept over reboots", func(c *Change) {
		c.Disrupts = []Disruption{GuestNetwork}
		c.After = append(c.After, g.networkIDs(g.v.Host)...)
		c.After = append(c.After, backends.Setting{Target: backends.VMRef(g.v.Name), Kind: backends.KindAdapter, Name: n.PortGroup}.ID())
	})
}

func (g *guestPart) memlock() {
	from := g.until
	if g.asked {
		from = backends.ValueOf(memlock(g.v.guest.MemlockKB))
	}
	g.change(backends.KindMemlock, "", from, backends.ValueOf("unlimited"), "RDMA locks its buffers in memory; the usual limit of 64 KB is too low", nil)
}

func (g *guestPart) port(n answers.Adapter) {
	from := g.until
	if mac := rdmaMAC(g.v.VM, g.v.guest, n.PortGroup); mac != "" && g.asked && !g.cycled {
		from = backends.Absent
		if d := g.v.guest.Verbs(mac); d != nil {
			from = backends.ValueOf(d.State)
		}
	}
	g.change(backends.KindPort, n.PortGroup, from, backends.ValueOf(portActive), "a port that is down is brought up: link up, link down and up, module reload, in this order", func(c *Change) {
		c.State = true
		c.After = append(c.After, g.id(backends.KindModules, setRDMA), g.id(backends.KindAddress, n.PortGroup))
	})
}

// class has the guest mark its RDMA traffic where frames are kept from being dropped by their DSCP: the host marks
// nothing of what goes out by a VF or a device that the guest has whole (domain rules, PFC; S2 leaves it out).
func (g *guestPart) class(n answers.Adapter) {
	if g.a.Mode == answers.PVRDMA || g.a.QoS.Lossless != answers.LosslessPFC {
		return
	}
	from := g.until
	if g.asked && !g.cycled {
		from = Current(g.inv, g.set(backends.KindTrafficClass, n.PortGroup))
	}
	tc := sizing.TrafficClass(g.a.QoS.DSCP, g.a.QoS.ECN)
	g.change(backends.KindTrafficClass, n.PortGroup, from, backends.ValueOf(tc), fmt.Sprintf("DSCP %d, which the switch keeps from loss; what goes out by a VF only the guest marks", g.a.QoS.DSCP), func(c *Change) {
		c.After = append(c.After, g.id(backends.KindModules, setRDMA), g.id(backends.KindAddress, n.PortGroup), g.id(backends.KindPort, n.PortGroup))
	})
}
