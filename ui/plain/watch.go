package plain

import (
	"fmt"
	"io"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/watch"
)

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
