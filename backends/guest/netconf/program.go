package netconf

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A Link is what decides which files are for an interface of a guest.
type Link struct {
	Name   string
	Alt    []string // alternative names
	MAC    string   // the permanent one
	Driver string
	Path   string // ID_PATH of udev
	Type   string // DEVTYPE of sysfs: bond, bridge, vlan, wlan; "": a wired card
	Device bool   // not virtual
}

// An Effective is what the files of a guest say about one interface: what is in force after the next boot.
type Effective struct {
	Link      string
	File      string // that decides; "": no file is for the interface
	ID        string // netplan's stanza, NetworkManager's connection, else the name of the file or of the interface
	Renderer  System // that does it: differs from the program for netplan
	Unmanaged bool   // File says that the program must leave the interface alone
	DHCP4     bool
	DHCP6     bool
	Addresses []string
	Routes    []string // "default via 192.168.1.1", "10.0.0.0/8 via 192.168.1.1"
	DNS       []string
	MTU       int      // 0: not set
	Master    string   // bond, bridge, team or VRF
	Uppers    []string // VLANs and other interfaces that are made on it
	Name      string   // that the files give the interface; "": they do not name it
	Table     int      // routing table of the rule for packets from the first address; 0: none
}

// A Program is a network configuration system of guests: which of its files decide for each interface, by its documented rules.
type Program interface {
	// Effective returns what the files say about each link, in the order of the links. The error is a *Refusal if a file is invalid
	// and the program would therefore configure nothing.
	Effective(files []File, links []Link) ([]Effective, error)
	// Add returns the one file that, beside the others, decides for the interface of want alone and gives it exactly this address.
	// It replaces the file of an earlier call. The error is a *Refusal that names the file that stands in the way.
	Add(files []File, links []Link, want Static) (File, error)
}

// A Refusal says which file stands in the way of a persistent address.
type Refusal struct {
	File string
	Line int // 0: the file as a whole
	Why  string
	Hint string
}

func (r *Refusal) Error() string {
	switch {
	case r.File == "":
		return r.Why
	case r.Line > 0:
		return fmt.Sprintf("%s, line %d: %s", r.File, r.Line, r.Why)
	}
	return r.File + ": " + r.Why
}

// For returns the program of a system.
func For(s System) (Program, bool) {
	_, ok := Write(s, nil, Static{})
	return finder{s}, ok
}

// OwnFile returns the path of the file that Add writes.
func OwnFile(s System, a Static) string {
	f, _ := Write(s, nil, a)
	return f.Path
}

// Generated is Effective for the files that `netplan generate --root-dir` has made of netplan's: generated are the files below
// run/systemd/network, run/NetworkManager and run/udev, with the paths that they have without the root directory.
func Generated(files, generated []File, links []Link) ([]Effective, error) {
	return finder{Netplan}.Effective(files, links)
}

// Difference says what differs for the interfaces except ours; nothing if they are configured as before. For DHCP it is only compared
// that it is used.
func Difference(before, after []Effective, ours string) (differs []string) {
	for _, b := range before {
		at := slices.IndexFunc(after, func(a Effective) bool { return a.Link == b.Link })
		switch {
		case b.Link == ours || b.File == "" && at < 0:
		case at < 0:
			differs = append(differs, b.Link+" is missing")
		default:
			differs = append(differs, b.differs(after[at])...)
		}
	}
	return differs
}

func (e Effective) differs(now Effective) (differs []string) {
	note := func(what string, was, is any) {
		if w, i := fmt.Sprint(was), fmt.Sprint(is); w != i {
			differs = append(differs, fmt.Sprintf("%s of %s was %s and is %s", what, e.Link, cmp.Or(strings.Trim(w, "[]"), "none"), cmp.Or(strings.Trim(i, "[]"), "none")))
		}
	}
	note("the deciding file", e.File, now.File)
	note("the section", e.ID, now.ID)
	note("the name", e.Name, now.Name)
	note("unmanaged", e.Unmanaged, now.Unmanaged)
	note("DHCP", e.DHCP4, now.DHCP4)
	note("DHCPv6", e.DHCP6, now.DHCP6)
	note("the addresses", e.Addresses, now.Addresses)
	note("the routes", e.Routes, now.Routes)
	note("the DNS servers", e.DNS, now.DNS)
	note("the MTU", e.MTU, now.MTU)
	note("the master", e.Master, now.Master)
	note("the interfaces on top", e.Uppers, now.Uppers)
	return differs
}

// Of returns what decides for an interface.
func Of(all []Effective, link string) (Effective, bool) {
	at := slices.IndexFunc(all, func(e Effective) bool { return e.Link == link })
	if at < 0 {
		return Effective{}, false
	}
	return all[at], all[at].File != ""
}

type finder struct{ s System }

func (p finder) Effective(files []File, links []Link) (all []Effective, err error) {
	find := Finder(p.s, files)
	for _, l := range links {
		c, _ := find(NIC{l.Name, l.MAC})
		all = append(all, Effective{Link: l.Name, File: c.File, ID: c.ID, Renderer: p.s, DHCP4: c.DHCP, Addresses: c.Addresses, MTU: c.MTU, Table: c.Table})
	}
	return all, nil
}

func (p finder) Add(files []File, links []Link, want Static) (File, error) {
	f, ok := Write(p.s, files, want)
	if !ok {
		return File{}, &Refusal{Why: "no supported program configures the network", Hint: "Configure the address by hand and exclude the guest."}
	}
	if want.CIDR == backends.DHCP && p.s == Ifupdown {
		return File{}, &Refusal{Why: "ifupdown cannot leave out the routes of DHCP (interfaces(5))", Hint: "Set a static address for this VM in the answers."}
	}
	return f, nil
}

// Patterns are the paths of all files that the programs read, for a shell.
const Patterns = `/lib/netplan/*.yaml /run/netplan/*.yaml /etc/netplan/*.yaml
/run/NetworkManager/system-connections/* /etc/NetworkManager/system-connections/* /usr/lib/NetworkManager/system-connections/*
/usr/lib/NetworkManager/conf.d/*.conf /run/NetworkManager/conf.d/*.conf /etc/NetworkManager/NetworkManager.conf /etc/NetworkManager/conf.d/*.conf
/etc/sysconfig/network-scripts/ifcfg-*
/usr/lib/systemd/network/*.network /usr/lib/systemd/network/*.link /run/systemd/network/*.network /run/systemd/network/*.link
/usr/local/lib/systemd/network/*.network /usr/local/lib/systemd/network/*.link /etc/systemd/network/*.network /etc/systemd/network/*.link
/etc/systemd/network/*.network.d/*.conf /run/systemd/network/*.network.d/*.conf /usr/lib/systemd/network/*.network.d/*.conf
/etc/network/interfaces /etc/network/interfaces.d/*`
