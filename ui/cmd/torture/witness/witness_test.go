package witness_test

import (
	"os/exec"
	"strings"
	"testing"
)

// The witness must not share code with the program that it checks.
func TestWitnessImportsNothingOfTheProduct(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	const self = "github.com/rdma-setup/rdma-setup/ui/cmd/torture/witness"
	for line := range strings.Lines(string(out)) {
		switch p := strings.TrimSpace(line); {
		case strings.HasPrefix(p, "github.com/rdma-setup/") && p != self, strings.HasPrefix(p, "golang.org/x/crypto/ssh"):
			t.Errorf("imports %s", p)
		}
	}
}
