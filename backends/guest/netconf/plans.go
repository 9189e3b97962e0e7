package netconf

import (
	"cmp"
	"errors"
	"io"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v4"
)

// plans are the merged files: netplan merges stanzas of one id over all files, in the order of their base names.
type plans struct {
	renderer System
	by       string // the file that says so, else the last file
	stanzas  []*stanza
	switched bool // Open vSwitch, whose ports are defined elsewhere
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
	said := ""
	for _, f := range first(files, ".yaml", netplanDirs) {
		var doc yaml.Node
		top, err := readYAML(f, &doc)
		if err != nil {
			return nil, err
		}
		p.by = cmp.Or(said, f.Path)
		network, _ := top["network"].(map[string]any)
		for kind, v := range sorted(network) {
			section, ok := v.(map[string]any)
			switch {
			case kind == "renderer":
				p.renderer, p.by, said = rendererOf(v), f.Path, f.Path
			case kind == "openvswitch":
				p.switched = true
			case !ok:
			default:
				p.section(kind, section, f.Path)
			}
		}
		if line, why := p.undefined(&doc); line > 0 {
			return nil, invalid(f, line, why)
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

// undefined returns the line of the first mention of an interface that neither this file nor an earlier one defines, and what netplan says
// of it (netplan 0.106, src/parse.c: process_document). Later releases let NetworkManager have VLANs on others (netplan 1.1.2).
func (p *plans) undefined(doc *yaml.Node) (line int, why string) {
	if len(doc.Content) == 0 || p.switched {
		return 0, ""
	}
	for section := range under(doc.Content[0], "network") {
		for kind, stanzas := range pairs(section) {
			for id, body := range pairs(stanzas) {
				s := p.find(id.Value)
				if s == nil || kind.Value == "vlans" && cmp.Or(rendererOf(s.body["renderer"]), s.renderer, p.renderer) == NetworkManager {
					continue
				}
				for key, v := range pairs(body) {
					for _, n := range append(slices.Clone(v.Content), v) {
						if (key.Value == "link" || key.Value == "interfaces") && n.Kind == yaml.ScalarNode && n.Tag != "!!null" && p.find(n.Value) == nil {
							return n.Line, id.Value + ": interface '" + n.Value + "' is not defined"
						}
					}
				}
			}
		}
	}
	return 0, ""
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

// mostNodes bounds what a file becomes: an alias may contain itself, or others that multiply.
const mostNodes = 100_000

// yamlLine is the line that the parser names.
var yamlLine = regexp.MustCompile(`line (\d+)`)

// invalid refuses a file with which netplan generates nothing.
func invalid(f File, line int, why string) error {
	return &Refusal{File: f.Path, Line: line, Why: "netplan cannot read it: " + why,
		Hint: "Correct or remove the file: otherwise no interface is configured at the next boot."}
}

// readYAML reads the first document of a file; every scalar is text, as for netplan, and a repeated key replaces.
func readYAML(f File, node *yaml.Node) (map[string]any, error) {
	err := yaml.NewDecoder(strings.NewReader(f.Content)).Decode(node)
	switch {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		line := 0
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
			line, _ = strconv.Atoi(m[1])
		}
		return nil, invalid(f, line, err.Error())
	}
	nodes := mostNodes
	top, ok := value(node, &nodes).(map[string]any)
	if nodes < 0 {
		return nil, invalid(f, 0, "its aliases (*name) make it larger than any configuration")
	}
	if _, is := top["network"].(map[string]any); ok && (is || top["network"] == nil) {
		if at, id := badStanza(node); at > 0 {
			return nil, invalid(f, at, "the stanza "+id+" is no mapping")
		}
		return top, nil
	} else if ok || node.Content != nil && node.Content[0].Tag != "!!null" {
		return nil, invalid(f, node.Line, "it has no mapping named network")
	}
	return nil, nil
}

// value returns what a node stands for, until left is used up.
func value(n *yaml.Node, left *int) any {
	if *left--; *left < 0 {
		return nil
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return value(n.Content[0], left)
	case yaml.AliasNode:
		return value(n.Alias, left)
	case yaml.MappingNode:
		m := map[string]any{}
		for k, v := range pairs(n) {
			if of := value(v, left); *left >= 0 {
				merge(m, map[string]any{k.Value: of})
			}
		}
		return m
	case yaml.SequenceNode:
		l := []any{}
		for _, c := range n.Content {
			l = append(l, value(c, left))
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
