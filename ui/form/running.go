package form

import (
	"context"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/form/frame"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// runPage applies the plan, then measures. It continues to the report automatically.
type runPage struct {
	screen *live.Run
	remote *engine.Remote
	now    time.Time
	ended  bool
}

func (p *runPage) Title() string { return "Run" }
func (p *runPage) Hints() []frame.Hint {
	hints := []frame.Hint{{Key: "Ctrl-C", Does: "stop"}}
	for _, k := range p.screen.Keys() {
		hints = append(hints, frame.Hint{Key: k[0], Does: k[1]})
	}
	return hints
}
func (p *runPage) EnterLabel() string { return "" }
func (p *runPage) Typing() bool       { return p.screen != nil && p.screen.Typing() }

// A newsMsg contains the events since the last update of the screen.
type newsMsg struct {
	events []engine.Event
	tests  []perftest.Progress
}

type clockMsg time.Time

// A controlledMsg is the result of a control.
type controlledMsg struct {
	text string
	err  error
}

// controlTime is how long a control waits for a run that is reading the inventory.
const controlTime = 20 * time.Second

func (p *runPage) ask(c engine.Control) tea.Cmd {
	remote := p.remote
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), controlTime)
		defer cancel()
		text, err := remote.Ask(ctx, c)
		return controlledMsg{text, err}
	}
}

// The clock ticks once a second while something runs; otherwise nothing is drawn until something happens.
func tick() tea.Cmd {
	return tea.Tick(time.Second, func(t time.Time) tea.Msg { return clockMsg(t) })
}

// between is how long events are collected before the screen is updated: a thousand events per second must not saturate the
// connection.
const between = 200 * time.Millisecond

// A feed gathers news for the screen.
type feed struct {
	send func(tea.Msg)

	mu   sync.Mutex
	news newsMsg
	due  *time.Timer // nil if nothing is pending
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

func (p *runPage) Enter(w *frame.Wizard) tea.Cmd {
	p.screen, p.remote = live.NewRun(w.Theme), engine.NewRemote()
	news := &feed{send: w.Send}
	run := w.StartRun(func(ctx context.Context, stop <-chan struct{}) {
		p.carryOut(ctx, stop, w, news)
		news.flush()
	}, func() tea.Cmd {
		p.ended = true
		return w.Next()
	})
	return tea.Batch(run, tick())
}

// carryOut runs outside the screen's loop and continues if the screen is gone. The loop reads its results in w only after it has
// ended.
func (p *runPage) carryOut(ctx context.Context, stop <-chan struct{}, w *frame.Wizard, news *feed) {
	w.Result, w.RunErr = w.Fabric.Apply(ctx, w.Answers, w.Plan, stop, p.remote, func(e engine.Event) {
		news.add(func(n *newsMsg) { n.events = append(n.events, e) })
	})
	if ok := w.Result.Status == engine.StatusDone || w.Result.Status == engine.StatusUnchanged; ok && w.RunErr == nil && !w.Stopped() {
		w.Measured, w.RunErr = w.Fabric.Measure(ctx, w.Answers, stop, func(t perftest.Progress) {
			news.add(func(n *newsMsg) { n.tests = append(n.tests, t) })
		})
	}
	rep, err := w.Fabric.Report(ctx, w.Answers, w.Result, w.Findings, w.Measured)
	if w.RunErr == nil {
		w.RunErr = err
	}
	w.Report = rep
}

func (p *runPage) Update(_ *frame.Wizard, msg tea.Msg) (tea.Cmd, bool) {
	switch msg := msg.(type) {
	case newsMsg:
		for _, e := range msg.events {
			p.screen.Event(e)
		}
		for _, t := range msg.tests {
			p.screen.Measured(t)
		}
	case controlledMsg:
		p.screen.Said(msg.text, msg.err)
	case tea.KeyPressMsg:
		c, used := p.screen.Key(msg.String(), msg.Text)
		if c != nil {
			c.By = "the run page"
			p.screen.Said("waiting for the run to answer", nil)
			return p.ask(*c), true
		}
		return nil, used
	case clockMsg:
		p.now = time.Time(msg)
		if !p.ended {
			return tick(), false
		}
	}
	return nil, false
}

func (p *runPage) Accept(*frame.Wizard) (tea.Cmd, error) { return nil, nil }

func (p *runPage) View(_ *frame.Wizard, width, height int) string {
	return p.screen.View(width, height, p.now)
}
