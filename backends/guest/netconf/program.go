package netconf

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A Link is what decides which files are for an interface of a guest.
type Link struct {
	Name   string
	Alt    []string // alternative names
	MAC    string   // the permanent one
	Driver string
	Path   string   // ID_PATH of udev
	Type   string   // DEVTYPE of sysfs: bond, bridge, vlan, wlan; "": a wired card
	Device bool     // not virtual
	Now    []string // files that decide now, as networkd and NetworkManager say
}

// An Effective is what the files of a guest say about one interface: what is in force after the next boot.
type Effective struct {
	Link      string
	File      string // that decides; "": no file is for the interface
	ID        string // netplan's stanza, NetworkManager's connection, else the name of the file or of the interface
	Renderer  System // that does it: differs from the program for netplan
	Unmanaged bool   // File says that the program must leave the interface alone
	Unsure    bool   // a file with conditions that are not evaluated here may decide, or may not
	DHCP4     bool
	DHCP6     bool
	Addresses []string
	Routes    []string // "default via 192.168.1.1", "10.0.0.0/8 via 192.168.1.1"
	DNS       []string
	MTU       int      // 0: not set
	Master    string   // bond, bridge, team or VRF
	Uppers    []string // VLANs and other interfaces that are made on it
	LinkFile  string   // of udev, that decides for the name
	Name      string   // that LinkFile gives the interface; "": none
	Table     int      // routing table of the rule for packets from the first address; 0: none
}

// A Program is a network configuration system of guests: which of its files decide for each interface, by its documented rules.
type Program interface {
	// Effective returns what the files say about each link, in the order of the links. The error is a *Refusal if a file is invalid
	// and the program would therefore configure nothing.
	Effective(files []File, links []Link) ([]Effective, error)
	// Add returns the one file that, beside the others, decides for the interface of want alone and gives it exactly this address.
	// It replaces the file of an earlier call. The error is a *Refusal that names the file that stands in the way. Without links
	// nothing is compared.
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
	if r.Line > 0 {
		return fmt.Sprintf("%s, line %d: %s", r.File, r.Line, r.Why)
	}
	return r.File + ": " + r.Why
}

// For returns the program of a system. tools are those of the guest, as for Detect; without any it is not known what runs there.
func For(s System, tools ...string) (Program, bool) {
	r, ok := map[System]rules{Netplan: netplan{tools}, NetworkManager: networkManager{}, Ifcfg: networkScripts{}, Networkd: networkd{},
		Ifupdown: ifupdown{tools: tools}}[s]
	return program{r}, ok
}

// FileFor returns the file that Add writes where nothing else configures the interface; false for an unknown system.
func FileFor(s System, a Static) (File, bool) {
	p, ok := For(s)
	if !ok {
		return File{}, false
	}
	f, err := p.Add(nil, nil, a)
	return f, err == nil
}

// rules are the rules of one program. add writes our file without looking at what it does to others.
type rules interface {
	Effective(files []File, links []Link) ([]Effective, error)
	own(Static) string
	add(files []File, links []Link, want Static) (File, error)
}

type program struct{ rules }

// Add implements Program, whatever the rules: ours must decide, and everything else must stay as it is.
func (p program) Add(files []File, links []Link, want Static) (File, error) {
	if own, _, _ := Shared(files); own == "" {
		all, _ := p.Effective(files, links)
		if r := p.another(all, want); r != nil {
			return File{}, r
		}
	}
	files = slices.DeleteFunc(slices.Clone(files), func(f File) bool { return f.Path == p.own(want) && isOurs(f) })
	before, err := p.Effective(files, links)
	if err != nil {
		return File{}, err
	}
	was, _ := Of(before, want.Name)
	switch {
	case was.Unmanaged:
		return File{}, &Refusal{File: was.File, Why: want.Name + " is to be left alone",
			Hint: "Remove " + want.Name + " from what the file excludes (NM_CONTROLLED=no, unmanaged-devices, Unmanaged=yes)."}
	case was.Master != "":
		return File{}, &Refusal{File: was.File, Why: want.Name + " is a member of " + was.Master, Hint: "Remove the interface from it first."}
	case len(was.Uppers) > 0:
		return File{}, &Refusal{File: was.File, Why: strings.Join(was.Uppers, ", ") + " is made on " + want.Name,
			Hint: "Give the VM an adapter of its own for RDMA."}
	}
	f, err := p.add(files, links, want)
	if err != nil || len(links) == 0 {
		return f, err
	}
	after, err := p.Effective(append(slices.Clone(files), f), links)
	if err != nil {
		return File{}, err
	}
	is, _ := Of(after, want.Name)
	if why := is.exactly(f, want); why != "" {
		return File{}, &Refusal{File: cmp.Or(is.File, is.LinkFile, f.Path), Why: why, Hint: "Restrict the file to the other interfaces."}
	}
	if d := Difference(before, after, want.Name); len(d) > 0 {
		return File{}, &Refusal{File: f.Path, Why: "it would change another interface: " + strings.Join(d, "; "),
			Hint: "Configure the address by hand and exclude the guest."}
	}
	return f, nil
}

// another refuses an address whose file is that of another interface, and one for an interface that has a file of this program under
// another name: port groups have been renamed or exchanged.
func (p program) another(all []Effective, want Static) *Refusal {
	for _, e := range all {
		if _, ours := backends.NetFileOf(e.File); ours && (e.Link == want.Name) != (e.File == p.own(want)) {
			return &Refusal{File: e.File, Why: backends.Renamed(e.Link), Hint: backends.RenamedHint}
		}
	}
	return nil
}

// exactly says what an interface has beside or instead of its planned configuration; "" if nothing.
func (e Effective) exactly(f File, want Static) string {
	dhcp := want.CIDR == backends.DHCP
	switch {
	case e.File != f.Path:
		return "it decides for " + want.Name + ", and nothing can go before it"
	case e.Name != "" && e.Name != want.Name:
		return want.Name + " would be renamed to " + e.Name
	case e.DHCP4 != dhcp, e.DHCP6, !dhcp && !slices.Equal(e.Addresses, []string{canonical(want.CIDR)}),
		e.MTU != want.MTU && !(dhcp && e.Renderer == Ifupdown), len(e.DNS) > 0:
		return want.Name + " would not have just the planned address"
	}
	return ""
}

// isOurs reports whether this program has written a file.
func isOurs(f File) bool { return strings.HasPrefix(f.Content, ownComment) }

func linkOf(links []Link, nic NIC) (Link, bool) {
	at := slices.IndexFunc(links, func(l Link) bool { return l.Name == nic.Name })
	if at < 0 {
		return Link{}, false
	}
	return links[at], true
}

// Of returns what decides for an interface; false if no file is for it.
func Of(all []Effective, link string) (Effective, bool) {
	at := slices.IndexFunc(all, func(e Effective) bool { return e.Link == link })
	if at < 0 {
		return Effective{}, false
	}
	return all[at], all[at].File != ""
}

// Difference says what differs for the interfaces except ours; nothing if they are configured as before. For DHCP it is only compared
// that it is used. Interfaces that no file is for are not compared.
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
			differs = append(differs, fmt.Sprintf("%s of %s was %s and is %s", what, e.Link, cmp.Or(strings.Trim(w, "[]"), "none"),
				cmp.Or(strings.Trim(i, "[]"), "none")))
		}
	}
	note("the deciding file", e.File, now.File)
	note("the section", e.ID, now.ID)
	note("the file for the name", e.LinkFile, now.LinkFile)
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

// address adds an address; programs take the same one twice for one.
func (e *Effective) address(cidr string) {
	if c := canonical(cidr); c != "" && !slices.Contains(e.Addresses, c) {
		e.Addresses = append(e.Addresses, c)
	}
}

// route adds a route of the main table.
func (e *Effective) route(to, via, table string) {
	if table != "" && table != "254" && table != "main" {
		return
	}
	if to = cmp.Or(to, "default"); to == "0.0.0.0/0" || to == "::/0" {
		to = "default"
	}
	if via != "" {
		to += " via " + via
	}
	e.Routes = append(e.Routes, to)
}

// ruleOf notes the table of a rule in ip's format, rule that of one for packets from the first address.
func (e *Effective) ruleOf(words []string) {
	after := func(word string) string {
		if i := slices.Index(words, word); i >= 0 && i+1 < len(words) {
			return words[i+1]
		}
		return ""
	}
	e.rule(after("from"), after("table"))
}

func (e *Effective) rule(from, table string) {
	p, err := netip.ParsePrefix(strings.Join(e.Addresses[:min(1, len(e.Addresses))], ""))
	if n, wrong := strconv.Atoi(table); err == nil && wrong == nil && strings.TrimSuffix(from, "/32") == p.Addr().String() {
		e.Table = n
	}
}

// Patterns are the paths of all files that the programs read, for a shell.
const Patterns = `/lib/netplan/*.yaml /run/netplan/*.yaml /etc/netplan/*.yaml
/run/NetworkManager/system-connections/* /etc/NetworkManager/system-connections/* /usr/lib/NetworkManager/system-connections/*
/usr/lib/NetworkManager/conf.d/*.conf /run/NetworkManager/conf.d/*.conf /etc/NetworkManager/NetworkManager.conf /etc/NetworkManager/conf.d/*.conf
/etc/sysconfig/network-scripts/ifcfg-*
/usr/lib/systemd/network/*.network /usr/lib/systemd/network/*.link /usr/lib/systemd/network/*.d/*.conf
/usr/local/lib/systemd/network/*.network /usr/local/lib/systemd/network/*.link /usr/local/lib/systemd/network/*.d/*.conf
/run/systemd/network/*.network /run/systemd/network/*.link /run/systemd/network/*.d/*.conf
/etc/systemd/network/*.network /etc/systemd/network/*.link /etc/systemd/network/*.d/*.conf
/etc/network/interfaces /etc/network/interfaces.d/* /run/network/interfaces.d/*`
