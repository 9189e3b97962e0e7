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
	testclass.OK(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	testclass.OK(t, err)
	c := jsonschema.NewCompiler()
	testclass.OK(t, c.AddResource("answers.json", doc))
	s, err := c.Compile("answers.json")
	testclass.OK(t, err)
	return s
}

// instance reads YAML as an editor's schema service does.
func instance(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	testclass.OK(t, yaml.Unmarshal(text, &v))
	b, err := json.Marshal(v)
	testclass.OK(t, err)
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	testclass.OK(t, err)
	return out
}

func TestSchemaIsTheOneInAssets(t *testing.T) {
	got, err := answers.Schema()
	testclass.OK(t, err)
	if *testclass.Update {
		testclass.OK(t, os.WriteFile("../../assets/answers.schema.json", got, 0o644))
		return
	}
	want := testclass.Read(t, "../../assets/answers.schema.json")
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("assets/answers.schema.json is stale (go test ./wizard/answers -update):\n%s", diff)
	}
}

func TestExamplesLoadAndFitTheSchema(t *testing.T) {
	schema := compile(t)
	for name, mode := range map[string]answers.Mode{"pvrdma": answers.PVRDMA, "sriov": answers.SRIOV, "gpudirect": answers.GPUDirect,
		"rails": answers.SRIOV} {
		text, err := assets.Example(name)
		testclass.OK(t, err)
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
		testclass.OK(t, answers.Save(&saved, a))
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
