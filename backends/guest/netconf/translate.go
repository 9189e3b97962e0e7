package netconf

import (
	"iter"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// translate makes of the stanzas what `netplan generate` makes of them, as far as it decides for an interface: .network and .link files
// of networkd (netplan, src/networkd.c), or keyfiles of NetworkManager (src/nm.c).
func (p *plans) translate() (files []File) {
	manager := p.manager()
	if manager { // hides the file of Ubuntu that leaves wired cards to others (src/nm.c: netplan_state_finish_nm_write)
		files = append(files, File{"/run/NetworkManager/conf.d/" + globallyManaged, ""})
	}
	for _, s := range p.stanzas {
		if s.renderer == NetworkManager {
			files = append(files, File{"/run/NetworkManager/system-connections/netplan-" + url.PathEscape(s.id) + ".nmconnection", p.profile(s)})
		} else {
			files = append(files, File{"/run/systemd/network/10-netplan-" + s.id + ".network", p.network(s)})
		}
		if text := s.link(); text != "" {
			files = append(files, File{"/run/systemd/network/10-netplan-" + s.id + ".link", text})
		}
	}
	return files
}

const globallyManaged = "10-globally-managed-devices.conf"

// A lines builds a file.
type lines struct{ strings.Builder }

func (l *lines) set(key string, values ...string) {
	for _, v := range values {
		if v != "" {
			l.WriteString(key + "=" + v + "\n")
		}
	}
}

// physical reports whether a stanza is for existing interfaces.
func (s *stanza) physical() bool {
	return slices.Contains([]string{"ethernets", "wifis", "modems"}, s.kind)
}

// match writes what a stanza is for. Without match it is its id; an empty match
// is nothing for networkd (which ignores a file without one), and every interface for NetworkManager.
func (s *stanza) match(l *lines, name string) {
	_, has := s.body["match"].(map[string]any)
	l.WriteString("[Match]\n")
	pattern := s.id
	if has {
		l.set("PermanentMACAddress", strings.ToLower(s.text("match", "macaddress")))
		l.set("Driver", strings.Join(s.texts("match", "driver"), " "))
		pattern = s.text("match", "name")
	}
	if set := s.text("set-name"); set != "" && name == "Name" {
		pattern = set
	}
	l.set(name, pattern)
	if s.kind == "wifis" {
		l.set("Type", "wlan")
	}
}

// link is the .link file of a card with a name, an MTU or Wake-on-LAN (write_link_file).
func (s *stanza) link() string {
	if !s.physical() || s.text("set-name")+s.text("mtu")+s.text("wakeonlan") == "" {
		return ""
	}
	var l lines
	s.match(&l, "OriginalName")
	l.WriteString("[Link]\n")
	l.set("Name", s.text("set-name"))
	return l.String()
}

// above returns what is made of a stanza: the bond, bridge or VRF that it is a member of, and VLANs.
func (p *plans) above(s *stanza) (kind, master string, vlans []string) {
	for _, o := range p.stanzas {
		switch {
		case o.text("link") == s.id && o.kind == "vlans":
			vlans = append(vlans, o.id)
		case slices.Contains([]string{"bonds", "bridges", "vrfs"}, o.kind) && slices.Contains(o.texts("interfaces"), s.id):
			kind, master = o.kind, o.id
		}
	}
	slices.Sort(vlans)
	return kind, master, vlans
}

func truth(text string) bool {
	return slices.Contains([]string{"yes", "on", "true", "y"}, strings.ToLower(text))
}

func (p *plans) network(s *stanza) string {
	var l lines
	s.match(&l, "Name")
	kind, master, vlans := p.above(s)
	l.WriteString("[Link]\n")
	l.set("MTUBytes", s.text("mtu"))
	l.WriteString("[Network]\n")
	switch four, six := truth(s.text("dhcp4")), truth(s.text("dhcp6")); {
	case four && six:
		l.set("DHCP", "yes")
	case four:
		l.set("DHCP", "ipv4")
	case six:
		l.set("DHCP", "ipv6")
	}
	l.set("Address", s.texts("addresses")...)
	l.set("Gateway", s.text("gateway4"), s.text("gateway6"))
	l.set("DNS", s.texts("nameservers", "addresses")...)
	l.set("VLAN", vlans...)
	l.set(map[string]string{"bonds": "Bond", "bridges": "Bridge", "vrfs": "VRF"}[kind], master)
	for r := range s.maps("routes") {
		l.WriteString("[Route]\n")
		l.set("Destination", r("to"))
		l.set("Gateway", r("via"))
		l.set("Table", r("table"))
	}
	for r := range s.maps("routing-policy") {
		l.WriteString("[RoutingPolicyRule]\n")
		l.set("From", r("from"))
		l.set("Table", r("table"))
	}
	return l.String()
}

// maps returns the maps of a list, each as a function that returns the text of a key.
func (s *stanza) maps(key string) iter.Seq[func(string) string] {
	return func(yield func(func(string) string) bool) {
		for _, e := range list(s.body[key]) {
			if m, ok := e.(map[string]any); ok && !yield((&stanza{body: m}).one) {
				return
			}
		}
	}
}

func (s *stanza) one(key string) string { return s.text(key) }

func (p *plans) profile(s *stanza) string {
	var l lines
	kind, master, _ := p.above(s)
	l.WriteString("[connection]\n")
	l.set("id", "netplan-"+s.id)
	through, _ := s.body["networkmanager"].(map[string]any)
	through, _ = through["passthrough"].(map[string]any)
	_, match := s.body["match"].(map[string]any)
	name := s.text("match", "name")
	exact := name != "" && !strings.ContainsAny(name, "*[]?")
	l.set("type", map[string]string{"ethernets": "ethernet", "wifis": "wifi", "modems": "gsm", "bonds": "bond", "bridges": "bridge",
		"vlans": "vlan", "vrfs": "vrf"}[s.kind])
	switch set := s.text("set-name"); {
	case s.physical() && set != "":
		l.set("interface-name", set)
	case !match && s.kind != "nm-devices":
		l.set("interface-name", s.id)
	case exact:
		l.set("interface-name", name)
	}
	if kind != "" {
		l.set("controller", master)
	}
	l.WriteString("[match]\n")
	if name != "" && !exact && s.text("set-name") == "" {
		l.set("interface-name", name)
	}
	l.set("driver", strings.Join(s.texts("match", "driver"), ";"))
	l.WriteString("[ethernet]\n")
	if s.text("set-name") == "" {
		l.set("mac-address", strings.ToLower(s.text("match", "macaddress")))
	}
	l.set("mtu", s.text("mtu"))
	if s.kind == "vlans" {
		l.WriteString("[vlan]\n")
		l.set("parent", s.text("link"))
	}
	s.addresses(&l)
	for key, v := range sorted(through) {
		section, k, ok := strings.Cut(key, ".")
		if text, is := v.(string); ok && is {
			l.WriteString("[" + section + "]\n")
			l.set(k, text)
		}
	}
	return l.String()
}

// addresses writes the sections ipv4 and ipv6 of a profile.
func (s *stanza) addresses(l *lines) {
	for _, family := range []string{"ipv4", "ipv6"} {
		is := func(text string) bool { return strings.Contains(text, ":") == (family == "ipv6") }
		l.WriteString("[" + family + "]\n")
		if truth(s.text("dhcp" + family[3:])) {
			l.set("method", "auto")
		}
		for _, a := range s.texts("addresses") {
			if is(a) {
				l.set("address", a)
			}
		}
		l.set("gateway", s.text("gateway"+family[3:]))
		for _, d := range s.texts("nameservers", "addresses") {
			if is(d) {
				l.set("dns", d)
			}
		}
		for r := range s.maps("routes") {
			if is(r("via") + r("to")) {
				l.set("route", r("to")+","+r("via"))
			}
		}
		for r := range s.maps("routing-policy") {
			if is(r("from")) {
				l.set("routing-rule", "from "+r("from")+" table "+r("table"))
			}
		}
	}
}

// sorted returns a map in the order of its keys.
func sorted[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}

func sortedValues[V any](m map[string]V) (values []V) {
	for _, v := range sorted(m) {
		values = append(values, v)
	}
	return values
}
