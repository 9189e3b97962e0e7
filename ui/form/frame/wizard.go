// Package frame is the frame around the pages of the wizard: the loop, the lines above and below, the panel at the side, and the
// state that pages share. A page handles itself; the frame decides which page is shown.
package frame

import (
	"cmp"
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// A Wizard is the root model: the pages, the answers and the results.
type Wizard struct {
	Fabric live.Fabric
	Theme  theme.Theme
	Send   func(tea.Msg) // set from outside the loop

	Answers   *answers.Answers
	Login     live.Login
	Overview  *backends.Inventory
	Findings  []checks.Finding
	Plan      *plan.Plan
	Loads     []perftest.LoadPlan // cost of loading the fabric after the changes
	Expected  time.Duration       // of the plan; 0 unknown
	Result    engine.Result
	RunErr    error
	Measured  []perftest.Measurement
	Report    *report.Report
	Inspected *report.Report
	Saved     string // path of the answers; "" if there is none
	LookOnly  bool   // requested on the first page
	Busy      string // operation in progress; "" if there is none
	Err       error  // shown under the page

	ctx         context.Context
	glass       *glass // nil if nothing is drawn
	pages       []Page
	lookPage    func() Page // creates the page of a check
	rest        *rest       // the rest of the overview while it is being read; nil otherwise
	begun       *rest       // the last one that was started; nil: none
	at          int
	looking     Page          // shown instead of the page; nil otherwise
	questions   []questionMsg // that wait for an answer
	far         int           // the furthest page that was shown
	clash       *clash        // an existing file with other answers; nil otherwise
	said        string        // shown under the page: the last completed action
	rough       string        // edited answers that contain errors; "" otherwise
	width       int
	height      int
	help        bool
	leaving     bool // the operator was asked whether to quit
	interrupted bool // by Ctrl-C or a signal before a run
	stopping    int  // how often the operator requested to stop the run

	outside <-chan struct{}
	gone    <-chan struct{}    // closed when the screen has ended
	stop    chan struct{}      // closed to start nothing new
	cancel  context.CancelFunc // cancels what is running
	running chan struct{}      // closed when the run has ended; nil before
}

// A Page is one screen of the wizard.
type Page interface {
	Title() string
	// Enter is called whenever the page is shown, going forward or back.
	Enter(w *Wizard) tea.Cmd
	// Update handles a message and reports whether a key was used.
	Update(w *Wizard, msg tea.Msg) (tea.Cmd, bool)
	// Accept validates the page, stores it in the answers and shows the next one, immediately or when its work is done.
	Accept(w *Wizard) (tea.Cmd, error)
	View(w *Wizard, width, height int) string
	// Hints returns the keys that only this page has, the most useful first.
	Hints() []Hint
	// EnterLabel returns what Enter does, "" if it does nothing.
	EnterLabel() string
	// Typing reports whether letters are meant for a text field.
	Typing() bool
}

// A Hint describes a key and its effect.
type Hint struct{ Key, Does string }

// New returns the wizard on its first page; look creates the check-only page.
func New(ctx context.Context, o Options, pages []Page, look func() Page) *Wizard {
	w := &Wizard{ctx: ctx, Fabric: o.Fabric, Theme: o.Theme, Answers: o.Answers, Login: o.Fabric.Default(),
		pages: pages, lookPage: look, stop: make(chan struct{}), outside: o.Stop, Send: func(tea.Msg) {}}
	o.Fabric.Asks(w.ask)
	return w
}

// Init shows the first page and queries the terminal's background.
func (w *Wizard) Init() tea.Cmd {
	return tea.Batch(w.Page().Enter(w), w.watchStop(), tea.RequestBackgroundColor)
}

type stopMsg struct{}

func (w *Wizard) watchStop() tea.Cmd {
	if w.outside == nil {
		return nil
	}
	return func() tea.Msg {
		select {
		case <-w.outside:
			return stopMsg{}
		case <-w.gone:
			return nil
		}
	}
}

// A doneMsg carries the result of something that ran outside the loop; then continues inside it.
type doneMsg struct {
	err  error
	then func(w *Wizard, err error) tea.Cmd
}

// Do runs f outside the loop while the page shows what it waits for, then continues inside it.
func (w *Wizard) Do(what string, f func(ctx context.Context) error, then func(w *Wizard, err error) tea.Cmd) tea.Cmd {
	ctx, cancel := context.WithCancel(w.ctx)
	w.Busy, w.cancel, w.Err = backends.Clean(what), cancel, nil
	return func() tea.Msg {
		defer cancel()
		return doneMsg{err: f(ctx), then: then}
	}
}

// Fail shows an error under the page; a cancelled operation is not an error.
func (w *Wizard) Fail(err error) tea.Cmd {
	if !errors.Is(err, context.Canceled) {
		w.Err = err
	}
	return nil
}

// Say shows under the page what was done.
func (w *Wizard) Say(what string) { w.said = backends.Clean(what) }

// StartRun starts the run, which continues even if the screen ends, then shows the next page.
func (w *Wizard) StartRun(run func(ctx context.Context, stop <-chan struct{}), then func() tea.Cmd) tea.Cmd {
	w.running = make(chan struct{})
	_ = w.Fabric.KeepDraft(nil) // from now on the journal contains the answers
	ctx, cancel := context.WithCancel(w.ctx)
	w.cancel = cancel
	return func() tea.Msg {
		defer close(w.running)
		defer cancel()
		run(ctx, w.stop)
		return doneMsg{then: func(*Wizard, error) tea.Cmd { return then() }}
	}
}

// Begun reports whether the operator has passed the login.
func (w *Wizard) Begun() bool { return w.far >= HostsAt }

// Stopped reports whether the operator requested that nothing new begins.
func (w *Wizard) Stopped() bool { return isClosed(w.stop) }

// wait waits for a run that was started. It forwards a request to stop when there is no longer a screen to do so.
func (w *Wizard) wait() {
	if w.running == nil {
		return
	}
	select {
	case <-w.running:
		return
	case <-w.outside:
		if !isClosed(w.stop) {
			close(w.stop)
		}
	}
	<-w.running
}

// Page returns the page that is shown.
func (w *Wizard) Page() Page {
	if w.looking != nil {
		return w.looking
	}
	return w.pages[w.at]
}

// Inspect shows the check-only page.
func (w *Wizard) Inspect() tea.Cmd {
	w.looking, w.Err, w.leaving = w.lookPage(), nil, false
	w.glass.cover()
	return w.looking.Enter(w)
}

// Next shows the page after this one.
func (w *Wizard) Next() tea.Cmd { return w.Show(w.at + 1) }

// Show shows another page.
func (w *Wizard) Show(at int) tea.Cmd {
	w.at = min(max(0, at), len(w.pages)-1)
	w.far = max(w.far, w.at)
	w.Err, w.leaving, w.looking, w.said, w.rough = nil, false, nil, "", ""
	w.glass.cover()
	cmd := w.Page().Enter(w)
	if w.at > HostsAt && w.running == nil {
		w.Err = cmp.Or(w.Err, w.Fabric.KeepDraft(w.Answers))
	}
	return cmd
}
