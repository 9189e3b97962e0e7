package live

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// A Scroll shows a long text: a plan, a report. Long lines are folded to the width of the screen.
type Scroll struct {
	theme theme.Theme
	text  string
	lines []string // folded to width
	width int
	top   int
	page  int
	ended bool // the last line has been drawn
}

// NewScroll returns a Scroll at the first line of the text.
func NewScroll(t theme.Theme, text string) *Scroll {
	return &Scroll{theme: t, text: strings.TrimRight(text, "\n"), page: 10}
}

// Update handles a key and reports whether it was used.
func (s *Scroll) Update(msg tea.Msg) bool {
	key, ok := msg.(tea.KeyPressMsg)
	if !ok {
		return false
	}
	switch key.String() {
	case "up", "k":
		s.top--
	case "down", "j":
		s.top++
	case "pgup", "b":
		s.top -= s.page
	case "pgdown", "space":
		s.top += s.page
	case "home", "g":
		s.top = 0
	case "end", "G":
		s.top = len(s.lines)
	default:
		return false
	}
	return true
}

// Ended reports whether the last line of the text has been drawn.
func (s *Scroll) Ended() bool { return s.ended }

// PageDown scrolls down by one page.
func (s *Scroll) PageDown() { s.top += s.page }

// View draws the part that fits, with the position below it if the text is longer.
func (s *Scroll) View(width, height int) string {
	if width != s.width {
		was := len(s.lines)
		s.width, s.lines = width, strings.Split(theme.Fold(s.text, width), "\n")
		if was > 0 {
			s.top = int(float64(s.top)/float64(was)*float64(len(s.lines)) + 0.5)
		}
	}
	body := height
	if len(s.lines) > height {
		body = max(1, height-1)
	}
	s.page = max(1, body-1)
	s.top = min(max(0, s.top), max(0, len(s.lines)-body))
	end := min(s.top+body, len(s.lines))
	s.ended = s.ended || end == len(s.lines)
	out := make([]string, 0, height)
	out = append(out, s.lines[s.top:end]...)
	if len(s.lines) > height {
		more := "end"
		if end < len(s.lines) {
			more = "more below: PgDn"
		}
		out = append(out, s.theme.Accent.Render(s.theme.Cut(fmt.Sprintf("lines %d-%d of %d, %s", s.top+1, end, len(s.lines), more), width)))
	}
	return strings.Join(out, "\n")
}

// replaced returns a Scroll of another text at the same position; s may be nil.
func (s *Scroll) replaced(t theme.Theme, text string) *Scroll {
	n := NewScroll(t, text)
	if s != nil {
		n.top, n.page = s.top, s.page
	}
	return n
}
