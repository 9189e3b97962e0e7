package wire

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
)

// TestLimitsAreDocumented compares the table of the security document with the limits.
func TestLimitsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../assets/docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	s, v := strangerLimits, vcenterLimits
	for _, row := range []string{
		fmt.Sprintf("| a reply of vCenter before log-in | %s %d elements %d levels |", backends.SizeText(s.bytes), s.elements, s.depth),
		fmt.Sprintf("| a reply of vCenter after log-in | %s %d elements (%d typed) %d levels %s in one text |",
			backends.SizeText(v.bytes), v.elements, v.typed, v.depth, backends.SizeText(int64(v.text))),
	} {
		if !strings.Contains(strings.ReplaceAll(string(text), ",", ""), row) {
			t.Errorf("assets/docs/security.md lacks the row %s", row)
		}
	}
}
