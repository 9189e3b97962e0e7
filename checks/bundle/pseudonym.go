package bundle

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"github.com/rdma-setup/rdma-setup/backends"
)

// named maps the key of a value, and for "name" the key around it, to the kind of thing that the value names.
var named = map[string]string{
	"hosts.name": "host", "host": "host", "not_hosts": "host", "names": "host",
	"vms.name": "vm", "vm": "vm", "vms": "vm", "vapp": "vapp",
	"clusters.name": "cluster", "cluster": "cluster", "datacenter": "datacenter",
	"switches.name": "switch", "switch.name": "switch", "vswitches.name": "switch", "switch": "switch", "uplinks": "uplink",
	"active": "uplink", "standby": "uplink",
	"port_groups.name": "portgroup", "port_group": "portgroup", "port_groups": "portgroup", "portgroup": "portgroup", "networks": "portgroup",
	"drs_rules.name": "rule", "owner": "user", "ntp": "ntp", "license_host": "license-server", "from": "vm", "to": "vm",
}

// byName are maps whose keys are names of hosts or VMs.
var byName = []string{"members", "drs_override", "addresses", "macs", "gpus", "names", "peers"}

var (
	// words that also have another meaning: sriov, VLAN 100, a byte of a MAC address
	plainWord = regexp.MustCompile(`^([a-z]+|[0-9]+|[0-9A-Fa-f]{2})$`)
	usual     = regexp.MustCompile(
		`^(VM Network|Management Network|vSwitch0|(dv)?[Uu]plink ?\d+|redacted|vm|host|network|datastore|Datacenters|)$`)
	ipv4     = regexp.MustCompile(`\d+(?:\.\d+)+`)
	digits   = regexp.MustCompile(`\d+`)
	ipv6     = regexp.MustCompile(`[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:]*`)
	bytewise = regexp.MustCompile(`^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2})+$`) // MAC address, WWN, fingerprint
	length   = regexp.MustCompile(`^/(\d+)`)
	dnsName  = regexp.MustCompile(`^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z][A-Za-z0-9-]*$`)
	server   = regexp.MustCompile(`\b[a-z]+://(?:[^/@\s]*@)?([A-Za-z0-9.-]+)`)
	volume   = regexp.MustCompile(`/vmfs/volumes/([^/"\s]+)`)
	spaced   = regexp.MustCompile(`/vmfs/volumes/([^/"]+)/|\[([^\]\[]+)\] \S[^\[\]]*?\.(?:vmx|vmdk|iso)\b`) // datastore names may have spaces
)

// list marks the key of a map that is an element of a list.
const list = "[]"

// pseudonyms replaces names and addresses of a site consistently, so that equal values stay equal.
type pseudonyms struct {
	key     []byte
	found   map[string]string // kind of thing by name
	aliases map[string]string
	lengths []int // lengths of the names that are replaced inside texts, longest first
}

// masked replaces names and addresses in the documents of a bundle. MAC and PCI addresses, models and versions are kept.
func masked(members []member) (*pseudonyms, []member, error) {
	m := &pseudonyms{key: make([]byte, 32), found: map[string]string{}, aliases: map[string]string{}}
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
		walk(trees[i], "", "", m.know)
	}
	m.name()
	for i, one := range members {
		var text []byte
		var err error
		if n, ok := trees[i].(*yaml.Node); ok {
			m.yaml(n, "", "", m.value)
			text, err = yaml.Marshal(n)
		} else {
			text, err = document(walk(trees[i], "", "", m.value))
		}
		if err != nil {
			return nil, nil, err
		}
		out[i] = member{one.name, text}
	}
	return m, out, nil
}

// know collects a name; it replaces nothing.
func (m *pseudonyms) know(around, key, s string) string {
	switch what := cmp.Or(named[around+"."+key], named[key]); {
	case key == "url" || key == "vcenter" && strings.Contains(s, "://"):
		if u, err := url.Parse(s); err == nil {
			m.note(u.Hostname(), "vcenter")
		}
	case key == "path" && strings.HasPrefix(s, "/") || what == "vm" && strings.HasPrefix(s, "/"):
		for _, part := range strings.Split(s, "/") {
			m.note(backends.DisplayName(part), "folder")
		}
	case what != "":
		m.note(s, what)
	}
	for _, v := range volume.FindAllStringSubmatch(s, -1) {
		m.note(v[1], "datastore")
	}
	for _, v := range spaced.FindAllStringSubmatch(s, -1) {
		m.note(v[1]+v[2], "datastore")
	}
	for _, v := range server.FindAllStringSubmatch(s, -1) {
		m.server(v[1])
	}
	if around == "addresses" || key == "address" {
		name, _, err := net.SplitHostPort(s)
		if err != nil {
			name = s
		}
		m.server(name)
	} else if around == "container" || around == "images" || key == "images" { // REGISTRY[:PORT]/NAME
		registry, _, _ := strings.Cut(s, "/")
		registry, _, _ = strings.Cut(registry, ":")
		m.server(registry)
	}
	return s
}

// server collects a DNS name that is not the name of anything else.
func (m *pseudonyms) server(name string) {
	if dnsName.MatchString(name) && m.found[name] == "" {
		m.note(name, "server")
	}
}

// note stores the kind of a name. Any other kind takes precedence over folder.
func (m *pseudonyms) note(name, what string) {
	_, err := netip.ParseAddr(name)
	_, err2 := netip.ParsePrefix(name)
	if err == nil || err2 == nil || usual.MatchString(name) {
		return
	}
	if was := m.found[name]; was == "" || was == "folder" || was == "server" {
		m.found[name] = what
	}
}

// name assigns an alias to every name, in natural order, and to the first label of host names too.
func (m *pseudonyms) name() {
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
		if label, domain, ok := strings.Cut(name, "."); ok && slices.Contains([]string{"host", "vcenter", "ntp", "server"}, what) {
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

// order sorts vm-9 before vm-10.
func order(a, b string) int {
	padded := func(s string) string {
		return digits.ReplaceAllStringFunc(s, func(n string) string { return fmt.Sprintf("%20s", n) })
	}
	return cmp.Or(cmp.Compare(padded(a), padded(b)), cmp.Compare(a, b))
}

// value returns the replacement of a value with a key.
func (m *pseudonyms) value(around, key, s string) string {
	is := cmp.Or(named[around+"."+key], named[key]) != ""
	if is && m.aliases[s] != "" {
		return m.aliases[s]
	}
	if strings.HasPrefix(s, "/") && (key == "path" || is) {
		parts := strings.Split(s, "/")
		for i, part := range parts {
			parts[i] = cmp.Or(m.aliases[backends.DisplayName(part)], part)
		}
		return strings.Join(parts, "/")
	}
	if strings.Contains(key, "version") || key == "build" || key == "firmware" {
		return s
	}
	return m.text(s)
}

// text replaces names that are not ordinary words, and addresses.
func (m *pseudonyms) text(s string) string {
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
	return m.addresses(b.String())
}

// addresses replaces the IP addresses in a text. A number next to letters, or next to a hyphen without an address on the other
// side, is a version, such as MLNX_OFED_LINUX-5.8-3.0.7.0. A network address stays one.
func (m *pseudonyms) addresses(s string) string {
	for _, kind := range []*regexp.Regexp{ipv4, ipv6} {
		var b strings.Builder
		last := 0
		found := kind.FindAllStringIndex(s, -1)
		for i, at := range found {
			if s[at[1]-1] == ':' && s[at[1]-2] != ':' { // "fd00::1: refused"
				at[1]--
			}
			one := s[at[0]:at[1]]
			a, err := netip.ParseAddr(one)
			if err != nil || bytewise.MatchString(one) || at[0] > 0 && wordByte(s[at[0]-1]) ||
				at[1] < len(s) && (wordByte(s[at[1]]) || one[0] == ':' && s[at[1]] == '.') {
				continue
			}
			isAddress := func(i int) bool { _, err := netip.ParseAddr(s[found[i][0]:found[i][1]]); return err == nil }
			before := at[0] > 1 && s[at[0]-1] == '-' && digits.MatchString(s[at[0]-2:at[0]-1]) &&
				(i == 0 || found[i-1][1] != at[0]-1 || !isAddress(i-1))
			behind := at[1] < len(s) && s[at[1]] == '-' && (i+1 == len(found) || found[i+1][0] != at[1]+1 || !isAddress(i+1))
			if before || behind {
				continue
			}
			other := m.address(a)
			if of := length.FindStringSubmatch(s[at[1]:]); of != nil {
				if p, err := netip.ParsePrefix(one + of[0]); err == nil && p.Masked().Addr() == a {
					other = netip.PrefixFrom(other, p.Bits()).Masked().Addr()
				}
			}
			text := other.String()
			if len(one) == len(other.StringExpanded()) { // as sysfs writes a GID
				text = other.StringExpanded()
			}
			b.WriteString(s[last:at[0]] + text)
			last = at[1]
		}
		s = b.String() + s[last:]
	}
	return s
}

// address replaces an address so that two addresses in one network stay in one network of the same length: each bit up to the
// 24th is flipped depending on the bits before it (as in Crypto-PAn: Xu et al., Prefix-Preserving IP Address Anonymization, ICNP
// 2002). The bits that make an address private are kept, and so is the last byte: .1 stays .1. The last 64 bits of IPv6 addresses
// are kept.
func (m *pseudonyms) address(a netip.Addr) netip.Addr {
	switch {
	case a.IsLoopback(), a.IsUnspecified(), a.IsMulticast(), a.IsLinkLocalUnicast():
		return a
	case a.Is4In6():
		v4 := m.address(a.Unmap()).As4()
		out := a.As16()
		copy(out[12:], v4[:])
		return netip.AddrFrom16(out)
	case a.Is6(): // another network of unique local addresses (RFC 4193)
		out := a.As16()
		sum := sha256.Sum256(append(slices.Clone(m.key), out[:8]...))
		copy(out[:8], append([]byte{0xfd}, sum[:7]...))
		return netip.AddrFrom16(out)
	}
	kept := 0
	in, out := a.As4(), a.As4()
	switch {
	case in[0] >= 240:
		return a
	case in[0] == 10:
		kept = 8
	case in[0] == 172 && in[1]&0xf0 == 16:
		kept = 12
	case in[0] == 192 && in[1] == 168:
		kept = 16
	default: // public: it becomes an address in 100.64.0.0/10, which is not routed
		sum := sha256.Sum256(append(slices.Clone(m.key), in[:2]...))
		out[0], out[1], kept = 100, 64|sum[0]&0x3f, 16
	}
	for i := kept; i < 24; i++ {
		prefix, _ := a.Prefix(i)
		p := prefix.Addr().As4()
		sum := sha256.Sum256(append(append(slices.Clone(m.key), byte(i)), p[:]...))
		out[i/8] = out[i/8]&^(0x80>>(i%8)) | (in[i/8] & (0x80 >> (i % 8))) ^ (sum[0] >> 7 << (7 - i%8))
	}
	return netip.AddrFrom4(out)
}

// walk goes through a document and replaces each string s by f(s).
func walk(v any, around, key string, f func(around, key, s string) string) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if slices.Contains(byName, key) {
				out[f("", "host", k)] = walk(v[k], key, "", f)
			} else {
				out[f("", "", k)] = walk(v[k], strings.TrimSuffix(key, list), k, f)
			}
		}
		return out
	case []any:
		for i := range v {
			if s, ok := v[i].(string); ok {
				v[i] = f(around, key, s)
			} else {
				v[i] = walk(v[i], around, key+list, f)
			}
		}
	case string:
		return f(around, key, v)
	}
	return v
}

// yaml does the same with answers; comments and keys are kept.
func (m *pseudonyms) yaml(n *yaml.Node, around, key string, f func(around, key, s string) string) {
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
