package form

import (
	"cmp"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"

	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// modePage asks how guests get RDMA and shows what each way costs before anybody chooses.
type modePage struct {
	fields *fields
	before answers.Mode // as it was accepted last
}

func (p *modePage) title() string     { return "Mode" }
func (p *modePage) hints() []hint     { return []hint{{"Up Down", "choose"}} }
func (p *modePage) enterWord() string { return "go on" }
func (p *modePage) typing() bool      { return false }

func (p *modePage) enter(w *wizard) tea.Cmd {
	p.before = cmp.Or(p.before, w.answers.Mode)
	p.fields = newChoice(w.theme, huh.NewSelect[answers.Mode]().Title("How shall the guests get RDMA?").Height(4).Value(&w.answers.Mode).Options(
		huh.NewOption("PVRDMA      paravirtual adapter; keeps vMotion and snapshots", answers.PVRDMA),
		huh.NewOption("SR-IOV      a virtual function of the NIC; near bare metal", answers.SRIOV),
		huh.NewOption("GPUDirect   GPU and NIC passed through, peer to peer", answers.GPUDirect),
	))
	return p.fields.init()
}

func (p *modePage) update(_ *wizard, msg tea.Msg) (tea.Cmd, bool) { return p.fields.update(msg) }

func (p *modePage) accept(w *wizard) (tea.Cmd, error) {
	changeMode(w.answers, p.before)
	p.before = w.answers.Mode
	w.answers = w.fabric.Propose(w.answers, w.overview)
	return w.next(), nil
}

// changeMode gives the answers the defaults of the mode they have now where they still had those of the mode before.
func changeMode(a *answers.Answers, before answers.Mode) {
	if a.Mode != before && a.QoS == answers.Default(before).QoS {
		a.QoS = answers.Default(a.Mode).QoS
	}
}

// costs are rows of what each mode costs, in the order of the list.
var costs = [...][4]string{
	{"", "PVRDMA", "SR-IOV", "GPUDirect"},
	{"host reboots", "0 (1 with PFC)", "up to 2", "0 or 1"},
	{"VM power cycle", "yes", "yes", "yes"},
	{"memory", "fully reserved", "fully reserved", "fully reserved"},
	{"vMotion, DRS", "stay", "lost", "lost"},
	{"snapshots, backup", "stay", "lost", "lost"},
	{"HA restart", "stays", "lost", "lost; dynamic: stays"},
	{"latency, typical", "2-8 us", "2-3 us", "2-3 us"},
}

// costTable draws the costs; the column of one mode stands out.
func costTable(t theme.Theme, m answers.Mode) string {
	column := map[answers.Mode]int{answers.PVRDMA: 1, answers.SRIOV: 2, answers.GPUDirect: 3}[m]
	var b strings.Builder
	for _, row := range costs {
		line := t.Quiet.Render(fmt.Sprintf("%-19s", row[0]))
		for i, cell := range row[1:] {
			style := t.Quiet
			if i+1 == column {
				style = t.Accent
			}
			line += style.Render(fmt.Sprintf("%-18s", cell))
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

func (p *modePage) view(w *wizard, width, _ int) string {
	return p.fields.view(width, 4) + "\n\n" + w.theme.Title.Render("What each costs") + "\n" + costTable(w.theme, w.answers.Mode)
}
