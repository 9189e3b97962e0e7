package live

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// AttachOptions are the dependencies of the page of another process's run.
type AttachOptions struct {
	Title   string
	Follow  func(ctx context.Context, sink engine.Sink) error                    // passes on the events of the run until it ends
	Control func(ctx context.Context, c engine.Control) (text string, err error) // sends a request to the run
	Theme   theme.Theme
	In      io.Reader
	Out     io.Writer
	Environ []string
}

// RunAttach shows a run of another process with the keys of the run page. It ends with the run, or when the operator quits it;
// left reports which.
func RunAttach(ctx context.Context, o AttachOptions) (left bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &attached{ctx: ctx, o: o, run: NewRun(o.Theme), now: time.Now()}
	p := tea.NewProgram(a, tea.WithContext(ctx), tea.WithoutSignalHandler(), tea.WithFPS(10),
		tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithEnvironment(o.Environ))
	over := make(chan error, 1)
	go func() {
		err := o.Follow(ctx, func(e engine.Event) { p.Send(eventMsg(e)) })
		p.Send(endedMsg{})
		over <- err
	}()
	_, err = p.Run()
	left = !a.ended
	cancel()
	if errors.Is(err, tea.ErrProgramKilled) || errors.Is(err, context.Canceled) {
		err = nil
	}
	if bad := <-over; !errors.Is(bad, context.Canceled) {
		err = errors.Join(err, bad)
	}
	return left, err
}

// attached is the model: the run page and its clock.
type attached struct {
	ctx           context.Context
	o             AttachOptions
	run           *Run
	now           time.Time
	width, height int
	ended         bool
}

type (
	eventMsg  engine.Event
	endedMsg  struct{}
	secondMsg time.Time
	saidMsg   struct {
		text string
		err  error
	}
)

func (a *attached) second() tea.Cmd {
	return tea.Tick(time.Second, func(t time.Time) tea.Msg { return secondMsg(t) })
}

// Init starts the clock.
func (a *attached) Init() tea.Cmd { return a.second() }

// Update handles every message.
func (a *attached) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		a.width, a.height = msg.Width, msg.Height
	case eventMsg:
		a.run.Event(engine.Event(msg))
	case endedMsg:
		a.ended = true
		return a, tea.Quit
	case saidMsg:
		a.run.Said(msg.text, msg.err)
	case secondMsg:
		a.now = time.Time(msg)
		return a, a.second()
	case tea.KeyPressMsg:
		if msg.String() == "ctrl+c" || msg.String() == "q" && !a.run.Typing() {
			return a, tea.Quit
		}
		if c, _ := a.run.Key(msg.String(), msg.Text); c != nil {
			a.run.Said("waiting for the run to answer", nil)
			return a, func() tea.Msg {
				text, err := a.o.Control(a.ctx, *c)
				return saidMsg{text, err}
			}
		}
	}
	return a, nil
}

// View draws the page.
func (a *attached) View() tea.View {
	foot := a.footer()
	lines := []string{a.o.Theme.Title.Render(a.o.Theme.Cut(a.o.Title, a.width)), ""}
	body := strings.Split(a.run.View(a.width, max(6, a.height-2-len(foot)), a.now), "\n")
	lines = append(lines, body...)
	lines = append(lines[:min(len(lines), max(0, a.height-len(foot)))], foot...)
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	return v
}

func (a *attached) footer() []string {
	leave := "q leave (the run continues)"
	if a.run.Typing() {
		leave = "Ctrl-C leave (the run continues)"
	}
	lines := []string{leave}
	for _, k := range a.run.Keys() {
		hint := k[0] + " " + k[1]
		if last := &lines[len(lines)-1]; len(*last)+2+len(hint) <= a.width {
			*last += "  " + hint
		} else {
			lines = append(lines, hint)
		}
	}
	for i, l := range lines {
		lines[i] = a.o.Theme.Quiet.Render(a.o.Theme.Cut(l, a.width))
	}
	return lines
}
