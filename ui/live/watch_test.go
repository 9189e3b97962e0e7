package live

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"go.uber.org/goleak"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/watch"
	"github.com/rdma-setup/rdma-setup/ui/theme"
)

var lookedAt = time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)

// found returns the findings of a check: a host without problems, and hosts whose firewall is closed.
func found(closed int) []checks.Finding {
	out := []checks.Finding{{ID: "CL-HOSTS-001", Status: checks.Pass, Target: backends.Ref{Type: backends.TypeCluster, Name: "hpc"}}}
	for i := range 6 {
		f := checks.Finding{ID: "HOST-FW-PVRDMA-007", Target: backends.HostRef("esx-0" + string(rune('1'+i))), Status: checks.Pass, Evidence: "ruleset pvrdma is on", Remedy: "Enable the firewall ruleset pvrdma."}
		if i < closed {
			f.Status, f.Evidence = checks.Fail, "ruleset pvrdma is off\x1b[2J"
		}
		out = append(out, f)
	}
	return append(out, checks.Finding{ID: "HOST-POWER-009", Target: backends.HostRef("esx-01"), Status: checks.Warn, Quiet: true, Evidence: "power policy dynamic"})
}

func seen(looks ...watch.Round) *watcher {
	w := &watcher{ctx: context.Background(), theme: theme.New(false, false, true), width: 80, height: 24, begun: lookedAt}
	w.o = WatchOptions{Every: time.Minute, Site: "https://vc.example/sdk", Now: func() time.Time { return lookedAt.Add(20 * time.Second) },
		Line: func(l *watch.Round) string { return "RDMA " + strings.ToUpper(l.Status) + " - what is first" }}
	for i, l := range looks {
		l.At, l.Took = lookedAt.Add(time.Duration(i-len(looks)+1)*time.Minute), 1234*time.Millisecond
		w.looking = true
		w.took(l)
	}
	return w
}

func TestWatchScreens(t *testing.T) {
	ok, bad := watch.Round{Status: "ok", Findings: found(0), Calls: 9, Simulated: true}, watch.Round{Status: "critical", Findings: found(4), Calls: 9}
	away := watch.Round{Err: errors.New("vCenter: read the inventory: dial tcp 192.0.2.1:443: connect: connection refused, and so on for longer than a line of the screen has room")}
	for name, w := range map[string]*watcher{
		"watch-first": seen(), "watch-ok": seen(ok, ok, ok), "watch-broke": seen(ok, ok, bad), "watch-better": seen(bad, ok), "watch-away": seen(ok, bad, away, away), "watch-never": seen(away),
	} {
		for _, size := range [][2]int{{80, 24}, {120, 40}, {60, 18}} {
			w.width, w.height = size[0], size[1]
			got := w.draw()
			for _, l := range strings.Split(got, "\n") {
				if lipgloss.Width(l) > w.width {
					t.Errorf("%s: too wide: %q", name, l)
				}
			}
			if n := strings.Count(got, "\n") + 1; n != w.height {
				t.Errorf("%s: %d lines on %d", name, n, w.height)
			}
			if strings.Contains(got, "\x1b[2J") {
				t.Errorf("%s: an escape came through", name)
			}
			if size[0] == 80 {
				watchGolden(t, name+".txt", strings.NewReplacer("\x1b[7m", "", "\x1b[m", "").Replace(got)+"\n")
			}
		}
		w.width, w.height = 50, 10
		if got := w.draw(); !strings.Contains(got, "make it larger") {
			t.Errorf("%s on a small screen: %q", name, got)
		}
	}
}

func watchGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("WRITE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; look at it and run with WRITE_GOLDEN=1:\n%s", path, got)
	}
}

func TestAnIdleWatchUpdatesOnlyItsClock(t *testing.T) {
	w := seen(watch.Round{Status: "critical", Findings: found(2)})
	before := strings.Split(w.draw(), "\n")
	w.o.Now = func() time.Time { return lookedAt.Add(21 * time.Second) }
	for i, l := range strings.Split(w.draw(), "\n") {
		if (l != before[i]) != (i == 1) {
			t.Errorf("line %d: %q, before %q", i, l, before[i])
		}
	}
}

// terminal is the terminal that the watch draws on; tests wait for text in what was written to it.
type terminal struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (o *terminal) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(b)
	select {
	case o.more <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (o *terminal) wait(t *testing.T, words string) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		o.mu.Lock()
		has := strings.Contains(o.text.String(), words)
		o.mu.Unlock()
		if has {
			return
		}
		select {
		case <-o.more:
		case <-limit:
			t.Fatalf("%q never came:\n%s", words, o.text.String())
		}
	}
}

// terminalReader lists goroutines of Bubble Tea that may outlive a program. One that has read a key after the program
// ended blocks forever because nobody receives the key (ultraviolet, TerminalReader.sendEvents), and another may still be
// blocked in its read.
var terminalReader = []goleak.Option{
	goleak.IgnoreAnyFunction("charm.land/bubbletea/v2.(*Program).readLoop"),
	goleak.IgnoreAnyFunction("github.com/charmbracelet/ultraviolet.(*TerminalReader).StreamEvents.func1"),
}

func TestAWatchIsLeft(t *testing.T) {
	defer goleak.VerifyNone(t, terminalReader...)
	for name, tt := range map[string]struct {
		key         string // "": Stop
		interrupted bool
		during      bool // during a check
	}{
		"by q": {"q", false, false}, "by Ctrl-C": {"\x03", true, false}, "by a signal": {"", true, false},
		"by q, with keys behind it": {strings.Repeat("q", 20), false, false},
		"by q during a check":       {"q", false, true}, "by Ctrl-C during a check": {"\x03", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			keys, press := io.Pipe()
			out := &terminal{more: make(chan struct{}, 1)}
			stop := make(chan struct{})
			looks, cancelled := 0, false
			o := WatchOptions{Every: time.Hour, Theme: theme.Plain(), In: keys, Out: out, Stop: stop, Now: time.Now, Environ: []string{"TERM=xterm"}, size: &tea.WindowSizeMsg{Width: 80, Height: 24},
				Line: func(l *watch.Round) string { return "it is " + l.Status }}
			o.Inspect = func(ctx context.Context) watch.Round {
				if looks++; looks > 1 && tt.during {
					<-ctx.Done()
					cancelled = true
					return watch.Round{At: time.Now(), Err: ctx.Err()}
				}
				return watch.Round{At: time.Now(), Status: "ok", Findings: found(looks - 1)}
			}
			type left struct {
				h           *watch.History
				interrupted bool
				err         error
			}
			done := make(chan left)
			go func() {
				h, i, err := RunWatch(context.Background(), o)
				done <- left{h, i, err}
			}()
			out.wait(t, "it is ok")
			send(t, press, "r")
			if tt.during {
				out.wait(t, "checking for")
			} else {
				out.wait(t, "pass -> fail")
			}
			if tt.key == "" {
				close(stop)
			} else {
				send(t, press, tt.key)
			}
			got := <-done
			press.Close()
			if got.err != nil || got.interrupted != tt.interrupted || cancelled != tt.during || got.h.Last == nil || got.h.Err != nil {
				t.Errorf("%+v, cancelled %t", got, cancelled)
			}
		})
	}
}

func send(t *testing.T, w io.Writer, key string) {
	t.Helper()
	if _, err := io.WriteString(w, key); err != nil {
		t.Fatal(err)
	}
}
