package plan

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

func guestTitle(c Change, removed bool) string {
	switch c.Kind {
	case backends.KindPackages:
		return packagesTitle(c)
	case backends.KindBuild:
		return buildTitle(c, removed)
	case backends.KindOFED:
		return ofedTitle(c, removed)
	case backends.KindModules:
		if c.Name == PeerModules {
			return "load the peer memory module"
		}
		return "load RDMA modules"
	case backends.KindAddress:
		var a backends.AddressSpec
		switch {
		case removed:
			return "remove the address of the interface on " + place(c.Name)
		case c.To.Decode(&a) == nil && a.CIDR == backends.DHCP:
			return fmt.Sprintf("set address by DHCP, MTU %d on %s", a.MTU, place(c.Name))
		case c.To.Decode(&a) == nil:
			table := ""
			if a.Table != 0 {
				table = fmt.Sprintf(", routing table %d", a.Table)
			}
			return fmt.Sprintf("set address %s, MTU %d%s on %s", a.CIDR, a.MTU, table, place(c.Name))
		}
		return "set address on " + place(c.Name)
	case backends.KindARP:
		var a backends.ARPSpec
		if removed || c.To.Decode(&a) != nil {
			return "put ARP of the interface on " + place(c.Name) + " back as it was"
		}
		return fmt.Sprintf("set arp_ignore %d, arp_announce %d, rp_filter %d on %s", a.Ignore, a.Announce, a.RPFilter, place(c.Name))
	case backends.KindPortQoS:
		var q backends.QoSSpec
		if removed || c.To.Decode(&q) != nil {
			return "put PFC and trust of " + place(c.Name) + " back as they were"
		}
		ecn := ""
		if q.ECN {
			ecn = ", ECN"
		}
		return fmt.Sprintf("set PFC for priority %d and trust in DSCP (%d)%s on %s", q.Priority, q.DSCP, ecn, place(c.Name))
	case backends.KindImage:
		if removed {
			return "remove container image " + c.Name
		}
		return "build container image " + c.Name + baseOf(c.To)
	}
	return strings.TrimSpace(fmt.Sprintf("set %s %s to %s", c.Kind, c.Name, c.To))
}

// baseOf returns the base of an image according to its Dockerfile.
func baseOf(dockerfile backends.Value) string {
	var text string
	if dockerfile.Decode(&text) != nil {
		return ""
	}
	for l := range strings.Lines(text) {
		if base, ok := strings.CutPrefix(l, "FROM "); ok {
			return " from " + strings.TrimSpace(base)
		}
	}
	return ""
}

// place describes where an interface of a guest is connected: a port group, or the card itself.
func place(name string) string {
	if pci, passthrough := backends.OfHCA(name); pci != "" {
		return "the RDMA card at " + pci + " of the host"
	} else if passthrough {
		return "the RDMA card"
	}
	return name
}

func packagesTitle(c Change) string {
	var from, to backends.PackageSpec
	if c.To.Decode(&to) != nil {
		return "install RDMA packages"
	}
	if c.From.Known() && c.From.Decode(&from) == nil {
		if less := minus(from.Installed, to.Installed); len(less) > 0 {
			return "remove packages " + strings.Join(less, ", ")
		}
		to.Installed = minus(to.Installed, from.Installed)
	}
	if len(to.Installed) == 0 {
		return "remove packages that are installed in part"
	}
	return "install packages " + strings.Join(to.Installed, ", ")
}

func minus(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

func buildTitle(c Change, removed bool) string {
	verb, what := "build", "perftest with CUDA"
	switch c.Name {
	case backends.BuildDriver:
		verb, what = "install", "the NVIDIA driver"
	case backends.BuildSamePerftest:
		what = "the perftest of all guests"
	}
	var file string
	switch {
	case removed:
		return "take " + what + " away"
	case c.To.Decode(&file) != nil:
		return verb + " " + what
	}
	return verb + " " + what + " from " + path.Base(file)
}

func ofedTitle(c Change, removed bool) string {
	var from, to backends.OFEDSpec
	switch {
	case removed && (c.From.Part().Decode(&from) != nil || from.Version == ""):
		return "restore the distribution's RDMA packages"
	case removed:
		return "uninstall " + from.Version + " and restore the distribution's RDMA packages"
	case c.To.Decode(&to) != nil:
		return "install MLNX_OFED"
	}
	return "install " + to.Version
}
