// Package netconf writes and parses the files that configure a guest's network: netplan, NetworkManager, ifcfg, systemd-networkd
// and ifupdown. It does no I/O.
package netconf

import (
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A System is a network configuration system of a guest.
type System string

// The systems, in the order of detection.
const (
	Netplan        System = "netplan"
	NetworkManager System = "networkmanager"
	Ifcfg          System = "ifcfg" // network-scripts without NetworkManager: EL 7 and 8
	Networkd       System = "networkd"
	Ifupdown       System = "ifupdown"
)

// A File is a configuration file.
type File struct{ Path, Content string }

// A NIC names an interface.
type NIC struct{ Name, MAC string }

// A Static is a persistent address for one interface. With DHCP, routes and DNS servers are not accepted: the guest keeps those
// of its management network.
type Static struct {
	NIC
	PortGroup string // of the adapter; part of the file name
	CIDR      string // 192.168.50.11/24, or backends.DHCP
	MTU       int
	// Table is a table with a route to the subnet through this interface, and the priority of a rule that uses it for packets
	// from the address (Red Hat Solution 30564, two interfaces in one subnet); 0: neither.
	Table int
}

// rule returns the parts of the rule and of the route; ok is false if there are none.
func (a Static) rule() (from, subnet string, ok bool) {
	p, err := netip.ParsePrefix(a.CIDR)
	if err != nil || a.Table == 0 {
		return "", "", false
	}
	return p.Addr().String(), p.Masked().String(), true
}

// Detect returns the system that configures the network: what lists the installed tools and the running services (netplan,
// netplan-files if it has any, nmcli, ifup, NetworkManager, systemd-networkd, network-scripts), files are all its files.
func Detect(what []string, files []File) System {
	has := func(s string) bool { return slices.Contains(what, s) }
	// only root can read netplan's files, so their existence is reported separately.
	plans := has("netplan-files") || slices.ContainsFunc(files, func(f File) bool { return isNetplan(f.Path) })
	switch {
	case has("netplan") && plans:
		return Netplan
	case has("NetworkManager"):
		return NetworkManager
	case has("network-scripts") && has("ifup"):
		return Ifcfg
	case has("systemd-networkd"):
		return Networkd
	case has("nmcli"):
		return NetworkManager
	case has("ifup"):
		return Ifupdown
	case has("netplan"):
		return Netplan
	}
	return ""
}

// Mode returns the required mode of a system's file. systemd-networkd reads its files as a user of its own and ignores those that
// it may not read; NetworkManager ignores keyfiles that others may read, and netplan warns about them.
func (s System) Mode() fs.FileMode {
	if s == Netplan || s == NetworkManager {
		return 0o600
	}
	return 0o644
}

// ownComment begins every file of this program.
const ownComment = "# Written by rdma-setup"

// comment returns the first line of every file of this program.
func comment(a Static) string {
	group := strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?' // a file with invalid characters is refused by its reader
		}
		return r
	}, a.PortGroup)
	return ownComment + ": the RDMA adapter on " + group + ". Its rollback takes it away again.\n"
}

// canonical formats a prefix like ip.
func canonical(cidr string) string {
	p, err := netip.ParsePrefix(strings.TrimSpace(cidr))
	if err != nil {
		return strings.TrimSpace(cidr)
	}
	return p.String()
}

func isIn(file string, dirs ...string) bool { return slices.Contains(dirs, path.Dir(file)) }
