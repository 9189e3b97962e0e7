package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A Failure is a step of a run that failed and is not a change: a VM that did not power on, a host that was not evacuated.
type Failure struct {
	Target backends.Ref `json:"target"`
	Step   string       `json:"step"`
	Err    string       `json:"error"`
	Hint   string       `json:"hint,omitempty"`
	// On is the host of a VM whose step failed because that host, of which a step failed too, does not answer.
	On backends.Ref `json:"on,omitzero"`
}

// A Cause is the root of a problem, with its consequences.
type Cause struct {
	Targets      []backends.Ref   `json:"targets"`
	Step         string           `json:"step,omitempty"`  // the change or step that failed
	Check        string           `json:"check,omitempty"` // the check that fails, if no step did
	Err          string           `json:"error"`           // error of the step, or evidence of the check
	Remedy       string           `json:"remedy,omitempty"`
	Steps        []Failure        `json:"steps,omitempty"` // other steps that failed because of it
	NotTried     int              `json:"not_tried"`       // changes that were not tried because of it
	Consequences []checks.Finding `json:"consequences"`    // findings that result from it
}

// Follow describes the consequences of the cause, "" if there are none.
func (c Cause) Follow() string {
	var said []string
	for _, s := range c.Steps {
		said = append(said, fmt.Sprintf("%s: %q failed because of it", s.Target.Name, s.Step))
	}
	if n := c.NotTried; n > 0 {
		said = append(said, plural(n, "change")+map[bool]string{true: " was", false: " were"}[n == 1]+" not tried because of it")
	}
	failed := 0
	for _, f := range c.Consequences {
		if f.Status == checks.Fail {
			failed++
		}
	}
	if failed > 0 {
		said = append(said, plural(failed, "check")+map[bool]string{true: " fails", false: " fail"}[failed == 1]+" as a consequence")
	}
	if n := len(c.Consequences) - failed; n > 0 {
		said = append(said, plural(n, "check")+map[bool]string{true: " warns or could", false: " warn or could"}[n == 1]+
			" not be evaluated for the same reason")
	}
	return strings.Join(said, "; ")
}

// Causes groups failures by cause: first the steps of the run, then the error that ended it, then failing checks that result from
// none of these.
func (r *Report) Causes() []Cause {
	if r.undoing() {
		return nil
	}
	out := r.steps()
	known := func(t backends.Ref) bool {
		return slices.ContainsFunc(out, func(c Cause) bool { return slices.Contains(c.Targets, t) })
	}
	follows := len(r.ErrOn) > 0 && !slices.ContainsFunc(r.ErrOn, func(t backends.Ref) bool { return !known(t) })
	if r.Err != "" && !follows && !slices.ContainsFunc(out, func(c Cause) bool { return strings.Contains(r.Err, c.Err) }) {
		out = append(out, Cause{Err: r.Err, Remedy: r.Hint})
	}
	failed, undone, kinds := len(out), r.undone(), catalogue.Fixes()
	for _, root := range catalogue.Roots(r.Checks) {
		all := append([]*checks.Finding{root.Finding}, root.Follows...)
		of := -1
		var own []*checks.Finding
		for _, f := range all {
			at := of // that of the root, if a change would fix it
			if slices.Contains(inService, f.ID) && f.Status == checks.Fail {
				at = r.leftOut(out[:failed], f.Target)
			}
			if o := fixing(f, undone, kinds); o != nil && failed > 0 {
				at = blamed(out[:failed], o.Target, o.Err)
			}
			if f == root.Finding {
				of = at
			}
			if at < 0 {
				own = append(own, f)
				continue
			}
			out[at].Consequences = append(out[at].Consequences, *f)
		}
		if len(own) == 0 || !slices.ContainsFunc(own, func(f *checks.Finding) bool { return f.Status == checks.Fail }) {
			continue
		}
		first := own[0]
		at := slices.IndexFunc(out, func(c Cause) bool { return c.Check == first.ID && c.Err == first.Evidence })
		if at < 0 {
			at = len(out)
			out = append(out, Cause{Check: first.ID, Err: first.Evidence, Remedy: first.Remedy})
		}
		out[at].Targets = append(out[at].Targets, first.Target)
		for _, f := range own[1:] {
			out[at].Consequences = append(out[at].Consequences, *f)
		}
	}
	for i := range out { // lists are never null in JSON
		out[i].Targets = append([]backends.Ref{}, out[i].Targets...)
		out[i].Consequences = append([]checks.Finding{}, out[i].Consequences...)
	}
	return out
}

// steps groups the changes and steps with the same failure.
func (r *Report) steps() []Cause {
	var out []Cause
	add := func(t backends.Ref, step, err, hint string) {
		err = strings.TrimPrefix(err, t.Name+": ")
		err = strings.TrimPrefix(err, step+": ")
		at := slices.IndexFunc(out, func(c Cause) bool { return c.Step == step && c.Err == err })
		if at < 0 {
			at = len(out)
			out = append(out, Cause{Step: step, Err: err, Remedy: hint})
		}
		out[at].Targets = append(out[at].Targets, t)
	}
	for _, f := range r.Failures {
		if f.On == (backends.Ref{}) {
			add(f.Target, f.Step, f.Err, f.Hint)
		}
	}
	for _, f := range r.Failures {
		if f.On == (backends.Ref{}) {
			continue
		}
		if at := r.leftOut(out, f.On); at >= 0 {
			out[at].Steps = append(out[at].Steps, f)
		} else {
			add(f.Target, f.Step, f.Err, f.Hint)
		}
	}
	for _, c := range r.Changes {
		if c.State == "failed" {
			add(c.Target, plan.Title(c.Change), c.Err, c.Hint)
		}
	}
	if len(out) == 0 {
		return nil
	}
	for _, c := range r.Changes {
		if c.State == "blocked" {
			out[blamed(out, c.Target, c.Err)].NotTried++
		}
	}
	return out
}

// inService are the checks that fail because a step has left the host or VM out of service.
var inService = []string{"HOST-CONN-001", "HOST-MAINT-002", "VM-POWER-001"}

// leftOut returns the cause whose step has left a target out of service, -1 if there is none.
func (r *Report) leftOut(causes []Cause, t backends.Ref) int {
	of := func(f Failure) bool { return f.Target == t }
	if !slices.ContainsFunc(r.Failures, of) {
		return -1
	}
	return slices.IndexFunc(causes, func(c Cause) bool {
		return c.Step != "" && slices.Contains(c.Targets, t) || slices.ContainsFunc(c.Steps, of)
	})
}

// blamed returns the cause of a change that was not tried: the one whose step its error names, else one on its target, else the
// first.
func blamed(causes []Cause, t backends.Ref, err string) int {
	for i, c := range causes {
		if slices.ContainsFunc(c.Steps, func(f Failure) bool { return f.Target.Name == t.Name && strings.Contains(err, strconv.Quote(f.Step)) }) {
			return i
		}
	}
	for i, c := range causes {
		if c.Step != "" && strings.Contains(err, fmt.Sprintf("%q failed", c.Step)) {
			return i
		}
	}
	return max(0, slices.IndexFunc(causes, func(c Cause) bool { return slices.Contains(c.Targets, t) }))
}

// undone returns the changes that the run did not make, by target.
func (r *Report) undone() map[backends.Ref][]*Outcome {
	out := map[backends.Ref][]*Outcome{}
	for i := range r.Changes {
		if c := &r.Changes[i]; c.State == "failed" || c.State == "blocked" || c.State == "pending" {
			out[c.Target] = append(out[c.Target], c)
		}
	}
	return out
}

// fixing returns the missing change that would fix a finding; nil if there is none.
func fixing(f *checks.Finding, undone map[backends.Ref][]*Outcome, kinds map[string][]backends.Kind) *Outcome {
	for _, t := range []backends.Ref{f.Target, backends.VMRef(f.Target.Name)} {
		for _, o := range undone[t] {
			if slices.Contains(kinds[f.ID], o.Kind) && sameTarget(o.Target, f.Target) {
				return o
			}
		}
	}
	return nil
}
