package plain_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
)

func TestJSONDrivesNoTerminal(t *testing.T) {
	for _, s := range []string{
		"plain", "", "<b> & 'it''s'", "日本語 🚀 é", "\x1b[2J\x07\x00\x7f", "\u009b31mred\u0085", "\u202eturned\u2066\u200f\ufeff", "tag \U000e0041\u200b end", "bad \xff utf-8",
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
		var back map[string]string
		if err := json.Unmarshal([]byte(got), &back); err != nil {
			t.Fatalf("%q: %v", got, err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); back[want] != want {
			t.Errorf("%q came back as %q", s, back)
		}
	}
}
