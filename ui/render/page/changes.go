package page

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// Changes are the changes of all targets of one type.
type Changes struct {
	Heading string // "Hosts"
	Rows    []Change
	Amiss   bool // a row is not done
}

// A Change is one change of one or many targets with the same outcome.
type Change struct {
	What, Why     string
	Who           string
	Before, After string
	Outcome       string // done, already set, failed, not tried, ...
	Status        checks.Status
	Found         string // the value that was read back if it differs from the requested one
	Err           string
}

var headings = map[backends.TargetType]string{
	backends.TypeVCenter: "vCenter", backends.TypeCluster: "Clusters", backends.TypeSwitch: "Distributed switches",
	backends.TypePortGroup: "Port groups",
	backends.TypeHost:      "Hosts", backends.TypeVM: "VMs", backends.TypeGuest: "Guests", backends.TypePair: "Pairs",
}

// A setting is the subject of one kind of change.
type setting struct {
	of   backends.TargetType
	kind backends.Kind
	name string
}

// changes groups outcomes by type of target, then by setting, and combines equal ones into one row.
func changes(all []report.Outcome) (string, []Changes) {
	type row struct {
		setting
		Change
	}
	var by plain.Gathered[row, string]
	place, count, types := map[setting]int{}, map[engine.NodeState]int{}, map[backends.TargetType]int{}
	for i, o := range all {
		count[engine.NodeState(o.State)]++
		r := row{setting{o.Target.Type, o.Kind, o.Name}, change(o)}
		if _, ok := place[r.setting]; !ok {
			place[r.setting] = i
		}
		if _, ok := types[r.of]; !ok {
			types[r.of] = i
		}
		by.Add(r, o.Target.Name)
	}
	for _, who := range by.All() {
		slices.SortFunc(who, plain.Natural)
	}
	order := by.Keys
	slices.SortStableFunc(order, func(a, b row) int {
		return cmp.Or(types[a.of]-types[b.of], place[a.setting]-place[b.setting], plain.Natural(by.By[a][0], by.By[b][0]))
	})
	var out []Changes
	for i, r := range order {
		if i == 0 || order[i-1].of != r.of {
			out = append(out, Changes{Heading: cmp.Or(headings[r.of], string(r.of))})
		}
		c := r.Change
		c.Who = plain.Names(by.By[r])
		if i > 0 && order[i-1].setting == r.setting && order[i-1].Why == r.Why {
			c.Why = "" // stated in the row above
		}
		last := &out[len(out)-1]
		last.Rows, last.Amiss = append(last.Rows, c), last.Amiss || c.Status != checks.Pass
	}
	return engine.Tally(count), out
}

func change(o report.Outcome) Change {
	c := Change{
		What: plan.Title(o.Change), Why: o.Why, Before: told(o.From), After: told(o.To),
		Err:     o.Err,
		Outcome: engine.NodeState(o.State).Word(), Status: checks.Unknown,
	}
	switch engine.NodeState(o.State) {
	case engine.NodeDone, engine.NodeSkipped:
		c.Status = checks.Pass
	case engine.NodeFailed:
		c.Status = checks.Fail
	}
	switch {
	case o.Found == nil || *o.Found == o.To:
	case o.To.Known():
		c.Found = told(*o.Found)
	default: // determined during the run
		c.After = told(*o.Found)
	}
	return c
}

// told formats a value without the reason why it is unknown.
func told(v backends.Value) string {
	if !v.Known() {
		return "not known before the run"
	}
	return strings.ReplaceAll(plain.Value(v), ",", ", ")
}
