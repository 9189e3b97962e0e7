package live

import (
	"fmt"
	"strings"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// A Row is one line of a Table.
type Row struct {
	ID       string
	Cells    []string
	Group    string // rows of one group behave like radio buttons where the table says so
	Disabled string // why the row cannot be chosen, "" when it can
}

// A Table is a long list with a cursor, a filter, choosing with space and, where Edit is set, editing of one column.
// It draws only what is visible.
type Table struct {
	Columns []string
	Rows    []Row
	Chosen  map[string]bool // by row id
	Radio   bool            // one row per group
	Fixed   bool            // nothing can be chosen: a list to read
	// Edit names the column that e edits; Edited checks and keeps the new text.
	Edit   int
	Edited func(id, text string) error

	theme   theme.Theme
	widths  []int
	visible []int // rows that the filter lets through
	cursor  int   // index into visible
	top     int
	filter  textinput.Model
	typing  bool // the filter takes the keys
	editor  textinput.Model
	editing bool
	err     string
}

// NewTable gives a table whose cursor stands on the first row. Edit is off (-1).
func NewTable(t theme.Theme, columns []string, rows []Row) *Table {
	f, e := textinput.New(), textinput.New()
	f.Prompt, e.Prompt = "/", "> "
	f.SetVirtualCursor(true)
	table := &Table{Columns: columns, Rows: rows, Chosen: map[string]bool{}, Edit: -1, theme: t, filter: f, editor: e}
	table.SetRows(rows)
	return table
}

// SetRows replaces the rows; what was chosen stays chosen.
func (t *Table) SetRows(rows []Row) {
	t.Rows = rows
	t.widths = make([]int, len(t.Columns))
	for i, c := range t.Columns {
		t.widths[i] = lipgloss.Width(c)
	}
	for r := range rows {
		for i := range rows[r].Cells {
			rows[r].Cells[i] = plain.Clean(rows[r].Cells[i])
			if i < len(t.widths) {
				t.widths[i] = max(t.widths[i], lipgloss.Width(rows[r].Cells[i]))
			}
		}
	}
	t.narrow()
}

// narrow works out which rows the filter lets through: every word must be in the row.
func (t *Table) narrow() {
	words := strings.Fields(strings.ToLower(t.filter.Value()))
	t.visible = t.visible[:0]
	for i, r := range t.Rows {
		if matches(r, words) {
			t.visible = append(t.visible, i)
		}
	}
	t.cursor = min(t.cursor, max(0, len(t.visible)-1))
}

func matches(r Row, words []string) bool {
	for _, w := range words {
		hit := false
		for _, c := range r.Cells {
			if strings.Contains(strings.ToLower(c), w) {
				hit = true
				break
			}
		}
		if !hit {
			return false
		}
	}
	return true
}

// Typing tells whether a text field has the keyboard, so that letters and Enter are meant for it.
func (t *Table) Typing() bool { return t.typing || t.editing }

// Update takes a key; it says whether the key was used.
func (t *Table) Update(msg tea.Msg) (tea.Cmd, bool) {
	key, ok := msg.(tea.KeyPressMsg)
	switch {
	case t.editing:
		return t.updateEditor(msg)
	case t.typing:
		return t.updateFilter(msg)
	case !ok:
		return nil, false
	}
	t.err = ""
	switch key.String() {
	case "up", "k":
		t.move(-1)
	case "down", "j":
		t.move(1)
	case "pgup":
		t.move(-10)
	case "pgdown":
		t.move(10)
	case "home", "g":
		t.move(-len(t.visible))
	case "end", "G":
		t.move(len(t.visible))
	case "/":
		t.typing = true
		return t.filter.Focus(), true
	case "space", "x":
		t.toggle()
	case "a":
		t.all()
	case "e":
		return t.beginEdit(), true
	default:
		return nil, false
	}
	return nil, true
}

func (t *Table) move(by int) {
	t.cursor = min(max(0, t.cursor+by), max(0, len(t.visible)-1))
}

func (t *Table) row() *Row {
	if len(t.visible) == 0 {
		return nil
	}
	return &t.Rows[t.visible[t.cursor]]
}

func (t *Table) toggle() {
	r := t.row()
	if r == nil || t.Fixed {
		return
	}
	if r.Disabled != "" && !t.Chosen[r.ID] {
		t.err = r.Cells[0] + ": " + r.Disabled
		return
	}
	was := t.Chosen[r.ID]
	if t.Radio {
		for _, other := range t.Rows {
			if other.Group == r.Group {
				delete(t.Chosen, other.ID)
			}
		}
	}
	if was {
		delete(t.Chosen, r.ID)
	} else {
		t.Chosen[r.ID] = true
	}
}

// all chooses every visible row that can be chosen, or none when all are chosen.
func (t *Table) all() {
	if t.Radio || t.Fixed {
		return
	}
	missing := false
	for _, i := range t.visible {
		if r := t.Rows[i]; r.Disabled == "" && !t.Chosen[r.ID] {
			missing = true
		}
	}
	for _, i := range t.visible {
		if r := t.Rows[i]; missing && r.Disabled == "" {
			t.Chosen[r.ID] = true
		} else if !missing {
			delete(t.Chosen, r.ID)
		}
	}
}

func (t *Table) beginEdit() tea.Cmd {
	r := t.row()
	if r == nil || t.Edit < 0 || t.Edit >= len(r.Cells) {
		return nil
	}
	t.editing = true
	t.editor.SetValue(r.Cells[t.Edit])
	t.editor.CursorEnd()
	return t.editor.Focus()
}

func (t *Table) updateEditor(msg tea.Msg) (tea.Cmd, bool) {
	if key, ok := msg.(tea.KeyPressMsg); ok {
		switch key.String() {
		case "esc":
			t.editing = false
			return nil, true
		case "enter":
			r := t.row()
			if err := t.Edited(r.ID, strings.TrimSpace(t.editor.Value())); err != nil {
				t.err = err.Error()
				return nil, true
			}
			t.editing, t.err = false, ""
			return nil, true
		}
	}
	var cmd tea.Cmd
	t.editor, cmd = t.editor.Update(msg)
	return cmd, true
}

func (t *Table) updateFilter(msg tea.Msg) (tea.Cmd, bool) {
	if key, ok := msg.(tea.KeyPressMsg); ok {
		switch key.String() {
		case "esc":
			t.filter.SetValue("")
			t.typing = false
			t.narrow()
			return nil, true
		case "enter":
			t.typing = false
			return nil, true
		}
	}
	var cmd tea.Cmd
	t.filter, cmd = t.filter.Update(msg)
	t.narrow()
	return cmd, true
}

// View draws the table into width x height cells.
func (t *Table) View(width, height int) string {
	lines := []string{t.theme.Quiet.Render(clip("    "+t.cells(t.Columns), width))}
	body := max(1, height-3)
	if t.cursor < t.top {
		t.top = t.cursor
	}
	if t.cursor >= t.top+body {
		t.top = t.cursor - body + 1
	}
	for i := t.top; i < min(t.top+body, len(t.visible)); i++ {
		lines = append(lines, t.line(i, width))
	}
	if len(t.visible) == 0 {
		lines = append(lines, t.theme.Quiet.Render("    nothing matches"))
	}
	for len(lines) < body+1 {
		lines = append(lines, "")
	}
	return strings.Join(append(lines, t.foot(width), t.theme.Bad.Render(clip(t.err, width))), "\n")
}

func (t *Table) line(i, width int) string {
	r := t.Rows[t.visible[i]]
	mark := "[ ]"
	switch {
	case t.Fixed:
		mark = "   "
	case t.Chosen[r.ID]:
		mark = "[x]"
	case r.Disabled != "":
		mark = " - "
	}
	text := clip(mark+" "+t.cells(r.Cells), width)
	switch {
	case i == t.cursor:
		return t.theme.Focus.Render(text + strings.Repeat(" ", max(0, width-lipgloss.Width(text))))
	case r.Disabled != "":
		return t.theme.Quiet.Render(text)
	}
	return text
}

func (t *Table) cells(cells []string) string {
	var b strings.Builder
	for i, c := range cells {
		if i > 0 {
			b.WriteString("  ")
		}
		b.WriteString(c)
		if i < len(cells)-1 && i < len(t.widths) {
			b.WriteString(strings.Repeat(" ", max(0, t.widths[i]-lipgloss.Width(c))))
		}
	}
	return b.String()
}

func (t *Table) foot(width int) string {
	switch {
	case t.editing:
		return clip(t.Columns[t.Edit]+" "+t.editor.View(), width)
	case t.typing:
		return clip(t.filter.View(), width)
	}
	s := fmt.Sprintf("%d of %d", min(t.cursor+1, len(t.visible)), len(t.visible))
	if len(t.visible) != len(t.Rows) {
		s += fmt.Sprintf(" (filter %q, %d in all)", t.filter.Value(), len(t.Rows))
	}
	if !t.Fixed {
		s += fmt.Sprintf(", %d chosen", len(t.Chosen))
	}
	return t.theme.Quiet.Render(clip(s, width))
}

// clip cuts a line to width cells.
func clip(s string, width int) string {
	if lipgloss.Width(s) <= width {
		return s
	}
	return lipgloss.NewStyle().MaxWidth(max(1, width)).Render(s)
}
