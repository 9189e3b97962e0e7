package form

import (
	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"
	"charm.land/lipgloss/v2"

	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// fields are the questions of one page in one huh form. Enter belongs to the page, not to a field: the fields move with
// Tab and the arrows, so that one Enter accepts a page that is valid.
type fields struct {
	form   *huh.Form
	first  huh.Field
	letter func() bool // a text field has the keyboard
}

func newFields(t theme.Theme, list ...huh.Field) *fields {
	f := huh.NewForm(huh.NewGroup(list...)).WithShowHelp(false).WithShowErrors(true).
		WithKeyMap(keys()).WithTheme(look{t}).WithAccessible(false)
	return &fields{form: f, first: list[0]}
}

// keys is huh's key map without Enter and Escape.
func keys() *huh.KeyMap {
	next := key.NewBinding(key.WithKeys("tab"), key.WithHelp("tab", "next field"))
	prev := key.NewBinding(key.WithKeys("shift+tab"), key.WithHelp("shift+tab", "field before"))
	none := key.NewBinding(key.WithDisabled())
	k := huh.NewDefaultKeyMap()
	k.Quit = none
	k.Input.Next, k.Input.Prev, k.Input.Submit = key.NewBinding(key.WithKeys("tab", "down")), key.NewBinding(key.WithKeys("shift+tab", "up")), none
	k.Select.Next, k.Select.Prev, k.Select.Submit, k.Select.Filter = next, prev, none, none
	k.Confirm.Next, k.Confirm.Prev, k.Confirm.Submit = next, prev, none
	k.Note.Next, k.Note.Prev, k.Note.Submit = next, prev, none
	return k
}

func (f *fields) init() tea.Cmd { return f.form.Init() }

// update gives the message to the form, Enter and Escape apart; on the first field Shift+Tab is the page's too.
func (f *fields) update(msg tea.Msg) (tea.Cmd, bool) {
	if k, ok := msg.(tea.KeyPressMsg); ok {
		switch k.String() {
		case "enter", "esc":
			return nil, false
		case "shift+tab", "up":
			if _, input := f.form.GetFocusedField().(*huh.Input); f.form.GetFocusedField() == f.first && (input || k.String() == "shift+tab") {
				return nil, k.String() == "up"
			}
		case "?", "q":
			if !f.typing() {
				return nil, false
			}
		}
	}
	m, cmd := f.form.Update(msg)
	if form, ok := m.(*huh.Form); ok {
		f.form = form
	}
	_, isKey := msg.(tea.KeyPressMsg)
	return cmd, isKey
}

func (f *fields) typing() bool {
	_, input := f.form.GetFocusedField().(*huh.Input)
	return input
}

func (f *fields) view(width, height int) string {
	return f.form.WithWidth(min(width, 76)).WithHeight(height).View()
}

// look is our theme in huh's words.
type look struct{ of theme.Theme }

// Theme implements huh.Theme.
func (l look) Theme(dark bool) *huh.Styles {
	s := huh.ThemeBase(dark)
	bar := lipgloss.NormalBorder()
	if l.of.ASCII {
		bar = lipgloss.ASCIIBorder()
	}
	s.Focused.Base = s.Focused.Base.BorderStyle(bar)
	s.Focused.Card = s.Focused.Base
	s.Focused.Title = l.of.Title
	s.Focused.Description = l.of.Quiet
	s.Focused.ErrorIndicator = l.of.Bad
	s.Focused.ErrorMessage = l.of.Bad
	s.Focused.SelectSelector = l.of.Accent.SetString("> ")
	s.Focused.SelectedOption = l.of.Accent
	s.Focused.TextInput.Prompt = l.of.Accent
	s.Focused.TextInput.Placeholder = l.of.Quiet
	s.Focused.FocusedButton = l.of.Focus.Padding(0, 1)
	s.Focused.BlurredButton = l.of.Quiet.Padding(0, 1)
	s.Blurred = s.Focused
	s.Blurred.Base = s.Focused.Base.BorderStyle(lipgloss.HiddenBorder())
	s.Blurred.Card = s.Blurred.Base
	s.Blurred.Title = lipgloss.NewStyle()
	s.Blurred.SelectSelector = lipgloss.NewStyle().SetString("  ")
	s.Group.Title = l.of.Title
	s.Group.Description = l.of.Quiet
	return s
}
