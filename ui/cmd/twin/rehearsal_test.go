package twin_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/ui/cmd/twin"
)

// TestPageShowsNoControlCharacters: names in a bundle may hold escapes and direction marks; the page shows neither, in any encoding.
func TestPageShowsNoControlCharacters(t *testing.T) {
	const evil = "\x1b]0;owned\x07vm\u202e\u2066\u009b31m\xff"
	r := twin.NewRehearsal([]string{evil}, []string{evil})
	r.Plan = []string{evil}
	var b strings.Builder
	if err := r.HTML(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if strings.ContainsAny(page, "\x1b\x07\u202e\u2066\u009b\ufffd") || !strings.Contains(page, "vm??") {
		t.Errorf("the page:\n%q", page)
	}
}
