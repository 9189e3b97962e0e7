package plain

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/watch"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// Lines returns a sink that prints one line per event, for logs and pipes.
func Lines(w io.Writer) engine.Sink {
	out := &writer{w: w}
	return func(e engine.Event) {
		clock := e.Time.Format("15:04:05")
		what := backends.Clean(cmp.Or(e.Title, e.Node))
		word := engine.NodeState(e.Type).Word()
		switch e.Type {
		case engine.EventPlanned:
			out.line("%s  %s to do", e.Time.Format("2006-01-02 15:04:05 MST"), Counted(len(e.Nodes), "step"))
		case engine.EventStarted:
			out.line("%s  begin       %s: %s", clock, backends.Clean(e.Target.Name), what)
		case engine.EventProgress:
			if e.Text != "" {
				out.line("%s  waiting     %s: %s: %s", clock, backends.Clean(e.Target.Name), what, backends.Clean(e.Text))
			}
		case engine.EventDone:
			out.line("%s  done        %s: %s (%s)", clock, backends.Clean(e.Target.Name), what, e.Elapsed.Round(10*time.Millisecond))
		case engine.EventSkipped:
			out.line("%s  %-11s %s: %s: %s", clock, word, backends.Clean(e.Target.Name), what, backends.Clean(cmp.Or(e.Text, "nothing to do")))
		case engine.EventFailed:
			out.line("%s  FAILED      %s: %s: %s", clock, backends.Clean(e.Target.Name), what, backends.Clean(e.Err))
			if e.Hint != "" {
				out.line("          hint:    %s", backends.Clean(e.Hint))
			}
		case engine.EventBlocked:
			out.line("%s  %-11s %s: %s: %s", clock, word, backends.Clean(e.Target.Name), what, backends.Clean(cmp.Or(e.Text, e.Err)))
		case engine.EventControl:
			if c := e.Control; c != nil {
				text := backends.Clean(e.Text)
				if c.Target.Name != "" {
					text = backends.Clean(c.Target.Name) + ": " + text
				}
				out.line("%s  %-11s %s (%s)", clock, c.Do, text, backends.Clean(c.By))
			}
		case engine.EventStopping:
			out.line("%s  stopping: waiting for running steps to finish; a second interrupt stops at once", clock)
		case engine.EventResult:
			status := string(e.Status)
			if e.Text != "" {
				status += ": " + backends.Clean(e.Text)
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

// recent is the number of checks that a block shows for each link.
const recent = 30

// when is the format of the time of a check.
const when = "2006-01-02 15:04:05 MST"

// Watched prints a block for the latest check of h: its result, the links of the chain, and what has changed since the
// previous check. line is the result in one sentence. The first block lists all findings.
func Watched(w io.Writer, h *watch.History, line string) error {
	out := &writer{w: w}
	if h.Err != nil {
		out.line("%s  AWAY since %s: %s", h.At.Format(when), h.Since.Format("15:04:05"), backends.Clean(h.Err.Error()))
		return out.err
	}
	out.line("%s  %s", h.Last.At.Format(when), line)
	var links []string
	for _, l := range h.Chain {
		if s := l.Worst; s != checks.Unknown || l.First != nil {
			links = append(links, fmt.Sprintf("%s %s", l.Name, s))
		}
	}
	out.line("  %s", strings.Join(links, ", "))
	out.line("  last checks %s", trace(h.Overall()))
	for _, g := range watch.Grouped(h.Changes) {
		out.line("  %s", Changed(g))
	}
	if h.Rounds > 1 && h.Changes == nil {
		out.line("  nothing has changed")
	}
	if h.Rounds == 1 && out.err == nil {
		return Findings(w, h.Last.Findings)
	}
	return out.err
}

// Changed is "worse  HOST-FW-PVRDMA-007 esx-01, esx-02: pass -> fail, ruleset pvrdma is off".
func Changed(g watch.Group) string {
	turn := "worse "
	if g.Better() {
		turn = "better"
	}
	return fmt.Sprintf("%s %s %s: %s -> %s, %s", turn, g.ID, Names(g.Targets), g.From, g.To, backends.Clean(g.Evidence))
}

func trace(states []checks.Status) string {
	signs := map[checks.Status]byte{checks.Pass: '_', checks.Unknown: '?', checks.Warn: '=', checks.Fail: '#', watch.Away: 'x'}
	var b strings.Builder
	for _, s := range states[max(0, len(states)-recent):] {
		b.WriteByte(signs[s])
	}
	return b.String()
}
