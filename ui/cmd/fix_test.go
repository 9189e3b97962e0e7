package cmd_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

func TestFixAppliesAutomaticFixesAndCanBeRolledBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "drifted", Hosts: 3, VMs: 3})
	if code, _, errs := b.run("check", "--fix", "-f", "ANSWERS"); code != 2 || !strings.Contains(errs, "add --yes") {
		t.Fatalf("nobody consented: exit %d\n%s", code, errs)
	}
	closed := func() (n int) {
		b.lab.World().View(func(s *world.State) {
			for _, h := range s.Hosts {
				if !h.Ruleset("pvrdma").Enabled {
					n++
				}
			}
		})
		return n
	}
	if closed() != 1 {
		t.Fatal("something was written without consent")
	}
	code, out, errs := b.run("check", "--fix", "--yes", "-f", "ANSWERS", "-o", "json")
	var doc struct {
		Status string
		Counts map[string]int
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, errs)
	}
	if code != 0 || doc.Status != "ok" || doc.Counts["fail"] != 0 || closed() != 0 {
		t.Errorf("exit %d %s %v, %d rulesets closed\n%s", code, doc.Status, doc.Counts, closed(), errs)
	}
	if code, out, errs := b.run("check", "--fix", "--yes", "-f", "ANSWERS"); code != 0 || !strings.Contains(errs, "nothing to fix") ||
		!strings.HasPrefix(out, "RDMA OK") {
		t.Errorf("again: exit %d\n%s%s", code, out, errs)
	}
	if code, out, errs := b.run("rollback", "--yes"); code != 0 || closed() != 1 {
		t.Errorf("rollback: exit %d, %d closed\n%s%s", code, closed(), out, errs)
	}
}

func TestFixDoesNoMoreThanTheFindingsAskFor(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Hosts: 2, VMs: 2}) // healthy but not set up: a full plan has dozens of changes
	code, _, errs := b.run("check", "--fix", "--yes", "-f", "ANSWERS", "--only", "HOST-FW-PVRDMA-007,HOST-NTP-004", "--limit", "esx-02")
	if code != 0 || !strings.Contains(errs, "fixed in run") {
		t.Errorf("exit %d: %s", code, errs)
	}
	b.lab.World().View(func(s *world.State) {
		if s.Hosts[0].Ruleset("pvrdma").Enabled || !s.Hosts[1].Ruleset("pvrdma").Enabled || len(s.Switches) > 0 ||
			s.Hosts[1].Options["Net.PVRDMAVmknic"] != "" {
			t.Errorf("rulesets %t and %t, %d switches", s.Hosts[0].Ruleset("pvrdma").Enabled, s.Hosts[1].Ruleset("pvrdma").Enabled, len(s.Switches))
		}
	})
}

// If a run of --fix fails half way, it is partial, and resume continues with the selected fixes only: the rest stays broken.
func TestFixIsResumed(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Hosts: 2, VMs: 2, Faults: []string{"host=esx-02,method=EnableRuleset,nth=1,do=fault:NoPermission"}})
	code, out, errs := b.run("check", "--fix", "--yes", "-f", "ANSWERS", "--only", "HOST-FW-PVRDMA-007")
	if code != 5 {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	if code, out, errs = b.run("resume", "--yes"); code != 1 || !strings.Contains(out, "First broken link: HOST-VMKNIC-SET-001") {
		t.Errorf("resume: exit %d\n%s%s", code, out, errs)
	}
	b.lab.World().View(func(s *world.State) {
		if !s.Hosts[0].Ruleset("pvrdma").Enabled || !s.Hosts[1].Ruleset("pvrdma").Enabled || len(s.Switches) > 0 {
			t.Errorf("rulesets %t and %t, %d switches", s.Hosts[0].Ruleset("pvrdma").Enabled, s.Hosts[1].Ruleset("pvrdma").Enabled, len(s.Switches))
		}
	})
}

func TestFixListsManualFixes(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "broken-ntp", Hosts: 2, VMs: 2})
	code, out, errs := b.run("check", "--fix", "--yes", "-f", "ANSWERS")
	if code != 2 || !strings.Contains(errs, "no automatic fix for HOST-NTP-004 of esx-02") || !strings.Contains(out, "RDMA CRITICAL") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	runs, err := filepath.Glob(filepath.Join(b.env["HOME"], "rdma-setup", "runs", "*"))
	if err != nil || len(runs) > 0 {
		t.Errorf("recorded: %v %v", runs, err)
	}
	for _, args := range [][]string{{"--fix"}, {"--yes"}, {"--fix", "-f", "ANSWERS", "-o", "junit"}} {
		if code, _, errs := b.run(append([]string{"check"}, args...)...); code != 3 || !strings.Contains(errs, "hint:") {
			t.Errorf("%v: exit %d: %s", args, code, errs)
		}
	}
}
