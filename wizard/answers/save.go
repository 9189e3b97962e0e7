package answers

import (
	"encoding"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v4"
)

const saveHead = `Answers for rdma-setup. Replay: rdma-setup apply -f THIS-FILE
All keys: rdma-setup help answers. No secrets belong in here.
yaml-language-server: $schema=rdma-setup.schema.json`

// Save writes answers so that Load returns the same again, with a comment for each key. Sections that the mode does not use are
// left out if they contain only defaults. An editor completes keys if the output of "rdma-setup schema" is beside the file as
// rdma-setup.schema.json.
func Save(w io.Writer, a *Answers) error {
	s := saver{keys: newKeyTable(), defaults: reflect.ValueOf(Default(a.Mode)).Elem(), rails: len(a.Rails) > 0}
	own := *a
	if s.rails {
		own.Rails = slices.Clone(a.Rails)
		own.Rails[0].NIC, own.Rails[0].Switch = a.NIC, a.Switch
	}
	root := s.mapping(reflect.ValueOf(&own).Elem(), "")
	root.HeadComment = saveHead
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(&yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{root}}); err != nil {
		return fmt.Errorf("save answers: %w", err)
	}
	if err := enc.Close(); err != nil {
		return fmt.Errorf("save answers: %w", err)
	}
	return nil
}

type saver struct {
	keys     keyTable
	defaults reflect.Value
	rails    bool // rails are used instead of nic and switch
}

func (s saver) mapping(v reflect.Value, path string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for name, f := range fields(v) {
		p := join(path, name)
		if s.skip(f, p, name) {
			continue
		}
		kn := &yaml.Node{Kind: yaml.ScalarNode, Value: name}
		vn := s.node(f, p)
		s.comment(kn, vn, p)
		n.Content = append(n.Content, kn, vn)
	}
	return n
}

// skip omits sections of other modes and empty parts of a VM.
func (s saver) skip(f reflect.Value, path, name string) bool {
	empty := f.IsZero() || f.Kind() == reflect.Slice && f.Len() == 0
	switch {
	case strings.HasPrefix(path, "vms["), strings.HasPrefix(path, "rails["), strings.HasPrefix(path, "pvrdma.vmknic."):
		return empty
	case slices.Contains([]string{"rails", "nic.slot", "nic.numa", "nic.position"}, path):
		return empty
	case s.rails && (path == "nic" || path == "switch"):
		return true
	}
	k := s.keys[path]
	mode := Mode(s.defaults.FieldByName("Mode").String())
	if strings.Contains(path, ".") || k.Mode == "" || k.Mode == mode {
		return false
	}
	d, ok := field(s.defaults, name)
	return ok && reflect.DeepEqual(f.Interface(), d.Interface())
}

func (s saver) node(v reflect.Value, path string) *yaml.Node {
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		b, err := m.MarshalText()
		if err != nil {
			b = nil
		}
		return text(string(b))
	}
	switch v.Kind() {
	case reflect.Pointer:
		return s.node(v.Elem(), path)
	case reflect.Struct:
		if l := listedOf(v); l != nil {
			if items, alone := l.list(); alone {
				return s.node(reflect.ValueOf(items).Elem(), path)
			}
		}
		if sh := shortOf(v); sh != nil {
			if value, alone := sh.short(); alone {
				return text(*value)
			}
		}
		return s.mapping(v, path)
	case reflect.Map:
		n := &yaml.Node{Kind: yaml.MappingNode}
		if v.Len() == 0 {
			n.Style = yaml.FlowStyle
		}
		keys := map[string]reflect.Value{}
		for _, k := range v.MapKeys() {
			keys[k.String()] = v.MapIndex(k)
		}
		for _, k := range sorted(keys) {
			n.Content = append(n.Content, text(k), s.node(keys[k], path+"{}"))
		}
		return n
	case reflect.Slice:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		if v.Len() == 0 {
			n.Style = yaml.FlowStyle
		}
		for i := range v.Len() {
			p := path + "[]"
			if i > 0 {
				p = path + "[more]" // only the first of several has comments
			}
			n.Content = append(n.Content, s.node(v.Index(i), p))
		}
		return n
	case reflect.String:
		return text(v.String())
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(v.Interface())}
}

// text returns a string node; the library quotes it if plain text would be parsed as another type.
func text(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	if n.Style == yaml.LiteralStyle || strings.ContainsAny(s, "\r\n\u0085\u2028\u2029") {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

func (s saver) comment(kn, vn *yaml.Node, path string) {
	k, ok := s.keys[path]
	if !ok || k.Doc == "" {
		return
	}
	switch {
	case !strings.Contains(path, ".") && vn.Kind != yaml.ScalarNode:
		kn.HeadComment = k.Doc
	case vn.Kind == yaml.ScalarNode || vn.Style == yaml.FlowStyle:
		vn.LineComment = k.Doc
	default:
		kn.LineComment = k.Doc
	}
}

// fields visits the fields of a struct by their names in the file.
func fields(v reflect.Value) iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) {
		for i := range v.NumField() {
			name := v.Type().Field(i).Tag.Get("yaml")
			if name != "-" && !yield(name, v.Field(i)) {
				return
			}
		}
	}
}

func field(v reflect.Value, name string) (reflect.Value, bool) {
	for n, f := range fields(v) {
		if n == name {
			return f, true
		}
	}
	return reflect.Value{}, false
}

func fieldNames(v reflect.Value) []string {
	var names []string
	for n := range fields(v) {
		names = append(names, n)
	}
	return names
}
