package live_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

var begin = time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)

// part is a run in progress: some hosts done, one failed together with its VM, the others running.
func part(hosts int) *live.Run {
	r := live.NewRun(theme.New(false, false, true))
	var nodes []engine.NodeInfo
	for i := 1; i <= hosts; i++ {
		host, vm := backends.HostRef(fmt.Sprintf("esx-%02d", i)), backends.VMRef(fmt.Sprintf("vm-%02d", i))
		for _, n := range []engine.NodeInfo{{ID: "member", Target: host, Title: "join distributed switch RDMA-DVS with vmnic2"},
			{ID: "firewall", Target: host, Title: "enable firewall ruleset pvrdma"},
			{ID: "power", Target: vm, Title: "shut down"}, {ID: "adapter", Target: vm, Title: "add PVRDMA adapter on RDMA-PG"}} {
			n.ID = n.Target.String() + "/" + n.ID
			nodes = append(nodes, n)
		}
	}
	r.Event(engine.Event{Type: engine.EventPlanned, Time: begin, Nodes: nodes})
	for i, n := range nodes {
		e := engine.Event{Time: begin.Add(time.Duration(i) * time.Second), Node: n.ID, Target: n.Target, Title: n.Title, Elapsed: 2 * time.Second}
		send := func(t engine.EventType) { e.Type = t; r.Event(e) }
		switch host, step := i/4, i%4; {
		case host == 0 || host == 1 && step == 0:
			send(engine.EventStarted)
			send(engine.EventDone)
		case host == 1 && step == 1:
			send(engine.EventStarted)
			e.Err, e.Hint = n.Target.Name+": enable the firewall ruleset pvrdma: permission denied\x1b[2J (Host.Config.NetService)",
				"grant the privilege"
			send(engine.EventFailed)
		case host == 1:
			send(engine.EventBlocked)
		case host == 2 && step == 0:
			send(engine.EventStarted)
			e.Percent = 40
			send(engine.EventProgress)
		case host == 2 && step == 2:
			send(engine.EventStarted)
			e.Text = "waiting for VMware Tools"
			send(engine.EventProgress)
		}
	}
	return r
}

// paused is part with a wave of hosts, an expected end and a pause; tests press keys on it.
func paused(hosts int, keys ...string) *live.Run {
	r := part(hosts)
	wave := []engine.NodeInfo{}
	for i := range 3 {
		host := backends.HostRef(fmt.Sprintf("esx-%02d", i+1))
		for _, n := range []engine.NodeInfo{{ID: "open reboot", Title: "enter maintenance mode for a reboot", Outage: engine.OutageBegins},
			{ID: "reboot", Title: "reboot, wait", Outage: engine.OutageEnds}} {
			n.ID, n.Target, n.Canary = n.ID+host.Name, host, i == 0
			wave = append(wave, n)
		}
	}
	r.Event(engine.Event{Type: engine.EventPlanned, Time: begin, Nodes: wave})
	first := wave[0]
	r.Event(engine.Event{Type: engine.EventStarted, Time: begin.Add(20 * time.Second), Node: first.ID, Target: first.Target,
		Title: first.Title})
	r.Event(engine.Event{Type: engine.EventForecast, Time: begin.Add(20 * time.Second), Left: 78 * time.Minute})
	for _, k := range keys {
		if c, _ := r.Key(k, k); c != nil {
			c.By = "anna"
			r.Event(engine.Event{Type: engine.EventControl, Time: begin.Add(70 * time.Second), Control: c, Target: c.Target,
				Text: "finished first: host/esx-01"})
		}
	}
	return r
}

// oneStep is a run that is paused while a VM is down, with one step running; the details of a target with more steps than fit are
// open, the running one in their middle.
func oneStep() *live.Run {
	r := live.NewRun(theme.New(false, false, true))
	vm := backends.VMRef("vm-01")
	nodes := []engine.NodeInfo{{ID: "0", Target: vm, Title: "shut down", Outage: engine.OutageBegins}}
	for i := range 9 {
		nodes = append(nodes, engine.NodeInfo{ID: fmt.Sprint(i + 1), Target: vm, Title: fmt.Sprintf("step %d", i+1)})
	}
	r.Event(engine.Event{Type: engine.EventPlanned, Time: begin, Nodes: nodes})
	for i, n := range nodes[:3] {
		e := engine.Event{Type: engine.EventStarted, Time: begin.Add(time.Duration(i) * time.Second), Node: n.ID, Target: vm, Title: n.Title}
		if r.Event(e); i < 2 {
			e.Type = engine.EventDone
			r.Event(e)
		}
	}
	r.Event(engine.Event{Type: engine.EventControl, Time: begin, Control: &engine.Control{Do: engine.ControlPause, By: "anna"}})
	r.Key("down", "")
	r.Key("d", "d")
	return r
}

func TestRunScreens(t *testing.T) {
	measuring := part(4)
	measuring.Event(engine.Event{Type: engine.EventResult, Time: begin.Add(90 * time.Second), Status: engine.StatusDone,
		Text: "14 done, 2 failed"})
	pair := perftest.Pair{Client: perftest.Node{VM: "vm-01"}, Server: perftest.Node{VM: "vm-02"}}
	measuring.Measured(perftest.Progress{Done: 0, Total: 4, Pair: pair, Test: perftest.SendBandwidth})
	measuring.Measured(perftest.Progress{Done: 1, Total: 4, Pair: pair, Test: perftest.SendBandwidth,
		Result: &perftest.Measurement{AchievedGbps: 96.1, Verdict: perftest.VerdictPass}})
	measuring.Measured(perftest.Progress{Done: 1, Total: 4, Pair: pair, Test: perftest.SendLatency})
	loading := part(4)
	loading.Event(engine.Event{Type: engine.EventResult, Time: begin.Add(90 * time.Second), Status: engine.StatusDone,
		Text: "14 done, 2 failed"})
	round := perftest.Progress{Load: perftest.LoadIncast, Round: 1, Rounds: 4, Left: 36 * time.Second, Pairs: 3, Pair: pair}
	loading.Measured(round)
	round.Flows, round.Left = []perftest.Measurement{{AchievedGbps: 46.5, Verdict: perftest.VerdictPass},
		{AchievedGbps: 46.5, Verdict: perftest.VerdictFail}}, 27*time.Second
	loading.Measured(round)
	round.Flows, round.Round = nil, 2
	loading.Measured(round)
	for name, tt := range map[string]struct {
		run           *live.Run
		width, height int
	}{
		"four-80x19":       {part(4), 78, 19},
		"four-120x35":      {part(4), 118, 35},
		"hundred-80x19":    {part(100), 78, 19},
		"measuring-80x19":  {measuring, 78, 19},
		"loading-80x19":    {loading, 78, 19},
		"waves-80x19":      {paused(4), 78, 19},
		"paused-80x19":     {paused(4, "p"), 78, 19},
		"one-step-80x19":   {oneStep(), 78, 19},
		"retry-80x19":      {paused(4, "down", "down", "R"), 78, 19},
		"details-120x35":   {paused(100, "down", "end", "home", "down", "down", "d"), 118, 35},
		"filter-wide-200":  {paused(100, "f", "/", "0", "2", "enter"), 160, 55},
		"nothing-80x19":    {live.NewRun(theme.Plain()), 78, 19},
		"hundred-wide-200": {part(100), 160, 55},
	} {
		t.Run(name, func(t *testing.T) {
			got := tt.run.View(tt.width, tt.height, begin.Add(75*time.Second))
			lines := strings.Split(got, "\n")
			for _, l := range lines {
				if lipgloss.Width(l) > tt.width {
					t.Errorf("too wide: %q", l)
				}
			}
			if len(lines) > tt.height {
				t.Errorf("%d lines on %d", len(lines), tt.height)
			}
			if strings.Contains(got, "\x1b[2J") {
				t.Error("an escape came through")
			}
			testclass.Golden(t, "testdata/"+name+".txt", strings.NewReplacer("\x1b[1m", "", "\x1b[m", "").Replace(got)+"\n")
		})
	}
}

// The page of attach, in three sizes.
func TestAttachScreens(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 60}} {
		name := fmt.Sprintf("attach-%dx%d.txt", size[0], size[1])
		t.Run(name, func(t *testing.T) {
			got := live.AttachView(paused(100, "down", "down"), "rdma-setup attach 20261124-101500-pvrdma-abcd", size[0], size[1],
				begin.Add(75*time.Second))
			if lipgloss.Width(got) > size[0] || lipgloss.Height(got) > size[1] {
				t.Errorf("%d x %d", lipgloss.Width(got), lipgloss.Height(got))
			}
			testclass.Golden(t, "testdata/"+name, ansi.Strip(got)+"\n")
		})
	}
}

// During the measurement, the keys that act on changes are neither named nor accepted.
func TestKeysWhileItMeasures(t *testing.T) {
	r := part(4)
	r.Measured(perftest.Progress{Total: 4, Test: perftest.SendBandwidth})
	for _, key := range []string{"p", "x", "R"} {
		for _, k := range r.Keys() {
			if k[0] == key {
				t.Errorf("%s is named", key)
			}
		}
		if c, used := r.Key(key, key); c != nil || !used {
			t.Errorf("%s: control %v, used %t", key, c, used)
		}
		if got := r.View(78, 19, begin); !strings.Contains(got, "the changes are done; Ctrl-C stops the measurement") {
			t.Errorf("%s says nothing:\n%s", key, got)
		}
	}
}

func TestFailuresStayPinned(t *testing.T) {
	r := part(4)
	for i := range 500 {
		r.Event(engine.Event{Type: engine.EventDone, Time: begin, Node: fmt.Sprintf("x%d", i), Target: backends.HostRef("esx-99"),
			Title: "something else"})
	}
	if v := r.View(100, 24, begin); !strings.Contains(v, "1 failed") ||
		!strings.Contains(v, "esx-02: enable the firewall ruleset pvrdma: permission denied") {
		t.Errorf("the failure is gone:\n%s", v)
	}
}

// The page of a resumed run shows only the log of an earlier attempt, whether that was killed during a pause or has ended.
func TestAResumeBeginsThePageAnew(t *testing.T) {
	killed := paused(4, "p")
	ended := paused(4)
	ended.Event(engine.Event{Type: engine.EventResult, Time: begin.Add(time.Minute), Status: engine.StatusPartial})
	for _, r := range []*live.Run{killed, ended} {
		later := begin.Add(time.Hour)
		r.Event(engine.Event{Type: engine.EventPlanned, Time: later, First: true,
			Nodes: []engine.NodeInfo{{ID: "a", Target: backends.HostRef("esx-01"), Title: "a step"}}})
		v := r.View(78, 19, later.Add(5*time.Second))
		if strings.Contains(v, "PAUSED") || strings.Contains(v, "1 failed") || !strings.HasPrefix(v, "0 of 1 steps") ||
			!strings.Contains(v, "  5s") || !strings.Contains(v, "FAILED") {
			t.Errorf("the page shows the attempt before:\n%s", v)
		}
		if c, _ := r.Key("p", "p"); c == nil || c.Do != engine.ControlPause {
			t.Errorf("p asks for %+v", c)
		}
	}
}

// A long wait stands in the row of its target until that has ended, one without a row above the rows, and a lost vCenter in the log.
func TestWaitsOnTheScreen(t *testing.T) {
	r := part(4)
	at := func(e engine.Event) { e.Time = begin.Add(30 * time.Second); r.Event(e) }
	shows := func(want bool, text string) {
		t.Helper()
		if got := r.View(150, 40, begin.Add(75*time.Second)); strings.Contains(got, text) != want {
			t.Errorf("%q: %t\n%s", text, !want, got)
		}
	}
	vm := backends.VMRef("vm-03")
	at(engine.Event{Type: engine.EventWaiting, Waits: vm.Name, Title: "shut down", Text: "since 09:27:03, at most 5m"})
	shows(true, "shut down (since 09:27:03, at most 5m): waiting for VMware Tools")
	at(engine.Event{Type: engine.EventWaiting, Waits: "vm-04", Title: "read the guest", Text: "since 09:27:03, at most 40s"})
	shows(true, "waiting for vm-04: read the guest: since 09:27:03, at most 40s")
	at(engine.Event{Type: engine.EventWaiting, Text: "vCenter vc.example cannot be reached"})
	shows(true, "09:27:23 vCenter vc.example cannot be reached")
	shows(false, "vm-04: read the guest")
	shows(true, "at most 5m")
	at(engine.Event{Type: engine.EventDone, Node: vm.String() + "/power", Target: vm, Title: "shut down"})
	shows(false, "at most 5m")
}

func TestScrollKeepsItsPlaceWhenTheScreenChanges(t *testing.T) {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, "line %d with words enough to be folded on a narrow screen, and some more of them\n", i)
	}
	s := live.NewScroll(theme.Plain(), b.String())
	s.View(120, 20)
	for range 50 {
		s.Update(keyDown)
	}
	if first := strings.Split(s.View(120, 20), "\n")[0]; !strings.HasPrefix(first, "line 50 ") {
		t.Fatalf("on %q", first)
	}
	if first := strings.Split(s.View(40, 20), "\n")[0]; !strings.HasPrefix(first, "line 50 ") {
		t.Errorf("after the change on %q", first)
	}
	for _, l := range strings.Split(s.View(40, 20), "\n") {
		if lipgloss.Width(l) > 40 {
			t.Errorf("too wide: %q", l)
		}
	}
}
