package answers

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"

	"github.com/invopop/jsonschema"
	yaml "go.yaml.in/yaml/v3"
)

// Schema returns the JSON Schema (draft 2020-12) of the file, made of the same table of keys that Load obeys.
func Schema() ([]byte, error) {
	r := jsonschema.Reflector{
		FieldNameTag: "yaml", RequiredFromJSONSchemaTags: true, DoNotReference: true, ExpandedStruct: true,
		Anonymous: true, Mapper: textType,
	}
	s := r.Reflect(&Answers{})
	s.Title = "Answers for rdma-setup"
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

// textType says how the types that are written as text look.
func textType(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[Speed]():
		return &jsonschema.Schema{Type: "string", Pattern: `^([0-9]+(\.[0-9])?\s*[GgMm][A-Za-z/]*)?$`}
	case reflect.TypeFor[Gbps]():
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{
			{Type: "string", Pattern: `^([0-9]+(\.[0-9]+)?)?$`}, {Type: "number", Minimum: "0"},
		}}
	case reflect.TypeFor[Node]():
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "string", Pattern: `^([0-9]{1,3})?$`}, {Type: "integer", Minimum: "0"}}}
	case reflect.TypeFor[MAC]():
		return &jsonschema.Schema{Type: "string", Pattern: `^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$|^([0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4}$`}
	case reflect.TypeFor[PCI]():
		return &jsonschema.Schema{Type: "string", Pattern: `^([0-9A-Fa-f]{4}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]$`}
	case reflect.TypeFor[Duration]():
		return &jsonschema.Schema{Type: "string", Pattern: `^([0-9.]+(h|m|s|ms))+$`}
	case reflect.TypeFor[ClockTime]():
		return &jsonschema.Schema{Type: "string", Pattern: `^([01]?[0-9]|2[0-3]):[0-5][0-9]$|^$`}
	case reflect.TypeFor[MMIO]():
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{
			{Type: "string", Enum: []any{"kb", "minimal", "guide"}}, {Type: "integer", Minimum: "1"},
		}}
	case reflect.TypeFor[VMCount]():
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{
			{Type: "string", Pattern: `^(all)?$`}, {Type: "integer", Minimum: "1"},
		}}
	case reflect.TypeFor[Hardware]():
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{
			{Type: "string", Pattern: `^(keep|upgrade|vmx-[0-9]+)?$`}, {Type: "integer", Minimum: "4", Maximum: "99"},
		}}
	case reflect.TypeFor[VMKNic]():
		name := &jsonschema.Schema{Type: "string", Pattern: `^vmk[0-9]+$`}
		object := &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties(), AdditionalProperties: jsonschema.FalseSchema}
		object.Properties.Set("name", name)
		object.Properties.Set("names", &jsonschema.Schema{Type: "object", AdditionalProperties: name})
		object.Properties.Set("create", vmkCreateSchema())
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{name, object}}
	case reflect.TypeFor[Address]():
		return &jsonschema.Schema{Type: "string", Pattern: `^([0-9]{1,3}(\.[0-9]{1,3}){3}/[0-9]{1,2}|[Dd][Hh][Cc][Pp])$`}
	case reflect.TypeFor[netip.Prefix]():
		return &jsonschema.Schema{Type: "string", Pattern: `^[0-9]{1,3}(\.[0-9]{1,3}){3}/[0-9]{1,2}$`}
	}
	return nil
}

// vmkCreateSchema is the schema of a VMKCreate.
func vmkCreateSchema() *jsonschema.Schema {
	object := &jsonschema.Schema{
		Type: "object", Properties: jsonschema.NewProperties(), AdditionalProperties: jsonschema.FalseSchema, Required: []string{"portgroup", "network", "start"},
	}
	object.Properties.Set("portgroup", &jsonschema.Schema{Type: "string"})
	object.Properties.Set("vlan", &jsonschema.Schema{Type: "integer", Minimum: "0", Maximum: "4094"})
	object.Properties.Set("network", &jsonschema.Schema{Type: "string", Pattern: `^[0-9]{1,3}(\.[0-9]{1,3}){3}/[0-9]{1,2}$`})
	object.Properties.Set("start", &jsonschema.Schema{Type: "string", Pattern: `^[0-9]{1,3}(\.[0-9]{1,3}){3}$`})
	return object
}

// adorn adds what the table knows to a schema and everything below it.
func adorn(s *jsonschema.Schema, keys keyTable, path string) error {
	k := keys[path]
	s.Description = firstOf(s.Description, k.Doc)
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
	if s.Properties != nil {
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			child := join(path, p.Key)
			if keys[child].Required {
				s.Required = append(s.Required, p.Key)
			}
			if err := adorn(p.Value, keys, child); err != nil {
				return err
			}
		}
	}
	if s.Items != nil {
		if err := adorn(s.Items, keys, path+"[]"); err != nil {
			return err
		}
	}
	if s.Type == "object" && s.Properties == nil && s.AdditionalProperties != nil {
		return adorn(s.AdditionalProperties, keys, path+"{}")
	}
	return nil
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
