package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/twin"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// planLines is what a rehearsal keeps of a plan.
type planLines struct {
	hash    string
	changes []change
}

type change struct {
	id, title    string
	from         backends.Value
	irreversible string // why it cannot be undone; "" if rollback works
}

// plannedIn reads a plan as plan prints it.
func plannedIn(text []byte) (*planLines, error) {
	var doc planDoc
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	p := &planLines{hash: doc.Hash}
	for _, c := range doc.Changes {
		p.changes = append(p.changes, change{c.ID(), c.Target.Name + ": " + plan.Title(c), c.From, c.Irreversible})
	}
	return p, nil
}

// planned returns the plan on the twin, nil if it is refused.
func (p *play) planned(ctx context.Context) (list *planLines, code int, errs []byte) {
	code, out, errs := p.on(ctx, "plan", "-f", p.file, "-o", "json")
	if code == 0 {
		list, _ = plannedIn(out.Bytes())
	}
	if list == nil {
		return nil, max(code, console.ExitFailed), errs
	}
	return list, code, errs
}

// timeline computes the timeline from the stages that the run has planned.
func (p *play) timeline(list []engine.Event, st *journal.State) error {
	var stages []plan.Plan
	for _, rec := range st.Records {
		if rec.Type != journal.TypeStage {
			continue
		}
		var stage plan.Plan
		if err := json.Unmarshal(rec.Plan, &stage); err != nil {
			return err
		}
		stages = append(stages, stage)
	}
	t, err := twin.NewTimeline(stages, list, p.limits, p.stated)
	p.Take(t)
	return err
}

// failures reports whether a step has failed.
func failures(list []engine.Event) bool {
	return slices.ContainsFunc(list, func(e engine.Event) bool { return e.Type == engine.EventFailed })
}

// ownNotes returns the notes of a report about the run itself, without those of its plan.
func ownNotes(notes []string) []string {
	out := []string{}
	for _, n := range notes {
		if strings.HasPrefix(n, planSaid) {
			break
		}
		out = append(out, n)
	}
	return out
}

// rolledBack takes the result of the rollback on the twin: its status and each step that failed, with the last reason.
func (p *play) rolledBack(list []engine.Event, said []byte) {
	var steps plain.Gathered[string, string]
	for _, e := range list {
		switch e.Type {
		case engine.EventFailed:
			steps.Add(e.Node, e.Err)
		case engine.EventResult:
			p.Rollback = string(e.Status)
		}
	}
	for node, why := range steps.All() {
		p.NotUndone = append(p.NotUndone, node+": "+why[len(why)-1])
	}
	if p.Rollback != string(engine.StatusDone) && len(p.NotUndone) == 0 {
		p.NotUndone = append(p.NotUndone, lines(said)...)
	}
}

// differing returns the changes of one plan that are missing or different in the other, and how many of them are still in place because
// they cannot be undone.
func differing(before, after []change) (out []string, stay int) {
	out = []string{}
	left := map[string]change{}
	for _, c := range before {
		left[c.id] = c
	}
	for _, c := range after {
		was, known := left[c.id]
		delete(left, c.id)
		switch {
		case !known:
			out = append(out, c.id+": not in the previous plan")
		case was.from != c.from:
			out = append(out, fmt.Sprintf("%s: %s, was %s", c.id, c.from, was.from))
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(left), plain.Natural) {
		text := id + ": still in place"
		if why := left[id].irreversible; why != "" {
			stay++
			text += ": " + why
		}
		out = append(out, text)
	}
	return out, stay
}

func lines(text []byte) []string {
	out := []string{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}
