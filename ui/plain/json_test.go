package plain_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
)

func TestJSONDrivesNoTerminal(t *testing.T) {
	for _, s := range []string{
		"plain", "", "<b> & 'it''s'", "日本語 🚀 é", "\x1b[2J\x07\x00\x7f", "\u009b31mred\u0085", "\u202eturned\u2066\u200f\ufeff",
		"tag \U000e0041\u200b end", "bad \xff utf-8",
	} {
		var b strings.Builder
		enc := plain.JSON(&b)
		if err := enc.Encode(map[string]string{s: s}); err != nil {
			t.Fatal(err)
		}
		got := strings.TrimSuffix(b.String(), "\n")
		if clean := backends.Clean(got); clean != got {
			t.Errorf("%q: %q would do something to a terminal", s, got)
		}
		var back map[string]any
		if err := json.Unmarshal([]byte(got), &back); err != nil {
			t.Fatalf("%q: %v", got, err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); back[want] != want {
			t.Errorf("%q came back as %q", s, back)
		}
	}
}

// TestDocumentsBeginWithTheirVersion covers the layouts in which documents are written.
func TestDocumentsBeginWithTheirVersion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		doc, indent, want string
	}{
		{`{"a":{"b":1}}`, "", `{"schemaVersion":1,"a":{"b":1}}`},
		{`{"a":1}`, "  ", "{\n  \"schemaVersion\": 1,\n  \"a\": 1\n}"},
		{`{}`, "", `{"schemaVersion":1}`},
		{`["{"]`, "", `["{"]`},
		{`"{"`, "", `"{"`},
	} {
		var b strings.Builder
		enc := plain.JSON(&b)
		enc.SetIndent("", tt.indent)
		if err := enc.Encode(json.RawMessage(tt.doc)); err != nil || b.String() != tt.want+"\n" {
			t.Errorf("%s: %q, %v", tt.doc, b.String(), err)
		}
		b.Reset()
		var want bytes.Buffer
		if err := json.Indent(&want, []byte(tt.doc), "", "  "); err != nil {
			t.Fatal(err)
		}
		if err := plain.WriteForeignJSON(&b, json.RawMessage(tt.doc)); err != nil || b.String() != want.String()+"\n" {
			t.Errorf("%s: %q, %v", tt.doc, b.String(), err)
		}
	}
}
