package live_test

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// reading returns a reader of a text with two sections of 30 lines, on a screen of 60 x 12 cells.
type reading struct {
	t *testing.T
	r *live.Reader
}

func beginReading(t *testing.T) *reading {
	return &reading{t, live.NewReader(theme.Plain(), func(width int) string {
		s := fmt.Sprintf("verdict, %d wide\n", width)
		for _, name := range []string{"Measured", "Checked"} {
			s += "\n" + name + "  tally\n"
			for i := range 30 {
				s += fmt.Sprintf("  %s %d\n", strings.ToLower(name), i)
			}
		}
		return s
	})}
}

func (r *reading) press(keys ...string) *reading {
	r.t.Helper()
	r.r.View(60, 12)
	named := map[string]tea.KeyPressMsg{"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "tab": {Code: tea.KeyTab},
		"backtab": {Code: tea.KeyTab, Mod: tea.ModShift},
		"end":     {Code: tea.KeyEnd}, "backspace": {Code: tea.KeyBackspace}}
	for _, k := range keys {
		m, ok := named[k]
		if !ok {
			m = tea.KeyPressMsg{Code: []rune(k)[0], Text: k}
		}
		if !r.r.Update(m) {
			r.t.Errorf("%q was not used", k)
		}
		r.r.View(60, 12)
	}
	return r
}

func (r *reading) shows(text string, want bool) *reading {
	r.t.Helper()
	if s := r.r.View(60, 12); strings.Contains(s, text) != want || strings.Count(s, "\n") > 11 {
		r.t.Errorf("shows %q: %t, want %t:\n%s", text, !want, want, s)
	}
	return r
}

func TestAReaderIsSearched(t *testing.T) {
	r := beginReading(t).shows("checked 17", false)
	r.press("/", "C", "h", "e", "c", "k", "e", "d", " ", "1").shows("checked 1", true).shows("search: checked 1_  match 1 of 11", true)
	r.press("7").shows("checked 17", true).shows("match 1 of 1", true)
	r.press("x").shows("not found", true)
	r.press("backspace", "backspace", "enter", "n", "n").shows("checked 11", true).shows("match 3 of 11", true)
	r.press("N", "N", "N").shows("checked 19", true).shows("match 11 of 11", true)
	r.press("esc").shows("search", false)
	if r.r.Update(tea.KeyPressMsg{Code: tea.KeyEscape}) {
		t.Error("Esc without a search is for the page")
	}
}

func TestAReadersSectionsAreFolded(t *testing.T) {
	r := beginReading(t).press("F").shows("Measured  tally  [30 lines folded]", true).shows("Checked  tally  [30 lines folded]", true).shows(
		"measured 0", false)
	r.press("tab", "tab", "f").shows("checked 0", true).shows("Measured  tally  [30 lines folded]", true)
	r.press("/", "m", "e", "a", "s", "u", "r", "e", "d", " ", "2", "9").shows("measured 29", true) // a match is never hidden
	r.press("esc", "backtab", "f").shows("measured 29", false)
	r.press("F", "F").shows("verdict, 60 wide", true)
	if s := r.r.View(40, 12); !strings.Contains(s, "verdict, 40 wide") {
		t.Errorf("not drawn again for another width:\n%s", s)
	}
	r.r.Update(tea.KeyPressMsg{Code: 'F', Text: "F"})
	r.r.View(40, 12)
	if s := r.r.View(60, 12); !strings.Contains(s, "[30 lines folded]") {
		t.Errorf("what is folded does not stay folded:\n%s", s)
	}
}
