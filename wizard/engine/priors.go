package engine

import (
	"encoding/json"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// Priors returns the settings in a journal that its run wanted to change, for rollback.Build: the value before the first attempt,
// and the value that the run left.
func Priors(s *journal.State) []plan.Prior {
	var out []plan.Prior
	stages := map[int]map[string]plan.Change{}
	for _, e := range s.Entries() {
		changes := stages[e.Stage]
		if changes == nil {
			changes = changesOf(e.Plan)
			stages[e.Stage] = changes
		}
		prior := plan.Prior{Prior: e.Prior, Kept: e.Kept, Left: e.Left, Back: e.Back}
		if c, known := changes[e.Node]; known {
			prior.Change = c
		} else {
			prior.Change = plan.Change{Setting: e.Setting, From: e.Prior, To: e.To}
		}
		if len(e.Found) > 0 {
			prior.Found = e.Found[0]
		} else {
			prior.Found, prior.Uncertain = backends.Absent, true
		}
		out = append(out, prior)
	}
	return out
}

// changesOf reads the plan of a stage; an unreadable one has no changes, which are then known only by their settings.
func changesOf(stage []byte) map[string]plan.Change {
	out := map[string]plan.Change{}
	var p plan.Plan
	if err := json.Unmarshal(stage, &p); err != nil {
		return out
	}
	for _, c := range p.Changes {
		out[c.ID()] = c
	}
	return out
}
