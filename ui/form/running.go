package form

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// runPage carries the plan out, then measures. It goes to the report by itself.
type runPage struct {
	screen *live.Run
	now    time.Time
	ended  bool
}

func (p *runPage) title() string { return "Run" }
func (p *runPage) hints() string { return "Ctrl-C stop" }
func (p *runPage) typing() bool  { return false }

type (
	eventMsg   engine.Event
	measureMsg perftest.Progress
	clockMsg   time.Time
)

// The clock moves once a second while something runs; nothing else is drawn when nothing happens.
func tick() tea.Cmd {
	return tea.Tick(time.Second, func(t time.Time) tea.Msg { return clockMsg(t) })
}

func (p *runPage) enter(w *wizard) tea.Cmd {
	if w.running != nil {
		return nil // begun already: back from the report only looks at it
	}
	p.screen = live.NewRun(w.theme)
	w.running = make(chan struct{})
	ctx, cancel := context.WithCancel(w.ctx)
	w.cancel = cancel
	w.busy = "working"
	run := func() tea.Msg {
		defer close(w.running)
		defer cancel()
		p.carryOut(ctx, w)
		return doneMsg{then: func(w *wizard) tea.Cmd { p.ended = true; return forward }}
	}
	return tea.Batch(run, tick())
}

// carryOut runs outside the screen's loop and goes on when the screen is gone. Only when it has ended does the loop look
// at what it left in w.
func (p *runPage) carryOut(ctx context.Context, w *wizard) {
	w.result, w.runErr = w.fabric.Apply(ctx, w.answers, w.plan, w.stop, func(e engine.Event) { w.send(eventMsg(e)) })
	if ok := w.result.Status == engine.StatusDone || w.result.Status == engine.StatusUnchanged; ok && w.runErr == nil {
		w.measured, w.runErr = w.fabric.Measure(ctx, w.answers, func(m perftest.Progress) { w.send(measureMsg(m)) })
	}
	rep, err := w.fabric.Report(w.answers, w.result, w.findings, w.measured)
	if w.runErr == nil {
		w.runErr = err
	}
	w.report = rep
}

func (p *runPage) update(_ *wizard, msg tea.Msg) (tea.Cmd, bool) {
	switch msg := msg.(type) {
	case eventMsg:
		p.screen.Event(engine.Event(msg))
	case measureMsg:
		p.screen.Measured(perftest.Progress(msg))
	case clockMsg:
		p.now = time.Time(msg)
		if !p.ended {
			return tick(), false
		}
	}
	return nil, false
}

func (p *runPage) accept(*wizard) (tea.Cmd, error) { return nil, nil }

func (p *runPage) view(w *wizard, width, height int) string {
	return p.screen.View(width, height, p.now)
}
