package cmd_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	jsonschema "github.com/santhosh-tekuri/jsonschema/v6"
)

// valid validates the documents of a file, or of stdout, against their published schema: valid KIND FILE. The published schema
// allows additional fields; here each field must be in the schema.
func valid(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: valid KIND FILE")
	}
	text := ts.ReadFile(args[1])
	out, err := exec.Command("rdma-setup", "schema", args[0]).Output()
	ts.Check(err)
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(out))
	ts.Check(err)
	for _, def := range schema.(map[string]any)["$defs"].(map[string]any) {
		if d := def.(map[string]any); args[0] != "apply" {
			d["additionalProperties"] = false
			d["properties"].(map[string]any)["schemaVersion"] = true
		}
	}
	c := jsonschema.NewCompiler()
	ts.Check(c.AddResource("schema.json", schema))
	s, err := c.Compile("schema.json")
	ts.Check(err)
	n := 0
	for dec := json.NewDecoder(strings.NewReader(text)); dec.More(); n++ {
		var raw json.RawMessage
		ts.Check(dec.Decode(&raw))
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		ts.Check(err)
		if err := s.Validate(doc); err != nil {
			ts.Fatalf("document %d of %s: %v", n+1, args[0], err)
		}
	}
	if n == 0 {
		ts.Fatalf("no document")
	}
}
