package journal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A State is the content of a journal. It is read from a file or kept up to date by an open Journal.
type State struct {
	Header  Header
	Records []Record
	Notes   []string // the reader's remarks about the file

	size int64  // size of the complete records in bytes
	sum  string // of the last line, which the next one repeats
}

// resume is how texts name the command that continues, where it is not known what is being done.
const resume = "rdma-setup resume"

// Continue returns the command that continues an attempt of this phase.
func (p Phase) Continue(run string) string {
	if p == PhaseRollback {
		return "rdma-setup rollback " + run
	}
	return resume + " " + run
}

// Text returns a text that says rdma-setup resume with the command that continues an attempt of this phase.
func (p Phase) Text(run, text string) string {
	if p == PhaseRollback {
		return strings.ReplaceAll(text, resume, p.Continue(run))
	}
	return text
}

// Err does the same with the hint of an error.
func (p Phase) Err(run string, err error) error {
	hint := backends.HintOf(err)
	if text := p.Text(run, hint); text != hint {
		return backends.WithHint(err, text)
	}
	return err
}

// Phase returns the phase of the last attempt, which a resume continues.
func (s *State) Phase() Phase {
	phase := PhaseApply
	for _, r := range s.Records {
		if r.Type == TypeBegin {
			phase = r.Phase
		}
	}
	return phase
}

// Attempts returns how often the run was started, including resumes and rollbacks.
func (s *State) Attempts() int {
	n := 0
	for _, r := range s.Records {
		if r.Type == TypeBegin {
			n++
		}
	}
	return n
}

// Result returns the result of the last attempt, nil if it was interrupted.
func (s *State) Result() *Record {
	for i := len(s.Records) - 1; i >= 0; i-- {
		switch s.Records[i].Type {
		case TypeResult:
			return &s.Records[i]
		case TypeBegin:
			return nil
		}
	}
	return nil
}

// Finished reports whether the last attempt did everything, so that there is nothing to resume.
func (s *State) Finished() bool {
	r := s.Result()
	return r != nil && (r.Status == "done" || r.Status == "unchanged") && len(s.OpenBrackets()) == 0
}

// Changed reports whether any operation was started. Starting an SSH service and restoring it does not count.
func (s *State) Changed() bool {
	for _, r := range s.Records {
		if r.Type == TypeIntent || r.Type == TypeOpening && r.Kind != string(backends.BracketSSH) {
			return true
		}
	}
	return len(s.OpenBrackets()) > 0
}

// An Entry is what the journal contains about one setting.
type Entry struct {
	Node    string
	Setting backends.Setting
	Prior   backends.Value   // before the first attempt of the apply phase
	Kept    *backends.Kept   // items by their earliest record; an item that settings of a target share belongs to the first of them
	Left    backends.Kept    // items as last observed, in either phase; without those not observed since the last intent
	To      backends.Value   // the value that the last attempt wanted to set, in either phase
	Found   []backends.Value // as last read back, in either phase; none: uncertain
	Open    bool             // the last attempt has no outcome
	Back    bool             // a rollback was the last to change it, and succeeded
	Plan    json.RawMessage  // the plan of the stage in which the apply phase last wanted to change it
	Stage   int              // number of that stage's record among all stages of the journal, from 1
}

// Entries returns the settings that the apply phase wanted to change, in the order of their first intents.
func (s *State) Entries() []Entry {
	var out []Entry
	at := map[string]int{}
	var stage json.RawMessage
	stages := 0
	phase := PhaseApply
	items := newItems()
	for _, r := range s.Records {
		items.see(r)
		switch r.Type {
		case TypeBegin:
			phase = r.Phase
		case TypeStage:
			stage = r.Plan
			stages++
		case TypeIntent:
			i, known := at[r.Node]
			if !known {
				if phase != PhaseApply {
					continue
				}
				i = len(out)
				at[r.Node] = i
				out = append(out, Entry{Node: r.Node, Setting: r.Setting(), Prior: r.Prior})
			}
			e := &out[i]
			e.To, e.Found, e.Open, e.Back = r.To, nil, true, false
			if phase == PhaseApply {
				e.Plan, e.Stage = stage, stages
			}
		case TypeOutcome:
			if i, known := at[r.Node]; known {
				out[i].Found, out[i].Open, out[i].Back = r.Found, false, r.OK && phase == PhaseRollback
			}
		}
	}
	items.share(out)
	return out
}

// OpenIntents returns the intents without an outcome: it is unknown whether these operations were done.
func (s *State) OpenIntents() []Record {
	open := map[string]int{}
	for i, r := range s.Records {
		switch r.Type {
		case TypeIntent:
			open[r.Node] = i
		case TypeOutcome:
			delete(open, r.Node)
		}
	}
	var out []Record
	for i, r := range s.Records {
		if at, is := open[r.Node]; is && at == i {
			out = append(out, r)
		}
	}
	return out
}

// An OpenBracket is a bracket that is being opened, open or being closed at the end of the journal.
type OpenBracket struct {
	Node   string
	Kind   backends.BracketKind
	Target backends.Ref
	Found  backends.Value // the state before the first opening
	Leave  backends.Value // the state to restore
	Body   bool           // a change inside was started or there is none, so the bracket's effect is needed
	// Opening is when its opening was announced, zero after it was opened: the request may have been sent and not yet executed.
	Opening time.Time
	// Closing: its closing was started, so its effect may have occurred already (the host has rebooted).
	Closing bool
}

// OpenBrackets returns the brackets that have to be closed, in the order of their openings.
func (s *State) OpenBrackets() []OpenBracket {
	var out []OpenBracket
	bare := map[string]bool{}
	find := func(node string) int {
		for i, b := range out {
			if b.Node == node {
				return i
			}
		}
		return -1
	}
	for _, r := range s.Records {
		i := find(r.Node)
		switch {
		case r.Type == TypeOpening && i < 0:
			out = append(out, OpenBracket{
				Node: r.Node, Kind: backends.BracketKind(r.Kind), Target: r.Target, Found: r.Prior, Leave: r.To, Opening: r.Time,
			})
			bare[r.Node] = r.Name == Bare
		case r.Type == TypeOpening:
			out[i].Closing, out[i].Opening = false, r.Time
		case r.Type == TypeOpened && i >= 0:
			if r.OK {
				out[i].Opening = time.Time{}
			}
			out[i].Body = out[i].Body || r.OK && bare[r.Node]
		case r.Type == TypeClosing && i >= 0:
			// Close was requested, not Abort: the effect is needed even if no change is left.
			out[i].Body = out[i].Body || r.Name != Aborting
			out[i].Closing = out[i].Closing || r.Name != Aborting
		case r.Type == TypeClosed && i >= 0 && r.OK:
			out = append(out[:i], out[i+1:]...)
		case r.Type == TypeIntent:
			for k := range out {
				if out[k].Target == r.Target {
					out[k].Body = true
				}
			}
		}
	}
	return out
}

// UnansweredGuests returns the VMs that the run has powered on, or was about to, and whose guests have not answered since: they may still
// be starting.
func (s *State) UnansweredGuests() []string {
	var out []string
	for _, r := range s.Records {
		switch {
		case r.Type == TypeClosing && r.Kind == string(backends.BracketVMPower) && !slices.Contains(out, r.Target.Name):
			out = append(out, r.Target.Name)
		case r.Type == TypeOutcome && r.OK && r.Target.Type == backends.TypeGuest:
			out = slices.DeleteFunc(out, func(vm string) bool { return vm == r.Target.Name })
		}
	}
	return out
}

// Names in the records of brackets.
const (
	Bare     = "bare"  // of an opening: the bracket has no changes inside, its effect is needed once it is open
	Aborting = "abort" // of a closing: it aborts the bracket without its effect
)

// Same fails if vCenter or answers differ from those of the run; "" is not compared, and neither is what a damaged journal lacks.
func (s *State) Same(vcenter, answers string) error {
	if vcenter != "" && s.Header.VCenter != "" && vcenter != s.Header.VCenter {
		return backends.Refusedf("", "Connect to "+s.Header.URL+".",
			"run %s is of the vCenter %s (%s), not of %s", s.Header.Run, s.Header.URL, s.Header.VCenter, vcenter)
	}
	if answers != "" && answers != s.Header.Answers {
		return backends.Refusedf("",
			"Resume with the answers of the run, or apply the new ones as a run of their own.",
			"the answers have changed since run %s began:\n%s", s.Header.Run, difference(s.Header.Answers, answers))
	}
	return nil
}

const diffLimit = 20 // lines shown

// difference returns the lines that only one of the texts has, - for the old and + for the new, in order.
func difference(old, now string) string {
	a, b := strings.Split(old, "\n"), strings.Split(now, "\n")
	var out []string
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	for len(a) > 0 || len(b) > 0 {
		i, j := nearest(a, b)
		for _, l := range a[:i] {
			out = append(out, "- "+l)
		}
		for _, l := range b[:j] {
			out = append(out, "+ "+l)
		}
		a, b = a[i:], b[j:]
		for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
			a, b = a[1:], b[1:]
		}
	}
	if more := len(out) - diffLimit; more > 0 {
		out = append(out[:diffLimit], fmt.Sprintf("(and %d lines more)", more))
	}
	return strings.Join(out, "\n")
}

// nearest returns the indexes of the nearest line that both have.
func nearest(a, b []string) (int, int) {
	for sum := 1; sum < len(a)+len(b); sum++ {
		for i := max(0, sum-len(b)+1); i <= min(sum, len(a)-1); i++ {
			if a[i] == b[sum-i] {
				return i, sum - i
			}
		}
	}
	return len(a), len(b)
}
