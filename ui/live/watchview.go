package live

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/watch"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// The smallest screen on which the chain and some findings fit.
const watchWidth, watchHeight = 60, 18

// changesShown is how many changes are shown above the findings; the others are marked there.
const changesShown = 4

// View draws the whole screen.
func (w *watcher) View() tea.View {
	v := tea.NewView(w.draw())
	v.AltScreen, v.WindowTitle = true, "rdma-setup check"
	return v
}

func (w *watcher) draw() string {
	switch {
	case w.width == 0:
		return ""
	case w.width < watchWidth || w.height < watchHeight:
		words := fmt.Sprintf("This screen is %dx%d.\nrdma-setup needs %dx%d:\nmake it larger.", w.width, w.height, watchWidth, watchHeight)
		return lipgloss.NewStyle().MaxWidth(w.width).MaxHeight(max(1, w.height)).Render(theme.Wrap(words, w.width))
	}
	lines := append([]string{w.title(), w.clock()}, w.standing()...)
	lines = append(lines, "")
	lines = append(lines, w.chain()...)
	lines = append(lines, "")
	lines = append(lines, w.changes()...)
	if room := w.height - len(lines) - 1; w.scroll != nil && room > 0 {
		lines = append(lines, strings.Split(w.scroll.View(w.width-1, room), "\n")...)
	}
	for len(lines) < w.height-1 {
		lines = append(lines, "")
	}
	return strings.Join(append(lines[:w.height-1], w.keys()), "\n")
}

func (w *watcher) title() string {
	left := w.theme.Title.Render("rdma-setup check") + "  " + w.theme.Quiet.Render(backends.Clean(w.o.Site))
	right := ""
	if l := w.history.Last; l != nil {
		right = w.theme.Badges(l.Insecure, l.Simulated)
	}
	left = theme.Clip(left, w.width-lipgloss.Width(right)-1)
	return left + strings.Repeat(" ", max(1, w.width-lipgloss.Width(left)-lipgloss.Width(right))) + right
}

// clock returns the only line that changes while nothing happens.
func (w *watcher) clock() string {
	h, now := &w.history, w.o.Now()
	what := fmt.Sprintf("checking for %s", now.Sub(w.begun).Round(time.Second))
	if !w.looking {
		what = fmt.Sprintf("next in %s", max(0, w.next().Sub(now)).Round(time.Second))
	}
	every := w.o.Every.String()
	if w.o.Every%time.Minute == 0 {
		every = strings.TrimSuffix(every, "0s")
	}
	s := fmt.Sprintf("%s  every %s, %s", now.Format("15:04:05 MST"), every, what)
	if l := h.Last; l != nil {
		s += fmt.Sprintf("; check %d took %s and %d calls", h.Rounds, l.Took.Round(10*time.Millisecond), l.Calls)
	}
	return w.theme.Quiet.Render(w.theme.Cut(s, w.width))
}

// standing returns the result, and that it is outdated if vCenter cannot be reached.
func (w *watcher) standing() []string {
	h := &w.history
	var lines []string
	if h.Last != nil {
		style := map[string]lipgloss.Style{"ok": w.theme.Good, "warning": w.theme.Warning, "critical": w.theme.Bad}[h.Last.Status]
		lines = append(lines, style.Render(w.theme.Cut(backends.Clean(w.o.Line(h.Last)), w.width)))
	}
	if h.Err != nil {
		s := fmt.Sprintf("AWAY since %s: %s", h.Since.Format("15:04:05"), backends.Clean(h.Err.Error()))
		if h.Last != nil {
			s = fmt.Sprintf("AWAY since %s; this is the state of %s: %s", h.Since.Format("15:04:05"), h.Last.At.Format("15:04:05"), backends.Clean(h.Err.Error()))
		}
		lines = append(lines, w.theme.Rows(w.theme.Bad, s, w.width, 2)...)
	}
	if lines == nil {
		lines = []string{"the first check is running"}
	}
	return lines
}

// chain returns a line per link, and one for the whole: state, counts and history.
func (w *watcher) chain() []string {
	row := func(name string, s checks.Status, counts string, past []checks.Status) string {
		head := fmt.Sprintf("%s %-9s %-26s ", w.theme.Symbol(theme.MarkOf(s)), name, counts)
		room := max(0, w.width-lipgloss.Width(head)-1)
		return head + w.theme.Trace(plain.Mapped(past[max(0, len(past)-room):], theme.MarkOf[checks.Status]))
	}
	var lines []string
	for _, l := range w.history.Chain {
		lines = append(lines, row(string(l.Name), l.Worst, counted(l.Count), w.history.Of(l.Name)))
	}
	if len(lines) == 0 {
		for _, name := range checks.Links() {
			lines = append(lines, row(string(name), checks.Unknown, "", w.history.Of(name)))
		}
	}
	overall, now := w.history.Overall(), checks.Unknown
	if len(overall) > 0 {
		now = overall[len(overall)-1]
	}
	return append(lines, row("overall", now, "", overall))
}

func counted(n map[checks.Status]int) string {
	var parts []string
	for _, c := range []struct {
		n    int
		word string
	}{{n[checks.Fail], "fail"}, {n[checks.Warn], "warn"}, {n[checks.Pass], "pass"}, {n[checks.Unknown], "?"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.word))
		}
	}
	return strings.Join(parts, " ")
}

// changes returns the last changes; those of this check are highlighted.
func (w *watcher) changes() []string {
	latest := watch.Grouped(w.history.Latest)
	if len(latest) == 0 {
		return nil
	}
	head := "Changed at " + latest[0].At.Format("15:04:05")
	if len(latest) > changesShown {
		head += fmt.Sprintf(", %d of %d", changesShown, len(latest))
	}
	lines := []string{w.theme.Title.Render(head)}
	for _, g := range latest[:min(changesShown, len(latest))] {
		s := w.theme.Cut(" "+plain.Changed(g)+" ", w.width)
		switch {
		case len(w.history.Changes) > 0:
			s = w.theme.Focus.Render(s)
		case g.Better():
			s = w.theme.Good.Render(s)
		default:
			s = w.theme.Bad.Render(s)
		}
		lines = append(lines, s)
	}
	return append(lines, "")
}

// refresh renders the findings again at the same scroll position.
func (w *watcher) refresh() {
	h := &w.history
	if h.Last == nil {
		return
	}
	news := map[string]bool{}
	for _, c := range h.Changes {
		news[c.ID+" "+c.Target.String()] = true
	}
	// Those that do not matter and never change are left out.
	loud := slices.DeleteFunc(slices.Clone(h.Last.Findings), func(f checks.Finding) bool { return f.Quiet })
	var b strings.Builder
	for _, status := range []checks.Status{checks.Fail, checks.Warn, checks.Unknown} {
		for _, g := range plain.Grouped(loud, status) {
			f := g.Findings[0]
			head := fmt.Sprintf("%s %s  %s", w.theme.Symbol(theme.MarkOf(status)), f.ID, g.Targets())
			if slices.ContainsFunc(g.Findings, func(f checks.Finding) bool { return news[f.ID+" "+f.Target.String()] }) {
				head += "  " + w.theme.Accent.Render("new")
			}
			fmt.Fprintln(&b, head)
			for _, e := range g.Evidence() {
				fmt.Fprintln(&b, "    "+e)
			}
			if f.Remedy != "" && status != checks.Unknown {
				fmt.Fprintln(&b, w.theme.Quiet.Render("    remedy: "+backends.Clean(f.Remedy)))
			}
		}
	}
	b.WriteString(w.theme.Quiet.Render(plain.Tally(h.Last.Findings)))
	w.scroll = w.scroll.replaced(w.theme, b.String())
}

func (w *watcher) keys() string {
	var parts []string
	for _, k := range [][2]string{{"q", "leave"}, {"Enter", "check now"}, {"Up/Down", "scroll"}} {
		parts = append(parts, w.theme.Accent.Render(k[0])+" "+w.theme.Quiet.Render(k[1]))
	}
	return strings.Join(parts, "  ")
}
