// Package netconf writes and reads the files that configure a guest's network: netplan, NetworkManager, ifcfg,
// systemd-networkd and ifupdown. It is pure: text in, text out.
package netconf

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A System is what configures a guest's network.
type System string

// The systems, in the order in which one is looked for.
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

// A Config is what the files say of one interface.
type Config struct {
	File      string // that has it, the last one where there are several
	ID        string // netplan's id or NetworkManager's connection id
	Addresses []string
	MTU       int // 0: not said
	DHCP      bool
	Managed   bool // by NetworkManager through netplan
	Table     int  // routing table that a rule names for packets from the first address; 0: none
}

// A Static is a persistent address for one interface. One that comes from DHCP takes neither routes nor DNS servers from there:
// those of the guest stay those of its management network.
type Static struct {
	NIC
	PortGroup string // of the adapter; names the file
	CIDR      string // 192.168.50.11/24, or backends.DHCP
	MTU       int
	// Table gets a route to the subnet by this interface, and a rule of this priority that sends by it what comes from the address
	// (Red Hat Solution 30564, two interfaces in one subnet); 0: none of both.
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

// Detect says what configures the network: what is a list of the tools that are installed and the services that run
// (netplan, netplan-files where it has any, nmcli, ifup, NetworkManager, systemd-networkd, network-scripts), files are all its files.
func Detect(what []string, files []File) System {
	has := func(s string) bool { return slices.Contains(what, s) }
	// netplan's files are readable for root only, so that they are there must be told apart.
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

// Find says what the files of a system mean for an interface; false when none of them configures it.
func Find(s System, files []File, nic NIC) (Config, bool) {
	switch s {
	case Netplan:
		return findNetplan(files, nic)
	case NetworkManager:
		return findConnection(files, nic)
	case Ifcfg:
		return findIfcfg(files, nic)
	case Networkd:
		return findNetworkd(files, nic)
	case Ifupdown:
		return findInterfaces(files, nic)
	}
	return Config{}, false
}

// Write returns the one file that makes the address persistent; false for a system that is not known. For netplan the
// stanza merges into the one that other files have for the same interface.
func Write(s System, files []File, a Static) (File, bool) {
	name := Slug(a.PortGroup)
	switch s {
	case Netplan:
		var others []File
		own := "/etc/netplan/60-rdma-setup-" + name + ".yaml"
		for _, f := range files {
			if f.Path != own {
				others = append(others, f)
			}
		}
		id := "rdma-setup-" + name
		if c, ok := findNetplan(others, a.NIC); ok {
			id = c.ID
		}
		return File{own, NetplanText(id, a)}, true
	case NetworkManager:
		return File{"/etc/NetworkManager/system-connections/rdma-setup-" + name + ".nmconnection", KeyfileText(a)}, true
	case Ifcfg:
		return File{"/etc/sysconfig/network-scripts/ifcfg-" + a.Name, IfcfgText(a)}, true
	case Networkd:
		return File{"/etc/systemd/network/05-rdma-setup-" + name + ".network", NetworkdText(a)}, true
	case Ifupdown:
		return File{"/etc/network/interfaces.d/rdma-setup-" + name, InterfacesText(a)}, true
	}
	return File{}, false
}

// Mode is what a file of a system must have. Those of systemd-networkd are read by a user of its own, which passes by what
// it may not read; NetworkManager passes by keyfiles that others may read, and netplan complains of them.
func (s System) Mode() fs.FileMode {
	if s == Netplan || s == NetworkManager {
		return 0o600
	}
	return 0o644
}

// Slug makes a file name of a port group's name; where that loses something a part of its hash keeps two apart.
func Slug(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			b.WriteRune(r)
		} else if !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
		}
	}
	s := strings.Trim(b.String(), "-")
	if s == name && s != "" && len(s) <= 40 {
		return s
	}
	sum := sha256.Sum256([]byte(name))
	return strings.Trim(s[:min(len(s), 32)]+"-"+hex.EncodeToString(sum[:4]), "-")
}

// comment is the first line of every file that is ours.
func comment(a Static) string {
	group := strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?' // a file that is no clean text is refused by its reader
		}
		return r
	}, a.PortGroup)
	return "# Written by rdma-setup: the RDMA adapter on " + group + ". Its rollback takes it away again.\n"
}

// canonical writes a prefix as ip prints it.
func canonical(cidr string) string {
	p, err := netip.ParsePrefix(strings.TrimSpace(cidr))
	if err != nil {
		return strings.TrimSpace(cidr)
	}
	return p.String()
}

func isIn(file string, dirs ...string) bool { return slices.Contains(dirs, path.Dir(file)) }
