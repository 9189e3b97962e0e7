//go:build e2e

package cmd_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/ui/cmd/twin"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// A rehearsal with the durations of an earlier run predicts the run: its waves, its duration, and how long a VM is off. One second
// of the lab is one minute of the rehearsal, which counts in whole seconds. make e2e runs it alone: beside other tests, a VM may wait for
// the processor for longer than the printed range allows.
func TestE2ERehearsalForetellsTheRun(t *testing.T) {
	testclass.Alone(t)
	site := newBench(t, lab.Options{Hosts: 2, VMs: 6, BootTime: 20 * time.Second}) // long, so that what the tool computes matters little
	text := testclass.Read(t, filepath.Join(site.lab.Dir(), "answers-pvrdma.yaml"))
	answers := filepath.Join(t.TempDir(), "answers.yaml")
	testclass.OK(t, os.WriteFile(answers, append(text, "run: {power: {max_unavailable: 2, canary: true}}\n"...), 0o600))
	bundle := filepath.Join(t.TempDir(), "site.tgz")
	if code, _, errs := site.run("collect", "-f", answers, "--out", bundle); code != 0 {
		t.Fatalf("collect: %d\n%s", code, errs)
	}
	code, out, errs := site.run("apply", "-f", answers, "--yes", "-o", "json")
	if code != 0 {
		t.Fatalf("apply: %d\n%s", code, errs)
	}
	began, order := map[string]time.Time{}, []string{}
	var first, last time.Time
	sum, n := map[string]time.Duration{}, map[string]int{}
	var worst time.Duration
	for line := range strings.Lines(out) {
		var e engine.Event
		if json.Unmarshal([]byte(line), &e) != nil || e.Node == "" {
			continue
		}
		switch e.Type {
		case engine.EventStarted:
			if first.IsZero() {
				first = e.Time
			}
			began[e.Node] = e.Time
			if strings.HasPrefix(e.Node, "open vm/") {
				order = append(order, e.Target.Name)
			}
		case engine.EventDone:
			last = e.Time
			kind := "other"
			switch {
			case strings.HasPrefix(e.Node, "open ") && strings.HasSuffix(e.Node, "/vm-power"):
				kind = "shutdown"
			case strings.HasSuffix(e.Node, "/vm-power"):
				kind, worst = "boot", max(worst, e.Time.Sub(began["open "+e.Node]))
			case strings.Contains(e.Node, "/packages/"):
				kind = "install"
			}
			sum[kind] += e.Time.Sub(began[e.Node])
			n[kind]++
		}
	}
	args := []string{"rehearse", "-f", answers, "--bundle", bundle, "-o", "json"}
	for kind, took := range sum {
		args = append(args, fmt.Sprintf("--%s=%s", kind, 60*took/time.Duration(n[kind])))
	}
	code, out, errs = site.run(args...)
	var r twin.Rehearsal
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || r.Status != "done" {
		t.Fatalf("rehearse: %d, %v\n%s\n%s", code, err, out, errs)
	}
	var waves []string
	for _, s := range r.Steps {
		if strings.HasPrefix(s.ID, "open vm/") {
			waves = append(waves, s.Target)
		}
	}
	for i := range order { // the order within a wave is not fixed: the canary is first, then two VMs at a time
		if want := order[max(0, i-1):min(len(order), i+2)]; i >= len(waves) || !slices.Contains(want, waves[i]) {
			t.Errorf("VMs go off in the order %v, in the rehearsal %v", order, waves)
			break
		}
	}
	within := func(what string, took time.Duration, between [2]int) {
		s := int((60 * took).Seconds())
		t.Logf("%s: %d s by the rehearsal's clock, which told %v", what, s, between)
		if s < between[0] || s > between[1] || between[1]*2 > between[0]*3 {
			t.Errorf("%s took %d s by the rehearsal's clock, which told %v (%v)", what, s, between, args)
		}
	}
	within("the run", last.Sub(first), r.WindowRange)
	within("the longest outage", worst, r.WorstRange)
}
