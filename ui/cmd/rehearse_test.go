package cmd_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/ui/cmd/twin"
)

// A rehearsal of a plan that is refused says why, in the words of plan and with its exit code, and applies nothing. That holds for
// the limits of a run as well, although nothing waits for them on the twin.
func TestRehearseARefusal(t *testing.T) {
	t.Parallel()
	site := newBench(t, lab.Options{Hosts: 1, VMs: 2})
	text, err := os.ReadFile(filepath.Join(site.lab.Dir(), "answers-sriov.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	answers := filepath.Join(t.TempDir(), "answers.yaml")
	if err := os.WriteFile(answers, append(text, "run: {power: {max_unavailable: 1}}\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	want, _, why := site.run("plan", "-f", answers)
	code, out, errs := site.run("rehearse", "-f", answers, "-o", "json")
	var doc struct {
		Status string
		Failed []string
		Steps  []twin.Step
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil || code != want || code == 0 || doc.Status != "refused" || len(doc.Steps) > 0 {
		t.Fatalf("rehearse: %d, plan %d, %v\n%s\n%s", code, want, err, out, errs)
	}
	for _, line := range doc.Failed {
		if !strings.Contains(why, line) {
			t.Errorf("plan does not say %q:\n%s", line, why)
		}
	}
	if !slices.ContainsFunc(doc.Failed, func(line string) bool { return strings.Contains(line, "run.power.max_unavailable") }) {
		t.Errorf("refused because of %q", doc.Failed)
	}
}
