package plain

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// A Shaped value marshals itself: its JSON has the fields of all these values.
type Shaped interface{ JSONShape() []any }

// Schema returns the JSON Schema (draft 2020-12) of a document: an object of this type, or lines that are each an object of one of
// these types. Types that documents share have one definition. Fields may be added without a new schemaVersion.
func Schema(title string, documents ...any) ([]byte, error) {
	s := shapes{defs: map[string]any{}}
	all := Mapped(documents, func(d any) any { return s.of(reflect.TypeOf(d)) })
	out := map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, "type": "object", "anyOf": all, "$defs": s.defs,
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

// named returns a reference to the definition of a type, and adds the definition if it is missing.
func (s shapes) named(t reflect.Type, parts []any) any {
	name := strings.ReplaceAll(t.String(), "*", "")
	if t.Name() == "" {
		return s.object(parts)
	}
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
