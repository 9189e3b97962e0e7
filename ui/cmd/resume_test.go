package cmd_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

// If a run is stopped before its first change, a following resume or rollback must not silently use an older run.
func TestResumeDoesNotSilentlyUseAnOlderRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "drifted", Hosts: 2, VMs: 2})
	if code, out, errs := b.run("apply", "-f", "ANSWERS", "--yes"); code != 0 {
		t.Fatalf("exit %d:\n%s%s", code, out, errs)
	}
	state := filepath.Join(b.env["XDG_STATE_HOME"], "rdma-setup")
	done, _, err := journal.LastChanged(state)
	if err != nil {
		t.Fatal(err)
	}
	if code, _, errs := b.run("resume", "--yes"); code != 0 || strings.Contains(errs, "note:") {
		t.Errorf("exit %d:\n%s", code, errs)
	}
	j, err := journal.Create(state, journal.Header{VCenter: b.uuid(), Mode: "pvrdma", Made: time.Now()}, []byte("{}"))
	if err == nil {
		err = errors.Join(j.Append(journal.Record{Type: journal.TypeBegin, Phase: journal.PhaseApply}), j.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	code, _, errs := b.run("resume", "--yes")
	if code != 0 || !strings.Contains(errs, "note: run "+j.Run()+" ended before its first change; resume uses "+done) ||
		!strings.Contains(errs, "rdma-setup resume "+j.Run()+"\n") {
		t.Errorf("exit %d:\n%s", code, errs)
	}
	if code, _, errs := b.run("report"); code != 0 || !strings.Contains(errs, "report uses "+done) {
		t.Errorf("exit %d:\n%s", code, errs)
	}
	code, _, errs = b.run("rollback", "--yes")
	if code != 0 || !strings.Contains(errs, "rollback uses "+done) || strings.Contains(errs, "rdma-setup resume "+j.Run()) {
		t.Errorf("exit %d:\n%s", code, errs)
	}
}

// TestResumeOfTheNamedVCenter: without RUN, resume and rollback take the last run of the vCenter that is named. If none is named and
// there are several, they list them.
func TestResumeOfTheNamedVCenter(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "drifted", Hosts: 2, VMs: 2})
	b.must(0, "apply", "-f", "ANSWERS", "--yes")
	state := filepath.Join(b.env["XDG_STATE_HOME"], "rdma-setup")
	done, _, err := journal.LastChanged(state)
	if err != nil {
		t.Fatal(err)
	}
	var others []string
	for _, host := range []string{"one.example", "two.example"} {
		j, err := journal.Create(state, journal.Header{VCenter: host, URL: "https://" + host + "/sdk", Mode: "pvrdma", Made: time.Now()},
			[]byte("{}"))
		if err == nil {
			err = errors.Join(j.Append(journal.Record{Type: journal.TypeBegin, Phase: journal.PhaseApply}),
				j.Append(journal.Record{Type: journal.TypeIntent}), j.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		others = append(others, j.Run()+" on https://"+host+"/sdk")
	}
	if code, _, errs := b.run("resume", "--yes"); code != 0 || !strings.Contains(errs, "run "+done+" is finished") {
		t.Errorf("exit %d:\n%s", code, errs)
	}
	if code, _, errs := b.run("rollback", "--yes", "--url", "https://three.example"); code != 2 ||
		!strings.Contains(errs, "no run has changed anything on three.example:443 yet") {
		t.Errorf("exit %d:\n%s", code, errs)
	}
	b.env["GOVC_URL"] = ""
	for _, command := range []string{"resume", "rollback"} {
		if code, _, errs := b.run(command, "--yes"); code != 2 || !strings.Contains(errs, others[0]) || !strings.Contains(errs, others[1]) {
			t.Errorf("%s: exit %d:\n%s", command, code, errs)
		}
	}
}
