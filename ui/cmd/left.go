package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan/current"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// leftOf returns what a run has left behind according to its journal; nil if it was completed, or if the journal cannot be read.
func leftOf(state string, res engine.Result) *report.LeftBehind {
	st := res.Journal
	if st == nil {
		var err error
		if st, err = journal.Read(state, res.Run); err != nil {
			return nil
		}
	}
	l := leftIn(st)
	silent := func(t backends.Ref, kind backends.ErrorKind) {
		if l != nil && kind == backends.KindUnreachable && !slices.Contains(l.Unreachable, t.Name) {
			l.Unreachable = append(l.Unreachable, t.Name)
		}
	}
	for _, c := range res.Conflicts {
		silent(c.Target, c.Kind)
	}
	for _, n := range res.Nodes {
		silent(n.Target, backends.KindOf(n.Err))
	}
	return l
}

// tellLeft prints what was left behind, before anything else about the end of a run.
func tellLeft(w io.Writer, l *report.LeftBehind) {
	lines, next := plain.LeftBehind(l)
	for _, line := range lines {
		fmt.Fprintf(w, "left behind: %s\n", line)
	}
	if next != "" {
		fmt.Fprintf(w, "continue:    %s\n", next)
	}
}

// brokenOff returns the report of a run that was killed before it could write one, from its journal.
func brokenOff(state, run string) (*report.Report, error) {
	st, err := journal.Read(state, run)
	if err != nil {
		return nil, err
	}
	if st.Attempts() == 0 {
		return nil, backends.Usagef("", "list the runs with: rdma-setup runs",
			"run %s has no report: it ended before its first change", run)
	}
	h := st.Header
	return &report.Report{
		Run: run, Mode: h.Mode, Made: h.Made, Tool: h.Tool, VCenter: h.URL, Simulated: h.Simulated, Status: string(engine.StatusInterrupted),
		LeftBehind: leftIn(st), Changes: doneChanges(st),
		Notes: []string{"the run was killed before it could write its report: this is what its journal says"},
	}, nil
}

// leftIn returns what a run has left in a temporary state, and how to continue; nil if its last attempt was completed.
func leftIn(st *journal.State) *report.LeftBehind {
	if st.Finished() || !st.Changed() && st.Result() != nil {
		return nil
	}
	l := &report.LeftBehind{VMsOff: append([]string{}, heldVMs(st)...), Maintenance: []string{}, SSH: []string{}, HalfDone: []string{}}
	for _, b := range st.OpenBrackets() {
		switch b.Kind {
		case backends.BracketMaintenance, backends.BracketReboot:
			if !was(b.Found, "maintenance") && !slices.Contains(l.Maintenance, b.Target.Name) {
				l.Maintenance = append(l.Maintenance, b.Target.Name)
			}
		case backends.BracketSSH:
			if !was(b.Found, "running") && !slices.Contains(l.SSH, b.Target.Name) {
				l.SSH = append(l.SSH, b.Target.Name)
			}
		}
	}
	for _, e := range st.Entries() {
		name := e.Setting.Target.String() + " " + string(e.Setting.Kind)
		if e.Setting.Name != "" {
			name += " " + e.Setting.Name
		}
		switch {
		case e.Open:
			l.HalfDone = append(l.HalfDone, name)
		case len(e.Found) > 0 && !current.Same(e.Setting.Kind, e.Found[0], e.To) && !current.Same(e.Setting.Kind, e.Found[0], e.Prior):
			l.HalfDone = append(l.HalfDone, name)
		}
	}
	run := st.Header.Run
	if l.Continue = st.Phase().Continue(run); st.Phase() != journal.PhaseRollback {
		l.Undo = "rdma-setup rollback " + run
	}
	return l
}

// was reports whether a target was in a state before its bracket was first opened: the state is a single value, or a flag with that
// name.
func was(found backends.Value, state string) bool {
	var flags map[string]json.RawMessage
	if found.Decode(&flags) == nil {
		return string(flags[state]) == "true"
	}
	return found == backends.ValueOf(state)
}
