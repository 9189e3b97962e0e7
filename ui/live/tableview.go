package live

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
)

const (
	markWidth   = 4  // "[x] "
	lastAtLeast = 24 // minimum width of the last column before other columns are hidden
	detailLines = 2
)

// View renders the table in width x height cells: the heading, the rows, the detail or the error of the row under the cursor, and
// the position or the text field.
func (t *Table) View(width, height int) string {
	if t.changed {
		t.measure()
	}
	shown := t.fit(width)
	lines := []string{
		t.theme.Quiet.Render(strings.Repeat(" ", markWidth) + t.cells(plain.Mapped(t.columns, func(c Column) string { return c.Title }), shown,
			width-markWidth))}
	body := max(1, height-2-detailLines)
	if t.cursor < t.top {
		t.top = t.cursor
	}
	if t.cursor >= t.top+body {
		t.top = t.cursor - body + 1
	}
	t.top = min(t.top, max(0, len(t.visible)-body))
	for i := t.top; i < min(t.top+body, len(t.visible)); i++ {
		lines = append(lines, t.line(i, shown, width))
	}
	if len(t.visible) == 0 {
		lines = append(lines, t.theme.Quiet.Render("    nothing matches"))
	}
	for len(lines) < body+1 {
		lines = append(lines, "")
	}
	lines = append(lines, t.detail(width)...)
	return strings.Join(append(lines, t.foot(width)), "\n")
}

func (t *Table) fit(width int) []bool {
	shown := make([]bool, len(t.columns))
	need := markWidth
	for i := range shown {
		shown[i] = true
		w := t.widths[i]
		if i == len(shown)-1 {
			w = min(w, lastAtLeast)
		}
		need += w + 2
	}
	for need-2 > width {
		drop := 0
		for i, c := range t.columns {
			if shown[i] && c.Rank > 0 && (drop == 0 || c.Rank > t.columns[drop].Rank) {
				drop = i
			}
		}
		if drop == 0 {
			break
		}
		shown[drop] = false
		need -= t.widths[drop] + 2
	}
	return shown
}

func (t *Table) line(i int, shown []bool, width int) string {
	r := t.rows[t.visible[i]]
	mark := "[ ]"
	switch {
	case t.Chosen[r.ID]:
		mark = "[x]"
	case r.Disabled != "":
		mark = " - "
	}
	text := t.cells(r.Cells, shown, width-markWidth)
	switch {
	case i == t.cursor:
		text = mark + " " + text
		return t.theme.Focus.Render(text + strings.Repeat(" ", max(0, width-lipgloss.Width(text))))
	case t.Chosen[r.ID]:
		return t.theme.Good.Render(mark) + " " + text
	case r.Disabled != "":
		return t.theme.Quiet.Render(mark + " " + text)
	}
	return mark + " " + text
}

func (t *Table) cells(cells []string, shown []bool, width int) string {
	var b strings.Builder
	for i, c := range cells {
		if !shown[i] {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("  ")
		}
		b.WriteString(c)
		if i < len(cells)-1 {
			b.WriteString(strings.Repeat(" ", max(0, t.widths[i]-lipgloss.Width(c))))
		}
	}
	return t.theme.Cut(strings.TrimRight(b.String(), " "), width)
}

// detail returns the error, or else the details of the row under the cursor, in at most two lines.
func (t *Table) detail(width int) []string {
	text, style := "", t.theme.Accent
	if r := t.row(); t.err != "" {
		text, style = "error: "+t.err, t.theme.Bad
	} else if r != nil {
		text = r.Detail
	}
	lines := make([]string, detailLines)
	copy(lines, t.theme.Rows(style, backends.Clean(text), width, detailLines))
	return lines
}

func (t *Table) foot(width int) string {
	switch {
	case t.edit != nil:
		label := t.columns[t.edit.Column].Title + " of " + t.row().Cells[0] + " "
		if t.many {
			label = fmt.Sprintf("%s of %d: ", t.edit.AllAsk, len(t.together()))
		}
		if t.edit.Form != "" && !t.many {
			label += "(" + t.edit.Form + ") "
		}
		t.editor.SetWidth(max(8, width-lipgloss.Width(label)-4))
		return t.theme.Title.Render(label) + t.editor.View()
	case t.typing:
		t.filter.SetWidth(max(8, width-30))
		return t.filter.View() + t.theme.Quiet.Render(fmt.Sprintf("  %d match", len(t.visible)))
	}
	s := fmt.Sprintf("%d of %d", min(t.cursor+1, len(t.visible)), len(t.visible))
	if len(t.visible) != len(t.rows) {
		s += fmt.Sprintf(" (filter %q, %d in total; Esc clears it)", t.filter.Value(), len(t.rows))
	}
	return t.theme.Quiet.Render(t.theme.Cut(fmt.Sprintf("%s, %d chosen", s, len(t.Chosen)), width))
}
