// Package theme contains the colours and symbols of all screens, with a plain-ASCII fallback. No other package names a colour.
package theme

import (
	"image/color"
	"strings"

	"charm.land/lipgloss/v2"
)

// A Theme defines how states are displayed. Plain has no colours, and no symbols other than ASCII.
type Theme struct {
	Colour bool
	ASCII  bool

	Title, Good, Bad, Warning, Quiet, Accent, Focus lipgloss.Style
	Border                                          lipgloss.Border
}

// New returns a theme. colour false honours NO_COLOR and pipes; ascii is for terminals without UTF-8; dark is the
// terminal's background.
func New(colour, ascii, dark bool) Theme {
	t := Theme{Colour: colour, ASCII: ascii, Border: lipgloss.RoundedBorder()}
	if ascii {
		t.Border = lipgloss.ASCIIBorder()
	}
	plain := lipgloss.NewStyle()
	if !colour {
		// No bold text either, because reports are piped. Only the cursor, which is never piped, is highlighted.
		t.Title, t.Good, t.Bad, t.Warning, t.Quiet, t.Accent, t.Focus = plain, plain, plain, plain, plain, plain, plain.Reverse(true)
		return t
	}
	pick := lipgloss.LightDark(dark)
	paint := func(light, dark string) color.Color { return pick(lipgloss.Color(light), lipgloss.Color(dark)) }
	t.Title = plain.Bold(true).Foreground(paint("#0B4F9E", "#7CC4FF"))
	t.Good = plain.Foreground(paint("#13713A", "#5FD68A"))
	t.Bad = plain.Bold(true).Foreground(paint("#B3261E", "#FF7A70"))
	t.Warning = plain.Foreground(paint("#8A5A00", "#F2C14E"))
	t.Quiet = plain.Foreground(paint("#5F6B76", "#8B98A5"))
	t.Accent = plain.Foreground(paint("#0B4F9E", "#7CC4FF"))
	t.Focus = plain.Bold(true).Foreground(paint("#FFFFFF", "#0B1620")).Background(paint("#0B4F9E", "#7CC4FF"))
	return t
}

// Plain is for pipes and logs.
func Plain() Theme { return New(false, true, false) }

// UTF8 reports whether the terminal supports UTF-8, according to the first of LC_ALL, LC_CTYPE and LANG that is set.
func UTF8(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := getenv(name); v != "" {
			v = strings.ToLower(v)
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}

// A Mark is the symbol of a state.
type Mark int

// The marks.
const (
	Pass Mark = iota
	Warn
	Fail
	Unknown
	Running
	Waiting
	Skipped
)

// MarkOf returns the mark of the status of a check or of the verdict on a measurement. Unknown words are Unknown, never Pass.
func MarkOf[S ~string](status S) Mark {
	switch status {
	case "pass":
		return Pass
	case "warn":
		return Warn
	case "fail":
		return Fail
	case "away", "n/a":
		return Skipped
	}
	return Unknown
}

// Symbol returns the mark as one cell, in its colour.
func (t Theme) Symbol(m Mark) string {
	utf := [...]string{"✓", "!", "✗", "?", "●", "·", "-"}
	ascii := [...]string{"+", "!", "x", "?", "*", ".", "-"}
	styles := [...]lipgloss.Style{t.Good, t.Warning, t.Bad, t.Warning, t.Accent, t.Quiet, t.Quiet}
	if t.ASCII {
		return styles[m].Render(ascii[m])
	}
	return styles[m].Render(utf[m])
}

// Badges are the words that every page shows: that something was not verified, and that everything is simulated.
func (t Theme) Badges(insecure, simulated bool) string {
	var words []string
	if insecure {
		words = append(words, t.Bad.Render("INSECURE"))
	}
	if simulated {
		words = append(words, t.Warning.Render("SIMULATED"))
	}
	return strings.Join(words, "  ")
}

// Bar draws a bar of width cells, filled by fraction (0 to 1).
func (t Theme) Bar(fraction float64, width int) string {
	fraction = min(max(fraction, 0), 1)
	full := int(fraction*float64(width) + 0.5)
	on, off := "█", "░"
	if t.ASCII {
		on, off = "#", "."
	}
	return t.Accent.Render(strings.Repeat(on, full)) + t.Quiet.Render(strings.Repeat(off, width-full))
}

// Trace draws a sequence of states, one cell each: the higher, the worse. Skipped is an unknown state.
func (t Theme) Trace(marks []Mark) string {
	utf := map[Mark]string{Pass: "▁", Unknown: "▂", Warn: "▄", Fail: "█", Skipped: "×"}
	ascii := map[Mark]string{Pass: "_", Unknown: "?", Warn: "=", Fail: "#", Skipped: "x"}
	styles := map[Mark]lipgloss.Style{Pass: t.Good, Unknown: t.Quiet, Warn: t.Warning, Fail: t.Bad, Skipped: t.Quiet}
	var b strings.Builder
	for i := 0; i < len(marks); {
		end := i + 1
		for end < len(marks) && marks[end] == marks[i] {
			end++
		}
		sign := utf[marks[i]]
		if t.ASCII {
			sign = ascii[marks[i]]
		}
		b.WriteString(styles[marks[i]].Render(strings.Repeat(sign, end-i)))
		i = end
	}
	return b.String()
}
