package cmd

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

// readRun reads the journal of a run. With salvage, the intact records of a damaged one are used.
func (c *carryOn) readRun(e *console.Env, set *console.Settings, run, file string) (*journal.State, error) {
	st, err := journal.Read(set.StateDir, run)
	if !c.salvage || !errors.Is(err, journal.ErrDamaged) {
		return st, err
	}
	var otherwise *journal.Header
	if file != "" {
		f := planFlags{file: file}
		a, err := f.load(e, nil)
		if err != nil {
			return nil, err
		}
		words, err := text(a)
		if err != nil {
			return nil, err
		}
		otherwise = &journal.Header{URL: a.VCenter.URL, Mode: string(a.Mode), Answers: words}
	}
	announced, distrust := announcedBy(set.StateDir, run)
	c.recovered, err = journal.Recover(set.StateDir, run, announced, otherwise)
	if err != nil {
		return nil, err
	}
	found := c.recovered.Salvage
	if distrust != nil {
		found.Unproven = append(found.Unproven,
			journal.Unproven{Node: "plan.json", Why: "the saved plan cannot be trusted, so the list of planned operations is incomplete: " +
				distrust.Error()})
	}
	fmt.Fprintf(e.Stderr, "the journal of run %s is damaged; the changes in its intact records are rolled back\n", run)
	for _, l := range found.Lines {
		_ = plain.Printf(e.Stderr, "  line %d: %s\n", l.Line, l.Why)
	}
	for _, u := range found.Unproven {
		_ = plain.Printf(e.Stderr, "  not proven: %s: %s\n", u.Node, u.Why)
	}
	return c.recovered.State, nil
}

// announcedBy returns what the saved plan of a run announces; an error if the plan is not the one that was saved.
func announcedBy(state, run string) ([]journal.Announced, error) {
	b, err := journal.ReadFile(state, run, "plan.json")
	if err != nil {
		return nil, err
	}
	if _, err := savedPlan(filepath.Join(journal.Dir(state, run), "plan.json")); err != nil {
		return nil, err
	}
	return journal.AnnouncedBy(b), nil
}

// remains returns the error of a rollback that could not prove everything that the run has done; nil if the journal was intact.
func remains(st *journal.State) error {
	s := st.Salvage()
	if s == nil || len(s.Unproven) == 0 {
		return nil
	}
	nodes := plain.Mapped(s.Unproven, func(u journal.Unproven) string { return u.Node })
	const shown = 20
	more := ""
	if n := len(nodes) - shown; n > 0 {
		nodes, more = nodes[:shown], fmt.Sprintf(" and %d more", n)
	}
	return backends.Conflictf("",
		"Check these by hand: the records of their previous values are damaged. The damaged journal is kept next to the new one.",
		"not rolled back, because the journal was damaged: %s%s", strings.Join(nodes, ", "), more)
}
