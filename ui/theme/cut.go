package theme

import "charm.land/lipgloss/v2"

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
