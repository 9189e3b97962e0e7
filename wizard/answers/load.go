package answers

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v4"
)

const sizeLimit = 2 << 20 // bytes; ten thousand VMs need about one MB

// Default returns answers with the documented defaults of a mode and nothing else.
func Default(m Mode) *Answers {
	a := &Answers{Mode: m}
	d := decoder{keys: newKeyTable(), mode: m, nodes: map[string]*yaml.Node{}}
	d.defaults(reflect.ValueOf(a).Elem(), "")
	a.Mode = m
	return a
}

// DefaultVM returns a VM with every documented default.
func DefaultVM(name string) VM {
	v := VM{Name: name}
	d := decoder{keys: newKeyTable(), nodes: map[string]*yaml.Node{}}
	d.defaults(reflect.ValueOf(&v.Guest).Elem(), "vms[0].guest")
	return v
}

// Load reads answers, sets defaults and validates. name is the prefix of every problem. The error is of type Problems unless r
// itself fails.
func Load(r io.Reader, name string) (*Answers, error) { return load(r, name, true) }

// LoadDraft is Load for incomplete answers: only what cannot be parsed is a problem.
func LoadDraft(r io.Reader, name string) (*Answers, error) { return load(r, name, false) }

func load(r io.Reader, name string, complete bool) (*Answers, error) {
	raw, err := io.ReadAll(io.LimitReader(r, sizeLimit+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d := &decoder{keys: newKeyTable(), file: name, nodes: map[string]*yaml.Node{}}
	root := d.parse(raw)
	if root == nil {
		return nil, d.problems
	}
	d.secrets(root, "")
	if !d.migrate(root) {
		d.problems.sort()
		return nil, d.problems
	}
	d.mode = modeOf(root)
	a := &Answers{}
	d.defaults(reflect.ValueOf(a).Elem(), "")
	d.nodes = map[string]*yaml.Node{}
	d.value(root, reflect.ValueOf(a).Elem(), "")
	if d.nodes["pvrdma.vmknic.name"] == nil && a.PVRDMA.VMKNic.Create != nil {
		a.PVRDMA.VMKNic.Name = ""
	}
	d.rails(root, a)
	if a.Mode == GPUDirect && a.GPUDirect.NIC == NICPVRDMA {
		a.Mode = PVRDMA
	}
	if complete {
		d.check(a)
	}
	a.Unused = d.unused(a)
	if len(d.problems) > 0 {
		d.problems.sort()
		return nil, d.problems
	}
	return a, nil
}

// rails reads a list of rails. The keys that it replaces must not be set too.
func (d *decoder) rails(root *yaml.Node, a *Answers) {
	if child(root, "rails") == nil {
		return
	}
	for _, key := range []string{"nic", "switch"} {
		if n := child(root, key); n != nil {
			d.report(n, key, "keep one of the two: each rail has its own "+key, "cannot be combined with rails")
		}
	}
	a.FromRails(a.Rails)
}

// besidePVRDMA are the keys of gpudirect for GPUs in VMs with PVRDMA adapters.
var besidePVRDMA = []string{"gpudirect.gpus", "gpudirect.nic", "gpudirect.backing", "gpudirect.mmio", "gpudirect.driver",
	"gpudirect.models", "gpudirect.manager"}

// unused returns the keys in the file that differ from the default and are not used in the mode.
func (d *decoder) unused(a *Answers) (out []string) {
	defaults := reflect.ValueOf(Default(a.Mode)).Elem()
	for _, k := range Keys() {
		n := d.nodes[k.Path]
		section, name, ok := strings.Cut(k.Path, ".")
		switch {
		case n == nil || !ok || strings.ContainsAny(name, ".[{") || k.Mode == "" || k.Mode == a.Mode:
			continue
		case k.Mode == SRIOV && a.VFs(), k.Mode == GPUDirect && a.GPUs() && slices.Contains(besidePVRDMA, k.Path):
			continue
		}
		is, _ := field(reflect.ValueOf(a).Elem(), section)
		was, _ := field(defaults, section)
		is, _ = field(is, name)
		was, _ = field(was, name)
		if is.IsValid() && was.IsValid() && !reflect.DeepEqual(is.Interface(), was.Interface()) {
			out = append(out, fmt.Sprintf("%s:%d: %s", d.file, n.Line, k.Path))
		}
	}
	return out
}

// check adds the problems that Validate finds, with their positions; paths that could not be parsed are not reported twice.
func (d *decoder) check(a *Answers) {
	blamed := map[string]bool{}
	for _, p := range d.problems {
		blamed[p.Path] = true
	}
	for _, p := range problemsOf(a) {
		if blamed[p.Path] {
			continue
		}
		p.File = d.file
		if n := d.place(p.Path); n != nil {
			p.Line, p.Column = n.Line, n.Column
		}
		d.problems = append(d.problems, p)
	}
}

// place returns the node of a path, or of its nearest ancestor.
func (d *decoder) place(path string) *yaml.Node {
	for {
		if n := d.nodes[path]; n != nil || path == "" {
			return n
		}
		path = path[:max(0, strings.LastIndexAny(path, ".[{"))]
	}
}

var yamlLine = regexp.MustCompile(`line ([0-9]+): *`)

// parse returns the root mapping of the only document; nil after a fatal problem.
func (d *decoder) parse(raw []byte) *yaml.Node {
	if len(raw) > sizeLimit {
		d.report(nil, "", "", "is larger than %d MB, which no answers file is", sizeLimit>>20)
		return nil
	}
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	var doc, more yaml.Node
	switch err := dec.Decode(&doc); {
	case err == io.EOF:
		d.report(nil, "", "see: rdma-setup generate answers", "is empty")
		return nil
	case err != nil:
		d.syntax(err, raw)
		return nil
	}
	if err := dec.Decode(&more); err == nil {
		d.report(&more, "", "keep one file for each set of answers", "holds more than one document")
		return nil
	} else if err != io.EOF {
		d.syntax(err, raw)
		return nil
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		hint := "see: rdma-setup generate answers"
		if len(doc.Content) == 1 && doc.Content[0].ShortTag() == "!!null" {
			d.report(nil, "", hint, "is empty")
		} else {
			d.report(&doc, "", hint, "holds no \"key: value\" lines")
		}
		return nil
	}
	if !d.plain(doc.Content[0]) {
		return nil
	}
	return doc.Content[0]
}

// plain refuses YAML that answers never need and that could expand a small file: anchors, aliases, merges and tags.
func (d *decoder) plain(n *yaml.Node) bool {
	before := len(d.problems)
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		switch {
		case n.Kind == yaml.AliasNode || n.Anchor != "":
			d.report(n, "", "write the value out", "anchors and aliases are not allowed")
			return
		case n.Style&yaml.TaggedStyle != 0:
			d.report(n, "", "leave the tag out", "tags are not allowed")
			return
		}
		for _, c := range n.Content {
			walk(c)
		}
	}
	walk(n)
	return len(d.problems) == before
}

// syntax converts the YAML library's error to a problem with its line.
func (d *decoder) syntax(err error, raw []byte) {
	what, hint := strings.TrimPrefix(err.Error(), "yaml: "), ""
	p := Problem{File: d.file}
	if m := yamlLine.FindStringSubmatchIndex(what); m != nil {
		if n, aerr := strconv.Atoi(what[m[2]:m[3]]); aerr == nil {
			p.Line = n
		}
		what = what[:m[0]] + what[m[1]:]
	}
	if line := tabbed(raw); line > 0 && (p.Line == 0 || p.Line >= line-1) {
		p.Line, what, hint = line, "the line is indented with a tab", "YAML allows only spaces"
	} else if strings.Contains(what, "mapping values are not allowed") {
		hint = "a value that holds \": \" goes in quotes; keys of one level start in one column"
	}
	hint = cmp.Or(hint, "compare with: rdma-setup generate answers")
	p.What, p.Hint = "is not valid YAML: "+clip(what), hint
	d.problems = append(d.problems, p)
}

// tabbed returns the first line indented with a tab, 0 if there is none.
func tabbed(raw []byte) int {
	for i, l := range bytes.Split(raw, []byte("\n")) {
		indent := l[:len(l)-len(bytes.TrimLeft(l, " \t"))]
		if bytes.ContainsRune(indent, '\t') && len(bytes.TrimSpace(l)) > 0 {
			return i + 1
		}
	}
	return 0
}

// migrate converts an older format of the file to the current one. There is only one so far; a file without apiVersion is taken
// as the current one.
func (d *decoder) migrate(root *yaml.Node) bool {
	n := child(root, "apiVersion")
	if n == nil || n.Value == APIVersion || n.ShortTag() == "!!null" {
		return true
	}
	hint := "write apiVersion: " + APIVersion
	if v, ok := strings.CutPrefix(n.Value, "rdma-setup/v"); ok && v > "1" && v != "" {
		hint = "the file was written for a newer rdma-setup: use that release"
	}
	d.report(n, "apiVersion", hint, "this program reads %s, not %s", APIVersion, describe(n))
	return false
}

func modeOf(root *yaml.Node) Mode {
	if n := child(root, "mode"); n != nil {
		return Mode(n.Value)
	}
	return ""
}

func child(m *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// Edited reads answers after an edit and returns their problems, without those that existed before the edit: answers may not be
// complete yet.
func Edited(before, after string) (*Answers, Problems) {
	a, err := LoadDraft(strings.NewReader(after), "")
	var wrong, was Problems
	if errors.As(err, &wrong) {
		return nil, wrong
	}
	if was, err := LoadDraft(strings.NewReader(before), ""); err == nil && a.VCenter.URL != was.VCenter.URL {
		line := slices.IndexFunc(strings.Split(after, "\n"), func(l string) bool { return strings.HasPrefix(strings.TrimSpace(l), "url:") })
		return nil, Problems{{Line: line + 1, Path: "vcenter.url", What: "the vCenter cannot be changed here: start again with the other one"}}
	}
	if _, err = Load(strings.NewReader(after), ""); !errors.As(err, &wrong) {
		return a, nil
	}
	_, err = Load(strings.NewReader(before), "")
	_ = errors.As(err, &was)
	return a, slices.DeleteFunc(wrong, func(p Problem) bool {
		return slices.ContainsFunc(was, func(q Problem) bool { return q.Path == p.Path && q.What == p.What })
	})
}
