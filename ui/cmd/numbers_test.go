package cmd_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab"
)

// Plan, apply, its report in each format, and the rollback print the same number of changes in the same words.
func TestNumbersAgree(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Hosts: 2, VMs: 2})
	file := edited(t, filepath.Join(b.lab.Dir(), "answers-pvrdma.yaml"), "mode: pvrdma",
		"mode: pvrdma\nmeasure: {bandwidth: false, latency: false}")
	planned, _ := b.must(0, "plan", "-f", file)
	m := regexp.MustCompile(`(?m)^cost: (\d+) changes on`).FindStringSubmatch(planned)
	if m == nil {
		t.Fatalf("no cost in the plan:\n%s", planned)
	}
	applied, lines := b.must(0, "apply", "-f", file, "--yes")
	tally := regexp.MustCompile(`Changed  ((\d+) done, (\d+) already set, 0 failed, 0 not tried)\n`).FindStringSubmatch(applied)
	if tally == nil {
		t.Fatalf("no count of changes:\n%s", applied)
	}
	done, _ := strconv.Atoi(tally[2])
	set, _ := strconv.Atoi(tally[3])
	if fmt.Sprint(done+set) != m[1] {
		t.Errorf("the plan has %s changes, apply %s", m[1], tally[1])
	}
	steps := regexp.MustCompile(`(?m) (\d+) steps to do$`).FindStringSubmatch(lines)
	ended := len(regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d  (done|already set|FAILED|not tried) `).FindAllString(lines, -1))
	if steps == nil || fmt.Sprint(ended) != steps[1] {
		t.Errorf("%d steps ended, announced %v:\n%s", ended, steps, lines)
	}
	for _, format := range []string{"terminal", "markdown", "html"} {
		if said, _ := b.must(0, "report", "-o", format); !strings.Contains(said, tally[1]) {
			t.Errorf("the report as %s does not say %q:\n%s", format, tally[1], said)
		}
	}
	if said, _ := b.must(0, "runs", "-o",
		"json"); !regexp.MustCompile(`"counts": \{\s*"done": ` + tally[2] + `,\s*"skipped": ` + tally[3] + `\s*\}`).MatchString(said) {
		t.Errorf("runs counts otherwise than %q:\n%s", tally[1], said)
	}
	if said, _ := b.must(0, "rollback",
		"--yes"); !regexp.MustCompile(`: done; changes: [1-9]\d* done, \d+ already set, 0 failed, 0 not tried\n`).MatchString(said) {
		t.Errorf("the rollback says:\n%s", said)
	}
}
