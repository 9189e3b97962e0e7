package netconf

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// networkdText returns a .network file of systemd-networkd, matched by MAC. With DHCP it accepts no routes, DNS servers or MTU
// (systemd.network(5), section [DHCPv4]: UseRoutes=, whose value is the default of UseGateway=, UseDNS=, UseMTU=).
// RequiredForOnline=no: a boot does not wait for the link (systemd-networkd-wait-online.service(8)).
func networkdText(a Static) string {
	address, dhcp := "Address="+a.CIDR, ""
	if a.CIDR == backends.DHCP {
		address, dhcp = "DHCP=ipv4", "\n[DHCPv4]\nUseRoutes=no\nUseDNS=no\nUseMTU=no\n"
	}
	return comment(a) +
		fmt.Sprintf("[Match]\nMACAddress=%s\nType=!vlan bond bridge\n\n[Link]\nMTUBytes=%d\nRequiredForOnline=no\n\n[Network]\n%s\n"+
			"LinkLocalAddressing=ipv6\nIPv6AcceptRA=no\n%s", a.MAC, a.MTU, address, dhcp+a.networkdRule())
}

// networkdRule is a rule for packets from the address, with its route (systemd.network(5), [RoutingPolicyRule] and [Route]).
func (a Static) networkdRule() string {
	from, subnet, ok := a.rule()
	if !ok {
		return ""
	}
	return fmt.Sprintf("\n[RoutingPolicyRule]\nFrom=%[1]s\nTable=%[3]d\nPriority=%[3]d\n"+
		"\n[Route]\nDestination=%[2]s\nPreferredSource=%[1]s\nScope=link\nTable=%[3]d\n", from, subnet, a.Table)
}

// networkd is systemd-networkd: of all .network files, sorted by their names in all directories, the first that matches decides;
// and so, apart from it, of the .link files of udev (systemd.network(5), systemd.link(5)).
type networkd struct{}

// systemdDirs are the directories of systemd's files; a file hides one of the same name in a later directory. /lib is /usr/lib.
var systemdDirs = []string{"/etc/systemd/network", "/run/systemd/network", "/usr/local/lib/systemd/network", "/usr/lib/systemd/network",
	"/lib/systemd/network"}

func (networkd) own(a Static) string {
	return "/etc/systemd/network/05-rdma-setup-" + backends.Slug(a.PortGroup) + ".network"
}

func (p networkd) add(_ []File, _ []Link, a Static) (File, error) {
	return File{p.own(a), networkdText(a)}, nil
}

// A unit is a file of systemd with its drop-ins.
type unit struct {
	File
	ini
}

// units returns the files with a suffix in the order in which they are tried. An empty file, or a link to /dev/null, hides others
// and is ignored. Drop-ins (NAME.d/*.conf) follow the file.
func units(files []File, suffix string) (found []unit) {
	byName := first(files, suffix, systemdDirs)
	for _, f := range byName {
		if strings.TrimSpace(f.Content) == "" {
			continue
		}
		u := unit{File: f, ini: parseINI(f.Content)}
		var dirs []string
		for _, d := range systemdDirs {
			dirs = append(dirs, d+"/"+path.Base(f.Path)+".d")
		}
		for _, d := range first(files, ".conf", dirs) {
			u.ini = append(u.ini, parseINI(d.Content)...)
		}
		found = append(found, u)
	}
	return found
}

// first returns the files of directories sorted by their base names; of several with one name, that in the first directory.
func first(files []File, suffix string, dirs []string) []File {
	byName := map[string]File{}
	for _, dir := range slices.Backward(dirs) {
		for _, f := range files {
			if path.Dir(f.Path) == dir && strings.HasSuffix(f.Path, suffix) {
				byName[path.Base(f.Path)] = f
			}
		}
	}
	return sortedValues(byName)
}

// matches reports whether the [Match] section fits (systemd, src/shared/net-condition.c and src/libsystemd-network/network-internal.c:
// net_match_config). Host=, Virtualization= and other conditions of the whole system are taken to hold, and Property= not to.
func (u unit) matches(l Link) bool { return u.mayMatch(l) && len(u.all("Match", "Property")) == 0 }

// evaluated are the keys of [Match] for mayMatch.
var evaluated = strings.Fields("MACAddress PermanentMACAddress Path Driver Type Kind Name OriginalName SSID BSSID WLANInterfaceType")

// conditional reports whether [Match] has others.
func (u unit) conditional() bool {
	return slices.ContainsFunc(u.ini, func(s iniSection) bool {
		return s.name == "Match" && slices.ContainsFunc(s.settings, func(kv [2]string) bool { return !slices.Contains(evaluated, kv[0]) })
	})
}

// mayMatch is matches if all other conditions hold.
func (u unit) mayMatch(l Link) bool {
	tests := []struct {
		key    string
		fold   bool
		values []string
	}{
		{"MACAddress", true, []string{l.MAC}}, {"PermanentMACAddress", true, []string{l.MAC}},
		{"Path", false, []string{l.Path}}, {"Driver", false, []string{l.Driver}}, {"Type", false, []string{cmp.Or(l.Type, "ether")}},
		{"Kind", false, []string{l.Type}},
		{"Name", false, append([]string{l.Name}, l.Alt...)}, {"OriginalName", false, append([]string{l.Name}, l.Alt...)},
	}
	some := false
	for _, s := range u.ini {
		some = some || s.name == "Match" && len(s.settings) > 0
	}
	for _, test := range tests {
		// Each name is tested alone: a negated pattern fits an interface by its alternative name (systemd 252).
		if !slices.ContainsFunc(test.values, func(v string) bool { return matchList(u.all("Match", test.key), v, test.fold) }) {
			return false
		}
	}
	for _, key := range []string{"SSID", "BSSID", "WLANInterfaceType"} {
		if len(u.all("Match", key)) > 0 {
			return false
		}
	}
	return some
}

// names reports whether the file has the name itself, not a pattern. Interfaces that are not cards come and go with containers: a file
// for all of them says nothing about one.
func (u unit) names(l Link) bool {
	return slices.ContainsFunc(u.all("Match", "Name"), func(v string) bool { return slices.Contains(strings.Fields(v), l.Name) })
}

// matchList matches lists of patterns. A "!" before the first of a list inverts all of it.
func matchList(lists []string, value string, fold bool) bool {
	matched, positive := false, false
	for _, list := range lists {
		list, inverted := strings.CutPrefix(list, "!")
		for _, pattern := range strings.Fields(list) {
			pattern = strings.Trim(pattern, `"'`)
			if fold {
				pattern = strings.ToLower(strings.ReplaceAll(pattern, "-", ":"))
			}
			is := value != "" && glob(pattern, value)
			if is && inverted {
				return false
			}
			positive, matched = positive || !inverted, matched || is
		}
	}
	return matched || !positive
}

// glob is fnmatch(3).
func glob(pattern, name string) bool {
	is, err := path.Match(strings.ReplaceAll(pattern, "[!", "[^"), name)
	return err == nil && is
}

// Effective implements Program.
func (networkd) Effective(files []File, links []Link) (all []Effective, err error) {
	networks, names := units(files, ".network"), units(files, ".link")
	for _, l := range links {
		e := Effective{Link: l.Name, Renderer: Networkd}
		if at := slices.IndexFunc(networks, func(u unit) bool { return u.matches(l) }); at >= 0 && (l.Device || networks[at].names(l)) {
			networks[at].says(&e)
		}
		first := slices.IndexFunc(networks, func(u unit) bool { return u.mayMatch(l) })
		e.Unsure = first >= 0 && networks[first].conditional()
		if at := slices.IndexFunc(names, func(u unit) bool { return u.matches(l) }); at >= 0 && l.Device {
			e.LinkFile, e.Name = names[at].Path, names[at].get("Link", "Name")
		}
		all = append(all, e)
	}
	return all, nil
}

func (u unit) says(e *Effective) {
	e.File, e.ID = u.Path, path.Base(u.Path)
	e.Unmanaged = yes(u.get("Link", "Unmanaged"))
	e.MTU, _ = strconv.Atoi(u.get("Link", "MTUBytes"))
	dhcp := u.get("Network", "DHCP")
	e.DHCP4 = yes(dhcp) || dhcp == "ipv4" || dhcp == "both" || dhcp == "v4"
	e.DHCP6 = yes(dhcp) || dhcp == "ipv6" || dhcp == "both" || dhcp == "v6"
	e.Master = u.get("Network", "Bond", "Bridge", "VRF", "BatmanAdvanced")
	e.Uppers = u.all("Network", "VLAN", "MACVLAN", "MACVTAP", "IPVLAN", "IPVTAP", "VXLAN", "Tunnel", "Xfrm")
	for _, a := range append(u.all("Network", "Address"), u.all("Address", "Address")...) {
		e.address(a)
	}
	for _, g := range u.all("Network", "Gateway") {
		e.Routes = append(e.Routes, "default via "+g)
	}
	for _, s := range u.ini {
		if to, via := s.get("Destination"), s.get("Gateway"); s.name == "Route" && to+via != "" {
			e.route(to, via, s.get("Table"))
		}
		if from, table := s.get("From"), s.get("Table"); s.name == "RoutingPolicyRule" {
			e.rule(from, table)
		}
	}
	for _, d := range u.all("Network", "DNS") {
		e.DNS = append(e.DNS, strings.Fields(d)...)
	}
}
