package form

import (
	"context"
	"sync"
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

func (p *runPage) title() string     { return "Run" }
func (p *runPage) hints() []hint     { return []hint{{"Ctrl-C", "stop"}} }
func (p *runPage) enterWord() string { return "" }
func (p *runPage) typing() bool      { return false }

// A newsMsg is what happened since the screen was last told.
type newsMsg struct {
	events []engine.Event
	tests  []perftest.Progress
}

type clockMsg time.Time

// The clock moves once a second while something runs; nothing else is drawn when nothing happens.
func tick() tea.Cmd {
	return tea.Tick(time.Second, func(t time.Time) tea.Msg { return clockMsg(t) })
}

// between is how long news are gathered before the screen is told: a thousand events a second must not fill the line of
// a jump host.
const between = 200 * time.Millisecond

// A feed gathers news for the screen.
type feed struct {
	send func(tea.Msg)

	mu   sync.Mutex
	news newsMsg
	due  *time.Timer // nil when nothing waits
}

func (f *feed) add(put func(*newsMsg)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	put(&f.news)
	if f.due == nil {
		f.due = time.AfterFunc(between, f.flush)
	}
}

func (f *feed) flush() {
	f.mu.Lock()
	news := f.news
	f.news = newsMsg{}
	if f.due != nil {
		f.due.Stop()
		f.due = nil
	}
	f.mu.Unlock()
	if len(news.events)+len(news.tests) > 0 {
		f.send(news)
	}
}

func (p *runPage) enter(w *wizard) tea.Cmd {
	p.screen = live.NewRun(w.theme)
	w.running = make(chan struct{})
	ctx, cancel := context.WithCancel(w.ctx)
	w.cancel = cancel
	news := &feed{send: w.send}
	run := func() tea.Msg {
		defer close(w.running)
		defer cancel()
		p.carryOut(ctx, w, news)
		news.flush()
		return doneMsg{then: func(w *wizard, _ error) tea.Cmd { p.ended = true; return w.next() }}
	}
	return tea.Batch(run, tick())
}

// carryOut runs outside the screen's loop and goes on when the screen is gone. Only when it has ended does the loop look
// at what it left in w.
func (p *runPage) carryOut(ctx context.Context, w *wizard, news *feed) {
	w.result, w.runErr = w.fabric.Apply(ctx, w.answers, w.plan, w.stop, func(e engine.Event) {
		news.add(func(n *newsMsg) { n.events = append(n.events, e) })
	})
	if ok := w.result.Status == engine.StatusDone || w.result.Status == engine.StatusUnchanged; ok && w.runErr == nil && !isClosed(w.stop) {
		w.measured, w.runErr = w.fabric.Measure(ctx, w.answers, func(t perftest.Progress) {
			news.add(func(n *newsMsg) { n.tests = append(n.tests, t) })
		})
	}
	rep, err := w.fabric.Report(ctx, w.answers, w.result, w.findings, w.measured)
	if w.runErr == nil {
		w.runErr = err
	}
	w.report = rep
}

func (p *runPage) update(_ *wizard, msg tea.Msg) (tea.Cmd, bool) {
	switch msg := msg.(type) {
	case newsMsg:
		for _, e := range msg.events {
			p.screen.Event(e)
		}
		for _, t := range msg.tests {
			p.screen.Measured(t)
		}
	case clockMsg:
		p.now = time.Time(msg)
		if !p.ended {
			return tick(), false
		}
	}
	return nil, false
}

func (p *runPage) accept(*wizard) (tea.Cmd, error) { return nil, nil }

func (p *runPage) view(_ *wizard, width, height int) string {
	return p.screen.View(width, height, p.now)
}
