package form

import (
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"
	"charm.land/lipgloss/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/form/frame"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// A question is one text field of a page.
type question struct {
	Title, About string
	Value        *string
	Check        func(string) error // nil: anything is valid
	Secret       bool
	Offers       func() []entry.Offer // shown in a list on F4; nil: none
	Only         bool                 // only the offers are valid: the arrows change them, and no text is typed
}

func (q question) offers() []entry.Offer {
	if q.Offers == nil {
		return nil
	}
	return q.Offers()
}

func (q question) wrong() error {
	if q.Only {
		return entry.OneOf(entry.Values(q.offers())...)(*q.Value)
	}
	if q.Check != nil {
		return q.Check(*q.Value)
	}
	return nil
}

// fields are the questions of one page in one huh form. Enter goes to the next field, and accepts the page on the last. Errors
// are shown beside their field.
type fields struct {
	theme     theme.Theme
	form      *huh.Form
	questions []question
	inputs    []*huh.Input // one per question; none if the form is a list
	errs      []error
	width     int
	height    int
	offers    *live.Table // of the focused field; nil while they are not shown
}

func newFields(t theme.Theme, questions ...question) *fields {
	f := &fields{theme: t, questions: questions, errs: make([]error, len(questions))}
	var list []huh.Field
	for _, q := range questions {
		in := huh.NewInput().Title(backends.Clean(q.Title)).Description(backends.Clean(q.About)).Value(q.Value)
		if q.Only {
			in.Prompt(onlyPrompt)
		}
		if q.Secret {
			in.EchoMode(huh.EchoModePassword)
		}
		f.inputs = append(f.inputs, in)
		list = append(list, in)
	}
	f.build(list...)
	return f
}

func (f *fields) build(list ...huh.Field) {
	f.form = huh.NewForm(huh.NewGroup(list...)).WithShowHelp(false).WithShowErrors(false).WithKeyMap(fieldKeys()).WithTheme(huhTheme{f.theme}).
		WithAccessible(false)
}

// fieldKeys is huh's key map without Enter and Escape.
func fieldKeys() *huh.KeyMap {
	next := key.NewBinding(key.WithKeys("tab"))
	prev := key.NewBinding(key.WithKeys("shift+tab"))
	none := key.NewBinding(key.WithDisabled())
	k := huh.NewDefaultKeyMap()
	k.Quit = none
	k.Input.Next, k.Input.Prev, k.Input.Submit = key.NewBinding(key.WithKeys("tab", "down")), key.NewBinding(key.WithKeys("shift+tab", "up")),
		none
	k.Select.Next, k.Select.Prev, k.Select.Submit, k.Select.Filter = next, prev, none, none
	return k
}

func (f *fields) Init() tea.Cmd { return f.form.Init() }

func (f *fields) hints() []frame.Hint {
	at := f.at()
	if at < 0 || f.offers != nil {
		return nil
	}
	var out []frame.Hint
	if len(f.inputs) > 1 {
		out = append(out, frame.Hint{Key: "Up Down", Does: "field"})
	}
	switch q := f.questions[at]; {
	case q.Only:
		out = append(out, frame.Hint{Key: "Left Right", Does: "change"}, frame.Hint{Key: "F4", Does: "list"})
	case len(q.offers()) > 0:
		out = append(out, frame.Hint{Key: "F4", Does: "list"})
	}
	return out
}

// enterLabel returns the effect of Enter, where accepting the page is called word.
func (f *fields) enterLabel(word string) string {
	if f.at() >= 0 && f.at() < len(f.inputs)-1 {
		return "next field"
	}
	return word
}

// Editing reports whether a list is shown, which handles Enter and Esc.
func (f *fields) Editing() bool { return f.offers != nil }

// Update passes the message to the form, except for keys that belong to the page or would leave the form at its ends.
func (f *fields) Update(_ *frame.Wizard, msg tea.Msg) (tea.Cmd, bool) {
	k, isKey := msg.(tea.KeyPressMsg)
	if isKey {
		at := f.at()
		if f.offers != nil {
			return f.choose(k)
		}
		if at >= 0 && f.listed(k) {
			return nil, true
		}
		switch k.String() {
		case "enter":
			f.trim()
			if at < 0 || at == len(f.inputs)-1 || f.questions[at].wrong() != nil {
				return nil, false // the page accepts, or shows what is wrong
			}
			return f.form.NextField(), true
		case "esc", "f1", "f2":
			return nil, false
		case "tab", "down":
			// Immediately: the library would move by a message of its own, and keys typed meanwhile would go to the previous
			// field.
			switch {
			case at >= 0 && at == len(f.inputs)-1: // a list has no inputs and takes these keys itself
				return nil, true
			case at >= 0:
				return f.form.NextField(), true
			}
		case "shift+tab", "up":
			switch {
			case at == 0:
				return nil, true
			case at > 0:
				return f.form.PrevField(), true
			}
		case "?", "q", "s", "e":
			if !f.Typing() {
				return nil, false
			}
		}
		if !f.Typing() && (k.String() == "tab" || k.String() == "shift+tab") {
			return nil, true // the only field of its page
		}
	}
	if _, pasted := msg.(tea.PasteMsg); pasted && f.at() >= 0 && (f.offers != nil || f.questions[f.at()].Only) {
		return nil, false
	}
	before := plain.Mapped(f.questions, func(q question) string { return *q.Value })
	m, cmd := f.form.Update(msg)
	if form, ok := m.(*huh.Form); ok {
		f.form = form
	}
	for i, was := range before {
		if f.errs[i] != nil && *f.questions[i].Value != was {
			f.tell(i, nil)
		}
	}
	return cmd, isKey
}

// at returns the index of the focused field, -1 if that is a list.
func (f *fields) at() int {
	for i, in := range f.inputs {
		if f.form.GetFocusedField() == huh.Field(in) {
			return i
		}
	}
	return -1
}

func (f *fields) Typing() bool { return f.at() >= 0 }

// trim removes blanks around what was typed or pasted, in the inputs as well: they write their text into the values again.
func (f *fields) trim() {
	for i, q := range f.questions {
		if text := strings.TrimSpace(*q.Value); text != *q.Value && !q.Secret {
			*q.Value = text
			f.inputs[i].Value(q.Value)
		}
	}
}

// Check validates every field, marks invalid ones and focuses the first of them.
func (f *fields) Check() error {
	f.trim()
	for i := len(f.questions) - 1; i >= 0; i-- {
		f.tell(i, f.questions[i].wrong())
	}
	for i, err := range f.errs {
		if err != nil {
			return f.Refuse(i, err)
		}
	}
	return nil
}

// Refuse marks a field as invalid and focuses it.
func (f *fields) Refuse(i int, err error) error {
	f.tell(i, err)
	f.focus(i)
	return fmt.Errorf("%s: %w", f.questions[i].Title, err)
}

func (f *fields) focus(i int) {
	for f.at() >= 0 && f.at() < i {
		f.form.NextField()
	}
	for f.at() > i {
		f.form.PrevField()
	}
}

// tell shows an error instead of the description of a field; nil removes it.
func (f *fields) tell(i int, err error) {
	f.errs[i] = err
	text := f.questions[i].About
	if err != nil {
		text = f.theme.Bad.Render(backends.Clean(err.Error()))
	}
	f.inputs[i].Description(text)
	f.form.Update(nil) // the form redraws only on a message
}

// View renders the fields; if they do not all fit, the last line shows which one is focused.
func (f *fields) View(width, height int) string {
	if f.offers != nil {
		title := f.questions[f.at()].Title
		return f.theme.Title.Render(title) + "\n\n" + f.offers.View(width, height-2)
	}
	where := ""
	if n := len(f.inputs); 4*n-1 > height && n > 1 {
		shown := max(1, height/4)
		height = shown*4 - 1 // whole fields
		where = fmt.Sprintf("  %d of %d fields shown, this is field %d", shown, n, f.at()+1)
		if f.at()+1 < n {
			where += "; Enter for the next"
		}
		where = "\n\n" + f.theme.Accent.Render(where)
	}
	if width != f.width || height != f.height {
		f.width, f.height = width, height
		f.form = f.form.WithWidth(min(width, 78)).WithHeight(height)
		f.form.Update(nil) // the current rendering still has the old width
	}
	return strings.TrimRight(strings.ReplaceAll(f.form.View(), unfocused, ""), "\n") + where
}

// unfocused is the white that the library uses for unfocused fields; it cannot be configured, and is unreadable on a light
// background.
const unfocused = "\x1b[37m"

// huhTheme is our theme in the form of package huh.
type huhTheme struct{ of theme.Theme }

// Theme implements huh.Theme.
func (l huhTheme) Theme(dark bool) *huh.Styles {
	s := huh.ThemeBase(dark)
	bar := lipgloss.NormalBorder()
	if l.of.ASCII {
		bar = lipgloss.ASCIIBorder()
	}
	s.Focused.Base = s.Focused.Base.BorderStyle(bar).BorderForeground(l.of.Accent.GetForeground())
	s.Focused.Card = s.Focused.Base
	s.Focused.Title = l.of.Title
	s.Focused.Description = l.of.Quiet
	s.Focused.SelectSelector = l.of.Accent.SetString("> ")
	s.Focused.SelectedOption = l.of.Accent
	s.Focused.UnselectedOption = lipgloss.NewStyle()
	s.Focused.TextInput.Prompt = l.of.Accent
	s.Focused.TextInput.Text = lipgloss.NewStyle()
	s.Focused.TextInput.Placeholder = l.of.Quiet
	s.Blurred = s.Focused
	s.Blurred.Base = s.Focused.Base.BorderStyle(lipgloss.HiddenBorder())
	s.Blurred.Card = s.Blurred.Base
	s.Blurred.Title = lipgloss.NewStyle()
	s.Blurred.SelectSelector = lipgloss.NewStyle().SetString("  ")
	s.Blurred.TextInput.Prompt = l.of.Quiet
	s.Group.Title = l.of.Title
	s.Group.Description = l.of.Quiet
	return s
}
