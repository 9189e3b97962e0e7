package form

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/form/frame"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"

	tea "charm.land/bubbletea/v2"
)

// A line is the terminal connection on which the wizard is drawn in these tests: it counts and stores what was sent.
type line struct {
	mu   sync.Mutex
	sent bytes.Buffer
}

func (l *line) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent.Write(b)
}

func (l *line) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sent.String()
	l.sent.Reset()
	return s
}

// A busy fabric reports events of many hosts at once until it is stopped.
type busy struct {
	world
	hosts, perSecond int
	seconds          int
	began            chan struct{}
	finish           chan struct{}
	undisturbed      bool
}

func (b *busy) Plan(*answers.Answers, *backends.Inventory) (*plan.Plan, error) {
	p := &plan.Plan{Mode: "pvrdma"}
	for i := range b.hosts {
		p.Changes = append(p.Changes,
			plan.Change{Setting: backends.Setting{Target: backends.HostRef(fmt.Sprintf("esx-%03d", i)), Kind: backends.KindFirewall, Name: "pvrdma"},
				To: backends.ValueOf(true)})
	}
	return p, nil
}

func (b *busy) Apply(ctx context.Context, _ *answers.Answers, p *plan.Plan, stop <-chan struct{}, _ *engine.Remote,
	sink engine.Sink) (engine.Result, error) {
	var nodes []engine.NodeInfo
	for _, c := range p.Changes {
		nodes = append(nodes, engine.NodeInfo{ID: c.ID(), Target: c.Target, Title: plan.Title(c)})
	}
	sink(engine.Event{Type: engine.EventPlanned, Time: time.Now(), Nodes: nodes})
	for _, n := range nodes {
		sink(engine.Event{Type: engine.EventStarted, Time: time.Now(), Node: n.ID, Target: n.Target, Title: n.Title})
	}
	close(b.began)
	if b.inRun != nil {
		b.told = append(b.told, b.ask(ctx, *b.inRun))
	}
	for i := range b.seconds * b.perSecond {
		<-time.After(time.Second / time.Duration(b.perSecond))
		for _, n := range nodes {
			sink(engine.Event{Type: engine.EventProgress, Time: time.Now(), Node: n.ID, Target: n.Target, Title: n.Title, Percent: 1 + i%99})
		}
	}
	res := engine.Result{Run: "run", Status: engine.StatusDone}
	select {
	case <-b.finish:
		b.undisturbed = ctx.Err() == nil
	case <-stop:
		sink(engine.Event{Type: engine.EventStopping, Time: time.Now()})
		select {
		case <-b.finish:
		case <-ctx.Done():
		}
		res.Status = engine.StatusInterrupted
	}
	return res, nil
}

// session is a wizard in a real loop, driven through its input.
type session struct {
	t      *testing.T
	keys   *io.PipeWriter
	line   *line
	hangup chan struct{}
	stop   chan struct{}
	sizes  chan tea.WindowSizeMsg
	ended  chan struct{}
	out    entry.Outcome
	err    error
}

func open(t *testing.T, b *busy) *session {
	in, keys := io.Pipe()
	s := &session{t: t, keys: keys, line: &line{}, hangup: make(chan struct{}), stop: make(chan struct{}), sizes: make(chan tea.WindowSizeMsg),
		ended: make(chan struct{})}
	b.began, b.finish = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(s.ended)
		s.out, s.err = Run(context.Background(), frame.Options{Fabric: b, Answers: answers.Default(answers.PVRDMA),
			Theme: theme.New(true, false, true), In: in, Out: s.line,
			Environ: []string{"TERM=xterm-256color", "COLORTERM=truecolor"}, Stop: s.stop, Hangup: s.hangup,
			Size: &tea.WindowSizeMsg{Width: 120, Height: 40}, Sizes: s.sizes})
		in.Close()
	}()
	t.Cleanup(func() { close(s.sizes) })
	return s
}

// shows waits until the text is drawn.
func (s *session) shows(text string) {
	s.t.Helper()
	var all strings.Builder
	for range 200 {
		synctest.Wait()
		all.WriteString(s.line.take())
		if strings.Contains(strings.ReplaceAll(ansi.Strip(all.String()), " ", ""), strings.ReplaceAll(text, " ", "")) {
			return
		}
		<-time.After(50 * time.Millisecond)
	}
	s.t.Fatalf("%q was not drawn:\n%s", text, ansi.Strip(all.String()))
}

func (s *session) press(keys string) {
	if _, err := io.WriteString(s.keys, keys); err != nil {
		s.t.Error(err)
	}
	synctest.Wait()
}

// resize changes the size of the screen, so that everything is redrawn.
func (s *session) resize(width, height int) {
	s.sizes <- tea.WindowSizeMsg{Width: width, Height: height}
	synctest.Wait()
}

// toRun goes to the run page.
func (s *session) toRun() {
	s.shows("vCenter address")
	s.press("\r\r")
	s.shows("Password of")
	s.press("right\r")
	for _, text := range []string{"Which hosts", "How should", "Which pNIC", "Distributed switch", "Which VMs", "prevents the setup",
		"Enter to apply this plan"} {
		s.shows(text)
		s.press("\r")
		if text == "Distributed switch" {
			s.press("\r\r\r\r") // the other fields of the page
		}
	}
}

func (s *session) end() {
	s.t.Helper()
	select {
	case <-s.ended:
	case <-time.After(time.Hour):
		s.t.Fatal("the wizard does not end")
	}
	<-time.After(time.Minute) // until the timers have expired
}

func TestAThousandEventsASecondFitTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{hosts: 100, perSecond: 10, seconds: 10}
		s := open(t, b)
		s.toRun()
		<-b.began
		s.line.take()
		<-time.After(10 * time.Second)
		if n := len(s.line.take()); n > 300_000 || n == 0 {
			t.Errorf("%d bytes in 10 seconds of 1000 events a second; 30 kB/s is the most", n)
		} else {
			t.Logf("%d bytes a second", n/10)
		}
		<-time.After(time.Second)
		s.line.take()
		<-time.After(10 * time.Second)
		if n := len(s.line.take()); n > 1500 {
			t.Errorf("%d bytes in 10 seconds in which nothing happened but the clock", n)
		} else {
			t.Logf("%d bytes a second while nothing happens", n/10)
		}
		close(b.finish)
		s.shows("Next steps")
		s.press("\r")
		s.end()
	})
}

func TestIdlePagesSendNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, &busy{})
		for _, step := range []struct{ shows, keys string }{{"vCenter address", "\r\r"}, {"Password of", "right\r"}, {"Which hosts", "\r"}} {
			s.shows(step.shows)
			<-time.After(time.Second)
			s.line.take()
			<-time.After(time.Minute)
			if got := s.line.take(); got != "" {
				t.Errorf("%q: an idle page sent %q", step.shows, got)
			}
			s.press(step.keys)
		}
		s.press("\x03")
		s.end()
	})
}

func TestARunOutlivesItsTerminal(t *testing.T) {
	for name, lose := range map[string]func(s *session){
		"hangup":           func(s *session) { close(s.hangup) },
		"input ends first": func(s *session) { s.keys.Close(); synctest.Wait(); close(s.hangup) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &busy{hosts: 4}
				s := open(t, b)
				s.toRun()
				<-b.began
				lose(s)
				<-time.After(time.Minute)
				select {
				case <-s.ended:
					t.Fatal("the wizard ended while the run was on")
				default:
				}
				close(b.finish)
				s.end()
				if s.err != nil || s.out.Result.Status != engine.StatusDone || s.out.Report == nil || !b.undisturbed {
					t.Errorf("%v, %+v, report %t, undisturbed %t", s.err, s.out.Result, s.out.Report != nil, b.undisturbed)
				}
			})
		})
	}
}

func TestStopReachesARunWithoutTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{hosts: 4}
		s := open(t, b)
		s.toRun()
		<-b.began
		close(s.hangup)
		synctest.Wait()
		close(s.stop)
		synctest.Wait()
		close(b.finish)
		s.end()
		if s.out.Result.Status != engine.StatusInterrupted {
			t.Errorf("%+v", s.out.Result)
		}
	})
}

func TestCtrlCOnceAndTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{hosts: 4}
		s := open(t, b)
		s.toRun()
		<-b.began
		s.press("\x03")
		s.shows("Ctrl-C again stops at once")
		s.press("\x03")
		s.shows("rdma-setup resume run")
		s.press("\r")
		s.end()
		if s.out.Result.Status != engine.StatusInterrupted || s.out.Report == nil {
			t.Errorf("%+v", s.out.Result)
		}
	})
}

func TestKeysTypedAheadAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{hosts: 4}
		s := open(t, b)
		s.shows("vCenter address")
		s.press("\r\rsecret") // typed before the password is prompted for
		s.shows("Password of")
		s.press("right\r")
		s.shows("Which hosts")
		s.press("\r\r\r\r\r\r\r\r\r") // a key that is held down
		s.shows("How should")
		<-time.After(time.Second)
		synctest.Wait()
		select {
		case <-b.began:
			t.Fatal("keys that were typed ahead accepted a plan")
		default:
		}
		s.press("\x03")
		s.end()
	})
}

func TestLosingTheTerminalBeforeARunEndsTheWizard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, &busy{})
		s.shows("vCenter address")
		close(s.hangup)
		s.end()
		if s.err != nil {
			t.Error(s.err)
		}
	})
}
