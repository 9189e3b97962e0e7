package ssh

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestLimitsAreDocumented compares the table of the security document with the limits.
func TestLimitsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../assets/docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	row := fmt.Sprintf("| Include directives of ssh_config | %d levels, %d files |", includeDepth, includeFiles)
	if !strings.Contains(string(text), row) {
		t.Errorf("assets/docs/security.md lacks the row %s", row)
	}
}
