package answers

import (
	"cmp"
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v4"
)

// decoder stores a YAML tree in a Go value. It continues after problems.
type decoder struct {
	keys     keyTable
	mode     Mode
	file     string
	nodes    map[string]*yaml.Node // position of each path
	problems Problems
}

func (d *decoder) report(n *yaml.Node, path, hint, format string, args ...any) {
	p := Problem{File: d.file, Path: path, What: fmt.Sprintf(format, args...), Hint: hint}
	if n != nil {
		p.Line, p.Column = n.Line, n.Column
	}
	d.problems = append(d.problems, p)
}

// defaults sets the defaults in the table of keys for everything below path.
func (d *decoder) defaults(v reflect.Value, path string) {
	if v.Kind() == reflect.Struct && !isText(v) && shortOf(v) == nil {
		for name, f := range fields(v) {
			d.defaults(f, join(path, name))
		}
		return
	}
	text := d.keys[pattern(path)].DefaultFor(d.mode)
	if text == "" {
		return
	}
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(text), &n); err == nil && len(n.Content) == 1 {
		d.value(n.Content[0], v, path)
	}
}

func (d *decoder) value(n *yaml.Node, v reflect.Value, path string) {
	d.nodes[path] = n
	switch {
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		return
	case isText(v):
		d.text(n, v, path)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		e := reflect.New(v.Type().Elem())
		d.value(n, e.Elem(), path)
		v.Set(e)
	case reflect.Struct:
		if l := listedOf(v); l != nil && n.Kind != yaml.MappingNode {
			items, _ := l.list()
			d.list(n, reflect.ValueOf(items).Elem(), path)
			return
		}
		if s := shortOf(v); s != nil && n.Kind != yaml.MappingNode {
			if text, ok := d.scalar(n, path); ok {
				value, _ := s.short()
				*value = text
			}
			return
		}
		d.mapping(n, path, func(key string, kn, vn *yaml.Node) {
			f, ok := field(v, key)
			if !ok {
				d.unknown(kn, path, key, fieldNames(v))
				return
			}
			d.value(vn, f, join(path, key))
		})
	case reflect.Map:
		m := reflect.MakeMap(v.Type())
		d.mapping(n, path, func(key string, _, vn *yaml.Node) {
			e := reflect.New(v.Type().Elem()).Elem()
			d.value(vn, e, path+"{"+key+"}")
			m.SetMapIndex(reflect.ValueOf(key), e)
		})
		if m.Len() > 0 {
			v.Set(m)
		}
	case reflect.Slice:
		d.list(n, v, path)
	case reflect.Bool:
		if b, err := strconv.ParseBool(n.Value); err == nil && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!bool" {
			v.SetBool(b)
			return
		}
		d.report(n, path, "write true or false", "expected true or false, not %s", describe(n))
	case reflect.Int:
		i, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 0, 32)
		if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!int" && err == nil {
			v.SetInt(i)
			return
		}
		hint := cmp.Or(d.hint(path), "write a whole number, without quotes")
		d.report(n, path, hint, "expected a whole number, not %s", describe(n))
	case reflect.String:
		if s, ok := d.scalar(n, path); ok {
			v.SetString(s)
		}
	}
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		d.report(n, path, "write a list: [a, b], or one \"- item\" per line", "expected a list, not %s", describe(n))
		return
	}
	if len(n.Content) == 0 {
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, c := range n.Content {
		p := fmt.Sprintf("%s[%d]", path, i)
		d.defaults(out.Index(i), p)
		d.value(c, out.Index(i), p)
	}
	v.Set(out)
}

// mapping visits the pairs of a mapping; duplicate and invalid keys are reported.
func (d *decoder) mapping(n *yaml.Node, path string, visit func(key string, kn, vn *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.report(n, path, "write \"key: value\" lines below it", "expected keys and values, not %s", describe(n))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		kn, vn := n.Content[i], n.Content[i+1]
		if kn.Kind != yaml.ScalarNode || kn.ShortTag() == "!!null" {
			d.report(kn, path, "", "a key must be a word, not %s", describe(kn))
			continue
		}
		if line, twice := seen[kn.Value]; twice {
			d.report(kn, join(path, kn.Value), "keep one of the two", "appears twice, first in line %d", line)
			continue
		}
		seen[kn.Value] = kn.Line
		if secretKey(kn.Value) {
			continue // reported with all secrets
		}
		visit(kn.Value, kn, vn)
	}
}

func (d *decoder) unknown(kn *yaml.Node, path, key string, names []string) {
	hint := "known here: " + strings.Join(names, ", ")
	if near := Nearest(key, names); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	} else if home := d.elsewhere(key); home != "" {
		hint = fmt.Sprintf("did you mean %s?", home)
	}
	d.report(kn, join(path, clip(key)), hint, "unknown key")
}

func (d *decoder) elsewhere(key string) string {
	for _, k := range Keys() {
		if strings.HasSuffix(k.Path, "."+key) && !strings.ContainsAny(k.Path, "[{") {
			return k.Path
		}
	}
	return ""
}

func (d *decoder) text(n *yaml.Node, v reflect.Value, path string) {
	s, ok := d.scalar(n, path)
	if !ok {
		return
	}
	u, ok := v.Addr().Interface().(encoding.TextUnmarshaler)
	if !ok {
		return
	}
	if err := u.UnmarshalText([]byte(s)); err != nil {
		if secretText(s) {
			return // reported with all secrets
		}
		what := err.Error()
		if !strings.HasPrefix(what, `"`) {
			what = fmt.Sprintf("%q cannot be read", clip(s))
		}
		d.report(n, path, d.hint(path), "%s", what)
	}
}

// scalar stores text as written; a number is accepted as text if a name is expected, a plain true is not.
func (d *decoder) scalar(n *yaml.Node, path string) (string, bool) {
	switch {
	case n.Kind != yaml.ScalarNode:
		d.report(n, path, d.hint(path), "expected one value, not %s", describe(n))
	case n.ShortTag() == "!!bool":
		d.report(n, path, "put it in quotes when it is a name", "expected text, not %s", describe(n))
	case n.ShortTag() == "!!binary" || !utf8.ValidString(n.Value):
		d.report(n, path, "", "expected text, not binary data")
	default:
		return n.Value, true
	}
	return "", false
}

func (d *decoder) hint(path string) string { return d.keys[pattern(path)].Hint }

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if secretText(n.Value) {
			return "this"
		}
		return strconv.Quote(clip(n.Value))
	}
	return "this"
}

// A shortened struct can be written as one value if the rest of it is empty.
type shortened interface {
	short() (value *string, alone bool)
}

// A listed struct can be written as a list if the rest of it is empty.
type listed interface {
	list() (items any, alone bool)
}

func listedOf(v reflect.Value) listed {
	if !v.CanAddr() {
		p := reflect.New(v.Type())
		p.Elem().Set(v)
		v = p.Elem()
	}
	l, _ := v.Addr().Interface().(listed)
	return l
}

func shortOf(v reflect.Value) shortened {
	if !v.CanAddr() {
		return nil
	}
	s, _ := v.Addr().Interface().(shortened)
	return s
}

func isText(v reflect.Value) bool {
	if !v.CanAddr() {
		return false
	}
	_, ok := v.Addr().Interface().(encoding.TextUnmarshaler)
	return ok
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
