package live

import (
	"context"
	"errors"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/checks/watch"
	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// WatchOptions are the dependencies of a watch.
type WatchOptions struct {
	Inspect func(ctx context.Context) watch.Round // performs one check
	Line    func(l *watch.Round) string           // returns the result in one sentence
	Every   time.Duration                         // from the start of a check to the start of the next
	Site    string                                // vCenter's address
	Theme   theme.Theme
	In      io.Reader
	Out     io.Writer
	Environ []string
	Stop    <-chan struct{} // closed to end the watch, as Ctrl-C does
	Now     func() time.Time

	size *tea.WindowSizeMsg // used if Out is not a terminal whose size can be queried
}

// RunWatch shows checks until the operator quits. interrupted distinguishes Ctrl-C and Stop from quitting by q. A running check
// is cancelled and waited for.
func RunWatch(ctx context.Context, o WatchOptions) (h *watch.History, interrupted bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &watcher{ctx: ctx, o: o, theme: o.Theme, slot: make(chan struct{}, 1)}
	options := []tea.ProgramOption{tea.WithContext(ctx), tea.WithoutSignalHandler(), tea.WithFPS(10),
		tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithEnvironment(o.Environ)}
	if o.size != nil {
		options = append(options, tea.WithWindowSize(o.size.Width, o.size.Height))
	}
	_, err = tea.NewProgram(w, options...).Run()
	cancel()
	w.slot <- struct{}{} // waits for the check that is running
	if errors.Is(err, tea.ErrProgramKilled) || errors.Is(err, context.Canceled) {
		err, w.interrupted = nil, true
	}
	return &w.history, w.interrupted, err
}

// watcher is the model: the results, the time of the next check, and the visible part.
type watcher struct {
	ctx   context.Context
	o     WatchOptions
	theme theme.Theme
	slot  chan struct{} // taken by the check that is running

	history     watch.History
	looking     bool
	begun       time.Time // of the running check, or of the last one
	scroll      *Scroll   // the findings; nil before the first
	width       int
	height      int
	interrupted bool
}

type (
	lookedMsg watch.Round
	tickMsg   struct{}
	stopMsg   struct{}
)

// Init starts the first check and the clock.
func (w *watcher) Init() tea.Cmd {
	return tea.Batch(w.look(), w.tick(), w.watchStop(), tea.RequestBackgroundColor)
}

func (w *watcher) watchStop() tea.Cmd {
	return func() tea.Msg {
		select {
		case <-w.o.Stop:
			return stopMsg{}
		case <-w.ctx.Done():
			return nil
		}
	}
}

// look runs a check outside the loop, one at a time.
func (w *watcher) look() tea.Cmd {
	if w.looking {
		return nil
	}
	w.looking, w.begun = true, w.o.Now()
	return func() tea.Msg {
		select {
		case w.slot <- struct{}{}:
		case <-w.ctx.Done():
			return nil
		}
		defer func() { <-w.slot }()
		return lookedMsg(w.o.Inspect(w.ctx))
	}
}

// tick moves the clock at full seconds.
func (w *watcher) tick() tea.Cmd {
	now := w.o.Now()
	timer := time.NewTimer(now.Truncate(time.Second).Add(time.Second).Sub(now))
	return func() tea.Msg {
		defer timer.Stop()
		select {
		case <-timer.C:
			return tickMsg{}
		case <-w.ctx.Done():
			return nil
		}
	}
}

func (w *watcher) next() time.Time { return w.begun.Add(w.o.Every) }

// Update handles every message.
func (w *watcher) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		w.width, w.height = msg.Width, msg.Height
	case tea.BackgroundColorMsg:
		w.theme = theme.New(w.theme.Colour, w.theme.ASCII, msg.IsDark())
		w.refresh()
	case stopMsg:
		w.interrupted = true
		return w, tea.Quit
	case lookedMsg:
		w.took(watch.Round(msg))
	case tickMsg:
		if !w.o.Now().Before(w.next()) {
			return w, tea.Batch(w.look(), w.tick())
		}
		return w, w.tick()
	case tea.KeyPressMsg:
		return w, w.key(msg)
	}
	return w, nil
}

func (w *watcher) key(msg tea.KeyPressMsg) tea.Cmd {
	switch msg.String() {
	case "ctrl+c":
		w.interrupted = true
		return tea.Quit
	case "q", "esc":
		return tea.Quit
	case "enter", "r":
		return w.look()
	}
	if w.scroll != nil {
		w.scroll.Update(msg)
	}
	return nil
}

func (w *watcher) took(l watch.Round) {
	w.looking = false
	if w.ctx.Err() != nil {
		return // the screen is closing, and the check has ended
	}
	w.history.Take(l)
	w.refresh()
}
