// Package form is the wizard: its pages from the first question to the report. One Enter accepts a page that is valid,
// Esc goes back and loses nothing, and every page shows where one stands and what it will cost.
package form

import (
	"context"
	"errors"
	"io"

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

// Options is what the wizard needs from outside.
type Options struct {
	Fabric  live.Fabric
	Answers *answers.Answers
	Theme   theme.Theme
	In      io.Reader
	Out     io.Writer
	Environ []string
	// Stop is closed when the operator asked from outside (SIGTERM) that nothing new begins.
	Stop <-chan struct{}
	// Hangup is closed when the terminal went away: the screen ends, a run goes on.
	Hangup <-chan struct{}

	size  *tea.WindowSizeMsg       // where Out is no terminal that could be asked
	sizes <-chan tea.WindowSizeMsg // and those that follow
}

// An Outcome is how the wizard ended.
type Outcome struct {
	Answers *answers.Answers
	Path    string // where the answers were saved, "" when not
	Result  engine.Result
	Report  *report.Report // nil when it did not come so far
	Looked  *report.Report // of a look that changed nothing
	Err     error          // of the run
	// Interrupted says that Ctrl-C, a signal or a lost terminal ended it before anything was begun.
	Interrupted bool
}

// Run shows the wizard until the operator leaves it. A run that was begun is always waited for, also after the terminal
// went away.
func Run(ctx context.Context, o Options) (Outcome, error) {
	screen, end := context.WithCancel(ctx)
	defer end()
	if o.Hangup != nil {
		go func() {
			select {
			case <-o.Hangup:
				end()
			case <-screen.Done():
			}
		}()
	}
	w := newWizard(ctx, o)
	w.glass, w.gone = newGlass(o.Out), screen.Done()
	// A key waits up to a frame until it is seen: 8 ms. What runs is gathered before it is drawn, so that many frames
	// send no more.
	options := []tea.ProgramOption{tea.WithContext(screen), tea.WithoutSignalHandler(), tea.WithFPS(120),
		tea.WithInput(o.In), tea.WithOutput(w.glass.output()), tea.WithEnvironment(o.Environ)}
	if o.size != nil {
		options = append(options, tea.WithWindowSize(o.size.Width, o.size.Height))
	}
	p := tea.NewProgram(w, options...)
	w.send = p.Send
	if o.sizes != nil {
		go func() {
			for s := range o.sizes {
				p.Send(s)
			}
		}()
	}
	_, err := p.Run()
	end()
	if errors.Is(err, tea.ErrProgramPanic) {
		if w.running == nil {
			return Outcome{}, errBroken
		}
		err = nil // the run goes on and ends as without a screen
	}
	if errors.Is(err, tea.ErrProgramKilled) || errors.Is(err, context.Canceled) || w.running != nil {
		err = nil // the terminal may be gone: the run and its report count
	}
	w.wait()
	lost := o.Hangup != nil && isClosed(o.Hangup)
	return Outcome{Interrupted: w.running == nil && (w.interrupted || lost), Answers: w.answers, Path: w.saved, Result: w.result, Report: w.report, Looked: w.looked, Err: w.runErr}, err
}

// errBroken is a fault of the screen itself; the library has printed where.
var errBroken = backends.Errorf(backends.KindPermanent, "", "report what is printed above; the same without the screen: rdma-setup --accessible, or apply -f",
	"the screen broke down: nothing was changed")

// wizard is the root model: the pages, what was answered and what came back.
type wizard struct {
	ctx    context.Context
	fabric live.Fabric
	theme  theme.Theme
	glass  *glass // nil where nothing is drawn
	send   func(tea.Msg)

	answers  *answers.Answers
	login    live.Login
	overview *backends.Inventory
	findings []checks.Finding
	plan     *plan.Plan
	result   engine.Result
	runErr   error
	measured []perftest.Measurement
	report   *report.Report
	looked   *report.Report
	saved    string

	pages       []page
	at          int
	looking     *lookPage // shown instead of the page; nil else
	lookOnly    bool      // asked for on the first page
	unknown     []keyMsg  // host keys that wait for a word
	far         int       // the furthest page that was seen
	width       int
	height      int
	busy        string // what is being waited for; "" nothing
	err         error  // shown under the page
	help        bool
	leaving     bool // asked whether to leave
	interrupted bool // by Ctrl-C or a signal before a run
	stopping    int  // how often the operator asked to stop the run

	outside <-chan struct{}
	gone    <-chan struct{}    // closed when the screen has ended
	stop    chan struct{}      // closed: nothing new begins
	cancel  context.CancelFunc // of what runs now
	running chan struct{}      // closed when the run has ended; nil before
}

// A page is one screen of the wizard.
type page interface {
	title() string
	// enter is called whenever the page is shown, going forward or back.
	enter(w *wizard) tea.Cmd
	// update takes a message; it says whether a key was used.
	update(w *wizard, msg tea.Msg) (tea.Cmd, bool)
	// accept checks the page, puts it into the answers and shows the next one, at once or when what it takes is done.
	accept(w *wizard) (tea.Cmd, error)
	view(w *wizard, width, height int) string
	// hints are the keys that only this page knows, the most useful first.
	hints() []hint
	// enterWord says what Enter does, "" where it does nothing.
	enterWord() string
	// typing says that letters are meant for a text field.
	typing() bool
}

// A hint is a key and what it does.
type hint struct{ key, does string }

// passwordAt is the page of the password; the login leads past it.
const passwordAt = 1

func newWizard(ctx context.Context, o Options) *wizard {
	w := &wizard{ctx: ctx, fabric: o.Fabric, theme: o.Theme, answers: o.Answers, login: o.Fabric.Default(),
		stop: make(chan struct{}), outside: o.Stop, send: func(tea.Msg) {}}
	w.pages = []page{&connectPage{}, &passwordPage{}, &hostsPage{}, &modePage{}, &nicsPage{}, &switchPage{}, &vmsPage{}, &preflightPage{}, &reviewPage{}, &runPage{}, &finalPage{}}
	o.Fabric.Trusts(w.trust)
	return w
}

// Init shows the first page and asks the terminal for its background.
func (w *wizard) Init() tea.Cmd {
	return tea.Batch(w.page().enter(w), w.watchStop(), tea.RequestBackgroundColor)
}

type stopMsg struct{}

func (w *wizard) watchStop() tea.Cmd {
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

// A doneMsg brings the outcome of something that ran outside the loop; then goes on inside it.
type doneMsg struct {
	err  error
	then func(w *wizard, err error) tea.Cmd
}

// do runs f outside the loop while the page says what it waits for, then goes on inside it.
func (w *wizard) do(what string, f func(ctx context.Context) error, then func(w *wizard, err error) tea.Cmd) tea.Cmd {
	ctx, cancel := context.WithCancel(w.ctx)
	w.busy, w.cancel, w.err = what, cancel, nil
	return func() tea.Msg {
		defer cancel()
		return doneMsg{err: f(ctx), then: then}
	}
}

// fail shows an error under the page; what the operator cancelled is none.
func (w *wizard) fail(err error) tea.Cmd {
	if !errors.Is(err, context.Canceled) {
		w.err = err
	}
	return nil
}

// wait waits for a run that was begun, and passes on a wish to stop when there is no screen any more to do so.
func (w *wizard) wait() {
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

func (w *wizard) page() page {
	if w.looking != nil {
		return w.looking
	}
	return w.pages[w.at]
}

// look shows what there is and how it stands.
func (w *wizard) look() tea.Cmd {
	w.looking, w.err, w.leaving = &lookPage{}, nil, false
	w.glass.cover()
	return w.looking.enter(w)
}

// next shows the page after this one.
func (w *wizard) next() tea.Cmd { return w.show(w.at + 1) }

// show shows another page.
func (w *wizard) show(at int) tea.Cmd {
	w.at = min(max(0, at), len(w.pages)-1)
	w.far = max(w.far, w.at)
	w.err, w.leaving, w.looking = nil, false, nil
	w.glass.cover()
	return w.page().enter(w)
}
