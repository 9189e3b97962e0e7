package rollback

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/current"
)

// A LaterRun is a run of this program that changed something after the run that is rolled back.
type LaterRun struct {
	Run    string
	Priors []plan.Prior
}

// somebody is who changed what no later run has changed.
const somebody = "somebody else"

// later returns the runs after the one that is rolled back, the latest first.
func (u *undo) later() []LaterRun {
	if u.opts.Later == nil {
		return nil
	}
	return u.opts.Later()
}

// who returns who changed a setting to its current value: the later run that has left it so, or somebody else.
func (u *undo) who(s backends.Setting, now backends.Value) string {
	for _, run := range u.later() {
		for _, p := range run.Priors {
			if p.Change.Setting == s && !p.Uncertain && !p.Back && current.Same(s.Kind, now, p.Found) && !current.Same(s.Kind, p.Prior, p.Found) {
				return run.Run
			}
		}
	}
	return somebody
}

func (u *undo) whoItem(t backends.Ref, d backends.Difference) string {
	for _, run := range u.later() {
		for _, p := range run.Priors {
			if p.Change.Target != t || p.Kept == nil || p.Back {
				continue
			}
			before, left := p.Kept.Item(d.Kind, d.Name), p.Left.Item(d.Kind, d.Name)
			if before != nil && left != nil && left.State == d.Is && before.State != left.State {
				return run.Run
			}
		}
	}
	return somebody
}

func (u *undo) whoAll(t backends.Ref, ds []backends.Difference) []string {
	var out []string
	for _, d := range ds {
		if by := u.whoItem(t, d); !slices.Contains(out, by) {
			out = append(out, by)
		}
	}
	return out
}

// named returns who changed something, for a sentence: "run 20261120-184410-pvrdma-x7k2 and somebody else".
func named(who []string) string {
	words := slices.Clone(who)
	for i, by := range words {
		if by != somebody {
			words[i] = "run " + by
		}
	}
	return strings.Join(words, " and ")
}

// remedy is the hint for a conflict: what later runs have changed is rolled back with them.
func remedy(who []string) string {
	runs := slices.DeleteFunc(slices.Clone(who), func(by string) bool { return by == somebody })
	if len(runs) == 0 {
		return choose
	}
	latest := slices.Max(runs) // their ids begin with their time
	return fmt.Sprintf("roll back run %s first: rdma-setup rollback %s; or %s", latest, latest, choose)
}
