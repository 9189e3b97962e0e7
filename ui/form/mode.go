package form

import (
	"cmp"
	"fmt"

	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"

	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/form/frame"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

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
	p.fields = newChoice(w.Theme, huh.NewSelect[answers.Mode]().Title("How should the guests get RDMA?").Height(4).Value(&w.Answers.Mode).Options(options...))
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
