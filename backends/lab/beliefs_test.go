package lab_test

import (
	"os"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab"
)

// BELIEFS.md names every scenario: a new one is a belief about a site that has to be written down.
func TestEachScenarioIsABelief(t *testing.T) {
	text, err := os.ReadFile("BELIEFS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lab.Scenarios() {
		if !strings.Contains(string(text), "| `"+name+"` |") {
			t.Errorf("BELIEFS.md does not name the scenario %s", name)
		}
	}
}
