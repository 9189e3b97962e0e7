package answers_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonschema "github.com/santhosh-tekuri/jsonschema/v6"
	yaml "go.yaml.in/yaml/v4"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

func compile(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := answers.Schema()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("answers.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("answers.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// instance reads YAML as an editor's schema service does.
func instance(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSchemaIsTheOneInAssets(t *testing.T) {
	got, err := answers.Schema()
	if err != nil {
		t.Fatal(err)
	}
	if *testclass.Update {
		if err := os.WriteFile("../../assets/answers.schema.json", got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile("../../assets/answers.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("assets/answers.schema.json is stale (go test ./wizard/answers -update):\n%s", diff)
	}
}

func TestExamplesLoadAndFitTheSchema(t *testing.T) {
	schema := compile(t)
	for name, mode := range map[string]answers.Mode{"pvrdma": answers.PVRDMA, "sriov": answers.SRIOV, "gpudirect": answers.GPUDirect,
		"rails": answers.SRIOV} {
		text, err := assets.Example(name)
		if err != nil {
			t.Fatal(err)
		}
		a, err := answers.Load(bytes.NewReader(text), "example")
		if err != nil {
			t.Fatalf("%s:\n%v", name, err)
		}
		if a.Mode != mode {
			t.Errorf("example for %s is for %s", name, a.Mode)
		}
		if err := schema.Validate(instance(t, text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var saved bytes.Buffer
		if err := answers.Save(&saved, a); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(instance(t, saved.Bytes())); err != nil {
			t.Errorf("%s as saved: %v", name, err)
		}
	}
}

func TestSchemaRefusesWhatLoadRefuses(t *testing.T) {
	schema := compile(t)
	for name, text := range map[string]string{
		"unknown key":       "mode: pvrdma\nswitch: {mut: 9000}",
		"unknown section":   "mode: pvrdma\nswich: {mtu: 9000}",
		"mode missing":      "switch: {mtu: 9000}",
		"mode unknown":      "mode: pvrmda",
		"number as text":    "mode: pvrdma\nswitch: {mtu: '9000'}",
		"VLAN out of range": "mode: pvrdma\nswitch: {vlan: 4095}",
		"speed":             "mode: pvrdma\nnic: {speed: fast}",
		"address":           "mode: pvrdma\nvms: [{name: a, ip: 10.0.0.1}]",
		"VM without name":   "mode: pvrdma\nvms: [{ip: 10.0.0.1/24}]",
		"text as flag":      "mode: pvrdma\nguest: {install: please}",
		"PCI address":       "mode: gpudirect\ngpudirect: {gpus: {a: [zz]}}",
	} {
		if schema.Validate(instance(t, []byte(text))) == nil {
			t.Errorf("%s: the schema accepts it", name)
		}
		if _, err := answers.Load(bytes.NewReader([]byte(text)), "f"); err == nil {
			t.Errorf("%s: Load accepts it", name)
		}
	}
}
