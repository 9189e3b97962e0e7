package page

import (
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/ui/plain"
)

// A Group is the findings of one check with one status.
type Group struct {
	Status   checks.Status
	ID       string
	Link     string // place in the chain
	Targets  string
	Evidence []string
	Remedy   string
	Source   string
	Fix      string
}

// groups sorts findings into problems (worst first, then along the chain), passes and waiting ones.
func groups(all []checks.Finding) (amiss, passed, waiting []Group) {
	where, place := map[string]string{}, map[string]int{}
	for _, c := range catalogue.Checks() {
		where[c.ID], place[c.ID] = string(c.Link), slices.Index(checks.Links(), c.Link)
	}
	for _, status := range []checks.Status{checks.Fail, checks.Warn, checks.Unknown, checks.Pass} {
		from := len(amiss)
		for _, quiet := range []bool{false, true} {
			some := slices.DeleteFunc(slices.Clone(all), func(f checks.Finding) bool { return f.Status == status && f.Quiet != quiet })
			for _, g := range plain.Grouped(some, status) {
				shown := group(g, where)
				switch {
				case status == checks.Pass:
					passed = append(passed, shown)
				case quiet:
					waiting = append(waiting, shown)
				default:
					amiss = append(amiss, shown)
				}
			}
		}
		slices.SortStableFunc(amiss[from:], func(a, b Group) int { return place[a.ID] - place[b.ID] })
	}
	return amiss, passed, waiting
}

func group(g plain.Group, where map[string]string) Group {
	f := g.Findings[0]
	return Group{
		Status: f.Status, ID: backends.Clean(f.ID), Link: where[f.ID], Targets: g.Targets(), Evidence: g.Evidence(),
		Remedy: backends.Clean(f.Remedy), Source: backends.Clean(f.Source), Fix: backends.Clean(f.Fix),
	}
}
