package cmd_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab"
)

// A redacted bundle gets the same findings as the original, name by name; the names here have a meaning in shells, YAML and paths.
func TestRedactedBundleIsJudgedAlike(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "names", Hosts: 2})
	judged := func(flags ...string) (rows []string) {
		file := filepath.Join(t.TempDir(), "site.tgz")
		if code, _, errs := b.run(append([]string{"collect", "-f", "ANSWERS", "--out", file}, flags...)...); code != 0 {
			t.Fatalf("collect %q: %d\n%s", flags, code, errs)
		}
		_, out, errs := b.run("check", "--bundle", file, "-o", "json")
		var doc struct {
			Results []struct{ ID, Status string }
		}
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatalf("%v\n%s", err, errs)
		}
		for _, r := range doc.Results {
			rows = append(rows, fmt.Sprint(r.ID, " ", r.Status))
		}
		slices.Sort(rows)
		return rows
	}
	if open, masked := judged(), judged("--redact"); len(open) < 100 || !slices.Equal(open, masked) {
		t.Errorf("%d rows, and %d with --redact:\n%q\n%q", len(open), len(masked), open, masked)
	}
}
