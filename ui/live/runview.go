package live

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// pinned is how many failures stay on the screen; the report contains all.
const pinned = 3

// View draws the screen; now is the time that its clock shows.
func (r *Run) View(width, height int, now time.Time) string {
	page := *r // keys act on the targets of r; of thousands, only those that are drawn are cleaned
	page.state.Targets = nil
	page.state, page.list.confirm = backends.Shown(page.state), backends.Shown(r.list.confirm)
	page.state.Targets = r.state.Targets
	page.list.filter, page.list.said = backends.Clean(r.list.filter), backends.Clean(r.list.said)
	r = &page
	lines := append(r.headline(width, now), "")
	fails := append(r.failures(width), r.asked(width)...)
	pane := max(4, (height-len(lines)-len(fails))/3)
	room := max(1, height-len(lines)-len(fails)-pane-2)
	if r.list.on {
		lines = append(lines, r.chosen(width, room, now)...)
	} else {
		lines = append(lines, r.rows(width, room, now)...)
	}
	for len(lines) < height-len(fails)-pane-1 {
		lines = append(lines, "")
	}
	lines = append(lines, fails...)
	lines = append(lines, r.theme.Title.Render("Log"))
	for _, l := range r.log[max(0, len(r.log)-pane):] {
		lines = append(lines, r.theme.Quiet.Render(r.theme.Cut(l, width)))
	}
	return strings.Join(lines, "\n")
}

// headline returns the overall progress, with the measurement below it once that has started.
func (r *Run) headline(width int, now time.Time) []string {
	c := r.state.Counts
	lines := []string{"nothing to change"}
	if c.Total > 0 {
		share := float64(c.Ended()-c.Blocked) / float64(c.Total) // operations that were not tried do not count as done
		s := fmt.Sprintf("%d of %d steps  %s %3.0f %%  %s", c.Ended()-c.Blocked, c.Total, r.theme.Bar(share, 24), 100*share,
			r.state.Elapsed(now).Round(time.Second))
		if left := r.state.ETA(now); left > 10*time.Minute {
			s += fmt.Sprintf(", about %s left", strings.TrimSuffix(left.Round(time.Minute).String(), "0s"))
		} else if left = left.Round(time.Second); left > 0 {
			s += fmt.Sprintf(", about %s left", left)
		}
		lines = []string{theme.Clip(s, width)}
		if r.state.Paused != "" && r.state.Result == nil {
			what := "no step is running"
			if c.Running == 1 {
				what = "1 running step finishes first"
			} else if c.Running > 1 {
				what = fmt.Sprintf("%d running steps finish first", c.Running)
			}
			lines = append(lines, r.theme.Warning.Render(r.theme.Cut("PAUSED by "+r.state.Paused+": "+what+"; p continues", width)))
		}
		lines = append(lines, r.service(width)...)
	}
	if r.state.Wait != "" && r.state.Result == nil {
		lines = append(lines, r.theme.Warning.Render(r.theme.Cut("waiting for "+r.state.Wait, width)))
	}
	if r.tests > 0 {
		share := float64(r.measured) / float64(r.tests)
		s := fmt.Sprintf("%d of %d tests  %s %3.0f %%  ", r.measured, r.tests, r.theme.Bar(share, 24), 100*share)
		if left := r.left.Round(time.Second); left > 0 {
			s += fmt.Sprintf("about %s left  ", left)
		}
		lines = append(lines, s+r.theme.Cut(strings.Join(r.testing, ", "), width-lipgloss.Width(s)))
	}
	if p := r.load; p.Round > 0 {
		done := p.Round - 1
		if p.Flows != nil {
			done = p.Round
		}
		share := float64(done) / float64(p.Rounds)
		s := fmt.Sprintf("round %d of %d  %s %3.0f %%  ", p.Round, p.Rounds, r.theme.Bar(share, 12), 100*share)
		if left := p.Left.Round(time.Second); left > 0 {
			s += fmt.Sprintf("about %s left  ", left)
		}
		lines = append(lines, s+r.theme.Cut(p.Flowing(), width-lipgloss.Width(s)))
	}
	return lines
}

// untried is the word for targets that were not tried.
var untried = engine.NodeBlocked.Word()

// rows returns the targets in order. If they do not all fit, running and failed ones come before pending ones and those
// that are done.
func (r *Run) rows(width, room int, now time.Time) []string {
	all := r.state.Targets
	shown := map[*engine.TargetState]bool{}
	fits := room
	if len(all) > room {
		fits = room - 1
	}
	for _, words := range []string{"running failed " + untried, "waiting", "done"} {
		for _, t := range all {
			if len(shown) < fits && strings.Contains(words, t.Word()) {
				shown[t] = true
			}
		}
	}
	wide := widest(all)
	var lines []string
	hidden := map[string]int{}
	for _, t := range all {
		if shown[t] {
			lines = append(lines, r.row(t, wide, width, now))
		} else {
			hidden[t.Word()]++
		}
	}
	if len(lines) < len(all) {
		var words []string
		for _, w := range []string{"running", "failed", untried, "waiting", "done"} {
			if n := hidden[w]; n > 0 {
				words = append(words, fmt.Sprintf("%d %s", n, w))
			}
		}
		lines = append(lines, r.theme.Quiet.Render(fmt.Sprintf("and %d more: %s", len(all)-len(lines), strings.Join(words, ", "))))
	}
	return lines
}

func widest(all []*engine.TargetState) int {
	wide := 0
	for _, t := range all {
		wide = max(wide, lipgloss.Width(backends.Clean(t.Target.String())))
	}
	return min(wide, 32)
}

func (r *Run) row(t *engine.TargetState, wide, width int, now time.Time) string {
	t = backends.Shown(t)
	mark := map[string]theme.Mark{"running": theme.Running, "failed": theme.Fail, untried: theme.Skipped, "done": theme.Pass,
		"waiting": theme.Waiting}[t.Word()]
	name := r.theme.Cut(t.Target.String(), wide)
	c := t.Counts
	s := fmt.Sprintf("%s %s%s %2d/%-2d %s ", r.theme.Symbol(mark), name, strings.Repeat(" ", wide-lipgloss.Width(name)), c.Ended()-c.Blocked,
		c.Total,
		r.theme.Bar(float64(c.Ended()-c.Blocked)/float64(max(1, c.Total)), 10))
	left := width - lipgloss.Width(s)
	switch {
	case c.Running > 0:
		what := lasting(now.Sub(t.Since)) + t.Title
		if t.Wait != "" {
			what += " (" + t.Wait + ")"
		}
		if t.Text != "" {
			what += ": " + t.Text
		}
		if t.Percent > 0 {
			what = fmt.Sprintf("%d %% %s", t.Percent, what)
		}
		return s + r.theme.Cut(what, left)
	case c.Failed > 0:
		return s + r.theme.Bad.Render(r.theme.Cut(reason(t.Target, t.Err), left))
	case c.Blocked > 0:
		return s + r.theme.Warning.Render(r.theme.Cut(fmt.Sprintf("%d %s", c.Blocked, untried), left))
	}
	return s
}

func (r *Run) failures(width int) []string {
	if len(r.failed) == 0 {
		return nil
	}
	head := fmt.Sprintf("%d failed", len(r.failed))
	if len(r.failed) > pinned {
		head += fmt.Sprintf(", the last %d", pinned)
	}
	lines := []string{r.theme.Bad.Render(head)}
	for _, f := range r.failed[max(0, len(r.failed)-pinned):] {
		lines = append(lines, r.theme.Rows(r.theme.Bad, "  "+f.line, width, 2)...)
	}
	return append(lines, "")
}
