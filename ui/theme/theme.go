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

var marks = map[string]Mark{"pass": Pass, "warn": Warn, "fail": Fail, "n/a": Skipped}

// MarkOf returns the mark of the status of a check or of the verdict on a measurement. Unknown words are Unknown, never Pass.
func MarkOf[S ~string](status S) Mark {
	if mark, known := marks[string(status)]; known {
		return mark
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

// Cut shortens text without colours to width cells, and marks the cut.
func (t Theme) Cut(s string, width int) string {
	if lipgloss.Width(s) <= width {
		return s
	}
	tail := "…"
	if t.ASCII {
		tail = "..."
	}
	return Clip(s, width-lipgloss.Width(tail)) + tail
}

// Rows folds a text into at most the given number of rows, each in the style. If it is longer, the last one is cut.
func (t Theme) Rows(style lipgloss.Style, text string, width, most int) []string {
	rows := strings.Split(Fold(text, width), "\n")
	if len(rows) > most {
		rows = append(rows[:most-1], t.Cut(rows[most-1]+" "+strings.TrimSpace(rows[most]), width))
	}
	for i := range rows {
		rows[i] = style.Render(rows[i])
	}
	return rows
}

// Clip cuts a line to width cells.
func Clip(s string, width int) string {
	switch {
	case lipgloss.Width(s) <= width:
		return s
	case width < 1:
		return ""
	}
	return lipgloss.NewStyle().MaxWidth(width).Render(s)
}

// Fold breaks the lines of a text at blanks so that none is wider than width; continuation lines are indented by two cells.
// Colours continue over a break.
func Fold(text string, width int) string { return fold(text, width, 2) }

// Wrap is Fold for prose: continuation lines have the indentation of the line.
func Wrap(text string, width int) string { return fold(text, width, 0) }

func fold(text string, width, deeper int) string {
	if width < 1 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if lipgloss.Width(l) <= width {
			continue
		}
		words := strings.TrimLeft(l, " ")
		indent := min(len(l)-len(words), width/2)
		hang := min(indent+deeper, width/2)
		// The library breaks lines after any hyphen, which splits names and commands; it does not break after U+2011.
		words = lipgloss.Wrap(strings.ReplaceAll(words, "-", noBreak), width-hang, "")
		words = strings.ReplaceAll(words, noBreak, "-")
		lines[i] = strings.Repeat(" ", indent) + strings.ReplaceAll(words, "\n", "\n"+strings.Repeat(" ", hang))
	}
	return strings.Join(lines, "\n")
}

const noBreak = "\u2011"

// Spark draws values from 0 to 1 as a row of columns, one cell each; values below 0 were not measured and stay blank.
func (t Theme) Spark(values []float64) string {
	levels := []rune("▁▂▃▄▅▆▇█")
	if t.ASCII {
		levels = []rune("_.:-=+*#")
	}
	var b strings.Builder
	for _, v := range values {
		if v < 0 {
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(levels[min(int(v*float64(len(levels))), len(levels)-1)])
	}
	return t.Accent.Render(b.String())
}
