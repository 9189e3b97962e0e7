// Package guest plans what happens inside a guest: packages, modules, addresses, ports, and the software of GPUs and
// containers.
package guest

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/current"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

const (
	setRDMA    = "rdma" // the only set of packages and of modules
	portActive = "PORT_ACTIVE"

	checkFiles, checkPersist = "GST-NETFILES-044", "GST-IPPERSIST-018"
)

// guestPart plans the guest of one VM.
type guestPart struct {
	*draft.Draft
	v      *draft.VM
	ref    backends.Ref
	after  []string       // the VM's power cycle, if there is one
	until  backends.Value // placeholder for values that can be read only in the running guest
	asked  bool           // the guest's facts are known
	cycled bool           // the VM is powered off or its drivers are replaced in between: the kernel's state is lost
	freed  bool           // nouveau is to release the GPU
	coming bool           // MLNX_OFED is to be installed
	peer   backends.Value // the peer memory module for GPUs; Absent if none is wanted
}

// Plan plans the changes inside a VM's guest. Facts that survive a reboot keep their current values; the others are unknown until
// a planned power cycle is over.
func Plan(d *draft.Draft, v *draft.VM) {
	if !v.Wish.Guest.Managed() {
		d.NoteEach(v.Name,
			"[gets its adapter|get their adapters] alone (guest.manage: false): nothing is done or measured inside [its guest|their guests]")
		return
	}
	g := &guestPart{Draft: d, v: v, ref: backends.GuestRef(v.Name)}
	g.asked = v.On() && v.Guest != nil && v.Guest.Error == ""
	g.until = backends.Unknown(g.ref.String() + " is asked")
	if id, there := d.Powered(v.VM); there {
		g.cycled, g.after, g.until = true, []string{id}, backends.Unknown(id)
	}
	if v.On() && v.Guest != nil && v.Guest.Error != "" {
		d.Refusals = append(d.Refusals, plan.UnreadGuest(v.Guest))
		return
	}
	if g.asked && !g.usable() {
		return
	}
	g.nouveau()
	system, known := g.distro()
	switch {
	case len(d.Answers.Guest.OFED) > 0:
		g.ofed(system, known)
	case d.Answers.GuestOf(v.Wish).Install:
		g.packages(system, known)
	}
	g.modules()
	g.gpu()
	if d.Answers.GuestOf(v.Wish).Persist {
		g.persist(system, known)
	}
	for _, n := range v.Nets {
		g.address(n)
	}
	g.memlock()
	for _, n := range v.Nets {
		g.port(n)
		g.class(n)
		g.portQoS(n)
	}
	g.environment()
	g.samePerftest()
	g.image()
}

// usable refuses guests that cannot be set up.
func (g *guestPart) usable() bool {
	f, ok := g.v.Guest, true
	if f.Sudo == "none" {
		why, remedy := f.User+" may not use sudo", "let "+f.User+" use sudo, or name another user"
		if f.SudoError != "" {
			why, remedy = f.SudoError, cmp.Or(f.Hint, remedy) // a missing or wrong password is a different problem
		}
		g.Refuse(g.ref, "GST-SUDO-002", remedy, "%s", why)
		ok = false
	}
	if f.MOFED != "" && g.Answers.Mode == answers.PVRDMA {
		g.Object(g.ref, "GST-MOFED-006", "remove it (ofed_uninstall.sh) and install the distribution's rdma-core",
			"has %s, whose libraries do not support PVRDMA", f.MOFED)
		ok = ok && slices.Contains(g.Options.Skip, "GST-MOFED-006")
	}
	driver := backends.PVRDMAModule // creates the guest's RDMA device
	if g.Answers.Mode != answers.PVRDMA {
		driver = "mlx5_ib"
	}
	switch {
	case len(g.Answers.Guest.OFED) > 0 || slices.Contains(f.Available, driver) || slices.Contains(f.Loaded, driver):
	case f.Available == nil:
		g.NoteEach(g.v.Name, "[has a kernel whose modules were|have kernels whose modules were] not read (modinfo is not in the PATH): whether "+
			"the driver %s is there shows only when it is loaded", driver)
	default:
		g.Refuse(g.ref, "GST-OS-001", assets.DriverRemedy(driver, f.Kernel, f.OS, f.Version, f.Like), "kernel %s has no driver %s", f.Kernel,
			driver)
		ok = false
	}
	_, supported := assets.DistroFor(f.OS, f.Version, f.Like)
	if f.Packages == nil && supported && (len(g.Answers.Guest.OFED) > 0 || g.Answers.GuestOf(g.v.Wish).Install) {
		g.Refuse(g.ref, "GST-PKG-005", "check dpkg-query -W or rpm -q rpm in the guest",
			"its packages cannot be read: the package manager does not answer")
		ok = false
	}
	for _, n := range g.v.Nets {
		ok = g.subnet(n) && ok
	}
	return g.files() && ok
}

// files refuses a guest whose network files are invalid, or decide for the interface of an adapter in a way that cannot be beaten. An
// adapter that does not exist yet may get any name that the files mention.
func (g *guestPart) files() bool {
	f := g.v.Guest
	if p := f.NetInvalid; p != nil {
		g.Object(g.ref, checkFiles, p.Remedy, "%s", p)
		return slices.Contains(g.Options.Skip, checkFiles)
	}
	object := func(check string, p *backends.FileProblem) bool {
		g.Object(g.ref, check, p.Remedy, "%s", p)
		return slices.Contains(g.Options.Skip, check)
	}
	coming := false
	for _, n := range g.v.Nets {
		var i *backends.Interface
		if mac := current.RDMAMAC(g.v.VM, f, n.PortGroup); mac != "" {
			i = f.Interface(mac)
		}
		if i == nil {
			coming = true
		} else if p, stands := f.NetRivals[i.Name]; stands {
			return object(checkPersist, &p)
		}
		if p := g.renamed(n, i); p != nil {
			return object(checkPersist, p)
		}
	}
	if p := f.NetComing(); coming && p != nil {
		return object(checkFiles, p)
	}
	return true
}

// renamed returns the file of this program that has the name of an adapter's, or configures its interface i, since port groups were renamed
// or exchanged. It stays while the adapter keeps its address.
func (g *guestPart) renamed(n answers.Adapter, i *backends.Interface) *backends.FileProblem {
	want := g.wanted(n)
	if i.Address(want) == backends.ValueOf(want) {
		return nil
	}
	for _, o := range g.v.Guest.Interfaces {
		slug, ours := backends.NetFileOf(o.Config)
		if ours && (i != nil && o.Name == i.Name) != (slug == backends.Slug(n.PortGroup)) {
			return &backends.FileProblem{File: o.Config, Why: backends.Renamed(o.Name), Remedy: backends.RenamedHint}
		}
	}
	return nil
}

// wanted returns the address of an adapter.
func (g *guestPart) wanted(n answers.Adapter) backends.AddressSpec {
	return backends.AddressSpec{CIDR: n.IP.String(), MTU: g.Rails[g.RailOf(n)].Switch.MTU, Table: answers.Table(g.v.Nets, n)}
}

// subnet refuses a second interface in one subnet: each would answer for the other (RoCE SR-IOV Setup and Performance Study on
// vSphere 7.x, VMware, 2022, reference 15).
func (g *guestPart) subnet(n answers.Adapter) bool {
	var own []string // adapters of the answers may share a subnet: see route
	for _, o := range g.v.Nets {
		own = append(own, current.RDMAMAC(g.v.VM, g.v.Guest, o.PortGroup))
	}
	for _, i := range g.v.Guest.Interfaces {
		for _, cidr := range i.Addresses {
			p, err := netip.ParsePrefix(cidr)
			if err != nil || slices.Contains(own, i.MAC) || !p.Overlaps(n.IP.Prefix) {
				continue
			}
			g.Object(g.ref, "GST-SUBNET-015", "choose an address in a subnet of its own", "%s lies in the subnet of %s (%s)", n.IP, i.Name, cidr)
			return slices.Contains(g.Options.Skip, "GST-SUBNET-015")
		}
	}
	return g.tableFree(n, own)
}

// tableFree refuses a number for a routing table and a rule that the guest uses for anything but the adapters of the answers,
// whose MACs are in own.
func (g *guestPart) tableFree(n answers.Adapter, own []string) bool {
	table := answers.Table(g.v.Nets, n)
	nic, used := g.v.Guest.RouteNumbers[table]
	if !used ||
		slices.ContainsFunc(g.v.Guest.Interfaces, func(i backends.Interface) bool { return i.Name == nic && slices.Contains(own, i.MAC) }) {
		return true
	}
	g.Refuse(g.ref, "GST-POLICY-036",
		"give each rail a subnet of its own, or free that number (ip rule; ip route show table all; /etc/iproute2/rt_tables)",
		"routing table %d, which %s needs because another rail has its subnet, or a rule of that priority is in use in the guest", table, n.IP)
	return false
}

func (g *guestPart) distro() (assets.Distro, bool) {
	if !g.asked {
		return assets.Distro{}, false
	}
	f := g.v.Guest
	d, ok := assets.DistroFor(f.OS, f.Version, f.Like)
	if !ok && g.Answers.GuestOf(g.v.Wish).Install {
		g.Object(g.ref, "GST-PKG-005", "install rdma-core, its tools and perftest yourself and set guest.install to false",
			"no list of packages is known for %s %s", cmp.Or(f.OS, "this system"), f.Version)
	}
	return d, ok
}

func (g *guestPart) set(kind backends.Kind, name string) backends.Setting {
	return backends.Setting{Target: g.ref, Kind: kind, Name: name}
}

func (g *guestPart) id(kind backends.Kind, name string) string { return g.set(kind, name).ID() }

func (g *guestPart) change(kind backends.Kind, name string, from, to backends.Value, why string, more func(*plan.Change)) {
	c := plan.Change{Setting: g.set(kind, name), From: from, To: to, Why: why, After: slices.Clone(g.after)}
	if more != nil {
		more(&c)
	}
	g.Add(c)
}

func (g *guestPart) packages(d assets.Distro, known bool) {
	from, to := g.until, g.until
	switch {
	case g.asked && !known:
		return // refused; the operator can override it with --skip
	case g.asked && g.v.Guest.MOFED != "":
		g.Note("%s has %s, which brings its own libraries and tools: no packages are installed", g.v.Name, g.v.Guest.MOFED)
		return
	case g.asked:
		names := d.Packages
		if g.Answers.Measure.CrossRail == "all" && g.Answers.Several() && d.ARPing != "" {
			names = append(slices.Clone(names), d.ARPing)
		}
		from = current.Members(g.v.Guest, backends.KindPackages, names)
		to = backends.ValueOf(backends.PackageSpec{Installed: slices.Sorted(slices.Values(names))})
	}
	g.change(backends.KindPackages, setRDMA, from, to, "RDMA user space, and the tools to measure it", nil)
}

func (g *guestPart) modules() {
	// vmw_pvrdma comes last, so that its port sees the interface come up (PVRDMA and vSphere Bitfusion, VMware, 2021; the guide's
	// mlx4_ib is not needed for PVRDMA and is left out).
	wanted, why := []string{"ib_umad", "rdma_cm", "rdma_ucm", backends.PVRDMAModule}, "in this order, vmw_pvrdma last"
	if g.Answers.Mode != answers.PVRDMA {
		wanted, why = []string{"mlx5_ib", "ib_umad", "rdma_cm", "rdma_ucm"},
			"the kernel's driver of the VF or card, and its interfaces for user space"
	}
	from := g.until
	if g.asked {
		if f := g.v.Guest; len(f.Available) > 0 {
			wanted = current.Held(wanted, func(m string) bool { return slices.Contains(f.Available, m) || slices.Contains(f.Loaded, m) })
		}
		if !g.cycled {
			from = current.Members(g.v.Guest, backends.KindModules, wanted)
		}
	}
	g.change(backends.KindModules, setRDMA, from, backends.ValueOf(wanted), why, func(c *plan.Change) {
		c.Disrupts = []plan.Disruption{plan.GuestNetwork}
		c.After = append(c.After, g.id(backends.KindPackages, setRDMA))
	})
}

func (g *guestPart) persist(d assets.Distro, known bool) {
	from, to := g.until, g.until
	if g.asked {
		want := backends.Persist{Modules: []string{"ib_umad", "rdma_cm", "rdma_ucm"}}
		if f := g.v.Guest; len(f.Available) > 0 {
			want.Modules = current.Held(want.Modules, func(m string) bool { return slices.Contains(f.Available, m) || slices.Contains(f.Loaded, m) })
		}
		if known && d.Reload && g.Answers.Mode == answers.PVRDMA {
			want.Reload = backends.PVRDMAModule
		}
		from, to = current.Persist(g.v.Guest.Persist), current.Persist(want)
		var peer []string
		if !g.peer.Known() {
			to = g.peer
		} else if !g.peer.IsAbsent() && g.peer.Decode(&peer) == nil {
			want.Modules = append(want.Modules, peer...)
			to = current.Persist(want)
		}
	}
	why := "the modules are loaded at every boot"
	if known && d.Reload && g.Answers.Mode == answers.PVRDMA {
		why += ", and vmw_pvrdma is loaded once more at boot: without that its port may stay down, or its device be missing"
	}
	g.change(backends.KindPersist, "", from, to, why, func(c *plan.Change) {
		c.After = append(c.After, g.id(backends.KindModules, setRDMA), g.id(backends.KindModules, plan.PeerModules))
	})
}

func (g *guestPart) address(n answers.Adapter) {
	from := g.until
	want := g.wanted(n)
	if mac := current.RDMAMAC(g.v.VM, g.v.Guest, n.PortGroup); mac != "" && g.asked {
		from = g.v.Guest.Interface(mac).Address(want)
	}
	why := "identified by its MAC, kept across reboots"
	if want.Table != 0 {
		why += "; another rail has the same subnet, so a rule sends by this interface what comes from its address"
		g.arp(n)
	}
	g.change(backends.KindAddress, n.PortGroup, from, backends.ValueOf(want), why, func(c *plan.Change) {
		c.Disrupts = []plan.Disruption{plan.GuestNetwork}
		c.After = append(c.After, g.id(backends.KindARP, n.PortGroup))
		c.After = append(c.After, g.NetworkIDs(g.v.Host)...)
		c.After = append(c.After, backends.Setting{Target: backends.VMRef(g.v.Name), Kind: backends.KindAdapter, Name: n.PortGroup}.ID())
	})
}

// arp keeps interfaces that share a subnet from answering ARP for each other. It comes before their addresses, so that no neighbour
// learns a wrong MAC.
func (g *guestPart) arp(n answers.Adapter) {
	from := g.until
	if mac := current.RDMAMAC(g.v.VM, g.v.Guest, n.PortGroup); mac != "" && g.asked {
		from = g.v.Guest.Interface(mac).ARPValue()
		if g.cycled && !from.IsAbsent() { // the boot applies the file
			from = backends.ValueOf(*g.v.Guest.Interface(mac).ARPKept)
		}
	}
	why := "another rail has the same subnet: each interface answers for its own address alone"
	g.change(backends.KindARP, n.PortGroup, from, backends.ValueOf(backends.OneSubnet()), why, func(c *plan.Change) {
		c.After = append(c.After, backends.Setting{Target: backends.VMRef(g.v.Name), Kind: backends.KindAdapter, Name: n.PortGroup}.ID())
	})
}

func (g *guestPart) memlock() {
	from := g.until
	if g.asked {
		from = current.Memlock(g.v.Guest.MemlockKB)
	}
	g.change(backends.KindMemlock, "", from, backends.ValueOf("unlimited"),
		"RDMA locks its buffers in memory, and the default limit (in KB, at most 64 MB on many systems) is too low", nil)
}

func (g *guestPart) port(n answers.Adapter) {
	from := g.until
	if mac := current.RDMAMAC(g.v.VM, g.v.Guest, n.PortGroup); mac != "" && g.asked && !g.cycled {
		from = backends.Absent
		if d := g.v.Guest.Verbs(mac); d != nil {
			from = backends.ValueOf(d.State)
		}
	}
	g.change(backends.KindPort, n.PortGroup, from, backends.ValueOf(portActive),
		"a port that is down is brought up: link up, link down and up, module "+
			"reload, in this order", func(c *plan.Change) {
			c.State = true
			c.After = append(c.After, g.id(backends.KindModules, setRDMA), g.id(backends.KindAddress, n.PortGroup))
		})
}

// class makes the guest mark its RDMA traffic if frames are protected by their DSCP: the host does not mark packets sent through a
// VF or a passed-through device.
func (g *guestPart) class(n answers.Adapter) {
	if g.Answers.Mode == answers.PVRDMA || g.Answers.QoS.Lossless != answers.LosslessPFC {
		return
	}
	from := g.until
	if g.asked && !g.cycled {
		from = g.Now(g.set(backends.KindTrafficClass, n.PortGroup))
	}
	tc := sizing.TrafficClass(g.Answers.QoS.DSCP, g.Answers.QoS.ECN)
	g.change(backends.KindTrafficClass, n.PortGroup, from, backends.ValueOf(tc),
		fmt.Sprintf("DSCP %d, which the switch keeps from loss; what goes out by "+
			"a VF only the guest marks", g.Answers.QoS.DSCP), func(c *plan.Change) {
			c.After = append(c.After, g.id(backends.KindModules, setRDMA), g.id(backends.KindAddress, n.PortGroup),
				g.id(backends.KindPort, n.PortGroup))
		})
}

// portQoS sets PFC, trust of DSCP and ECN if the guest owns the port, that is, if the card is passed through. The port of a VF
// belongs to the host and is set by its driver's parameters; Linux does not support DCB on a VF (mlx5 en_dcbnl.c,
// vport_group_manager).
func (g *guestPart) portQoS(n answers.Adapter) {
	if _, passthrough := backends.OfHCA(n.PortGroup); !passthrough || g.Answers.QoS.Lossless != answers.LosslessPFC {
		return
	}
	if g.asked && g.v.Guest.NoQoSTool && len(g.Answers.Guest.OFED) == 0 {
		g.Object(g.ref, "GST-QOS-035", "install iproute2 5.11 or later, let guest.ofed install MLNX_OFED, or set qos.lossless to none",
			"PFC of its RDMA card cannot be set: neither %s is installed", nic.PortTools)
		return
	}
	s := g.set(backends.KindPortQoS, n.PortGroup)
	from := g.until
	if g.asked && !g.cycled {
		from = g.Now(s)
	}
	q := g.Answers.QoS
	to := backends.QoSSpec{Priority: q.Priority, DSCP: q.DSCP, ECN: q.ECN}
	why := fmt.Sprintf("the guest owns this port: without it priority %d is never paused, and DSCP %d is not mapped to it", to.Priority,
		to.DSCP)
	g.change(backends.KindPortQoS, n.PortGroup, from, backends.ValueOf(to), why, func(c *plan.Change) {
		c.Disrupts = []plan.Disruption{plan.GuestNetwork} // PFC takes the link down briefly
		c.After = append(c.After, g.id(backends.KindModules, setRDMA), g.id(backends.KindAddress, n.PortGroup),
			g.id(backends.KindPort, n.PortGroup))
	})
}

// appClass returns the traffic class for applications; 0 if none is set.
func (g *guestPart) appClass() int {
	if g.Answers.Mode == answers.PVRDMA || g.Answers.QoS.Lossless != answers.LosslessPFC || !g.Answers.Guest.Environment {
		return 0
	}
	return sizing.TrafficClass(g.Answers.QoS.DSCP, g.Answers.QoS.ECN)
}

// environment sets the class for applications that create their queue pairs without rdma_cm, whose default KindTrafficClass sets.
func (g *guestPart) environment() {
	tc := g.appClass()
	if tc == 0 {
		return
	}
	from := g.until
	if g.asked && !g.cycled {
		from = current.Environment(g.v.Guest)
	}
	g.change(backends.KindEnvironment, "", from, backends.ValueOf(tc),
		"UCX and NCCL create their queue pairs themselves and do not use the class set for RDMA-CM", func(c *plan.Change) {
			for _, n := range g.v.Nets { // the GID index of the address is set too
				c.After = append(c.After, g.id(backends.KindAddress, n.PortGroup), g.id(backends.KindPort, n.PortGroup))
			}
		})
}
