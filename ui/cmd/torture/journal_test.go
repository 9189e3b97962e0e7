package torture

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// refusedWith checks that a command was refused with these words, and that it changed nothing.
func (s *site) refusedWith(got said, code int, words ...string) {
	s.t.Helper()
	if got.code != code {
		s.t.Errorf("exit %d, want %d\n%s", got.code, code, got)
	}
	for _, w := range words {
		if !strings.Contains(got.errs, w) {
			s.t.Errorf("it does not say %q:\n%s", w, got.errs)
		}
	}
}

// TestDiskFullWhileTheJournalIsWritten fills the disk at the record of an operation: the operation is not started, the error is
// reported, and a resume continues when there is space again. The clock goes back all the time, without effect.
func TestDiskFullWhileTheJournalIsWritten(t *testing.T) {
	t.Parallel()
	s := serve(t, modes[0].small())
	start := s.facts()
	s.refusedWith(s.child("full:header:1", s.apply()...), 1, "no space left", "hint:")
	s.same("after a journal that could not be begun", start)
	s.refusedWith(s.child("full:intent:3", s.apply()...), 5, "no space left", "Free some space")
	if got := s.child("clock:back", "resume", "--yes", "-o", "json"); got.code != 0 {
		t.Fatalf("resume: exit %d\n%s", got.code, got)
	}
	first, _ := s.run()
	if got := s.child("clock:back", "rollback", "--yes", "-o", "json"); got.code != 0 {
		t.Fatalf("rollback: exit %d\n%s", got.code, got)
	}
	s.same("after the rollback", start)
	if got := s.child("clock:back", s.apply()...); got.code != 0 {
		t.Fatalf("apply with the clock set back: exit %d\n%s", got.code, got)
	}
	if second, _ := s.run(); second <= first {
		t.Errorf("the clock was set back, and run %s is taken for older than %s", second, first)
	}
	s.env["XDG_STATE_HOME"] = "/proc/self" // not even root can write here
	end := s.facts()
	s.refusedWith(s.here(0, s.apply()...), 0) // without changes no journal is needed
	if got := s.rewriteAndApply(func(a *answers.Answers) { a.Switch.MTU = 4200 }); got.code != 1 ||
		!strings.Contains(got.errs, "--state-dir") {
		t.Errorf("a state directory that cannot be written: exit %d\n%s", got.code, got)
	}
	s.same("without a journal", end)
}

func (s *site) rewriteAndApply(change func(*answers.Answers)) said {
	s.t.Helper()
	return s.here(0, "apply", "-f", s.rewrite(s.answers, change), "--yes")
}

// TestJournalsOfOthers tries to resume what must not be resumed: a run of another vCenter, of another version of the program, with
// other answers, or with a damaged journal.
func TestJournalsOfOthers(t *testing.T) {
	t.Parallel()
	s := serve(t, modes[0].small())
	s.killed("intent", s.child("after:intent:1", s.apply()...)) // before its first operation, so that none is running when the state is read
	id, _ := s.run()
	before := s.facts()
	path := filepath.Join(s.env["XDG_STATE_HOME"], "rdma-setup", "runs", id, "journal.jsonl")
	content := testclass.Read(t, path)
	resume := []string{"resume", id, "--yes"}

	other := s.rewrite(s.answers, func(a *answers.Answers) { a.Switch.MTU = 4200 })
	s.refusedWith(s.here(0, append(resume, "-f", other)...), 3, "the answers have changed", "mtu: 4200", "mtu: 9000")

	elsewhere := serve(t, modes[0].small())
	elsewhere.env["XDG_STATE_HOME"] = s.env["XDG_STATE_HOME"]
	elsewhere.refusedWith(elsewhere.here(0, append(resume, "--url", elsewhere.env["GOVC_URL"])...), 3, "is of the vCenter")

	for name, b := range map[string]struct {
		text []byte
		word string
	}{
		"version": {bytes.Replace(content, []byte(`"version":2`), []byte(`"version":7`), 1), "version 7"},
		"damaged": {bytes.Replace(content, []byte(`"begin"`), []byte(`"began"`), 1), "damaged at line 2"},
		"a record is gone": {bytes.Join(append(bytes.SplitAfter(content, []byte("\n"))[:1:1], bytes.SplitAfter(content, []byte("\n"))[2:]...),
			nil), "damaged at line 2: it does not follow the line before it"},
		"not ours, no JSON": {[]byte("\x7fELF\x00\n\n\xff"), "damaged"},
	} {
		testclass.OK(t, os.WriteFile(path, b.text, 0o600))
		for _, verb := range []string{"resume", "rollback"} {
			if got := s.here(0, verb, id, "--yes"); got.code == 0 || !strings.Contains(got.errs, b.word) {
				t.Errorf("%s: %s: exit %d, want words with %q\n%s", name, verb, got.code, b.word, got)
			}
		}
	}
	s.same("nothing of that was carried out", before)
	testclass.Write(t, path, string(content))
	if got := s.finish(); got.code != 0 {
		t.Errorf("resume: exit %d\n%s", got.code, got)
	}
}

// TestTwoAppliesOnOneVCenter starts a second apply during the first: the second is refused, names the first and changes nothing;
// the first is not affected.
func TestTwoAppliesOnOneVCenter(t *testing.T) {
	t.Parallel()
	s := serve(t, modes[0].small())
	testclass.OK(t, s.lab.World().Faults.Add("method=CreateDVS_Task,do=slow:6s"))
	first := make(chan said, 1)
	go func() { first <- s.here(0, s.apply()...) }()
	s.until("the first is at work", func() bool {
		for _, e := range s.lab.World().Log.Events() {
			if e.What == world.FaultApplied {
				return true
			}
		}
		return false
	})
	id, status := s.run()
	if status != "running" {
		t.Errorf("the first is %s", status)
	}
	s.refusedWith(s.here(0, s.apply()...), 3, id, "is changing this vCenter", "hint:")
	s.refusedWith(s.here(0, "rollback", id, "--yes"), 3, id, "is changing this vCenter")
	if got := <-first; got.code != 0 {
		t.Errorf("the first: exit %d\n%s", got.code, got)
	}
	if last, _ := s.run(); last != id {
		t.Errorf("the second was recorded: %s", last)
	}
	if diff := cmp.Diff(s.here(0, "plan", "-f", s.answers, "--detailed-exitcode").code, 0); diff != "" {
		t.Error(diff)
	}
}

// until checks a condition every 20 ms until it is true, and fails after two minutes.
func (s *site) until(what string, ok func() bool) {
	s.t.Helper()
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			s.t.Fatalf("never happened: %s", what)
		case <-tick.C:
		}
	}
}
