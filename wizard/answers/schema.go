package answers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v4"
)

// Schema returns the JSON Schema (draft 2020-12) of the file, generated from the table of keys that Load uses.
func Schema() ([]byte, error) {
	s := reflected(reflect.TypeFor[Answers]())
	s.Version, s.Title = "https://json-schema.org/draft/2020-12/schema", "Answers for rdma-setup"
	s.Description = "What the operator wants; " + APIVersion + ". It holds no secrets."
	if err := adorn(s, newKeyTable(), ""); err != nil {
		return nil, err
	}
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("schema of the answers: %w", err)
	}
	return append(out, '\n'), nil
}

// schema has the keywords of JSON Schema that the answers need, in the order of the output.
type schema struct {
	Version              string      `json:"$schema,omitempty"`
	OneOf                []*schema   `json:"oneOf,omitempty"`
	Items                *schema     `json:"items,omitempty"`
	Properties           properties  `json:"properties,omitempty"`
	AdditionalProperties any         `json:"additionalProperties,omitempty"` // false or a *schema
	Type                 string      `json:"type,omitempty"`
	Enum                 []any       `json:"enum,omitempty"`
	Maximum              json.Number `json:"maximum,omitempty"`
	Minimum              json.Number `json:"minimum,omitempty"`
	Pattern              string      `json:"pattern,omitempty"`
	Required             []string    `json:"required,omitempty"`
	Title                string      `json:"title,omitempty"`
	Description          string      `json:"description,omitempty"`
	Default              any         `json:"default,omitempty"`
}

// properties are named schemas in the order of the fields.
type properties []property

type property struct {
	name   string
	schema *schema
}

// MarshalJSON writes an object with its keys in order.
func (p properties) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, f := range p {
		value, err := json.Marshal(f.schema)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(fmt.Appendf(out, "%q:", f.name), value...)
	}
	return append(out, '}'), nil
}

// reflected describes a type by its kind and, for structs, by the yaml tags of its fields.
func reflected(t reflect.Type) *schema {
	if s := textType(t); s != nil {
		return s
	}
	switch t.Kind() {
	case reflect.Pointer:
		return reflected(t.Elem())
	case reflect.Struct:
		return fieldsOf(t)
	case reflect.Slice:
		return &schema{Type: "array", Items: reflected(t.Elem())}
	case reflect.Map:
		return &schema{Type: "object", AdditionalProperties: reflected(t.Elem())}
	case reflect.Bool:
		return &schema{Type: "boolean"}
	case reflect.Int, reflect.Int64:
		return &schema{Type: "integer"}
	case reflect.Float64:
		return &schema{Type: "number"}
	default:
		return &schema{Type: "string"}
	}
}

func fieldsOf(t reflect.Type) *schema {
	s := &schema{Type: "object", AdditionalProperties: false}
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name != "" && name != "-" {
			s.Properties = append(s.Properties, property{name, reflected(f.Type)})
		}
	}
	return s
}

// textType describes the types that are written as text.
func textType(t reflect.Type) *schema {
	switch t {
	case reflect.TypeFor[Speed]():
		return &schema{Type: "string", Pattern: `^([0-9]+(\.[0-9])?\s*[GgMm][A-Za-z/]*)?$`}
	case reflect.TypeFor[Gbps]():
		return &schema{OneOf: []*schema{
			{Type: "string", Pattern: `^([0-9]+(\.[0-9]+)?)?$`}, {Type: "number", Minimum: "0"},
		}}
	case reflect.TypeFor[Node]():
		return &schema{OneOf: []*schema{{Type: "string", Pattern: `^([0-9]{1,3})?$`}, {Type: "integer", Minimum: "0"}}}
	case reflect.TypeFor[MAC]():
		return &schema{Type: "string", Pattern: `^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$|^([0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4}$`}
	case reflect.TypeFor[PCI]():
		return &schema{Type: "string", Pattern: `^([0-9A-Fa-f]{4}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]$`}
	case reflect.TypeFor[Duration]():
		return &schema{Type: "string", Pattern: `^([0-9.]+(h|m|s|ms))+$`}
	case reflect.TypeFor[ClockTime]():
		return &schema{Type: "string", Pattern: `^([01]?[0-9]|2[0-3]):[0-5][0-9]$|^$`}
	case reflect.TypeFor[MMIO]():
		return &schema{OneOf: []*schema{
			{Type: "string", Enum: []any{"kb", "minimal", "guide"}}, {Type: "integer", Minimum: "1"},
		}}
	case reflect.TypeFor[VMCount]():
		return &schema{OneOf: []*schema{
			{Type: "string", Pattern: `^(all)?$`}, {Type: "integer", Minimum: "1"},
		}}
	case reflect.TypeFor[Hardware]():
		return &schema{OneOf: []*schema{
			{Type: "string", Pattern: `^(keep|upgrade|vmx-[0-9]+)?$`}, {Type: "integer", Minimum: "4", Maximum: "99"},
		}}
	case reflect.TypeFor[VMGPUs]():
		object := func(required string, names ...string) *schema {
			s := fieldsOf(t)
			s.Properties = slices.DeleteFunc(s.Properties, func(p property) bool { return !slices.Contains(names, p.name) })
			s.Required = []string{required}
			return s
		}
		list := &schema{Type: "array", Items: reflected(reflect.TypeFor[PCI]())}
		return &schema{OneOf: []*schema{list, object("profile", "profile", "count"), object("group", "group")}}
	case reflect.TypeFor[VMKNic]():
		name := func() *schema { return &schema{Type: "string", Pattern: vmk.String()} }
		object := fieldsOf(t)
		object.Properties[0].schema, object.Properties[1].schema.AdditionalProperties = name(), name()
		return &schema{OneOf: []*schema{name(), object}}
	case reflect.TypeFor[netip.Addr]():
		return &schema{Type: "string", Pattern: `^[0-9]{1,3}(\.[0-9]{1,3}){3}$`}
	case reflect.TypeFor[Address]():
		return &schema{Type: "string", Pattern: `^([0-9]{1,3}(\.[0-9]{1,3}){3}/[0-9]{1,2}|[Dd][Hh][Cc][Pp])$`}
	case reflect.TypeFor[netip.Prefix]():
		return &schema{Type: "string", Pattern: `^[0-9]{1,3}(\.[0-9]{1,3}){3}/[0-9]{1,2}$`}
	}
	return nil
}

// adorn adds the data in the table of keys to a schema and everything below it.
func adorn(s *schema, keys keyTable, path string) error {
	k := keys[path]
	s.Description = cmp.Or(s.Description, k.Doc)
	if k.Default != "" && len(k.ByMode) == 0 {
		var v any
		if err := yaml.Unmarshal([]byte(k.Default), &v); err != nil {
			return fmt.Errorf("default of %s: %w", path, err)
		}
		s.Default = v
	}
	for _, e := range k.Enum {
		s.Enum = append(s.Enum, e)
	}
	if k.Max > 0 {
		s.Minimum = json.Number(fmt.Sprint(k.Min))
		s.Maximum = json.Number(fmt.Sprint(k.Max))
	}
	return within(s, keys, path)
}

func within(s *schema, keys keyTable, path string) error {
	for _, one := range s.OneOf {
		if err := within(one, keys, path); err != nil {
			return err
		}
	}
	for _, p := range s.Properties {
		child := join(path, p.name)
		if keys[child].Required {
			s.Required = append(s.Required, p.name)
		}
		if err := adorn(p.schema, keys, child); err != nil {
			return err
		}
	}
	if s.Items != nil {
		if err := adorn(s.Items, keys, path+"[]"); err != nil {
			return err
		}
	}
	if values, is := s.AdditionalProperties.(*schema); is {
		return adorn(values, keys, path+"{}")
	}
	return nil
}
