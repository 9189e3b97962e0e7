package bundle

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v4"
)

// named says what is named by a value, by the key that holds it and, for "name", by the key around it.
var named = map[string]string{
	"hosts.name": "host", "host": "host", "not_hosts": "host", "names": "host",
	"vms.name": "vm", "vm": "vm", "vms": "vm", "vapp": "vapp",
	"clusters.name": "cluster", "cluster": "cluster", "datacenter": "datacenter",
	"switches.name": "switch", "switch.name": "switch", "vswitches.name": "switch", "switch": "switch", "uplinks": "uplink", "active": "uplink", "standby": "uplink",
	"port_groups.name": "portgroup", "port_group": "portgroup", "port_groups": "portgroup", "portgroup": "portgroup", "networks": "portgroup",
	"drs_rules.name": "rule", "owner": "user", "ntp": "ntp", "from": "vm", "to": "vm",
}

// byName are maps whose keys are names of hosts or VMs.
var byName = []string{"members", "drs_override", "addresses", "macs", "gpus", "names", "peers"}

var (
	plainWord = regexp.MustCompile(`^[a-z]+$`) // may also mean something to this program: sriov, debian
	usual     = regexp.MustCompile(`^(VM Network|Management Network|vSwitch0|(dv)?[Uu]plink ?\d+|redacted|vm|host|network|datastore|Datacenters|)$`)
	ipv4      = regexp.MustCompile(`\d+(?:\.\d+)+`)
	digits    = regexp.MustCompile(`\d+`)
	mapped    = regexp.MustCompile(`(?i)\bffff:([0-9a-f]{4}):([0-9a-f]{4})\b`)
	volume    = regexp.MustCompile(`/vmfs/volumes/([^/"\s]+)`)
)

// list marks the key of a map that is an element of a list.
const list = "[]"

// escaped reads a component of an inventory path as vCenter spells it (vSphere Web Services API, ManagedEntity.name).
var escaped = strings.NewReplacer("%2f", "/", "%2F", "/", "%5c", `\`, "%5C", `\`, "%25", "%")

// A masquerade replaces names and addresses of a site by others, the same by the same, so that what is compared stays equal.
type masquerade struct {
	key     []byte
	found   map[string]string // name to what it names
	aliases map[string]string
	lengths []int // of the names that are replaced within texts, longest first
}

// masked replaces names and addresses in the documents of a bundle. MAC and PCI addresses, models and versions stay.
func masked(members []member) (*masquerade, []member, error) {
	m := &masquerade{key: make([]byte, 32), found: map[string]string{}, aliases: map[string]string{}}
	rand.Read(m.key)
	out := make([]member, len(members))
	trees := make([]any, len(members))
	for i, one := range members {
		if one.name == answersFile {
			var n yaml.Node
			if err := yaml.Unmarshal(one.text, &n); err != nil {
				return nil, nil, err
			}
			m.yaml(&n, "", "", m.know)
			trees[i] = &n
			continue
		}
		d := json.NewDecoder(bytes.NewReader(one.text))
		d.UseNumber()
		if err := d.Decode(&trees[i]); err != nil {
			return nil, nil, err
		}
		m.json(trees[i], "", "", m.know)
	}
	m.name()
	for i, one := range members {
		var text []byte
		var err error
		if n, ok := trees[i].(*yaml.Node); ok {
			m.yaml(n, "", "", m.value)
			text, err = yaml.Marshal(n)
		} else {
			text, err = document(m.json(trees[i], "", "", m.value))
		}
		if err != nil {
			return nil, nil, err
		}
		out[i] = member{one.name, text}
	}
	return m, out, nil
}

// know notes a name; it changes nothing.
func (m *masquerade) know(around, key, s string) string {
	switch what := cmp.Or(named[around+"."+key], named[key]); {
	case key == "url" || key == "vcenter" && strings.Contains(s, "://"):
		if u, err := url.Parse(s); err == nil {
			m.note(u.Hostname(), "vcenter")
		}
	case key == "path" && strings.HasPrefix(s, "/") || what == "vm" && strings.HasPrefix(s, "/"):
		for _, part := range strings.Split(s, "/") {
			m.note(escaped.Replace(part), "folder")
		}
	case what != "":
		m.note(s, what)
	}
	for _, v := range volume.FindAllStringSubmatch(s, -1) {
		m.note(v[1], "datastore")
	}
	return s
}

// note keeps what a name stands for. A folder is only what nothing else is.
func (m *masquerade) note(name, what string) {
	if _, err := netip.ParseAddr(name); err == nil || usual.MatchString(name) {
		return
	}
	if was := m.found[name]; was == "" || was == "folder" {
		m.found[name] = what
	}
}

// name gives every name its alias, in natural order, and host names their first label too.
func (m *masquerade) name() {
	count, domains := map[string]int{}, map[string]bool{}
	lengths := map[int]bool{}
	alias := func(name, by string) {
		if m.aliases[name] == "" {
			m.aliases[name] = by
			lengths[len(name)] = true
		}
	}
	width := map[string]string{"host": "host-%03d", "vm": "vm-%05d"}
	for _, name := range slices.SortedFunc(maps.Keys(m.found), order) {
		what := m.found[name]
		count[what]++
		by := fmt.Sprintf(cmp.Or(width[what], what+"-%d"), count[what])
		alias(name, by)
		if label, domain, ok := strings.Cut(name, "."); ok && (what == "host" || what == "vcenter" || what == "ntp") {
			domains[domain] = true
			if m.found[label] == "" && !plainWord.MatchString(label) {
				alias(label, by)
			}
		}
	}
	for _, d := range slices.Sorted(maps.Keys(domains)) {
		alias(d, "site.invalid")
	}
	m.lengths = slices.SortedFunc(maps.Keys(lengths), func(a, b int) int { return b - a })
}

// order puts vm-9 before vm-10.
func order(a, b string) int {
	padded := func(s string) string {
		return digits.ReplaceAllStringFunc(s, func(n string) string { return fmt.Sprintf("%20s", n) })
	}
	return cmp.Or(cmp.Compare(padded(a), padded(b)), cmp.Compare(a, b))
}

// value is what stands for a value under a key.
func (m *masquerade) value(around, key, s string) string {
	is := cmp.Or(named[around+"."+key], named[key]) != ""
	if is && m.aliases[s] != "" {
		return m.aliases[s]
	}
	if strings.HasPrefix(s, "/") && (key == "path" || is) {
		parts := strings.Split(s, "/")
		for i, part := range parts {
			parts[i] = cmp.Or(m.aliases[escaped.Replace(part)], part)
		}
		return strings.Join(parts, "/")
	}
	if strings.Contains(key, "version") || key == "build" || key == "firmware" {
		return s
	}
	return m.text(s)
}

// text replaces names that are no plain words, and addresses.
func (m *masquerade) text(s string) string {
	var b strings.Builder
next:
	for i := 0; i < len(s); {
		if i == 0 || !wordByte(s[i-1]) || !wordByte(s[i]) {
			for _, n := range m.lengths {
				if i+n > len(s) || i+n < len(s) && wordByte(s[i+n]) && wordByte(s[i+n-1]) {
					continue
				}
				if by := m.aliases[s[i:i+n]]; by != "" && !plainWord.MatchString(s[i:i+n]) {
					b.WriteString(by)
					i += n
					continue next
				}
			}
		}
		b.WriteByte(s[i])
		i++
	}
	s = b.String()
	s = m.addresses(s)
	return mapped.ReplaceAllStringFunc(s, func(found string) string {
		p := mapped.FindStringSubmatch(found)
		raw, _ := hex.DecodeString(p[1] + p[2])
		a := m.address(netip.AddrFrom4([4]byte(raw))).As4()
		return fmt.Sprintf("ffff:%02x%02x:%02x%02x", a[0], a[1], a[2], a[3])
	})
}

// addresses replaces the IPv4 addresses of a text. What stands beside letters, or a hyphen behind, is a version.
func (m *masquerade) addresses(s string) string {
	var b strings.Builder
	last := 0
	for _, at := range ipv4.FindAllStringIndex(s, -1) {
		a, err := netip.ParseAddr(s[at[0]:at[1]])
		if err != nil || at[0] > 0 && wordByte(s[at[0]-1]) || at[1] < len(s) && (wordByte(s[at[1]]) || s[at[1]] == '-') {
			continue
		}
		b.WriteString(s[last:at[0]] + m.address(a).String())
		last = at[1]
	}
	return b.String() + s[last:]
}

// address replaces an address by another so that two of one network stay in one network of the same length: each bit up to the 24th
// is turned or not by the bits before it (as Crypto-PAn does: Xu et al., Prefix-Preserving IP Address Anonymization, ICNP 2002).
// The bits that make an address private stay, and so does the last byte: what is .1 stays .1.
func (m *masquerade) address(a netip.Addr) netip.Addr {
	kept := 0
	switch b := a.As4(); {
	case a.IsLoopback(), a.IsUnspecified(), a.IsMulticast(), a.IsLinkLocalUnicast(), b[0] >= 240:
		return a
	case b[0] == 10:
		kept = 8
	case b[0] == 172 && b[1]&0xf0 == 16:
		kept = 12
	case b[0] == 192 && b[1] == 168:
		kept = 16
	}
	if kept == 0 { // public: it becomes one of 100.64.0.0/10, which is in no route
		a4 := a.As4()
		sum := sha256.Sum256(append(slices.Clone(m.key), a4[:3]...))
		return netip.AddrFrom4([4]byte{100, 64 | sum[0]&0x3f, sum[1], a4[3]})
	}
	in, out := a.As4(), a.As4()
	for i := kept; i < 24; i++ {
		prefix, _ := a.Prefix(i)
		p := prefix.Addr().As4()
		sum := sha256.Sum256(append(append(slices.Clone(m.key), byte(i)), p[:]...))
		out[i/8] = out[i/8]&^(0x80>>(i%8)) | (in[i/8] & (0x80 >> (i % 8))) ^ (sum[0] >> 7 << (7 - i%8))
	}
	return netip.AddrFrom4(out)
}

// json walks a document and puts f of each string in its place.
func (m *masquerade) json(v any, around, key string, f func(around, key, s string) string) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if slices.Contains(byName, key) {
				out[f("", "host", k)] = m.json(v[k], key, "", f)
			} else {
				out[f("", "", k)] = m.json(v[k], strings.TrimSuffix(key, list), k, f)
			}
		}
		return out
	case []any:
		for i := range v {
			if s, ok := v[i].(string); ok {
				v[i] = f(around, key, s)
			} else {
				v[i] = m.json(v[i], around, key+list, f)
			}
		}
	case string:
		return f(around, key, v)
	}
	return v
}

// yaml does the same with answers; comments and keys of the answers stay.
func (m *masquerade) yaml(n *yaml.Node, around, key string, f func(around, key, s string) string) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := n.Content[i], n.Content[i+1]
			if slices.Contains(byName, key) {
				k.Value = f("", "vm", k.Value)
				m.yaml(v, key, "", f)
				continue
			}
			m.yaml(v, strings.TrimSuffix(key, list), k.Value, f)
		}
	case yaml.ScalarNode:
		if n.Tag == "!!str" {
			n.Value = f(around, key, n.Value)
		}
	default:
		for _, c := range n.Content {
			if c.Kind == yaml.MappingNode && n.Kind == yaml.SequenceNode {
				m.yaml(c, around, key+list, f)
			} else {
				m.yaml(c, around, key, f)
			}
		}
	}
}
