package torture

import (
	"fmt"
	"maps"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

// A course is an undisturbed run and its rollback; every crash is compared with it.
type course struct {
	start, end map[string]string
	apply      []journal.Record // of the run
	back       []journal.Record // of its rollback
}

// undisturbed performs one run and its rollback.
func (s *site) undisturbed() course {
	s.t.Helper()
	c := course{start: s.facts()}
	if got := s.here(0, s.apply()...); got.code != 0 {
		s.t.Fatalf("undisturbed: exit %d\n%s", got.code, got)
	}
	c.end = s.facts()
	c.apply = s.records()
	if got := s.back(); got.code != 0 {
		s.t.Fatalf("undisturbed rollback: exit %d\n%s", got.code, got)
	}
	c.back = s.records()[len(c.apply):]
	s.started("an undisturbed rollback", c)
	if cmp.Equal(c.start, c.end) {
		s.t.Fatal("the run has changed nothing")
	}
	s.forget()
	return c
}

func (s *site) records() []journal.Record {
	s.t.Helper()
	id, _ := s.run()
	st, err := journal.Read(filepath.Join(s.env["XDG_STATE_HOME"], "rdma-setup"), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return st.Records
}

func (s *site) same(when string, want map[string]string) bool {
	s.t.Helper()
	if diff := cmp.Diff(want, s.facts()); diff != "" {
		s.t.Errorf("%s (-want +got):\n%s", when, diff)
		return false
	}
	return true
}

// started checks that the state is the one before the run, except for what a rollback leaves in place.
func (s *site) started(when string, c course) bool {
	s.t.Helper()
	want, got := s.leaving(c.start), s.leaving(s.facts())
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("%s (-want +got):\n%s", when, diff)
		return false
	}
	return true
}

// leaving returns facts without those that a rollback leaves in place.
func (s *site) leaving(facts map[string]string) map[string]string {
	facts = maps.Clone(facts)
	maps.DeleteFunc(facts, func(key, _ string) bool { return s.mode.stays != nil && s.mode.stays.MatchString(key) })
	return facts
}

// killed checks that a command was killed by its harm and did not exit normally.
func (s *site) killed(harm string, got said) {
	s.t.Helper()
	if got.code != -1 {
		s.t.Errorf("%s: it was not killed: exit %d\n%s", harm, got.code, got)
	}
}

// TestKilledInAChain kills a run once at every type of record, each time in the resume of the previous attempt, then lets it
// finish; the same with the rollback.
func TestKilledInAChain(t *testing.T) {
	for _, m := range sample.modes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, m.small())
			c := s.undisturbed()
			s.killed("header", s.child("torn:header:1", s.apply()...))
			s.killed("header", s.child("after:header:1", s.apply()...))
			for _, harm := range chain(c.apply) {
				id, _ := s.run()
				s.killed(harm, s.child(harm, "resume", id, "--yes", "-o", "json"))
			}
			if got := s.finish(); got.code != 0 {
				t.Fatalf("the last resume: exit %d\n%s", got.code, got)
			}
			s.same("after the last resume", c.end)
			id, _ := s.run()
			for _, harm := range chain(c.back) {
				s.killed(harm, s.child(harm, "rollback", id, "--yes", "-o", "json"))
			}
			if got := s.back(); got.code != 0 {
				t.Fatalf("the last rollback: exit %d\n%s", got.code, got)
			}
			s.started("after the last rollback", c)
		})
	}
}

// TestKilledAfterTheLastStepOfAnOperation kills a run when the modules of a guest are loaded but the outcome is not in the journal.
// The resume has nothing left to do there, but must read the result of the operation, and the rollback must recognise it as a
// change of this program.
func TestKilledAfterTheLastStepOfAnOperation(t *testing.T) {
	t.Parallel()
	s := serve(t, modes[1].small())
	c := course{start: s.facts()}
	harm := "before:outcome guest/vm-01/modules/rdma:1"
	s.killed(harm, s.child(harm, s.apply()...))
	if got := s.finish(); got.code != 0 {
		t.Fatalf("resume: exit %d\n%s", got.code, got)
	}
	if got := s.back(); got.code != 0 {
		t.Fatalf("rollback: exit %d\n%s", got.code, got)
	}
	s.started("after the rollback", c)
}

// chain returns one harm for each type of record, in the order in which the types first occur in a run, alternating between before,
// after and in the middle of the record.
func chain(records []journal.Record) []string {
	var out []string
	seen := map[journal.Type]bool{journal.TypeHeader: true}
	how := []string{"before", "after", "torn"}
	for _, r := range records {
		if !seen[r.Type] {
			seen[r.Type] = true
			out = append(out, fmt.Sprintf("%s:%s:1", how[len(out)%len(how)], r.Type))
		}
	}
	return out
}
