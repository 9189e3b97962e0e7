package answers

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// vms checks names, addresses and adapters of the VMs against each other.
func (c *checker) vms(a *Answers) {
	names := map[string]int{}
	owner := map[netip.Addr]string{}
	for i, v := range a.VMs {
		path := fmt.Sprintf("vms[%d]", i)
		if first, twice := names[v.Name]; twice && v.Name != "" {
			c.bad(path+".name", "name each VM once", "%q appears twice, first as vms[%d]", clip(v.Name), first)
		} else {
			names[v.Name] = i
		}
		if v.Guest.Address != "" {
			c.dialable(v.Guest.Address, path+".guest.address", false)
		}
		if strings.HasPrefix(v.Guest.User, "-") || strings.ContainsFunc(v.Guest.User, notInLogins) {
			c.bad(path+".guest.user", "write the bare account name", "%q is not a valid user name", clip(v.Guest.User))
		}
		switch {
		case !v.Guest.Managed() && (v.Guest.Install != nil || v.Guest.Persist != nil):
			c.bad(path+".guest", "remove install and persist, or set manage to true",
				"nothing is installed or made persistent in a guest with manage: false")
		case !v.Guest.Managed() && a.Mode == GPUDirect:
			c.bad(path+".guest.manage", "set up the guest too, or choose another mode",
				"false is not for mode gpudirect: only the guest shows whether its GPU reaches the card")
		}
		switch {
		case !v.Guest.Managed() && !v.IP.Given() && len(v.Adapters) == 0:
			continue
		case v.IP.Given() && len(v.Adapters) > 0:
			c.bad(path+".adapters", "keep one of the two", "has both adapters and ip")
			continue
		case !v.IP.Given() && len(v.Adapters) == 0:
			c.bad(path+".ip", "write an address with its prefix, such as 192.168.50.11/24", "the address is missing")
			continue
		case v.IP.DHCP:
			c.dhcp(a, path+".ip")
		case v.IP.IsValid():
			for _, n := range a.Networks(v) {
				c.address(n.IP.Prefix, path+".ip", v, owner)
				if net := a.RailOf(n).Network; a.Several() && net.IsValid() && n.Rail != a.Rails[0].Name && !net.Contains(n.IP.Addr()) {
					c.bad(path+".ip", "write adapters with an address for each rail, or take a larger rails[].network",
						"its number does not fit into %s of %s", net, n.Rail)
				}
			}
		}
		c.adapters(a, v, path, owner)
	}
}

// notInLogins reports whether a rune is in no account name, local or of a domain (DOMAIN\user). Active Directory has no names with
// "/[]:;|=,*?<> (Microsoft, sAMAccountName).
func notInLogins(r rune) bool {
	return unicode.IsSpace(r) || !unicode.IsPrint(r) && !unicode.IsMark(r) || strings.ContainsRune("\"/[]:;|=,*?<>@'`$", r)
}

func (c *checker) adapters(a *Answers, v VM, path string, owner map[netip.Addr]string) {
	names := make([]string, len(a.Rails))
	for i, r := range a.Rails {
		names[i] = r.Name
	}
	groups := map[string]int{}
	var subnets []netip.Prefix
	for j, n := range v.Adapters {
		p := fmt.Sprintf("%s.adapters[%d]", path, j)
		if !c.onRail(n, p+".rail", names) {
			continue
		}
		if n.PortGroup != "" {
			c.objectName(n.PortGroup, p+".portgroup")
		}
		group := cmp.Or(n.PortGroup, a.RailOf(n).Switch.PortGroup)
		if i := slices.IndexFunc(a.Rails, func(r Rail) bool { return r.Switch.PortGroup == group && r.Name != n.Rail }); i >= 0 && a.Several() {
			c.bad(p+".portgroup", "", "%q belongs to the rail %s", clip(group), a.Rails[i].Name)
		}
		if first, twice := groups[group]; twice {
			c.bad(p+".portgroup", "give each adapter a port group of its own, which identifies it",
				"%q is also used by adapters[%d]", clip(group), first)
		}
		groups[group] = j
		if n.IP.DHCP {
			c.dhcp(a, p+".ip")
			continue
		}
		if !n.IP.IsValid() {
			if v.Guest.Managed() {
				c.bad(p+".ip", "write an address with its prefix, such as 192.168.50.11/24", "the address is missing")
			}
			continue
		}
		c.address(n.IP.Prefix, p+".ip", v, owner)
		if k := slices.IndexFunc(subnets, func(s netip.Prefix) bool { return s.Overlaps(n.IP.Prefix) && s != n.IP.Masked() }); k >= 0 {
			c.bad(p+".ip", "give each adapter a subnet of its own, or all of them the same one",
				"its subnet %s overlaps with %s of adapters[%d]", n.IP.Masked(), subnets[k], k)
		}
		subnets = append(subnets, n.IP.Masked())
	}
}

// dhcp refuses the word if the address cannot come from DHCP: the port of a whole card is found by its address.
func (c *checker) dhcp(a *Answers, path string) {
	if a.Mode == GPUDirect {
		c.bad(path, "write an IPv4 address with its prefix: 192.168.50.11/24", "dhcp is not for mode gpudirect")
	}
}

func (c *checker) onRail(n Adapter, path string, names []string) bool {
	hint := "write one of: " + strings.Join(names, ", ")
	switch {
	case slices.Contains(names, n.Rail), len(names) <= 1 && n.Rail == "":
		return true
	case len(names) == 0:
		c.bad(path, "list it under rails, or remove the key", "%q: the answers have no rails", clip(n.Rail))
	case n.Rail == "":
		c.bad(path, hint, "the rail is missing")
	default:
		if near := Nearest(n.Rail, names); near != "" {
			hint = fmt.Sprintf("did you mean %s?", near)
		}
		c.bad(path, hint, "%q is none of the rails", clip(n.Rail))
	}
	return false
}

// address checks one address of a fabric: IPv4, because the measurement looks for the RoCE v2 GID of an IPv4 address.
func (c *checker) address(p netip.Prefix, path string, v VM, owner map[netip.Addr]string) {
	ip := p.Addr()
	hint := "write an IPv4 address with its prefix: 192.168.50.11/24"
	if net := p.Masked(); ip.Is4() && p.Bits() > 0 && p.Bits() < 32 && !ip.IsUnspecified() {
		hint = fmt.Sprintf("write an address of a machine with its prefix, such as %s/%d", net.Addr().Next(), p.Bits())
		if special(ip) {
			hint = "write an IPv4 address that a machine can have: 192.168.50.11/24"
		}
	}
	switch {
	case !ip.Is4():
		c.bad(path, hint, "%s is not an IPv4 address", p)
		return
	case special(ip):
		c.bad(path, hint, "%s is not an address of a machine", ip)
		return
	case p.Bits() == 0 || p.Bits() == 32:
		c.bad(path, hint, "/%d is not a subnet", p.Bits())
		return
	case p.Bits() < 31 && ip == p.Masked().Addr():
		c.bad(path, hint, "%s is the address of the subnet itself", ip)
		return
	case p.Bits() < 31 && ip == broadcast(p):
		c.bad(path, hint, "%s is the broadcast address of the subnet", ip)
		return
	}
	if other, twice := owner[ip]; twice {
		c.bad(path, "give each VM its own address", "%s is also used by %s", ip, other)
	} else {
		owner[ip] = strings.TrimSuffix(path, ".ip")
	}
	if v.Guest.Address == ip.String() {
		c.bad(path, "write another address for SSH: the interface that is set up cannot be used to reach the guest",
			"%s is the guest's own address for SSH", ip)
	}
}

// special returns why no machine can have an address.
func special(ip netip.Addr) bool {
	return ip.IsUnspecified() || ip.IsLoopback() || ip.IsMulticast() || ip.IsLinkLocalUnicast() ||
		ip == netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

func broadcast(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().As4()
	for i := p.Bits(); i < 32; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	return netip.AddrFrom4(b)
}

// ofed checks the names of the archives; the plan checks whether they fit the guests.
func (c *checker) ofed(a *Answers) {
	seen := map[string]int{}
	for i, file := range a.Guest.OFED {
		path := fmt.Sprintf("guest.ofed[%d]", i)
		archive, err := ParseOFED(file)
		built := archive.Distro + " " + archive.Arch
		if err != nil {
			c.bad(path, "", "%q %s", clip(file), err)
		} else if first, twice := seen[built]; twice {
			c.bad(path, "name one archive for each system", "%q is for %s, as is guest.ofed[%d]", clip(file), built, first)
		} else {
			seen[built] = i
		}
	}
	switch {
	case len(a.Guest.OFED) == 0:
	case a.Mode == PVRDMA:
		c.bad("guest.ofed", "remove it: the distribution's rdma-core has what PVRDMA needs",
			"is not for mode pvrdma: the libraries of MLNX_OFED do not support PVRDMA")
	case !a.Guest.Install:
		c.bad("guest.ofed", "set guest.install to true, or remove guest.ofed", "cannot be installed while guest.install is false")
	}
}

var pciIDs = regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{4}$`)

func (c *checker) gpus(a *Answers) {
	switch nic := a.GPUDirect.NIC; {
	case a.Mode == SRIOV && len(a.GPUDirect.GPUs) > 0:
		c.bad("gpudirect.gpus", "write mode: gpudirect with gpudirect.nic: sriov, or remove it", "contradicts mode sriov, which gives VMs no GPU")
	case a.Mode == SRIOV && nic == NICPVRDMA:
		c.bad("gpudirect.nic", "write mode: gpudirect or pvrdma", "pvrdma contradicts mode sriov")
	case a.Mode == PVRDMA && nic == "sriov":
		c.bad("gpudirect.nic", "write mode: gpudirect for VFs, or gpudirect.nic: pvrdma", "sriov contradicts mode pvrdma")
	}
	switch a.GPUDirect.MMIO {
	case "kb", "minimal", "guide":
	default:
		if gb := a.GPUDirect.MMIO.GB(); gb < 1 || gb&(gb-1) != 0 {
			c.bad("gpudirect.mmio", "", "%q is not a size", clip(string(a.GPUDirect.MMIO)))
		}
	}
	for _, ids := range sorted(a.GPUDirect.Models) {
		path, m := "gpudirect.models{"+ids+"}", a.GPUDirect.Models[ids]
		if !pciIDs.MatchString(ids) {
			c.bad(path, "write vendor and device in lower case hexadecimal, as 10de:2fff", "%q are not PCI IDs", clip(ids))
		}
		if m.Framebuffer == 0 && m.BAR == 0 {
			c.bad(path, "write {framebuffer: 48}, or {framebuffer: 48, bar: 64}", "states no size")
		}
		if m.BAR&(m.BAR-1) != 0 {
			c.bad(path+".bar", "write the size of BAR1 in GB, as lspci -vv or nvidia-smi -q show it", "%d is not a power of two", m.BAR)
		}
	}
	if m := a.GPUDirect.Manager; m != "" {
		c.packaged("gpudirect.manager", m)
		if !a.VGPUs() {
			c.bad("gpudirect.manager", "request vGPUs in gpudirect.gpus, or remove it", "is set, but no VM gets a vGPU")
		}
	}
	for _, vm := range sorted(a.GPUDirect.GPUs) {
		path := "gpudirect.gpus{" + vm + "}"
		if !slices.ContainsFunc(a.VMs, func(v VM) bool { return v.Name == vm }) {
			c.bad(path, "add it to vms, or remove it here", "%q is not among vms", clip(vm))
		}
		seen := map[PCI]bool{}
		g := a.GPUDirect.GPUs[vm]
		switch {
		case g.Group != "" && (g.Profile != "" || g.Count != 0 || len(g.Whole) > 0):
			c.bad(path+".group", "write {group: NAME} alone: the host's list of groups says which vGPUs it holds",
				"cannot be combined with other GPUs")
		case strings.ContainsFunc(g.Group, func(r rune) bool { return r <= ' ' || r > '~' }):
			c.bad(path+".group", "write a vendor device group as rdma-setup discover lists it", "%q is not a vendor device group", clip(g.Group))
		case g.Profile == "" && g.Count != 0:
			c.bad(path+".profile", "write the profile too: {profile: grid_a100d-80c, count: 1}", "is missing beside count")
		case g.Profile != "" && len(g.Whole) > 0:
			c.bad(path, "name PCI addresses, or a profile", "has whole GPUs and vGPUs")
		case strings.ContainsFunc(g.Profile, func(r rune) bool { return r <= ' ' || r > '~' }):
			c.bad(path+".profile", "write a profile as rdma-setup discover lists it", "%q is not a profile", clip(g.Profile))
		}
		for i, p := range g.Whole {
			ip := fmt.Sprintf("%s[%d]", path, i)
			var clean PCI
			if err := clean.UnmarshalText([]byte(p)); err != nil || clean != p {
				c.bad(ip, "", "%q is not a PCI address", clip(string(p)))
			} else if seen[p] {
				c.bad(ip, "name each GPU once", "%s stands twice", p)
			}
			seen[p] = true
		}
	}
}
