package torture

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

// journalOf returns the path of the last run's journal and its lines.
func (s *site) journalOf() (id, path string, lines [][]byte) {
	s.t.Helper()
	id, _ = s.run()
	path = filepath.Join(s.env["XDG_STATE_HOME"], "rdma-setup", "runs", id, "journal.jsonl")
	b, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	lines = bytes.SplitAfter(b, []byte("\n"))
	return id, path, lines[:len(lines)-1]
}

func (s *site) write(path string, lines [][]byte) {
	s.t.Helper()
	if err := os.WriteFile(path, bytes.Join(lines, nil), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// intentOf finds the line that announces a change whose node ends in a name.
func intentOf(lines [][]byte, name string) int {
	return slices.IndexFunc(lines, func(l []byte) bool {
		return bytes.Contains(l, []byte(`"type":"intent"`)) && bytes.Contains(l, []byte(name+`","target"`))
	})
}

// TestDamagedJournalsAreNeverSkipped damages the newest of two runs. No command uses the older run in its place; if the damaged run
// is named, it is undone as far as its intact records allow.
func TestDamagedJournalsAreNeverSkipped(t *testing.T) {
	t.Parallel()
	s := serve(t, modes[0].small())
	state := filepath.Join(s.env["XDG_STATE_HOME"], "rdma-setup")
	start := s.facts()
	if got := s.here(0, s.apply()...); got.code != 0 {
		t.Fatalf("apply: exit %d\n%s", got.code, got)
	}
	older, _ := s.run()
	if got := s.back(); got.code != 0 {
		t.Fatalf("rollback: exit %d\n%s", got.code, got)
	}
	if err := os.Mkdir(filepath.Join(state, "runs", "99991231-235959-pvrdma-aaaa"), 0o700); err != nil {
		t.Fatal(err)
	}
	got := s.here(0, s.apply()...)
	s.refusedWith(got, 0, `note: "99991231-235959-pvrdma-aaaa"`)
	end := s.facts()
	id, path, records := s.journalOf()
	if id <= older || id > "2200" {
		t.Fatalf("run %s comes after %s", id, older)
	}

	// All lines exist, in another order: everything can be proven.
	at := intentOf(records, "option/Net.PVRDMAVmknic")
	if at < 0 {
		t.Fatalf("no intent of the option:\n%s", bytes.Join(records, nil))
	}
	moved := slices.Clone(records)
	moved[at], moved[at+1] = moved[at+1], moved[at]
	s.write(path, moved)
	for _, verb := range []string{"resume", "rollback"} {
		s.refusedWith(s.here(0, verb, "--yes"), 3, id, "hint:", "--salvage", older)
		s.refusedWith(s.here(0, verb, id, "--yes"), 3, "damaged at line", "rollback "+id+" --salvage")
	}
	s.same("nothing of that was carried out", end)
	s.refusedWith(s.here(0, "rollback", "--salvage", "--yes"), 2, "--salvage needs the id of a run")
	s.refusedWith(s.here(0, "rollback", id, "--salvage", "--yes"), 0)
	s.same("after the rollback of a journal out of order", start)
	s.refusedWith(s.here(0, "rollback", id, "--yes"), 0)

	// One record is missing: its setting is named and left in place, the rest is undone.
	if got := s.here(0, s.apply()...); got.code != 0 {
		t.Fatalf("apply: exit %d\n%s", got.code, got)
	}
	id, path, records = s.journalOf()
	at = intentOf(records, "option/Net.PVRDMAVmknic")
	records[at] = bytes.Replace(records[at], []byte(`"prior"`), []byte(`"prjor"`), 1)
	s.write(path, records)
	got = s.here(0, "rollback", id, "--salvage", "--yes", "-o", "json")
	s.refusedWith(got, 5, "line "+strconv.Itoa(at+1),
		"option/Net.PVRDMAVmknic: it was changed, but the record of its previous value is damaged")
	if !strings.Contains(got.out, "not rolled back, because the journal was damaged: ") {
		t.Errorf("the result does not say it:\n%s", got.out)
	}
	s.refusedWith(s.here(0, "rollback", id, "--yes"), 5, "option/Net.PVRDMAVmknic")
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), "journal.damaged-1.jsonl")); err != nil {
		t.Error(err)
	}
	if st, err := journal.Read(state, id); err != nil || st.Salvage() == nil {
		t.Errorf("%v", err)
	}
	now := s.facts()
	for name, value := range now {
		if start[name] != value && !strings.Contains(name, "PVRDMAVmknic") && !strings.Contains(value, "PVRDMAVmknic") {
			t.Errorf("more is left than what is not proven: %s is %q, was %q", name, value, start[name])
		}
	}
	for name, value := range start {
		if _, there := now[name]; !there {
			t.Errorf("%s is gone, was %q", name, value)
		}
	}
}

// TestStateDirectoryDeletedDuringTheRun deletes the directory while a switch is being created: no other operation is started, and
// the completed changes are printed, because no other record of them exists.
func TestStateDirectoryDeletedDuringTheRun(t *testing.T) {
	t.Parallel()
	s := serve(t, modes[0].small())
	if err := s.lab.World().Faults.Add("method=CreateDVS_Task,do=slow:3s"); err != nil {
		t.Fatal(err)
	}
	first := make(chan said, 1)
	go func() { first <- s.here(0, s.apply()...) }()
	s.until("the run is at work", func() bool {
		return slices.ContainsFunc(s.lab.World().Log.Events(), func(e world.Event) bool { return e.What == world.FaultApplied })
	})
	if err := os.RemoveAll(filepath.Join(s.env["XDG_STATE_HOME"], "rdma-setup")); err != nil {
		t.Fatal(err)
	}
	got := <-first
	if got.code != 5 || !strings.Contains(got.out, "the state directory was changed during the run") ||
		!strings.Contains(got.out, "left behind: ") {
		t.Errorf("exit %d\n%s", got.code, got)
	}
	for _, e := range s.lab.World().Log.Events() {
		if strings.Contains(e.Detail, "AddDVPortgroup") || strings.Contains(e.Detail, "CreateDVPortgroup") {
			t.Errorf("begun after the journal was gone: %s", e.Detail)
		}
	}
}
