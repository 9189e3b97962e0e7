// Package watch stores the history of repeated health checks: the states of each link of the chain, and the changes since the
// previous check.
package watch

import (
	"slices"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
)

// A Round is the result of one health check.
type Round struct {
	At        time.Time     // when it began
	Took      time.Duration // duration of the check
	Status    string        // ok, warning, critical
	Findings  []checks.Finding
	Calls     int // SOAP round trips
	Simulated bool
	Insecure  bool  // something was not verified, because the operator allowed it
	Err       error // why nothing could be judged, such as an unreachable vCenter; nil with findings
}

// Away is the state of a check that could not judge anything, in addition to the statuses of checks.
const Away = checks.Status("away")

// A Change is a finding that differs from the previous check.
type Change struct {
	At       time.Time     `json:"at"`
	ID       string        `json:"id"`
	Target   backends.Ref  `json:"target"`
	From     checks.Status `json:"from"` // pass also if the row had no finding for the target
	To       checks.Status `json:"to"`
	Evidence string        `json:"evidence"`
}

// Better reports whether the change is an improvement.
func (c Change) Better() bool { return rank(c.To) < rank(c.From) }

func rank(s checks.Status) int {
	return slices.Index([]checks.Status{checks.Pass, checks.Unknown, checks.Warn, checks.Fail}, s)
}

// keep limits the history to the number of checks that fit on the widest screen.
const keep = 400

// A History contains the results of the checks so far. The zero value is empty.
type History struct {
	Rounds  int
	At      time.Time // when the last check began, judged or not
	Last    *Round    // the last check that could be judged; nil: none yet
	Chain   []checks.Link
	Changes []Change // changes of the last check that was judged, worst first; nil if nothing changed, and at the first check
	Latest  []Change // changes of the last check in which something changed
	Since   time.Time
	Err     error // of the checks since Since; nil while checks succeed

	links   map[checks.LinkName][]checks.Status
	overall []checks.Status
}

// Take adds the result of a check.
func (h *History) Take(l Round) {
	h.Rounds++
	h.At = l.At
	if h.links == nil {
		h.links = map[checks.LinkName][]checks.Status{}
	}
	if l.Err != nil {
		if h.Err == nil {
			h.Since = l.At
		}
		h.Err, h.Changes = l.Err, nil
		for _, name := range checks.Links() {
			h.add(name, Away)
		}
		h.overall = bounded(append(h.overall, Away))
		return
	}
	h.Changes = nil
	if h.Last != nil {
		h.Changes = changes(h.Last.Findings, l)
	}
	if len(h.Changes) > 0 {
		h.Latest = h.Changes
	}
	h.Err, h.Last, h.Chain = nil, &l, catalogue.Chain(l.Findings)
	for _, link := range h.Chain {
		h.add(link.Name, link.Worst)
	}
	h.overall = bounded(append(h.overall, worst(h.Chain)))
}

func (h *History) add(name checks.LinkName, s checks.Status) {
	h.links[name] = bounded(append(h.links[name], s))
}

func bounded(list []checks.Status) []checks.Status {
	if len(list) > keep {
		return slices.Clone(list[len(list)-keep:])
	}
	return list
}

// Of returns the states of a link in the checks so far, the latest last.
func (h *History) Of(name checks.LinkName) []checks.Status { return h.links[name] }

// Overall returns the overall states in the checks so far, the latest last.
func (h *History) Overall() []checks.Status { return h.overall }

// worst returns the overall state: unknown links do not count if others were judged.
func worst(chain []checks.Link) checks.Status {
	out := checks.Unknown
	for _, l := range chain {
		if l.First == nil && l.Worst == checks.Unknown {
			continue // no row of this link was evaluated
		}
		if out == checks.Unknown && l.Worst == checks.Pass || rank(l.Worst) > rank(out) {
			out = l.Worst
		}
	}
	return out
}

type key struct {
	id     string
	target backends.Ref
}

// told returns the worst status of each row for each target, with quiet ones as passed.
func told(findings []checks.Finding) (map[key]checks.Finding, []key) {
	out := map[key]checks.Finding{}
	var order []key
	for _, f := range findings {
		if f.Quiet {
			f.Status = checks.Pass
		}
		k := key{f.ID, f.Target}
		was, seen := out[k]
		if !seen {
			order = append(order, k)
		}
		if !seen || rank(f.Status) > rank(was.Status) {
			out[k] = f
		}
	}
	return out, order
}

// changes compares two checks. A finding that no longer exists counts as passed: another row has the reason.
func changes(before []checks.Finding, now Round) []Change {
	old, gone := told(before)
	is, order := told(now.Findings)
	var out []Change
	note := func(k key, from, to checks.Status, evidence string) {
		if from != to {
			out = append(out, Change{At: now.At, ID: k.id, Target: k.target, From: from, To: to, Evidence: evidence})
		}
	}
	for _, k := range order {
		from := checks.Pass
		if was, known := old[k]; known {
			from = was.Status
		}
		note(k, from, is[k].Status, is[k].Evidence)
	}
	for _, k := range gone {
		if _, still := is[k]; !still {
			note(k, old[k].Status, checks.Pass, "no longer reported")
		}
	}
	slices.SortStableFunc(out, func(a, b Change) int { return rank(b.To) - rank(a.To) })
	return out
}

// A Group is the same change on several targets.
type Group struct {
	Change
	Targets []string // names, in the order of the check
}

// Grouped groups changes of one row from one state to another, in order.
func Grouped(all []Change) []Group {
	var out []Group
	for _, c := range all {
		i := slices.IndexFunc(out, func(g Group) bool { return g.ID == c.ID && g.From == c.From && g.To == c.To })
		if i < 0 {
			i = len(out)
			out = append(out, Group{Change: c})
		}
		out[i].Targets = append(out[i].Targets, c.Target.Name)
	}
	return out
}
