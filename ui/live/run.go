package live

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// A Run shows a run as it goes: a row a target, failures pinned, the last lines of the log. It is a view of events and
// keeps nothing else.
type Run struct {
	theme   theme.Theme
	targets []*target
	at      map[backends.Ref]*target
	node    map[string]*target
	percent map[string]int // of nodes that run
	failed  []string
	log     []string
	began   time.Time
	ended   time.Time
	stop    bool
	total   int
	done    int

	tests    int // of the measurement
	measured int
	testing  map[string]bool
}

type target struct {
	ref                         backends.Ref
	total, done, failed, behind int // behind: blocked or skipped because of a failure
	now                         string
	node                        string
	seen                        map[string]bool
}

// keepLog bounds the log pane.
const keepLog = 200

// NewRun gives an empty screen.
func NewRun(t theme.Theme) *Run {
	return &Run{theme: t, at: map[backends.Ref]*target{}, node: map[string]*target{}, percent: map[string]int{}, testing: map[string]bool{}}
}

// Event takes what the engine says.
func (r *Run) Event(e engine.Event) {
	if r.began.IsZero() {
		r.began = e.Time
	}
	switch e.Type {
	case engine.EventPlanned:
		for _, n := range e.Nodes {
			r.add(n.Target, n.ID)
		}
		return
	case engine.EventStopping:
		r.stop = true
		r.say(e, "stopping: running steps are being finished")
		return
	case engine.EventResult:
		r.ended = e.Time
		r.say(e, string(e.Status)+" "+e.Text)
		return
	}
	t := r.add(e.Target, e.Node)
	switch e.Type {
	case engine.EventStarted:
		t.now, t.node = e.Title, e.Node
	case engine.EventProgress:
		if e.Percent > 0 {
			r.percent[e.Node] = e.Percent
		}
		if e.Text != "" {
			t.now = e.Title + ": " + e.Text
		}
	case engine.EventDone, engine.EventSkipped, engine.EventFailed, engine.EventBlocked:
		r.end(t, e)
	}
}

func (r *Run) end(t *target, e engine.Event) {
	delete(r.percent, e.Node)
	if t.node == e.Node {
		t.now = ""
	}
	r.done++
	t.done++
	switch e.Type {
	case engine.EventDone:
		r.say(e, "done: "+e.Title)
	case engine.EventFailed:
		t.failed++
		line := e.Target.Name + ": " + e.Title + ": " + e.Err
		if e.Hint != "" {
			line += " (" + e.Hint + ")"
		}
		r.failed = append(r.failed, line)
		r.say(e, "FAILED: "+e.Title)
	case engine.EventBlocked:
		t.behind++
	}
}

func (r *Run) add(ref backends.Ref, id string) *target {
	t := r.at[ref]
	if t == nil {
		t = &target{ref: ref, seen: map[string]bool{}}
		r.at[ref] = t
		r.targets = append(r.targets, t)
	}
	if id != "" && !t.seen[id] {
		t.seen[id] = true
		t.total++
		r.total++
	}
	return t
}

func (r *Run) say(e engine.Event, what string) {
	line := e.Time.Format("15:04:05") + " "
	if e.Target.Name != "" {
		line += e.Target.Name + " "
	}
	r.log = append(r.log, line+what)
	if len(r.log) > keepLog {
		r.log = r.log[len(r.log)-keepLog:]
	}
}

// Measured takes the progress of the measurement that follows the changes.
func (r *Run) Measured(p perftest.Progress) {
	r.tests, r.measured = p.Total, p.Done
	key := p.Test + " " + p.Pair.String()
	if p.Result == nil {
		r.testing[key] = true
		return
	}
	delete(r.testing, key)
	figure := string(p.Result.Verdict)
	switch {
	case p.Result.Error != "":
		figure = p.Result.Error
	case p.Result.AchievedGbps > 0:
		figure = fmt.Sprintf("%.1f Gb/s %s", p.Result.AchievedGbps, p.Result.Verdict)
	case p.Result.AchievedUs > 0:
		figure = fmt.Sprintf("%.2f us %s", p.Result.AchievedUs, p.Result.Verdict)
	}
	r.log = append(r.log, key+"  "+figure)
}

// View draws the screen; now moves the clock.
func (r *Run) View(width, height int, now time.Time) string {
	lines := []string{r.headline(width, now), ""}
	fails := r.failures(width)
	pane := max(4, (height-len(lines)-len(fails))/3)
	rows := height - len(lines) - len(fails) - pane - 1
	lines = append(lines, r.rows(width, max(1, rows))...)
	for len(lines) < height-len(fails)-pane-1 {
		lines = append(lines, "")
	}
	lines = append(lines, fails...)
	lines = append(lines, r.theme.Quiet.Render("log"))
	for _, l := range r.log[max(0, len(r.log)-pane):] {
		lines = append(lines, r.theme.Quiet.Render(clip(plain.Clean(l), width)))
	}
	return strings.Join(lines, "\n")
}

func (r *Run) headline(width int, now time.Time) string {
	if r.tests > 0 {
		var running []string
		for k := range r.testing {
			running = append(running, k)
		}
		return clip(fmt.Sprintf("measuring %d of %d %s  %s", r.measured, r.tests, r.theme.Bar(float64(r.measured)/float64(r.tests), 24), firstOf(running)), width)
	}
	if r.total == 0 {
		return "nothing to change"
	}
	if !r.ended.IsZero() {
		now = r.ended
	}
	elapsed := time.Duration(0)
	if !r.began.IsZero() {
		elapsed = max(0, now.Sub(r.began)).Round(time.Second)
	}
	s := fmt.Sprintf("%d of %d steps %s  %s", r.done, r.total, r.theme.Bar(float64(r.done)/float64(r.total), 24), elapsed)
	if left := r.total - r.done; r.done > 2 && left > 0 {
		s += fmt.Sprintf(", about %s left", (elapsed * time.Duration(left) / time.Duration(r.done)).Round(time.Second))
	}
	if r.stop && r.ended.IsZero() {
		s += "  " + r.theme.Warning.Render("stopping; Ctrl-C again stops at once")
	}
	return clip(s, width)
}

func firstOf(running []string) string {
	if len(running) == 0 {
		return ""
	}
	best := running[0]
	for _, s := range running {
		best = min(best, s)
	}
	return best
}

// rows are the targets: those at work or in trouble first, when they do not all fit.
func (r *Run) rows(width, room int) []string {
	wide := 0
	for _, t := range r.targets {
		wide = max(wide, lipgloss.Width(t.ref.String()))
	}
	wide = min(wide, 32)
	shown := r.targets
	if len(shown) > room {
		shown = nil
		for _, pass := range []func(*target) bool{
			func(t *target) bool { return t.failed > 0 || t.now != "" },
			func(t *target) bool { return t.failed == 0 && t.now == "" && t.done < t.total },
			func(t *target) bool { return t.failed == 0 && t.now == "" && t.done >= t.total },
		} {
			for _, t := range r.targets {
				if pass(t) && len(shown) < room-1 {
					shown = append(shown, t)
				}
			}
		}
	}
	var lines []string
	for _, t := range shown {
		lines = append(lines, clip(r.row(t, wide), width))
	}
	if hidden := len(r.targets) - len(shown); hidden > 0 {
		lines = append(lines, r.theme.Quiet.Render(fmt.Sprintf("and %d more targets", hidden)))
	}
	return lines
}

func (r *Run) row(t *target, wide int) string {
	mark := theme.Waiting
	switch {
	case t.failed > 0:
		mark = theme.Fail
	case t.now != "":
		mark = theme.Running
	case t.done >= t.total:
		mark = theme.Pass
	}
	name := plain.Clean(t.ref.String())
	s := fmt.Sprintf("%s %s%s %2d/%-2d %s ", r.theme.Symbol(mark), clip(name, wide), strings.Repeat(" ", max(0, wide-lipgloss.Width(name))), t.done, t.total,
		r.theme.Bar(float64(t.done)/float64(max(1, t.total)), 10))
	switch {
	case t.now != "":
		s += plain.Clean(t.now)
		if p := r.percent[t.node]; p > 0 {
			s += fmt.Sprintf(" %d %%", p)
		}
	case t.behind > 0:
		s += r.theme.Warning.Render(fmt.Sprintf("%d not tried", t.behind))
	}
	return s
}

func (r *Run) failures(width int) []string {
	if len(r.failed) == 0 {
		return nil
	}
	lines := []string{r.theme.Bad.Render(fmt.Sprintf("%d failed", len(r.failed)))}
	for _, f := range r.failed[max(0, len(r.failed)-3):] {
		lines = append(lines, r.theme.Bad.Render(clip("  "+plain.Clean(f), width)))
	}
	return lines
}
