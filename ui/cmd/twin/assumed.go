package twin

import (
	"slices"

	"github.com/rdma-setup/rdma-setup/ui/plain"
)

// assumptions collects the assumptions of a twin, with their targets.
type assumptions struct {
	order   []string
	targets map[string][]string
}

// add notes an assumption about a target, "" if it is about all of the site.
func (a *assumptions) add(target, what string) {
	if a.targets == nil {
		a.targets = map[string][]string{}
	}
	if _, known := a.targets[what]; !known {
		a.order = append(a.order, what)
		a.targets[what] = nil
	}
	if target != "" && !slices.Contains(a.targets[what], target) {
		a.targets[what] = append(a.targets[what], target)
	}
}

// list returns one sentence per assumption.
func (a *assumptions) list() []string {
	out := []string{}
	for _, what := range a.order {
		if names := a.targets[what]; len(names) > 0 {
			slices.SortFunc(names, plain.Natural)
			what = plain.Names(names) + ": " + what
		}
		out = append(out, what)
	}
	return out
}
