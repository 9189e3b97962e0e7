package engine_test

import (
	"context"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A Wish is a requested setting: a recipe in one line.
type Wish struct {
	backends.Setting
	To     backends.Value
	After  []string               // ids of other wishes or brackets
	Within []backends.BracketKind // brackets around it, on its own target
	// Until is the id of a wish that must be fulfilled before To is known.
	Until string
}

// Plan compares the wishes with the world without a call, as the real planner does with an inventory.
func (w *World) Plan(wishes []Wish) *plan.Plan {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &plan.Plan{Mode: "test"}
	differs := map[string]bool{}
	for _, wish := range wishes {
		differs[wish.ID()] = w.value(wish.Setting) != wish.To
	}
	for _, wish := range wishes {
		from := w.value(wish.Setting)
		if w.reachable(wish.Setting) != nil {
			from = backends.Unknown("power on of " + wish.Target.Name)
		}
		if from == wish.To {
			continue
		}
		c := plan.Change{Setting: wish.Setting, From: from, To: wish.To, Why: "as wished", After: wish.After}
		if wish.Until != "" && differs[wish.Until] {
			c.To = backends.Unknown(wish.Until)
			p.Stages = 1
		}
		for _, kind := range wish.Within {
			c.Within = append(c.Within, addBracket(p, kind, wish.Target, nil))
		}
		p.Changes = append(p.Changes, c)
	}
	return p
}

// Replanner returns Plan as a function for a Job; it fails after the crash.
func (w *World) Replanner(wishes []Wish) func(context.Context) (*plan.Plan, error) {
	return func(context.Context) (*plan.Plan, error) {
		if err := w.Crash.step(false); err != nil {
			return nil, err
		}
		return w.Plan(wishes), nil
	}
}

func addBracket(p *plan.Plan, kind backends.BracketKind, t backends.Ref, after []string) string {
	b := plan.Bracket{Kind: kind, Target: t, Why: "as wished", After: after}
	for i := range p.Brackets {
		if p.Brackets[i].ID() == b.ID() {
			p.Brackets[i].After = append(p.Brackets[i].After, after...)
			return b.ID()
		}
	}
	p.Brackets = append(p.Brackets, b)
	return b.ID()
}

// Unwinder plans back to the priors, in the reverse order of the wishes. It fails while a guest that must be changed does not
// answer.
func (w *World) Unwinder(wishes []Wish, priors func() []plan.Prior) func(context.Context) (*plan.Plan, error) {
	return func(context.Context) (*plan.Plan, error) {
		if err := w.Crash.step(false); err != nil {
			return nil, err
		}
		before := map[string]plan.Prior{}
		for _, p := range priors() {
			before[p.Change.ID()] = p
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		p := &plan.Plan{Mode: "test"}
		for i := len(wishes) - 1; i >= 0; i-- {
			wish := wishes[i]
			prior, known := before[wish.ID()]
			if !known {
				continue
			}
			if err := w.reachable(wish.Setting); err != nil {
				return nil, err
			}
			from := w.value(wish.Setting)
			c := plan.Change{Setting: wish.Setting, From: from, To: prior.Prior, Why: "as it was"}
			ours, others := prior.Differing(w.items(wish.Setting).Bare())
			switch {
			case prior.Kept != nil && len(others) > 0 || prior.Kept == nil && from != prior.Prior && !prior.Uncertain && from != prior.Found:
				p.Conflicts = append(p.Conflicts, plan.Refusal{Target: wish.Target, Why: wish.ID() + " was changed by somebody else"})
				continue
			case prior.Kept != nil && len(ours) == 0, prior.Kept == nil && from == prior.Prior:
				continue
			}
			c.Restore = ours
			for _, later := range wishes[i+1:] {
				for _, id := range later.After {
					// As in a real rollback, a guest that cannot be restored does not block anything else.
					if id == wish.ID() && (later.Target.Type != backends.TypeGuest || wish.Target.Type == backends.TypeGuest) {
						c.After = append(c.After, later.ID())
					}
				}
			}
			for _, kind := range wish.Within {
				var after []string
				id := bracketSetting(wish.Target, kind).ID()
				for _, later := range wishes[i+1:] {
					for _, a := range later.After {
						if a == id {
							after = append(after, later.ID())
						}
					}
				}
				c.Within = append(c.Within, addBracket(p, kind, wish.Target, nil))
				for k := range p.Brackets {
					if p.Brackets[k].ID() == id {
						p.Brackets[k].AfterAny = append(p.Brackets[k].AfterAny, after...)
					}
				}
			}
			p.Changes = append(p.Changes, c)
		}
		return p, nil
	}
}
