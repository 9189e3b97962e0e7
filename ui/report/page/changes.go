package page

import (
	"fmt"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// Changes are the changes of all targets of one type.
type Changes struct {
	Heading string // "4 hosts"
	Rows    []Change
}

// A Change is one change of one or many targets that went the same way with the same outcome.
type Change struct {
	What, Why     string
	Who           string
	Before, After string
	Outcome       string // done, already so, failed, not tried, ...
	Status        checks.Status
	Found         string // what was read back where that is not what was asked for
	Err           string
}

var headings = map[backends.TargetType]string{
	backends.TypeVCenter: "vCenter", backends.TypeCluster: "Clusters", backends.TypeSwitch: "Distributed switches", backends.TypePortGroup: "Port groups",
	backends.TypeHost: "Hosts", backends.TypeVM: "VMs", backends.TypeGuest: "Guests", backends.TypePair: "Pairs",
}

// changes groups outcomes by type of target, and what is alike into one row.
func changes(all []report.Outcome) (string, []Changes) {
	var out []Changes
	section, row := map[backends.TargetType]int{}, map[Change]*[]string{}
	type place struct {
		section, row int
		names        *[]string
	}
	var places []place
	count := map[string]int{}
	for _, o := range all {
		count[o.State]++
		i, ok := section[o.Target.Type]
		if !ok {
			i = len(out)
			section[o.Target.Type] = i
			heading := headings[o.Target.Type]
			if heading == "" {
				heading = plain.Clean(string(o.Target.Type))
			}
			out = append(out, Changes{Heading: heading})
		}
		c := change(o)
		key := c
		key.Who = string(o.Target.Type)
		if row[key] == nil {
			row[key] = new([]string)
			out[i].Rows = append(out[i].Rows, c)
			places = append(places, place{i, len(out[i].Rows) - 1, row[key]})
		}
		*row[key] = append(*row[key], o.Target.Name)
	}
	for _, p := range places {
		slices.SortFunc(*p.names, natural)
		out[p.section].Rows[p.row].Who = plain.Names(*p.names)
	}
	return fmt.Sprintf("%d done, %d already so, %d failed, %d not tried", count["done"], count["skipped"], count["failed"], count["blocked"]+count["pending"]), out
}

func change(o report.Outcome) Change {
	c := Change{
		What: plain.Clean(plan.Title(o.Change)), Why: plain.Clean(o.Why), Before: told(o.From), After: told(o.To), Err: plain.Clean(o.Err),
		Outcome: plain.Clean(o.State), Status: checks.Unknown,
	}
	switch o.State {
	case "done":
		c.Status = checks.Pass
	case "skipped":
		c.Outcome, c.Status = "already so", checks.Pass
	case "failed":
		c.Status = checks.Fail
	case "blocked", "pending":
		c.Outcome = "not tried"
	}
	if o.Found != nil && *o.Found != o.To {
		c.Found = told(*o.Found)
	}
	return c
}

// told prints a value; what one must wait for to know it is of no use to a reader.
func told(v backends.Value) string {
	if !v.Known() {
		return "not known before the run"
	}
	return plain.Clean(v.String())
}
