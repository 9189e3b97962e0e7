package bundle

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
)

// TestLimitsAreDocumented compares the table of the security document with the limits.
func TestLimitsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../assets/docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	row := fmt.Sprintf("| a bundle | %s packed, %s unpacked |", backends.SizeText(packedLimit), backends.SizeText(totalLimit))
	if !strings.Contains(string(text), row) {
		t.Errorf("assets/docs/security.md lacks the row %s", row)
	}
}
