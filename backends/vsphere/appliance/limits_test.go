package appliance

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
	for _, row := range []string{
		fmt.Sprintf("| an OVF descriptor | %s %d elements %d levels |", backends.SizeText(descriptorLimit), descriptorItems, descriptorDepth),
		fmt.Sprintf("| the manifest and the files of an appliance | %s %d files |", backends.SizeText(manifestLimit), packageFiles),
	} {
		if !strings.Contains(strings.ReplaceAll(string(text), ",", ""), row) {
			t.Errorf("assets/docs/security.md lacks the row %s", row)
		}
	}
}
