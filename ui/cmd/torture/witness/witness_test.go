package witness_test

import (
	"os/exec"
	"strings"
	"testing"
)

// The witness is worth something because it shares nothing with what it judges.
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
