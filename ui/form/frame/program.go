package frame

import (
	"context"
	"errors"
	"io"
	"os"
	"sync/atomic"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Options are the wizard's dependencies.
type Options struct {
	Fabric  live.Fabric
	Answers *answers.Answers
	Theme   theme.Theme
	In      io.Reader
	Out     io.Writer
	Environ []string
	// Stop is closed when a signal (SIGTERM) requests that nothing new is started.
	Stop <-chan struct{}
	// Hangup is closed when the terminal is gone: the screen ends, but a run continues.
	Hangup <-chan struct{}

	Size  *tea.WindowSizeMsg       // used if Out is not a terminal whose size can be queried
	Sizes <-chan tea.WindowSizeMsg // and later sizes
}

// Run shows the wizard with these pages until the operator quits it. It always waits for a started run, even if the terminal is
// gone.
func Run(ctx context.Context, o Options, pages []Page, look func() Page) (entry.Outcome, error) {
	screen, end := backends.Stoppable(ctx, o.Hangup)
	defer end()
	w := New(ctx, o, pages, look)
	w.glass, w.gone = newGlass(o.Out), screen.Done()
	// The effect of a key is visible after at most one frame of 8 ms. Events are collected before drawing, so that the high
	// frame rate does not send more.
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
	if r := w.leaveRest(); r != nil {
		<-r.done // the caller closes the connection that it uses
	}
	if errors.Is(err, tea.ErrProgramPanic) {
		if w.running == nil {
			return entry.Outcome{}, errBroken
		}
		err = nil // the run continues and ends as it would without a screen
	}
	if errors.Is(err, tea.ErrProgramKilled) || errors.Is(err, context.Canceled) || w.running != nil {
		err = nil // the terminal may be gone; only the run and its report matter
	}
	w.wait()
	w.keepDraft()
	lost := o.Hangup != nil && isClosed(o.Hangup)
	return entry.Outcome{Interrupted: w.running == nil && (w.interrupted || lost), Answers: w.Answers, Path: w.Saved, Result: w.Result,
		Report: w.Report, Inspected: w.Inspected, Err: w.RunErr}, err
}

// unasked drops the initial requests of forms for the size of the terminal. Pages get it when they draw, and bubbletea 2.0.9
// answers each request in its own goroutine, so that two of them would write the size concurrently.
func unasked(_ tea.Model, msg tea.Msg) tea.Msg {
	if msg == tea.RequestWindowSize() {
		return nil
	}
	return msg
}

// errBroken is a fault of the screen itself; the library has printed its location.
var errBroken = backends.Permanentf("",
	"report the message above; to continue without the screen, use rdma-setup --accessible, or apply -f",
	"the screen failed: nothing was changed")

// A glass wraps the terminal and knows whether the current page has been drawn. A key pressed before that was meant for the
// previous page.
type glass struct {
	out     io.Writer
	covered atomic.Bool // a new page is shown and has not been drawn yet
	ready   atomic.Bool // the new page has been composed
}

func newGlass(out io.Writer) *glass { return &glass{out: out} }

func (g *glass) cover() {
	if g != nil {
		g.ready.Store(false)
		g.covered.Store(true)
	}
}

// composed is called when the page is about to be written to the terminal.
func (g *glass) composed() {
	if g != nil && g.covered.Load() {
		g.ready.Store(true)
	}
}

// dark reports whether keys must be ignored because the current page has not been drawn yet.
func (g *glass) dark() bool { return g != nil && g.covered.Load() }

// writes is called before output is sent, so that keys are accepted as soon as the page is visible.
func (g *glass) writes() {
	if g.ready.Load() {
		g.covered.Store(false)
	}
}

// Write implements io.Writer.
func (g *glass) Write(b []byte) (int, error) {
	g.writes()
	return g.out.Write(b)
}

// output returns the writer that the screen is drawn on; a terminal is still recognised as one.
func (g *glass) output() io.Writer {
	if f, ok := g.out.(*os.File); ok {
		return &glassFile{f, g}
	}
	return g
}

type glassFile struct {
	*os.File
	glass *glass
}

func (f *glassFile) Write(b []byte) (int, error) { return f.glass.Write(b) }

// WriteString exists because that of os.File would bypass Write.
func (f *glassFile) WriteString(s string) (int, error) { return f.Write([]byte(s)) }
