package plain

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// keepCauses is how many causes are listed at the top; the JSON contains all of them.
const keepCauses = 3

// fewNames is the largest number of names that are listed without being counted.
const fewNames = 5

// A Cause is the cause of a failure, as text.
type Cause struct {
	What   string // "esx-03: enable firewall ruleset pvrdma"
	Err    string
	Remedy string
	Follow string // its consequences, "" if there are none
}

// Causes formats the first causes of a report, and prints how many more there are.
func Causes(all []report.Cause) (out []Cause, more int) {
	for _, c := range all[:min(len(all), keepCauses)] {
		what := cmp.Or(c.Step, c.Check)
		if who := Listed(Mapped(c.Targets, func(t backends.Ref) string { return t.Name })); who != "" {
			what = who + ": " + what
		}
		out = append(out, Cause{What: backends.Clean(cmp.Or(what, "the run ended")), Err: backends.Clean(c.Err), Remedy: backends.Clean(c.Remedy), Follow: c.Follow()})
	}
	return out, max(0, len(all)-keepCauses)
}

// LeftBehind formats the state that an unfinished run has left behind, and the next step; "" for nil.
func LeftBehind(l *report.LeftBehind) (out []string, next string) {
	if l == nil {
		return nil, ""
	}
	for _, s := range []struct {
		what  string
		names []string
	}{{"VMs off", l.VMsOff}, {"hosts in maintenance mode", l.Maintenance}, {"SSH services on", l.SSH}, {"half done", l.HalfDone}} {
		if len(s.names) > 0 {
			out = append(out, s.what+": "+Listed(s.names))
		}
	}
	if l.Nothing() {
		out = append(out, "no VM off, no host in maintenance mode, no SSH service on")
	}
	return out, backends.Clean(l.Continue)
}

// Listed joins names in their natural order, preceded by their number if there are more than a few.
func Listed(names []string) string {
	names = slices.Compact(slices.SortedFunc(slices.Values(names), Natural))
	if len(names) > fewNames {
		return fmt.Sprintf("%s (%d)", Names(names), len(names))
	}
	return Names(names)
}
