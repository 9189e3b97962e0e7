package engine_test

import (
	"fmt"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// options returns n hosts with two settings each.
func options(n int) (*World, []Wish) {
	w := NewWorld()
	var wishes []Wish
	for i := range n {
		h := backends.HostRef(fmt.Sprintf("esx-%03d", i+1))
		wishes = append(wishes,
			Wish{Setting: setting(h, backends.KindOption, "Net.PVRDMAVmknic"), To: val("vmk0")},
			Wish{Setting: setting(h, backends.KindFirewall, "pvrdma"), To: val(true)})
	}
	return w, wishes
}

func optionID(host string) string {
	return setting(backends.HostRef(host), backends.KindOption, "Net.PVRDMAVmknic").ID()
}

func firewallID(host string) string {
	return setting(backends.HostRef(host), backends.KindFirewall, "pvrdma").ID()
}

// failing makes every set of an id fail.
func failing(id string, kind backends.ErrorKind) func(Call) error {
	return func(c Call) error {
		if c.Verb != "read" && c.Verb != "state" && c.Verb != "readmany" && c.Setting.ID() == id {
			return backends.Errorf(kind, c.Setting.Target.Name, "Fix it.", "%s: injected", c.Verb)
		}
		return nil
	}
}

// recorder keeps the events of a run.
type recorder struct{ events []engine.Event }

func (r *recorder) sink(e engine.Event) { r.events = append(r.events, e) }

func (r *recorder) count(t engine.EventType, node string) int {
	n := 0
	for _, e := range r.events {
		if e.Type == t && (node == "" || e.Node == node) {
			n++
		}
	}
	return n
}

// fresh returns a job of the wishes with a journal that does not sync to the disk.
func fresh(t *testing.T, w *World, wishes []Wish) (engine.Job, *journal.Journal) {
	t.Helper()
	j := create(t, t.TempDir(), w.Plan(wishes), (&Crash{}).File())
	return job(w, wishes, j), j
}

// planned returns a job of the given plan, which is not planned again.
func planned(t *testing.T, w *World, p plan.Plan) (engine.Job, *journal.Journal) {
	t.Helper()
	j := create(t, t.TempDir(), &p, (&Crash{}).File())
	return engine.Job{Plan: p, Setters: w.Setters(), Brackets: w.Brackets(), Journal: j}, j
}

func change(s backends.Setting, from, to backends.Value, within ...string) plan.Change {
	return plan.Change{Setting: s, From: from, To: to, Why: "test", Within: within}
}

func createBench(b *testing.B, p *plan.Plan) (*journal.Journal, error) {
	b.Helper()
	return journal.Create(b.TempDir(), header(p), nil)
}
