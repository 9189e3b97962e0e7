package plain

import (
	"bufio"
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rdma-setup/rdma-setup/backends"
)

// SchemaVersion is the version of the JSON documents that commands print: it changes when a field is removed or its meaning
// changes, not when a field is added.
const SchemaVersion = 1

// JSON writes JSON that is safe on terminals: control characters (DEL and C1, which JSON does not escape) and characters that
// change the direction of text are written as \u escapes, which are equivalent. Each document that is an object begins with its
// schemaVersion.
func JSON(w io.Writer) *json.Encoder {
	return encoder(escaping{w: w, versioned: true})
}

// WriteJSON prints one indented document.
func WriteJSON(w io.Writer, v any) error { return indented(escaping{w: w, versioned: true}, v) }

// WriteForeignJSON writes a document in a foreign format, such as SPDX: it has no schemaVersion.
func WriteForeignJSON(w io.Writer, v any) error { return indented(escaping{w: w}, v) }

func indented(w io.Writer, v any) error {
	enc := encoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func encoder(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc
}

// An escaping writer receives one whole document per call, in which such characters occur in strings only.
type escaping struct {
	w         io.Writer
	versioned bool
}

func (e escaping) Write(p []byte) (int, error) {
	// A small document is written at once; of a large one, no copy is kept in memory.
	out := bufio.NewWriterSize(e.w, min(len(p)+64, 64<<10))
	rest := p
	if e.versioned {
		rest = withVersion(out, p)
	}
	escape(out, rest, func(r rune) string {
		if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
			return fmt.Sprintf(`\u%04x\u%04x`, high, low)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
	if err := out.Flush(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// withVersion writes the beginning of an object with the schemaVersion as its first member, with the document's indentation, and
// returns the rest.
func withVersion(out *bufio.Writer, doc []byte) []byte {
	fields, is := bytes.CutPrefix(doc, []byte("{"))
	if !is {
		return doc
	}
	layout := fields[:len(fields)-len(bytes.TrimLeft(fields, "\n "))]
	colon, comma := ":", ","
	if len(layout) > 0 {
		colon = ": "
	}
	if bytes.HasPrefix(fields[len(layout):], []byte("}")) {
		comma = ""
	}
	fmt.Fprintf(out, `{%s"schemaVersion"%s%d%s`, layout, colon, SchemaVersion, comma)
	return fields
}

// YAML does the same for a YAML document in which such characters occur only in double quotes.
func YAML(doc string) string {
	var out bytes.Buffer
	b := bufio.NewWriter(&out)
	escape(b, []byte(doc), func(r rune) string { return fmt.Sprintf(`\U%08X`, r) })
	_ = b.Flush() // to memory
	return out.String()
}

// escape writes a document, and what write returns for each character that is not safe on a terminal. The writer keeps its error.
func escape(out *bufio.Writer, doc []byte, write func(rune) string) {
	kept := 0
	for i := 0; i < len(doc); {
		r, size := utf8.DecodeRune(doc[i:])
		if r >= unicode.MaxASCII && r != utf8.RuneError && backends.Unsafe(r) {
			_, _ = out.Write(doc[kept:i])
			_, _ = out.WriteString(write(r))
			kept = i + size
		}
		i += size
	}
	_, _ = out.Write(doc[kept:])
}

// A Shaped value marshals itself: its JSON has the fields of all these values.
type Shaped interface{ JSONShape() []any }

// Schema returns the JSON Schema (draft 2020-12) of a document: an object of this type, or lines that are each an object of one of
// these types. Types that documents share have one definition. Fields may be added without a new schemaVersion.
func Schema(title string, documents ...any) ([]byte, error) {
	s := shapes{defs: map[string]any{}}
	all := Mapped(documents, func(d any) any { return s.of(reflect.TypeOf(d)) })
	out := map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, "type": "object", "anyOf": all,
		"$defs":      s.defs,
		"required":   []string{"schemaVersion"},
		"properties": map[string]any{"schemaVersion": map[string]any{"const": SchemaVersion}}}
	var b bytes.Buffer
	err := WriteForeignJSON(&b, out)
	return b.Bytes(), err
}

// shapes builds the schemas of types; named structs become definitions.
type shapes struct{ defs map[string]any }

func (s shapes) of(t reflect.Type) any {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[json.Number]():
		return map[string]any{"type": "number"}
	case t.Implements(reflect.TypeFor[Shaped]()) && t.Kind() == reflect.Struct:
		return s.named(t, reflect.Zero(t).Interface().(Shaped).JSONShape())
	case t.Kind() != reflect.Pointer && t.Implements(reflect.TypeFor[json.Marshaler]()):
		return map[string]any{} // any value, as of a setting
	case t.Kind() != reflect.Pointer && t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return orNull(s.of(t.Elem()))
	case reflect.Struct:
		return s.named(t, []any{reflect.Zero(t).Interface()})
	case reflect.Slice, reflect.Array:
		return orNull(map[string]any{"type": "array", "items": s.of(t.Elem())})
	case reflect.Map:
		return orNull(map[string]any{"type": "object", "additionalProperties": s.of(t.Elem())})
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Interface:
		return map[string]any{}
	default:
		return map[string]any{"type": "integer"}
	}
}

func orNull(schema any) any {
	return map[string]any{"anyOf": []any{schema, map[string]any{"type": "null"}}}
}

// A generic type's name has brackets and the import paths of its arguments, which a reference would have to escape (RFC 3986).
var (
	importPath = regexp.MustCompile(`[^\[\],]*/`)
	inName     = strings.NewReplacer("[", "-", "]", "-", "*", "", ",", "-")
)

// named returns a reference to the definition of a type, and adds the definition if it is missing.
func (s shapes) named(t reflect.Type, parts []any) any {
	if t.Name() == "" {
		return s.object(parts)
	}
	name := strings.TrimRight(inName.Replace(importPath.ReplaceAllString(t.String(), "")), "-")
	if _, done := s.defs[name]; !done {
		s.defs[name] = nil // a type may refer to itself
		s.defs[name] = s.object(parts)
	}
	return map[string]any{"$ref": "#/$defs/" + name}
}

// object returns the schema of one object with the fields of several structs.
func (s shapes) object(parts []any) any {
	properties, required := map[string]any{}, []string{}
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		for f := range t.Fields() {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
				add(f.Type)
				continue
			case name == "-" || !f.IsExported():
				continue
			case name == "":
				name = f.Name
			}
			properties[name] = s.of(f.Type)
			if !strings.Contains(options, "omit") {
				required = append(required, name)
			}
		}
	}
	for _, p := range parts {
		add(reflect.TypeOf(p))
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}
