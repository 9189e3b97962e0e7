// Package netplan implements netplan.io for the lab's guests: it merges the YAML files and writes the files that systemd-networkd,
// udev and NetworkManager read. The rules are those of canonical/netplan, src/parse.c, validation.c, networkd.c and nm.c, and the
// texts those of release 0.106.
package netplan

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// A State is the merged configuration.
type State struct {
	Open     []string // files that other users can read
	Gateways []string // gateway4 and gateway6, which are deprecated, in order of appearance

	fs       *vfs.FS
	root     string
	renderer string
	defs     []*def // in order of appearance
}

// def is a network definition. Keys of mappings inside it are joined by dots.
type def struct {
	id, kind string // ethernets, bonds, ...
	set      map[string]string
	lists    map[string][]string
	routes   []map[string]string
	rules    []map[string]string
	matched  bool // has a match
	bond     string
	bridge   string
	vrf      string
}

func (d *def) on(key string) bool  { return d.set[key] == "true" }
func (d *def) off(key string) bool { return d.set[key] == "false" }
func (d *def) physical() bool {
	return d.kind == "ethernets" || d.kind == "wifis" || d.kind == "modems"
}
func (d *def) backend(s *State) string { return cmp.Or(d.set["renderer"], s.renderer, "networkd") }

// A message is an error in netplan's words.
type message string

func (m message) Error() string { return string(m) }

// An Error is an error about a file, with the line that contains it.
type Error struct {
	File      string
	Line, Col int
	What      string // "Error in network definition", "Invalid YAML"
	Text      string
	Source    string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s: %s\n%s\n%s^", e.File, e.Line, e.Col, e.What, e.Text, e.Source, strings.Repeat(" ", max(e.Col-1, 0)))
}

// Load reads all files below root: a name in /run hides the same name in /etc and /lib, and later names override earlier ones.
func Load(fs *vfs.FS, root string) (*State, error) {
	s := &State{fs: fs, root: root}
	files := map[string]string{}
	for _, dir := range []string{"/lib/netplan", "/etc/netplan", "/run/netplan"} {
		list, err := fs.ReadDir(vfs.Root(), path.Join(root, dir))
		if err != nil {
			continue
		}
		for _, i := range list {
			if strings.HasSuffix(i.Name(), ".yaml") && !strings.HasPrefix(i.Name(), ".") {
				files[i.Name()] = dir + "/" + i.Name()
			}
		}
	}
	for _, name := range sorted(files) {
		file := root + files[name]
		info, err := fs.Stat(vfs.Root(), file)
		if err != nil {
			return nil, message("Cannot stat " + file + ": " + vfs.Reason(err))
		}
		if info.Mode()&0o077 != 0 {
			s.Open = append(s.Open, file)
		}
		data, err := fs.ReadFile(vfs.Root(), file)
		if err != nil {
			return nil, message("Cannot open " + file + ": " + vfs.Reason(err))
		}
		p := &parser{State: s, file: file, text: string(data), seen: map[*def]bool{}}
		if err := p.parse(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *State) def(id string) *def {
	if i := slices.IndexFunc(s.defs, func(d *def) bool { return d.id == id }); i >= 0 {
		return s.defs[i]
	}
	return nil
}

// parser reads one file.
type parser struct {
	*State
	file, text string
	kindOf     string // renderer of the kind of devices that is being read
	d          *def
	seen       map[*def]bool // definitions in this file
	refs       []ref
}

// ref is the mention of another definition, which may follow later in the file.
type ref struct {
	d    *def
	key  string
	node *yaml.Node
	list *yaml.Node
}

func (p *parser) line(n int) string {
	if lines := strings.Split(p.text, "\n"); n >= 1 && n <= len(lines) {
		return lines[n-1]
	}
	return ""
}

func (p *parser) fail(n *yaml.Node, format string, args ...any) error {
	return &Error{p.file, n.Line, n.Column, "Error in network definition", fmt.Sprintf(format, args...), p.line(n.Line)}
}

// syntax converts an error of the YAML parser as parser_error in parse.c does.
func (p *parser) syntax(err error) error {
	var e *yaml.LoadError
	if !errors.As(err, &e) {
		return err
	}
	text := e.Message
	source := p.line(e.Mark.Line)
	switch {
	case e.Mark.Column <= len(source) && e.Mark.Column > 0 && source[e.Mark.Column-1] == '\t':
		text = "tabs are not allowed for indent"
	case strings.Contains(text, "unknown anchor"), strings.Contains(text, "unexpected end of stream"):
		text = "aliases are not supported"
	case strings.Contains(text, "mapping values are not allowed"), strings.Contains(text, "expected key"),
		strings.Contains(text, "could not find expected ':'"):
		text = "inconsistent indentation"
	}
	return &Error{p.file, e.Mark.Line, e.Mark.Column, "Invalid YAML", text + ":", source}
}

func (p *parser) parse() error {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(p.text), &doc); err != nil {
		return p.syntax(err)
	}
	if len(doc.Content) == 0 {
		return nil
	}
	err := p.mapping(doc.Content[0], "",
		schema{"network": func(p *parser, _ string, n *yaml.Node) error { return p.mapping(n, "", p.network()) }})
	if err != nil {
		return err
	}
	for _, r := range p.refs {
		if err := p.resolve(r); err != nil {
			return err
		}
	}
	return nil
}

// A schema contains the known keys of a mapping and how their values are read.
type schema map[string]func(p *parser, key string, n *yaml.Node) error

func (p *parser) mapping(n *yaml.Node, prefix string, known schema) error {
	n = target(n)
	if n.Kind != yaml.MappingNode {
		return p.fail(n, "expected mapping (check indentation)")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := target(n.Content[i])
		if key.Kind != yaml.ScalarNode {
			return p.fail(key, "expected scalar")
		}
		read := known[key.Value]
		if read == nil {
			return p.fail(key, "unknown key '%s'", key.Value)
		}
		if err := read(p, prefix+key.Value, target(n.Content[i+1])); err != nil {
			return err
		}
	}
	return nil
}

func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func (p *parser) network() schema {
	s := schema{
		"version": func(p *parser, _ string, n *yaml.Node) error {
			if n.Value != "2" {
				return p.fail(n, "Only version 2 is supported")
			}
			return nil
		},
		"renderer": func(p *parser, _ string, n *yaml.Node) (err error) {
			p.renderer, err = p.readRenderer(n)
			return err
		},
		"openvswitch": anything,
	}
	for kind := range kinds {
		s[kind] = (*parser).devices
	}
	return s
}

func (p *parser) readRenderer(n *yaml.Node) (string, error) {
	if n.Value != "networkd" && n.Value != "NetworkManager" {
		return "", p.fail(n, "unknown renderer '%s'", n.Value)
	}
	return n.Value, nil
}

// devices reads the definitions of one kind.
func (p *parser) devices(kind string, n *yaml.Node) (err error) {
	if n.Kind != yaml.MappingNode {
		return p.fail(n, "expected mapping (check indentation)")
	}
	p.kindOf = ""
	for i := 0; i+1 < len(n.Content); i += 2 {
		id, value := n.Content[i], target(n.Content[i+1])
		if id.Value == "renderer" {
			if p.kindOf, err = p.readRenderer(value); err != nil {
				return err
			}
			continue
		}
		switch p.d = p.def(id.Value); {
		case strings.ContainsFunc(id.Value, func(r rune) bool { return r <= ' ' || r > '~' }):
			return p.fail(id, "Invalid name '%s'", id.Value) // src/parse.c: assert_valid_id
		case value.Kind != yaml.MappingNode:
			return p.fail(value, "expected mapping (check indentation)")
		case p.d == nil && strings.ContainsAny(id.Value, "*[]?"):
			return p.fail(id, "Definition ID '%s' must not use globbing", id.Value)
		case p.d == nil:
			p.d = &def{id: id.Value, kind: kind, set: map[string]string{}, lists: map[string][]string{}}
			if p.kindOf != "" {
				p.d.set["renderer"] = p.kindOf
			}
			p.defs = append(p.defs, p.d)
		case p.d.kind != kind:
			return p.fail(id, "Updated definition '%s' changes device type", id.Value)
		}
		p.seen[p.d] = true
		if err := p.mapping(value, "", kinds[kind]); err != nil {
			return err
		}
		if err := p.validate(value); err != nil {
			return err
		}
	}
	return nil
}

// validate checks a whole definition (validate_netdef_grammar in validation.c).
func (p *parser) validate(n *yaml.Node) error {
	d := p.d
	need := func(key, what string) error {
		if d.set[key] == "" {
			return p.fail(n, "%s: missing '%s' property", d.id, what)
		}
		return nil
	}
	switch {
	case d.set["set-name"] != "" && !d.matched:
		return p.fail(n, "%s: 'set-name:' requires 'match:' properties", d.id)
	case d.kind == "vlans":
		return cmp.Or(need("link", "link"), need("id", "id"))
	case d.kind == "vrfs":
		return need("table", "table")
	}
	return nil
}

// resolve makes the members of bonds, bridges and VRFs point to them.
func (p *parser) resolve(r ref) error {
	to := p.def(r.node.Value)
	if to == nil {
		return p.fail(r.node, "%s: interface '%s' is not defined", r.d.id, r.node.Value)
	}
	if r.key != "interfaces" {
		return nil
	}
	master := map[string]*string{"bonds": &to.bond, "bridges": &to.bridge, "vrfs": &to.vrf}[r.d.kind]
	for kind, held := range map[string]string{"bridge": to.bridge, "bond": to.bond} {
		if held != "" && held != r.d.id && r.d.kind != "vrfs" {
			return p.fail(r.list, "%s: interface '%s' is already assigned to %s %s", r.d.id, to.id, kind, held)
		}
	}
	if *master != "" && *master != r.d.id {
		return p.fail(r.list, "%s: interface '%s' is already assigned to vrf %s", r.d.id, to.id, *master)
	}
	*master = r.d.id
	return nil
}
