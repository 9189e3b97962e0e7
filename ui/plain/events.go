package plain

import (
	"cmp"
	"io"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// Lines returns a sink that prints one line per event, for logs and pipes.
func Lines(w io.Writer) engine.Sink {
	out := &writer{w: w}
	return func(e engine.Event) {
		clock := e.Time.Format("15:04:05")
		what := cmp.Or(e.Title, e.Node)
		word := engine.NodeState(e.Type).Word()
		switch e.Type {
		case engine.EventPlanned:
			out.line("%s  %s to do", e.Time.Format("2006-01-02 15:04:05 MST"), Counted(len(e.Nodes), "step"))
		case engine.EventStarted:
			out.line("%s  begin       %s: %s", clock, e.Target.Name, what)
		case engine.EventProgress:
			if e.Text != "" {
				out.line("%s  waiting     %s: %s: %s", clock, e.Target.Name, what, e.Text)
			}
		case engine.EventWaiting:
			out.line("%s  waiting     %s", clock, backends.Wait{Target: e.Waits, What: e.Title, Text: e.Text})
		case engine.EventDone:
			out.line("%s  done        %s: %s (%s)", clock, e.Target.Name, what, e.Elapsed.Round(10*time.Millisecond))
		case engine.EventSkipped:
			out.line("%s  %-11s %s: %s: %s", clock, word, e.Target.Name, what, cmp.Or(e.Text, "nothing to do"))
		case engine.EventFailed:
			out.line("%s  FAILED      %s: %s: %s", clock, e.Target.Name, what, e.Err)
			if e.Hint != "" {
				out.line("          hint:    %s", e.Hint)
			}
		case engine.EventBlocked:
			out.line("%s  %-11s %s: %s: %s", clock, word, e.Target.Name, what, cmp.Or(e.Text, e.Err))
		case engine.EventControl:
			if c := e.Control; c != nil {
				text := e.Text
				if c.Target.Name != "" {
					text = c.Target.Name + ": " + text
				}
				out.line("%s  %-11s %s (%s)", clock, c.Do, text, c.By)
			}
		case engine.EventStopping:
			out.line("%s  stopping: %s; no new step starts; a second interrupt stops at once", clock,
				strings.TrimPrefix(e.Text, "stopping: "))
		case engine.EventResult:
			status := string(e.Status)
			if e.Text != "" {
				status += ": " + e.Text
			}
			out.line("%s  %s", clock, status)
		}
	}
}

// JSONLines returns a sink that prints one JSON document per line.
func JSONLines(w io.Writer) engine.Sink {
	enc := JSON(w)
	return func(e engine.Event) {
		_ = enc.Encode(e) // a closed pipe must not stop the run
	}
}
