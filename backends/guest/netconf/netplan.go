package netconf

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"github.com/rdma-setup/rdma-setup/backends"
)

func isNetplan(file string) bool {
	return isIn(file, "/etc/netplan", "/run/netplan", "/lib/netplan") && strings.HasSuffix(file, ".yaml")
}

// NetplanText returns a netplan file for one interface, matched by its MAC. id is the stanza: that of another file if it already
// has the interface, because netplan merges stanzas of one id and later files win. The current name is set explicitly: with an
// MTU netplan writes a .link file, which disables the rules that name interfaces. With DHCP the overrides ignore the server's
// routes, DNS servers and MTU (netplan reference, "DHCP overrides"; with NetworkManager as renderer only use-routes works).
func NetplanText(id string, a Static) string {
	dhcp4, addresses := "false", fmt.Sprintf("      addresses:\n        - \"%s\"\n", a.CIDR)
	if a.CIDR == backends.DHCP {
		dhcp4, addresses = "true", "      dhcp4-overrides:\n        use-routes: false\n        use-dns: false\n        use-mtu: false\n"
	}
	return comment(a) + fmt.Sprintf(`network:
  version: 2
  ethernets:
    %s:
      match:
        macaddress: "%s"
      set-name: %s
      dhcp4: %s
      dhcp6: false
      mtu: %d
%s`, quoteYAML(id), a.MAC, quoteYAML(a.Name), dhcp4, a.MTU, addresses+a.netplanRule())
}

// netplanRule is a policy for packets from the address (netplan reference, "Routing policies" and "Routes").
func (a Static) netplanRule() string {
	from, subnet, ok := a.rule()
	if !ok {
		return ""
	}
	return fmt.Sprintf(`      routing-policy:
        - from: "%[1]s"
          table: %[3]d
          priority: %[3]d
      routes:
        - to: "%[2]s"
          from: "%[1]s"
          scope: link
          table: %[3]d
`, from, subnet, a.Table)
}

// quoteYAML quotes a string unless it is plainly a string.
func quoteYAML(s string) string {
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_') {
			return fmt.Sprintf("%q", s)
		}
	}
	if s == "" || s[0] < 'A' {
		return fmt.Sprintf("%q", s)
	}
	return s
}

// A netplan contains the stanzas under ethernets by id, and the last file that contributes to each.
type netplan struct {
	stanzas map[string]map[string]any
	last    map[string]string
}

// find finds the stanza of an interface: by MAC, by a name pattern, or by an id that is the name.
func (p netplan) find(nic NIC) (Config, bool) {
	var found string
	best := 0
	for _, id := range slices.Sorted(maps.Keys(p.stanzas)) {
		if n := fits(id, p.stanzas[id], nic); n > best {
			found, best = id, n
		}
	}
	if best == 0 {
		return Config{}, false
	}
	s := p.stanzas[found]
	c := Config{File: p.last[found], ID: found, DHCP: truth(s["dhcp4"]), MTU: number(s["mtu"])}
	for _, a := range list(s["addresses"]) {
		switch t := a.(type) {
		case string:
			c.Addresses = append(c.Addresses, canonical(t))
		case map[string]any: // an address with options
			for k := range t {
				c.Addresses = append(c.Addresses, canonical(k))
			}
		}
	}
	c.Addresses = slices.Compact(c.Addresses)
	c.Managed = s["renderer"] == "NetworkManager"
	for _, r := range list(s["routing-policy"]) {
		if rule, ok := r.(map[string]any); ok && len(c.Addresses) > 0 && from(rule["from"], c.Addresses[0]) {
			c.Table = number(rule["table"])
		}
	}
	return c, true
}

// fits returns 0 if the stanza is for another interface; a higher number is a more specific match.
func fits(id string, stanza map[string]any, nic NIC) int {
	match, has := stanza["match"].(map[string]any)
	if !has || len(match) == 0 {
		if id == nic.Name {
			return 2
		}
		return 0
	}
	if mac, ok := match["macaddress"].(string); ok {
		if strings.EqualFold(mac, nic.MAC) {
			return 3
		}
		return 0
	}
	if pattern, ok := match["name"].(string); ok {
		if is, err := path.Match(pattern, nic.Name); err == nil && is {
			return 1
		}
	}
	return 0
}

// mergeNetplan merges files like netplan: a file in /etc hides one of the same name in /run, and that one in /lib; files are sorted
// by name.
func mergeNetplan(files []File) netplan {
	byName := map[string]File{}
	for _, dir := range []string{"/lib/netplan", "/run/netplan", "/etc/netplan"} {
		for _, f := range files {
			if path.Dir(f.Path) == dir && isNetplan(f.Path) {
				byName[path.Base(f.Path)] = f
			}
		}
	}
	stanzas, last := map[string]map[string]any{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		f := byName[name]
		var doc struct {
			Network struct {
				Renderer  string                    `yaml:"renderer"`
				Ethernets map[string]map[string]any `yaml:"ethernets"`
			} `yaml:"network"`
		}
		if yaml.Unmarshal([]byte(f.Content), &doc) != nil {
			continue // netplan itself reports it
		}
		for id, s := range doc.Network.Ethernets {
			if stanzas[id] == nil {
				stanzas[id] = map[string]any{}
			}
			merge(stanzas[id], s)
			last[id] = f.Path
		}
	}
	return netplan{stanzas, last}
}

// merge merges b into a: maps are merged, lists are appended, other values are replaced.
func merge(a, b map[string]any) {
	for k, v := range b {
		switch t := v.(type) {
		case map[string]any:
			old, ok := a[k].(map[string]any)
			if !ok {
				old = map[string]any{}
			}
			merge(old, t)
			a[k] = old
		case []any:
			a[k] = append(append([]any{}, list(a[k])...), t...)
		default:
			a[k] = v
		}
	}
}

// from reports whether a rule is only for packets from the address of a CIDR.
func from(rule any, cidr string) bool {
	text, _ := rule.(string)
	address, _, _ := strings.Cut(cidr, "/")
	return strings.TrimSuffix(text, "/32") == address
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func truth(v any) bool {
	switch t := v.(type) {
	case bool:
		return t
	case string: // netplan accepts yes and on as booleans
		return t == "yes" || t == "on" || t == "true"
	}
	return false
}

func number(v any) int {
	n, _ := v.(int)
	return n
}
