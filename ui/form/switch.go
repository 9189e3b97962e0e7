package form

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/form/frame"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// switchPage asks for the distributed switch and its port group, and for other settings of the mode: the vmknic of PVRDMA, VFs
// and how they are created, or settings of GPUs. A card that is passed through as a whole needs no switch.
type switchPage struct {
	*fields
	questions []entry.Question   // by field
	typed     map[string]*string // by path, also of questions that are not asked in this mode
	said      map[string]string  // the answers' value when a field was filled in, by path
	gpus      []string           // lines
	virtual   bool
	before    answers.Switch // of the first rail, when the page was shown
	card      string         // how a VM gets the card, when the page was shown
}

// fill fills in the values of the answers. If the answers have not changed since the operator typed something else, that input is
// kept, so that going back loses nothing.
func (p *switchPage) fill(a *answers.Answers) {
	if p.typed == nil {
		p.typed, p.said = map[string]*string{}, map[string]string{}
	}
	for _, q := range p.questions {
		says := q.Text(a)
		if was, filled := p.said[q.Path]; !filled {
			p.typed[q.Path] = &says
		} else if was != says {
			*p.typed[q.Path] = says
		}
		p.said[q.Path] = says
	}
}

// asTyped returns the answers with what is typed on the page.
func (p *switchPage) asTyped(a *answers.Answers) *answers.Answers {
	try := entry.Copied(a)
	for _, q := range p.questions {
		_ = q.Set(try, *p.typed[q.Path]) // the field says what is wrong
	}
	return try
}

func (p *switchPage) Title() string {
	switch {
	case p.gpus != nil:
		return "GPUs"
	case p.virtual:
		return "Switch and VFs"
	}
	return "Switch and vmknic"
}
func (p *switchPage) Hints() []frame.Hint { return p.fields.hints() }
func (p *switchPage) EnterLabel() string  { return p.fields.enterLabel("continue") }

func (p *switchPage) Enter(w *frame.Wizard) tea.Cmd {
	a := w.Answers
	p.questions = entry.Settings(a, w.Overview)
	p.fill(a)
	p.virtual, p.gpus, p.before, p.card = a.VFs(), nil, a.Switch, a.GPUDirect.NIC
	if a.Mode == answers.GPUDirect {
		p.gpus = entry.GPULines(a, w.Overview)
	}
	var list []question
	for _, q := range p.questions {
		field := question{Title: q.Title, About: q.About, Value: p.typed[q.Path], Only: q.Only,
			Check: func(s string) error { return q.Wrong(p.asTyped(a), s) }}
		if q.Offers != nil {
			field.Offers = func() []entry.Offer { return q.Offers(p.asTyped(a)) }
		}
		list = append(list, field)
	}
	p.fields = newFields(w.Theme, list...)
	return p.fields.Init()
}

// at returns the field of a path, -1 if the page does not have it.
func (p *switchPage) at(path string) int {
	return slices.IndexFunc(p.questions, func(q entry.Question) bool { return q.Path == path })
}

// named returns the path of the first question that a remedy names, "" if it names none.
func named(questions []entry.Question, remedy string) string {
	for _, word := range strings.Fields(remedy) {
		word = strings.Trim(word, ",.;")
		if slices.ContainsFunc(questions, func(q entry.Question) bool { return q.Path == word }) {
			return word
		}
	}
	return ""
}

// point moves to the field that the remedy names, else to that with the name of the switch or port group.
func (p *switchPage) point(r plan.Refusal) {
	of := map[backends.TargetType]string{backends.TypeSwitch: "switch.name", backends.TypePortGroup: "switch.portgroup"}
	path := cmp.Or(named(p.questions, r.Remedy), of[r.Target.Type])
	if i := p.at(path); i >= 0 {
		p.fields.focus(i)
	}
}

// Keep stores the fields in the answers.
func (p *switchPage) Keep(w *frame.Wizard) error {
	if err := p.fields.Check(); err != nil {
		return err
	}
	a := w.Answers
	for _, q := range p.questions {
		_ = q.Set(a, *p.typed[q.Path]) // checked by the field
	}
	entry.FollowFirst(a, p.before)
	p.before = a.Switch
	p.fill(a)
	for i, q := range p.questions {
		if err := entry.Problem(a, q.Path); err != nil {
			return p.fields.Refuse(i, err)
		}
	}
	return nil
}

func (p *switchPage) Accept(w *frame.Wizard) (tea.Cmd, error) {
	if err := p.Keep(w); err != nil {
		return nil, err
	}
	if p.card != w.Answers.GPUDirect.NIC { // the questions have changed
		return p.Enter(w), nil
	}
	return w.Next(), nil
}

func (p *switchPage) View(w *frame.Wizard, width, height int) string {
	if p.gpus == nil {
		return p.fields.View(width, height)
	}
	most := max(2, height-4*len(p.questions)-1)
	shown := p.gpus[:min(len(p.gpus), most)]
	intro := theme.Wrap(strings.Join(shown, "\n"), width)
	if more := len(p.gpus) - len(shown); more > 0 {
		intro += fmt.Sprintf("\nand %d more: rdma-setup discover", more)
	}
	return w.Theme.Quiet.Render(intro) + "\n\n" + p.fields.View(width, height-lines(intro)-1)
}

// modePage asks how guests get RDMA and shows the cost of each mode.
type modePage struct {
	*fields
	before answers.Mode // as last accepted
}

func (p *modePage) Title() string       { return "Mode" }
func (p *modePage) Hints() []frame.Hint { return []frame.Hint{{Key: "Up Down", Does: "choose"}} }
func (p *modePage) EnterLabel() string  { return "continue" }

func (p *modePage) Enter(w *frame.Wizard) tea.Cmd {
	p.before = cmp.Or(p.before, w.Answers.Mode)
	names := map[answers.Mode]string{answers.PVRDMA: "PVRDMA", answers.SRIOV: "SR-IOV", answers.GPUDirect: "GPUDirect"}
	var options []huh.Option[answers.Mode]
	for _, o := range entry.Modes() {
		m := answers.Mode(o.Value)
		options = append(options, huh.NewOption(fmt.Sprintf("%-12s%s", names[m], o.About), m))
	}
	p.fields = &fields{theme: w.Theme}
	p.fields.build(huh.NewSelect[answers.Mode]().Title("How should the guests get RDMA?").Height(4).Value(&w.Answers.Mode).Options(options...))
	return p.fields.Init()
}

func (p *modePage) Accept(w *frame.Wizard) (tea.Cmd, error) {
	entry.ChangeMode(w.Answers, p.before)
	p.before = w.Answers.Mode
	propose(w)
	return w.Next(), nil
}

func (p *modePage) View(w *frame.Wizard, width, _ int) string {
	return p.fields.View(width, 4) + "\n\n" + w.Theme.Title.Render("What each mode costs") + "\n" + entry.CostTable(w.Theme, w.Answers.Mode)
}
