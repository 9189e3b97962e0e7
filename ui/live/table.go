package live

import (
	"slices"
	"strings"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// A Column is one column of a Table. On a narrow screen the columns with the highest rank are hidden first; rank 0 is always shown.
type Column struct {
	Title string
	Rank  int
}

// A Row is one line of a Table.
type Row struct {
	ID       string
	Cells    []string
	Group    string // what c selects together; in a radio table one row per group can be selected
	Disabled string // why the row cannot be chosen, "" when it can
	Detail   string // details of the row, shown below the table while the cursor is on it
}

// An Edit is a column whose text can be changed.
type Edit struct {
	Key    string // the key that starts it
	Column int
	Form   string                      // what to type, shown before the text; "" if the column's title says it
	Set    func(id, text string) error // validates and stores the new text

	// All does that for all rows that are selected and match the filter, in order; nil if rows can only be edited one by one.
	All    func(ids []string, text string) error
	AllKey string // the key that starts it
	AllAsk string // the prompt
}

// A Table is a long list with a cursor, a filter, selection with space and editing of single cells. It draws only what is
// visible.
type Table struct {
	Chosen map[string]bool // by row id
	Radio  bool            // one row per group
	Groups string          // name of a group ("cluster"); "" if c must not select groups
	Edits  []Edit
	Full   func(id string) string  // why a row cannot be selected in addition to the selected ones, "" if it can
	Paste  func(text string) error // handles a list that is pasted while no text field is focused; may be nil

	theme   theme.Theme
	columns []Column
	rows    []Row
	find    []string // what the filter searches, by row
	widths  []int
	changed bool  // cells have changed since the widths were measured
	visible []int // rows that match the filter
	cursor  int   // index into visible
	top     int
	filter  textinput.Model
	typing  bool // keys go to the filter
	editor  textinput.Model
	edit    *Edit // nil while nothing is edited
	many    bool  // the edit applies to all selected rows
	err     string
}

// NewTable returns a table with the cursor on the first row.
func NewTable(t theme.Theme, columns []Column, rows []Row) *Table {
	table := &Table{Chosen: map[string]bool{}, Full: func(string) string { return "" }, theme: t, columns: columns, filter: field(t, "/"),
		editor: field(t, "> ")}
	table.SetRows(rows)
	return table
}

// SetRows replaces the rows; the filter is kept, and the cursor stays on the row with the same id.
func (t *Table) SetRows(rows []Row) {
	id := t.Cursor()
	t.rows, t.widths, t.find, t.changed = rows, make([]int, len(t.columns)), make([]string, len(rows)), true
	for i := range rows {
		for j := range rows[i].Cells {
			t.SetCell(i, j, rows[i].Cells[j])
		}
	}
	t.narrow()
	t.At(id)
}

// field returns a text field in the colours of the theme.
func field(t theme.Theme, prompt string) textinput.Model {
	f := textinput.New()
	f.Prompt = prompt
	s := f.Styles()
	s.Focused.Prompt, s.Focused.Text = t.Accent, lipgloss.NewStyle()
	s.Cursor.Blink = false // an idle page sends nothing, and no timer outlives it
	f.SetStyles(s)
	return f
}

// SetCell replaces the text of one cell.
func (t *Table) SetCell(row, column int, text string) {
	r := &t.rows[row]
	r.Cells[column] = backends.Clean(text)
	t.changed = true
	t.find[row] = strings.ToLower(strings.Join(r.Cells, "\n"))
}

func (t *Table) measure() {
	for i, c := range t.columns {
		t.widths[i] = lipgloss.Width(c.Title)
		for _, r := range t.rows {
			if i < len(r.Cells) {
				t.widths[i] = max(t.widths[i], lipgloss.Width(r.Cells[i]))
			}
		}
	}
	t.changed = false
}

// Cursor returns the id of the row at the cursor, "" if there is none.
func (t *Table) Cursor() string {
	if r := t.row(); r != nil {
		return r.ID
	}
	return ""
}

// Rows returns the rows, in order.
func (t *Table) Rows() []Row { return t.rows }

// At moves the cursor to a row.
func (t *Table) At(id string) {
	if i := slices.IndexFunc(t.visible, func(i int) bool { return t.rows[i].ID == id }); i >= 0 {
		t.cursor = i
	}
}

// narrow computes which rows match the filter: every word must be in the row.
func (t *Table) narrow() {
	words := strings.Fields(strings.ToLower(t.filter.Value()))
	t.visible = t.visible[:0]
	for i, text := range t.find {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			t.visible = append(t.visible, i)
		}
	}
	t.cursor = min(t.cursor, max(0, len(t.visible)-1))
}

// Typing reports whether a text field has the keyboard, so that letters and Enter are meant for it.
func (t *Table) Typing() bool { return t.typing || t.edit != nil }

// Update handles a key and reports whether it was used.
func (t *Table) Update(msg tea.Msg) (tea.Cmd, bool) {
	key, ok := msg.(tea.KeyPressMsg)
	switch {
	case t.edit != nil:
		return t.updateEditor(msg)
	case t.typing:
		return t.updateFilter(msg)
	case !ok:
		return nil, t.pasted(msg)
	}
	t.err = ""
	switch key.String() {
	case "/":
		t.typing = true
		return t.filter.Focus(), true
	case "esc":
		if t.filter.Value() == "" {
			return nil, false
		}
		t.clear()
	case "space", "x":
		t.toggle()
	case "a":
		t.all(func(Row) bool { return true })
	case "i":
		t.invert()
	case "c":
		if r := t.row(); r != nil && t.Groups != "" {
			t.all(func(other Row) bool { return other.Group == r.Group })
		}
	default:
		for i := range t.Edits {
			if t.Edits[i].Key == key.String() {
				return t.beginEdit(&t.Edits[i]), true
			}
			if t.Edits[i].AllKey == key.String() {
				return t.beginAll(&t.Edits[i]), true
			}
		}
		return nil, t.moved(key)
	}
	return nil, true
}

func (t *Table) pasted(msg tea.Msg) bool {
	list, ok := msg.(tea.PasteMsg)
	if !ok || t.Paste == nil {
		return false
	}
	t.err = ""
	t.refused(t.Paste(list.Content))
	return true
}

// refused stores an error to be shown beside the row, and reports whether there is one.
func (t *Table) refused(err error) bool {
	if err != nil {
		t.err = err.Error()
	}
	return err != nil
}

func (t *Table) together() []string {
	var ids []string
	for _, i := range t.visible {
		if id := t.rows[i].ID; t.Chosen[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// moved moves the cursor if the key is a cursor key.
func (t *Table) moved(key tea.KeyPressMsg) bool {
	by := 0
	switch key.String() {
	case "up", "k":
		by = -1
	case "down", "j":
		by = 1
	case "pgup":
		by = -10
	case "pgdown":
		by = 10
	case "home", "g":
		by = -len(t.visible)
	case "end", "G":
		by = len(t.visible)
	default:
		return false
	}
	t.cursor = min(max(0, t.cursor+by), max(0, len(t.visible)-1))
	return true
}

func (t *Table) row() *Row {
	if len(t.visible) == 0 {
		return nil
	}
	return &t.rows[t.visible[t.cursor]]
}

func (t *Table) beginEdit(e *Edit) tea.Cmd {
	r := t.row()
	if r == nil {
		return nil
	}
	return t.begin(e, false, r.Cells[e.Column])
}

// beginAll edits the selected rows together; the others follow the text of the first.
func (t *Table) beginAll(e *Edit) tea.Cmd {
	ids := t.together()
	if len(ids) == 0 {
		t.err = "nothing is chosen: Space chooses the row at the cursor, a all rows"
		return nil
	}
	first := slices.IndexFunc(t.rows, func(r Row) bool { return r.ID == ids[0] })
	return t.begin(e, true, t.rows[first].Cells[e.Column])
}

func (t *Table) begin(e *Edit, many bool, text string) tea.Cmd {
	t.edit, t.many = e, many
	t.editor.SetValue(text)
	t.editor.CursorEnd()
	return t.editor.Focus()
}

func (t *Table) updateEditor(msg tea.Msg) (tea.Cmd, bool) {
	if key, ok := msg.(tea.KeyPressMsg); ok {
		t.err = ""
		switch key.String() {
		case "esc":
			t.edit = nil
			return nil, true
		case "enter":
			if !t.refused(t.set(strings.TrimSpace(t.editor.Value()))) {
				t.edit = nil
			}
			return nil, true
		}
	}
	var cmd tea.Cmd
	t.editor, cmd = t.editor.Update(msg)
	return cmd, true
}

func (t *Table) set(text string) error {
	if t.many {
		return t.edit.All(t.together(), text)
	}
	return t.edit.Set(t.row().ID, text)
}

func (t *Table) updateFilter(msg tea.Msg) (tea.Cmd, bool) {
	if key, ok := msg.(tea.KeyPressMsg); ok {
		switch key.String() {
		case "esc":
			t.clear()
			return nil, true
		case "enter":
			t.typing = false
			return nil, true
		case "up", "down", "pgup", "pgdown":
			return nil, t.moved(key)
		}
	}
	var cmd tea.Cmd
	t.filter, cmd = t.filter.Update(msg)
	t.narrow()
	return cmd, true
}

// clear removes the filter; the cursor stays on its row.
func (t *Table) clear() {
	t.typing = false
	id := t.Cursor()
	t.filter.SetValue("")
	t.narrow()
	t.At(id)
}
