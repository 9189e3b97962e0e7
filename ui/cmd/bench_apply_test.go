//go:build bench

package cmd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// applies runs a complete PVRDMA plan on a hundred hosts and compares its duration with the longest chain of dependent steps.
func applies(ctx context.Context, b *board) {
	const hosts = 100
	one := b.serve("--hosts", "1", "--vms", "1", "--latency", "20ms")
	out, _ := one.must(0, "apply", "-f", one.answers("pvrdma"), "--yes", "-o", "json")
	alone := trace(b, one, out).took()
	s := b.serve("--hosts", fmt.Sprint(hosts), "--vms", fmt.Sprint(hosts), "--latency", "20ms")
	before := s.calls()
	began := time.Now()
	out, _ = s.must(0, "apply", "-f", unbounded(s), "--yes", "-o", "json")
	elapsed := time.Since(began)
	r := trace(b, s, out)
	at := fmt.Sprintf("%d hosts, %d VMs", hosts, hosts)
	chain, last := r.chain()
	b.times("run, against its longest chain of steps", at, float64(r.took())/float64(chain), 1.5)
	b.tell("  the run; its longest chain; with surveys and measurements; a run of one host", at,
		strings.Join([]string{short(r.took()), short(chain), short(elapsed), short(alone)}, "; "))
	for _, n := range r.path(last) {
		b.tell("    "+kindOf(n.id), n.id, short(n.end.Sub(n.begin)))
	}

	calls := map[string]int{}
	for method, n := range s.calls() {
		calls[method] = n - before[method]
	}
	tasks, waiting := calls["ShutdownGuest"], 0
	for method, n := range calls {
		if strings.HasSuffix(method, "_Task") {
			tasks += n
		}
	}
	for _, method := range []string{"WaitForUpdatesEx", "ModifyListView", "CreateListView", "CreatePropertyCollector", "CreateFilter"} {
		waiting += calls[method]
	}
	b.count("SOAP calls of waiting", fmt.Sprintf("%d tasks and shutdowns, %d progress updates", tasks, r.progress), waiting,
		3*tasks+r.progress+int(elapsed.Minutes()))
	b.tell("  all SOAP calls of the apply", at, fmt.Sprint(total(calls)))
}

// unbounded returns the answers for PVRDMA that allow all VMs to be off at the same time, because the bound concerns the engine,
// not the limits.
func unbounded(s *site) string {
	s.t.Helper()
	b, err := os.ReadFile(s.answers("pvrdma"))
	if err != nil {
		s.t.Fatal(err)
	}
	file := filepath.Join(s.t.TempDir(), "answers.yaml")
	if err := os.WriteFile(file, append(b, "run: {power: {max_unavailable: all, canary: false}}\n"...), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return file
}

// A step is a node of the plan with the time it took.
type step struct {
	id         string
	target     backends.Ref
	begin, end time.Time
	waits      []string
	before     *step // the last of the steps that it waited for
	reach      time.Duration
}

type traced struct {
	steps    map[string]*step
	order    []*step // sorted by begin
	progress int
}

// trace combines the events of a run with its plan.
func trace(b *board, s *site, out string) *traced {
	b.t.Helper()
	r := &traced{steps: map[string]*step{}}
	var res struct{ Run string }
	for line := range bytes.Lines([]byte(out)) {
		var e engine.Event
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		switch e.Type {
		case engine.EventStarted:
			st := &step{id: e.Node, target: e.Target, begin: e.Time}
			r.steps[e.Node] = st
			r.order = append(r.order, st)
		case engine.EventDone, engine.EventSkipped, engine.EventFailed:
			if st := r.steps[e.Node]; st != nil {
				st.end = e.Time
			}
		case engine.EventProgress:
			r.progress++
		case engine.EventResult:
			if err := json.Unmarshal(line, &res); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	state, err := journal.Read(s.state+"/rdma-setup", res.Run)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, rec := range state.Records {
		if rec.Plan == nil {
			continue
		}
		var p plan.Plan
		if err := json.Unmarshal(rec.Plan, &p); err != nil {
			b.t.Fatal(err)
		}
		g, err := p.Graph()
		if err != nil {
			b.t.Fatal(err)
		}
		for id, waits := range g.Waits {
			if st := r.steps[id]; st != nil {
				st.waits = waits
			}
		}
	}
	return r
}

func (r *traced) took() time.Duration {
	last := r.order[0].end
	for _, st := range r.order {
		if st.end.After(last) {
			last = st.end
		}
	}
	return last.Sub(r.order[0].begin)
}

// chain returns the largest total duration of a sequence of steps in which each waits for the previous one: because the plan
// requires it, or because both change the same machine.
func (r *traced) chain() (time.Duration, *step) {
	lanes := map[backends.Ref]*step{}
	var last *step
	slices.SortStableFunc(r.order, func(a, b *step) int { return a.end.Compare(b.end) })
	for _, st := range r.order {
		consider := func(w *step) {
			if w != nil && w != st && !w.end.After(st.begin) && (st.before == nil || w.reach > st.before.reach) {
				st.before = w
			}
		}
		for _, id := range st.waits {
			consider(r.steps[id])
		}
		consider(lanes[st.target])
		lanes[st.target] = st
		st.reach = st.end.Sub(st.begin)
		if st.before != nil {
			st.reach += st.before.reach
		}
		if last == nil || st.reach > last.reach {
			last = st
		}
	}
	slices.SortStableFunc(r.order, func(a, b *step) int { return a.begin.Compare(b.begin) })
	return last.reach, last
}

// path lists the chain that ends with a step.
func (r *traced) path(last *step) []*step {
	var out []*step
	for st := last; st != nil; st = st.before {
		out = append(out, st)
	}
	slices.Reverse(out)
	return out
}

// kindOf returns the kind of a step, without its target.
func kindOf(id string) string {
	id, opens := strings.CutPrefix(id, "open ")
	if parts := strings.SplitN(id, "/", 3); len(parts) == 3 {
		id = parts[2]
	}
	if opens {
		return "open " + id
	}
	return id
}
