package form

import (
	"context"
	"errors"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// preflightPage reads the chosen hosts and guests and shows what stands in the way.
type preflightPage struct {
	scroll *live.Scroll
	ready  bool
}

func (p *preflightPage) title() string { return "Preflight" }
func (p *preflightPage) hints() string { return "Up Down scroll  r read again" }
func (p *preflightPage) typing() bool  { return false }

func (p *preflightPage) enter(w *wizard) tea.Cmd {
	p.scroll, p.ready = nil, false
	w.plan, w.refused = nil, nil
	a := w.answers
	return w.do("reading hosts and guests", func(ctx context.Context) error {
		inv, err := w.fabric.Survey(ctx, a)
		if err != nil {
			return err
		}
		w.survey = inv
		w.findings = w.fabric.Preflight(ctx, a, inv)
		return nil
	}, func(w *wizard) tea.Cmd {
		p.ready = true
		made, err := w.fabric.Plan(a, w.survey)
		var refused *plan.Refused
		switch {
		case errors.As(err, &refused):
			w.refused = refused
		case err != nil:
			w.err = err
		default:
			w.plan = made
		}
		p.scroll = live.NewScroll(w.theme, p.text(w))
		return nil
	})
}

func (p *preflightPage) text(w *wizard) string {
	var b strings.Builder
	if w.refused != nil {
		fmt.Fprintln(&b, w.theme.Bad.Render("This cannot be done as it stands. Nothing was changed."))
		for _, r := range w.refused.Refusals {
			fmt.Fprintf(&b, "\n%s\n  remedy: %s\n", plain.Clean(r.String()), plain.Clean(r.Remedy))
		}
		fmt.Fprintln(&b)
	}
	_ = plain.Findings(&b, w.findings)
	return b.String()
}

func (p *preflightPage) update(w *wizard, msg tea.Msg) (tea.Cmd, bool) {
	if k, ok := msg.(tea.KeyPressMsg); ok && k.String() == "r" {
		return p.enter(w), true
	}
	return nil, p.scroll != nil && p.scroll.Update(msg)
}

func (p *preflightPage) accept(w *wizard) (tea.Cmd, error) {
	switch {
	case !p.ready:
		return p.enter(w), nil
	case w.refused != nil:
		return nil, w.refused
	case w.plan == nil:
		return nil, errors.New("there is no plan yet: press r to read again")
	}
	if n := plain.Count(w.findings)[checks.Fail]; n > 0 {
		return nil, fmt.Errorf("%d checks failed: mend them and press r, or go back and change the answers", n)
	}
	return forward, nil
}

func (p *preflightPage) view(w *wizard, width, height int) string {
	if p.scroll == nil {
		return w.theme.Quiet.Render("asking every chosen host and guest")
	}
	return p.scroll.View(width, height)
}
