package form

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/plain"
)

// onlyPrompt is the prompt of a field that accepts only listed values.
const onlyPrompt = "<> "

// listed handles the keys of a field with a list of values: F4 shows the list; in a field that accepts only listed values,
// the arrows change the value and a letter selects the value that begins with it.
func (f *fields) listed(k tea.KeyPressMsg) bool {
	q := f.questions[f.at()]
	values := entry.Values(q.offers())
	if len(values) == 0 {
		return false
	}
	word := k.String()
	n := len(values)
	is := slices.Index(values, strings.TrimSpace(*q.Value))
	switch {
	case word == "f4":
		f.open(q)
	case !q.Only:
		return false
	case word == "right", word == "space":
		f.put(values[(is+1)%n])
	case word == "left":
		f.put(values[(max(is, 0)+n-1)%n])
	case len(k.Text) > 0:
		if i := slices.IndexFunc(values, func(v string) bool { return strings.HasPrefix(v, strings.ToLower(k.Text)) }); i >= 0 {
			f.put(values[i])
		}
	default:
		return word == "backspace" || word == "delete" || strings.HasPrefix(word, "ctrl+") || strings.HasPrefix(word, "alt+")
	}
	return true
}

// put sets the value of the field that has the keyboard.
func (f *fields) put(value string) {
	at := f.at()
	*f.questions[at].Value = value
	f.inputs[at].Value(f.questions[at].Value)
	f.tell(at, nil)
}

// open shows the list of a field, with the cursor on the current value.
func (f *fields) open(q question) {
	rows := plain.Mapped(q.offers(), func(o entry.Offer) live.Row {
		return live.Row{ID: o.Value, Cells: []string{o.Value, o.About}, Detail: o.Value + ": " + o.About}
	})
	f.offers = live.NewTable(f.theme, []live.Column{{Title: q.Title}, {Title: ""}}, rows)
	f.offers.Radio = true
	if is := strings.TrimSpace(*q.Value); slices.ContainsFunc(rows, func(r live.Row) bool { return r.ID == is }) {
		f.offers.Chosen[is] = true
		f.offers.At(is)
	}
}

// choose handles the keys of the list: Enter and Space select the row at the cursor, Esc changes nothing.
func (f *fields) choose(k tea.KeyPressMsg) (tea.Cmd, bool) {
	if !f.offers.Typing() {
		switch k.String() {
		case "enter", "space":
			if id := f.offers.Cursor(); id != "" {
				f.put(id)
			}
			f.offers = nil
			return nil, true
		case "esc":
			f.offers = nil
			return nil, true
		}
	}
	cmd, _ := f.offers.Update(k)
	return cmd, true
}
