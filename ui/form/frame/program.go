package frame

import (
	"context"
	"errors"
	"io"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
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

	Size  *tea.WindowSizeMsg       // where Out is no terminal that could be asked
	Sizes <-chan tea.WindowSizeMsg // and those that follow
}

// Run shows the wizard with these pages until the operator leaves it. A run that was begun is always waited for, also
// after the terminal went away.
func Run(ctx context.Context, o Options, pages []Page, look func() Page) (entry.Outcome, error) {
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
	w := New(ctx, o, pages, look)
	w.glass, w.gone = newGlass(o.Out), screen.Done()
	// A key waits up to a frame until it is seen: 8 ms. What runs is gathered before it is drawn, so that many frames
	// send no more.
	options := []tea.ProgramOption{tea.WithContext(screen), tea.WithoutSignalHandler(), tea.WithFPS(120),
		tea.WithInput(o.In), tea.WithOutput(w.glass.output()), tea.WithEnvironment(o.Environ), tea.WithFilter(unasked)}
	if o.Size != nil {
		options = append(options, tea.WithWindowSize(o.Size.Width, o.Size.Height))
	}
	p := tea.NewProgram(w, options...)
	w.Send = p.Send
	if o.Sizes != nil {
		go func() {
			for s := range o.Sizes {
				p.Send(s)
			}
		}()
	}
	_, err := p.Run()
	end()
	if errors.Is(err, tea.ErrProgramPanic) {
		if w.running == nil {
			return entry.Outcome{}, errBroken
		}
		err = nil // the run goes on and ends as without a screen
	}
	if errors.Is(err, tea.ErrProgramKilled) || errors.Is(err, context.Canceled) || w.running != nil {
		err = nil // the terminal may be gone: the run and its report count
	}
	w.wait()
	lost := o.Hangup != nil && isClosed(o.Hangup)
	return entry.Outcome{Interrupted: w.running == nil && (w.interrupted || lost), Answers: w.Answers, Path: w.Saved, Result: w.Result, Report: w.Report, Looked: w.Looked, Err: w.RunErr}, err
}

// unasked drops what forms ask for when they begin: the size of the terminal. Pages are told it when they draw, and bubbletea
// 2.0.9 answers each request in a goroutine of its own, so that two of them write the size at once.
func unasked(_ tea.Model, msg tea.Msg) tea.Msg {
	if msg == tea.RequestWindowSize() {
		return nil
	}
	return msg
}

// errBroken is a fault of the screen itself; the library has printed where.
var errBroken = backends.Errorf(backends.KindPermanent, "", "report the message above; to continue without the screen, use rdma-setup --accessible, or apply -f",
	"the screen failed: nothing was changed")
