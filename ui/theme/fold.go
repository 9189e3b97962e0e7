package theme

import (
	"strings"

	"charm.land/lipgloss/v2"
)

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
