package netconf

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"github.com/rdma-setup/rdma-setup/backends"
)

// netplan translates its files for systemd-networkd or NetworkManager, whose rules then decide; see translate.go.
type netplan struct{}

// netplanDirs are its directories; a file hides one of the same name in a later directory (netplan-generate(8)).
var netplanDirs = []string{"/etc/netplan", "/run/netplan", "/lib/netplan", "/usr/lib/netplan"}

func isNetplan(file string) bool {
	return isIn(file, netplanDirs...) && strings.HasSuffix(file, ".yaml")
}

func (netplan) own(a Static) string {
	return "/etc/netplan/60-rdma-setup-" + Slug(a.PortGroup) + ".yaml"
}

// stanzaIDs are the ids that our stanza may have, in the order of preference: with networkd, of the files 10-netplan-ID.network that match an
// interface the first by name decides. A stanza of others with the same id would merge with ours.
func stanzaIDs(a Static) []string {
	return []string{"0-rdma-setup-" + Slug(a.PortGroup), "!-rdma-setup-" + Slug(a.PortGroup)}
}

func (p netplan) add(files []File, links []Link, a Static) (File, error) {
	all, err := readPlans(files)
	if err != nil {
		return File{}, err
	}
	l, _ := linkOf(links, a.NIC)
	renderer := all.rendererFor(l)
	for _, s := range all.stanzas {
		if name := s.text("set-name"); s.fits(l) && name != "" && name != a.Name {
			return File{}, &Refusal{File: s.file, Why: fmt.Sprintf("stanza %s gives %s the name %s", s.id, a.Name, name), Hint: "Restart the guest, or remove set-name from the stanza."}
		}
	}
	if renderer == NetworkManager {
		if f, err := (networkManager{}).add(append(nativeOf(files), all.translate()...), links, a); err != nil {
			return f, all.origin(err)
		}
	}
	var f File
	for _, id := range stanzaIDs(a) {
		if all.find(id) != nil {
			continue
		}
		f = File{p.own(a), netplanText(id, renderer, all.renderer == renderer, a)}
		after, err := p.Effective(append(slices.Clone(files), f), links)
		if err != nil {
			return File{}, err
		}
		if is, _ := Of(after, a.Name); is.File == f.Path || len(links) == 0 {
			break
		}
	}
	return f, nil
}

// netplanText returns a netplan file for one interface, matched by its MAC, with a stanza of its own. The current name is set explicitly:
// with an MTU netplan writes a .link file, which disables the rules that name interfaces (canonical/cloud-init#3034). With DHCP the
// overrides ignore the server's routes, DNS servers and MTU (netplan reference, "DHCP overrides"). A boot does not wait for the link
// ("optional"). NetworkManager's profile gets the highest priority, because netplan gives its profiles none, and what netplan has no
// words for ("networkmanager", "passthrough": netplan 0.102 and later, in a stanza that names its renderer).
func netplanText(id string, renderer System, global bool, a Static) string {
	dhcp := a.CIDR == backends.DHCP
	dhcp4, addresses := "false", fmt.Sprintf("      addresses:\n        - \"%s\"\n", a.CIDR)
	if dhcp {
		dhcp4, addresses = "true", "      dhcp4-overrides:\n        use-routes: false\n        use-dns: false\n        use-mtu: false\n"
	}
	more := "      accept-ra: false\n"
	switch {
	case renderer == NetworkManager:
		more = fmt.Sprintf("      renderer: NetworkManager\n      networkmanager:\n        passthrough:\n          connection.autoconnect-priority: \"%d\"\n          ipv4.never-default: \"true\"\n"+
			"          ipv6.method: \"link-local\"\n", priority)
		if dhcp {
			addresses = "      dhcp4-overrides:\n        use-routes: false\n"
			more += "          ipv4.ignore-auto-dns: \"true\"\n"
		}
	case !global:
		more = "      renderer: networkd\n" + more
	}
	return comment(a) + fmt.Sprintf(`network:
  version: 2
  ethernets:
    %s:
      match:
        macaddress: "%s"
      set-name: %s
      optional: true
      dhcp4: %s
      dhcp6: false
      mtu: %d
%s`, quoteYAML(id), a.MAC, quoteYAML(a.Name), dhcp4, a.MTU, more+addresses+a.netplanRule())
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

// plans are the merged files: netplan merges stanzas of one id over all files, in the order of their base names.
type plans struct {
	renderer System
	stanzas  []*stanza
}

// A stanza is a definition: its settings as text, lists and maps, and the last file that contributes to it.
type stanza struct {
	kind, id, file string
	renderer       System
	body           map[string]any
}

func (p *plans) find(id string) *stanza {
	at := slices.IndexFunc(p.stanzas, func(s *stanza) bool { return s.id == id })
	if at < 0 {
		return nil
	}
	return p.stanzas[at]
}

func readPlans(files []File) (*plans, error) {
	p := &plans{renderer: Networkd}
	for _, f := range first(files, ".yaml", netplanDirs) {
		top, err := readYAML(f)
		if err != nil {
			return nil, err
		}
		network, _ := top["network"].(map[string]any)
		for kind, v := range sorted(network) {
			section, ok := v.(map[string]any)
			switch {
			case kind == "renderer":
				p.renderer = rendererOf(v)
			case kind == "openvswitch", !ok:
			default:
				p.section(kind, section, f.Path)
			}
		}
	}
	for _, s := range p.stanzas {
		s.renderer = cmp.Or(rendererOf(s.body["renderer"]), s.renderer, p.renderer)
		if s.kind == "modems" || s.kind == "nm-devices" {
			s.renderer = NetworkManager
		}
	}
	return p, nil
}

// section merges the stanzas of one kind of a file. A renderer of the section is for those that begin in it.
func (p *plans) section(kind string, section map[string]any, file string) {
	for id, v := range sorted(section) {
		body, ok := v.(map[string]any)
		if id == "renderer" || !ok {
			continue
		}
		s := p.find(id)
		if s == nil {
			s = &stanza{kind: kind, id: id, renderer: rendererOf(section["renderer"]), body: map[string]any{}}
			p.stanzas = append(p.stanzas, s)
		}
		merge(s.body, body)
		s.file = file
	}
}

func rendererOf(v any) System {
	switch v {
	case "networkd":
		return Networkd
	case "NetworkManager":
		return NetworkManager
	}
	return ""
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

// yamlLine is the line that the parser names.
var yamlLine = regexp.MustCompile(`line (\d+)`)

// readYAML reads the first document of a file; every scalar is text, as for netplan, and a repeated key replaces.
func readYAML(f File) (map[string]any, error) {
	var node yaml.Node
	invalid := func(line int, why string) error {
		return &Refusal{File: f.Path, Line: line, Why: "netplan cannot read it: " + why, Hint: "Correct or remove the file: otherwise no interface is configured at the next boot."}
	}
	err := yaml.NewDecoder(strings.NewReader(f.Content)).Decode(&node)
	switch {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		line := 0
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
			line, _ = strconv.Atoi(m[1])
		}
		return nil, invalid(line, err.Error())
	}
	top, ok := value(&node).(map[string]any)
	if _, is := top["network"].(map[string]any); ok && (is || top["network"] == nil) {
		if at, id := badStanza(&node); at > 0 {
			return nil, invalid(at, "the stanza "+id+" is no mapping")
		}
		return top, nil
	} else if ok || node.Content != nil && node.Content[0].Tag != "!!null" {
		return nil, invalid(node.Line, "it has no mapping named network")
	}
	return nil, nil
}

func value(n *yaml.Node) any {
	switch n.Kind {
	case yaml.DocumentNode:
		return value(n.Content[0])
	case yaml.AliasNode:
		return value(n.Alias)
	case yaml.MappingNode:
		m := map[string]any{}
		for k, v := range pairs(n) {
			merge(m, map[string]any{k.Value: value(v)})
		}
		return m
	case yaml.SequenceNode:
		l := []any{}
		for _, c := range n.Content {
			l = append(l, value(c))
		}
		return l
	}
	if n.Tag == "!!null" {
		return nil
	}
	return n.Value
}

// badStanza returns the line and the id of the first stanza that is no mapping; 0 if there is none.
func badStanza(doc *yaml.Node) (line int, id string) {
	for section := range under(doc.Content[0], "network") {
		for kind, stanzas := range pairs(section) {
			for key, s := range pairs(stanzas) {
				if s.Kind == yaml.AliasNode {
					s = s.Alias
				}
				if kind.Value != "openvswitch" && key.Value != "renderer" && s.Kind != yaml.MappingNode && (line == 0 || key.Line < line) {
					line, id = key.Line, key.Value
				}
			}
		}
	}
	return line, id
}

// pairs are the keys and values of a mapping.
func pairs(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(k, v *yaml.Node) bool) {
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

// under are the values of a key.
func under(n *yaml.Node, key string) iter.Seq[*yaml.Node] {
	return func(yield func(*yaml.Node) bool) {
		for k, v := range pairs(n) {
			if k.Value == key && !yield(v) {
				return
			}
		}
	}
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// text returns a setting as text; keys are a path.
func (s *stanza) text(keys ...string) string {
	var v any = s.body
	for _, k := range keys {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	t, _ := v.(string)
	return t
}

// texts returns a setting that is text or a list of text; of a list of maps with one key, such as addresses with options, the keys.
func (s *stanza) texts(keys ...string) (all []string) {
	var v any = s.body
	for _, k := range keys {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	if t, ok := v.(string); ok {
		return []string{t}
	}
	for _, e := range list(v) {
		switch t := e.(type) {
		case string:
			all = append(all, t)
		case map[string]any:
			for k := range sorted(t) {
				all = append(all, k)
			}
		}
	}
	return all
}

// fits reports whether a stanza is for a card: by what it matches, or by its id.
func (s *stanza) fits(l Link) bool {
	if s.kind != "ethernets" || l.Type != "" {
		return false
	}
	if _, ok := s.body["match"].(map[string]any); !ok {
		return s.id == l.Name
	}
	name, mac, drivers := s.text("match", "name"), s.text("match", "macaddress"), s.texts("match", "driver")
	return (name == "" || glob(name, l.Name) || s.text("set-name") == l.Name) && (mac == "" || strings.EqualFold(mac, l.MAC)) &&
		(len(drivers) == 0 || slices.ContainsFunc(drivers, func(d string) bool { return glob(d, l.Driver) }))
}

// rendererFor returns the renderer for our stanza: that of the stanzas which also fit the interface if they agree.
func (p *plans) rendererFor(l Link) System {
	var rivals []System
	for _, s := range p.stanzas {
		if s.fits(l) {
			rivals = append(rivals, s.renderer)
		}
	}
	if rivals = slices.Compact(rivals); len(rivals) == 1 {
		return rivals[0]
	}
	return p.renderer
}

// Effective implements Program.
func (netplan) Effective(files []File, links []Link) ([]Effective, error) {
	p, err := readPlans(files)
	if err != nil {
		return nil, err
	}
	return p.effective(files, p.translate(), links), nil
}

// Generated is Effective for the files that `netplan generate --root-dir` has made of netplan's: generated are the files below
// run/systemd/network and run/NetworkManager, with the paths that they have without the root directory.
func Generated(files, generated []File, links []Link) ([]Effective, error) {
	p, err := readPlans(files)
	if err != nil {
		return nil, err
	}
	return p.effective(files, generated, links), nil
}

// effective combines the two programs: networkd has an interface if a file is for it, and netplan tells NetworkManager to leave it alone.
func (p *plans) effective(files, generated []File, links []Link) (all []Effective) {
	files = append(nativeOf(files), generated...)
	all, _ = networkd{}.Effective(files, links)
	manager, _ := networkManager{}.Effective(files, links)
	for i := range all {
		e := &all[i]
		if m := manager[i]; e.File == "" && p.manager() && m.File != "" {
			m.LinkFile, m.Name = e.LinkFile, e.Name
			*e = m
		}
		if s := p.stanzaOf(e.File); s != nil {
			e.File, e.ID = s.file, s.id
			_, _, e.Uppers = p.above(s)
		}
		if s := p.stanzaOf(e.LinkFile); s != nil {
			e.LinkFile = s.file
		}
	}
	return all
}

// manager reports whether NetworkManager does anything.
func (p *plans) manager() bool {
	return p.renderer == NetworkManager || slices.ContainsFunc(p.stanzas, func(s *stanza) bool { return s.renderer == NetworkManager })
}

// generatedName is the name of a file that netplan writes.
var generatedName = regexp.MustCompile(`^(?:10-)?netplan-(.*?)\.(?:network|link|netdev|nmconnection)$`)

// stanzaOf returns the stanza of a generated file.
func (p *plans) stanzaOf(file string) *stanza {
	m := generatedName.FindStringSubmatch(path.Base(file))
	if m == nil || !strings.HasPrefix(file, "/run/") {
		return nil
	}
	id, err := url.PathUnescape(m[1])
	if err != nil {
		id = m[1]
	}
	if s := p.find(id); s != nil {
		return s
	}
	return p.find(m[1])
}

// origin names netplan's file instead of the one made of it.
func (p *plans) origin(err error) error {
	var r *Refusal
	if errors.As(err, &r) {
		if s := p.stanzaOf(r.File); s != nil {
			r.File = s.file
		}
	}
	return err
}

// nativeOf returns the files that netplan has not generated.
func nativeOf(files []File) (natives []File) {
	for _, f := range files {
		base := path.Base(f.Path)
		if strings.HasPrefix(f.Path, "/run/") && (generatedName.MatchString(base) || base == "netplan.conf" || base == globallyManaged) {
			continue
		}
		natives = append(natives, f)
	}
	return natives
}
