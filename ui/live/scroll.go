package live

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// A Scroll shows a long text: a plan, a report.
type Scroll struct {
	theme theme.Theme
	lines []string
	top   int
	page  int
}

// NewScroll gives a text that begins at its first line.
func NewScroll(t theme.Theme, text string) *Scroll {
	return &Scroll{theme: t, lines: strings.Split(strings.TrimRight(text, "\n"), "\n"), page: 10}
}

// Update takes a key; it says whether the key was used.
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

// View draws the part that fits, with the position below where it does not all fit.
func (s *Scroll) View(width, height int) string {
	body := height
	if len(s.lines) > height {
		body = max(1, height-1)
	}
	s.page = max(1, body-1)
	s.top = min(max(0, s.top), max(0, len(s.lines)-body))
	end := min(s.top+body, len(s.lines))
	out := make([]string, 0, height)
	for _, l := range s.lines[s.top:end] {
		out = append(out, clip(l, width))
	}
	if len(s.lines) > height {
		out = append(out, s.theme.Quiet.Render(clip(fmt.Sprintf("lines %d-%d of %d", s.top+1, end, len(s.lines)), width)))
	}
	return strings.Join(out, "\n")
}
