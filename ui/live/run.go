package live

import (
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// A Run shows a run in progress: a row per target, failures pinned, the last lines of the log, then the measurement. It
// is a view of events and stores nothing else.
type Run struct {
	theme  theme.Theme
	state  engine.State
	failed []failure
	log    []string

	tests    int // of the measurement
	measured int
	left     time.Duration // of the measurement, estimated
	testing  []string
	list     list
	load     perftest.Progress // the last round of a load; Round is 0 before there is one
}

// A failure is the line of a node that failed.
type failure struct{ node, line string }

// keepLog bounds the log pane.
const keepLog = 200

// NewRun returns an empty screen.
func NewRun(t theme.Theme) *Run { return &Run{theme: t} }

// Event handles an event of the engine.
func (r *Run) Event(e engine.Event) {
	r.state.Fold(e)
	e = backends.Shown(e)
	switch e.Type {
	case engine.EventPlanned:
		if e.First {
			r.failed = nil
		}
	case engine.EventControl:
		if e.Control != nil {
			r.say(e, string(e.Control.Do)+" ("+e.Control.By+"): "+e.Text)
		}
	case engine.EventWaiting:
		if e.Waits == "" && e.Title == "" { // such as a vCenter that cannot be reached
			r.say(e, e.Text)
		}
	case engine.EventStopping:
		r.say(e, "stopping: "+strings.TrimPrefix(e.Text, "stopping: "))
	case engine.EventResult:
		r.say(e, string(e.Status)+" "+e.Text)
	case engine.EventAgain:
		r.failed = slices.DeleteFunc(r.failed, func(f failure) bool { return f.node == e.Node })
	case engine.EventDone:
		r.say(e, "done: "+e.Title)
	case engine.EventFailed:
		line := e.Target.Name + ": " + reason(e.Target, e.Err)
		if e.Hint != "" {
			line += " (" + e.Hint + ")"
		}
		r.failed = append(r.failed, failure{e.Node, line})
		r.say(e, "FAILED: "+e.Title)
	}
}

// reason returns an error without its target, which is shown already.
func reason(t backends.Ref, err string) string { return strings.TrimPrefix(err, t.Name+": ") }

func (r *Run) say(e engine.Event, what string) {
	line := e.Time.Format("15:04:05") + " "
	if e.Target.Name != "" {
		line += e.Target.Name + " "
	}
	r.keep(line + what)
}

func (r *Run) keep(line string) {
	r.log = append(r.log, line)
	if len(r.log) > 2*keepLog {
		r.log = append([]string(nil), r.log[len(r.log)-keepLog:]...)
	}
}

// Measured handles the progress of the measurement after the changes, and of the loads after it.
func (r *Run) Measured(p perftest.Progress) {
	p = backends.Shown(p)
	switch {
	case p.Waits != "":
		r.keep(p.Waits)
		return
	case p.Load != "":
		if r.load = p; p.Flows != nil {
			r.keep(plain.LoadRound(p))
		}
		return
	}
	r.tests, r.measured, r.left = p.Total, p.Done, p.Left
	key := p.Test + " " + p.Pair.String()
	if p.Result == nil {
		r.testing = append(r.testing, key)
		return
	}
	if i := slices.Index(r.testing, key); i >= 0 {
		r.testing = slices.Delete(r.testing, i, i+1)
	}
	figure := string(p.Result.Verdict)
	switch {
	case p.Result.Error != "":
		figure = p.Result.Error
	case p.Result.Figure() != "":
		figure = p.Result.Figure() + " " + figure
	}
	r.keep(key + "  " + figure)
}
