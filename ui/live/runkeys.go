package live

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// A list is the operator's view of the run page: the targets that match the filter, with one selected.
type list struct {
	on      bool // a target was selected, filtered or folded, so the rows scroll
	at      int
	fold    bool // targets that are done are hidden
	filter  string
	typing  bool // the filter
	details bool // of the selected target
	confirm *engine.Control
	said    string // result of the last control
}

// Keys returns the keys that have an effect now, for the line below the page.
func (r *Run) Keys() [][2]string {
	switch {
	case r.list.confirm != nil:
		return [][2]string{{"y", "yes"}, {"n", "no"}}
	case r.list.typing:
		return [][2]string{{"Enter", "keep the filter"}, {"Esc", "clear it"}}
	case r.measures():
		return slices.DeleteFunc(slices.Clone(runKeys), func(k [2]string) bool { return controls[k[0]] })
	}
	return runKeys
}

// measures reports whether the changes are done and the measurement has started.
func (r *Run) measures() bool { return r.tests > 0 || r.load.Load != "" }

// controls are the keys that act on the changes of a run, not on its page.
var controls = map[string]bool{"p": true, "x": true, "R": true}

var runKeys = [][2]string{{"p", "pause/continue"}, {"Up Down", "choose"}, {"d", "details"}, {"x", "skip"}, {"R", "retry"},
	{"f", "fold done"}, {"/", "filter"}}

// Typing reports whether letters are meant for the filter or for an answer.
func (r *Run) Typing() bool { return r.list.typing || r.list.confirm != nil }

// Said shows the result of a control.
func (r *Run) Said(text string, err error) {
	if err != nil {
		text = err.Error()
		if hint := backends.HintOf(err); hint != "" {
			text += " (" + hint + ")"
		}
	}
	r.list.said = text
}

// Key handles a key; it returns the resulting control, and whether the key was used.
func (r *Run) Key(key, text string) (c *engine.Control, used bool) {
	l := &r.list
	switch {
	case l.confirm != nil:
		if c, l.confirm = l.confirm, nil; key != "y" {
			c = nil
		}
		return c, true
	case l.typing:
		switch {
		case key == "enter":
			l.typing = false
		case key == "esc":
			l.typing, l.filter = false, ""
		case key == "backspace":
			_, n := utf8.DecodeLastRuneInString(l.filter)
			l.filter = l.filter[:len(l.filter)-n]
		default:
			l.filter += text
		}
		l.at = 0
		return nil, true
	}
	l.said = ""
	if r.measures() && controls[key] {
		l.said = "the changes are done; Ctrl-C stops the measurement"
		return nil, true
	}
	all := r.listed()
	switch key {
	case "p":
		if r.state.Paused != "" {
			return &engine.Control{Do: engine.ControlContinue}, true
		}
		return &engine.Control{Do: engine.ControlPause}, true
	case "up", "k":
		l.at--
	case "down", "j":
		if l.on {
			l.at++
		}
	case "pgup":
		l.at -= 10
	case "pgdown":
		l.at += 10
	case "home":
		l.at = 0
	case "end":
		l.at = len(all) - 1
	case "f":
		l.fold = !l.fold
	case "/":
		l.typing = true
	case "d":
		l.details = !l.details
	case "x", "R":
		switch {
		case !l.on || l.at >= len(all):
			l.said = "choose a target first, with the arrow keys"
		case key == "x" && all[l.at].Word() == "done":
			l.said = all[l.at].Target.String() + " is done; nothing is left to skip"
		default:
			do := map[string]engine.Verb{"x": engine.ControlSkip, "R": engine.ControlRetry}[key]
			l.confirm = &engine.Control{Do: do, Target: all[l.at].Target}
		}
	case "esc":
		if !l.on {
			return nil, false
		}
		r.list = list{}
		return nil, true
	default:
		return nil, false
	}
	l.on = true
	l.at = min(max(0, l.at), max(0, len(r.listed())-1))
	return nil, true
}

// listed returns the targets that are visible with the filter and the folding.
func (r *Run) listed() []*engine.TargetState {
	var out []*engine.TargetState
	for _, t := range r.state.Targets {
		name := strings.ToLower(backends.Clean(t.Target.String()) + " " + t.Word())
		if !(r.list.fold && t.Word() == "done") && strings.Contains(name, strings.ToLower(backends.Clean(r.list.filter))) {
			out = append(out, t)
		}
	}
	return out
}

// chosen returns the rows of a scrolling list, with the details of the selected target below.
func (r *Run) chosen(width, room int, now time.Time) []string {
	all := r.listed()
	l := &r.list
	l.at = min(max(0, l.at), max(0, len(all)-1))
	head := fmt.Sprintf("%d of %d targets", len(all), len(r.state.Targets))
	if l.fold {
		head += ", done ones folded"
	}
	if l.filter != "" || l.typing {
		head += ", filter: " + l.filter
		if l.typing {
			head += "_"
		}
	}
	lines := []string{r.theme.Quiet.Render(r.theme.Cut(head, width))}
	if len(all) == 0 {
		return lines
	}
	var below []string
	if l.details {
		below = r.details(backends.Shown(all[l.at]), width, max(2, room/2), now)
	}
	wide := widest(all)
	fits := max(1, room-1-len(below))
	top := min(max(0, l.at-fits/2), max(0, len(all)-fits))
	for i := top; i < min(len(all), top+fits); i++ {
		mark := "  "
		if i == l.at {
			mark = r.theme.Accent.Render("> ")
		}
		lines = append(lines, mark+r.row(all[i], wide, width-2, now))
	}
	return append(lines, below...)
}

// details returns the steps of a target. If they do not all fit, they begin at the first one that failed or is running, or else at the
// first pending one.
func (r *Run) details(t *engine.TargetState, width, room int, now time.Time) []string {
	lines := []string{r.theme.Title.Render(r.theme.Cut(t.Target.String()+": "+t.Word(), width))}
	var steps []string
	first := slices.IndexFunc(t.Steps, func(n *engine.StepState) bool { return n.Running || n.Ended == engine.EventFailed })
	if first < 0 {
		first = slices.IndexFunc(t.Steps, func(n *engine.StepState) bool { return n.Ended == "" })
	}
	for _, n := range t.Steps {
		s := engine.NodeState(n.Ended).Word()
		switch {
		case n.Running:
			s = "running " + seconds(now.Sub(n.Since))
		case s == "":
			s = "waiting"
		case n.Elapsed >= time.Second && n.Ended != engine.EventBlocked:
			s += " " + seconds(n.Elapsed)
		}
		s = fmt.Sprintf("  %-14s %s", s, n.Title)
		if n.Err != "" {
			s += ": " + reason(t.Target, n.Err)
		}
		if n.Hint != "" {
			s += " (" + n.Hint + ")"
		}
		steps = append(steps, r.theme.Cut(s, width))
	}
	from := max(0, len(steps)-(room-1))
	if first >= 0 {
		from = min(from, first)
	}
	return append(lines, steps[from:min(len(steps), from+room-1)]...)
}

// asked returns the line with a question or the result of a control; nil if there is none.
func (r *Run) asked(width int) []string {
	l := &r.list
	switch {
	case l.confirm != nil && l.confirm.Do == engine.ControlRetry:
		return []string{
			r.theme.Warning.Render(r.theme.Cut(fmt.Sprintf("Retry %s? If needed it goes out of service again (y/N)", l.confirm.Target), width))}
	case l.confirm != nil:
		return []string{r.theme.Warning.Render(r.theme.Cut(fmt.Sprintf("Skip the rest of %s and what needs it? (y/N)", l.confirm.Target), width))}
	case l.said != "":
		return strings.Split(theme.Fold(l.said, width), "\n")
	}
	return nil
}

// service describes which targets are out of service, and how many have been and will be.
func (r *Run) service(width int) []string {
	var out []string
	var by plain.Gathered[backends.TargetType, *engine.TargetState]
	for _, t := range r.state.Targets {
		if t.Service() != "" {
			by.Add(t.Target.Type, t)
		}
	}
	for kind, targets := range by.All() {
		count, names := map[string]int{}, []string{}
		for _, t := range targets {
			name := t.Target.Name
			if t.Canary {
				name += " (canary)"
			}
			s := t.Service()
			if count[s]++; s == "out" {
				names = append(names, name)
			}
		}
		now := "none"
		if n := len(names); n > 5 {
			now = strconv.Itoa(n)
		} else if n > 0 {
			now = strings.Join(names, ", ")
		}
		out = append(out,
			r.theme.Cut(fmt.Sprintf("%s out of service: %s; %d back, %d to go", many(kind), now, count["back"], count["to go"]),
				width))
	}
	return out
}

// many are the targets of a type.
func many(t backends.TargetType) string {
	if t == backends.TypeVM {
		return "VMs"
	}
	return string(t) + "s"
}

// lasting is how long a step has run, in steps that are coarse enough for many rows on a slow line; "" under ten seconds.
func lasting(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return ""
	case d < time.Minute:
		return d.Truncate(10*time.Second).String() + " "
	}
	return strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s") + " "
}

func seconds(d time.Duration) string { return max(0, d).Round(time.Second).String() }
