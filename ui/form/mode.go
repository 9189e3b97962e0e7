package form

import (
	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"

	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// modePage asks how guests get RDMA and shows what each way costs before anybody chooses.
type modePage struct{ fields *fields }

func (p *modePage) title() string { return "Mode" }
func (p *modePage) hints() string { return "Up Down choose" }
func (p *modePage) typing() bool  { return false }

func (p *modePage) enter(w *wizard) tea.Cmd {
	p.fields = newFields(w.theme, huh.NewSelect[answers.Mode]().Title("How shall the guests get RDMA?").Height(5).Value(&w.answers.Mode).Options(
		huh.NewOption("PVRDMA      paravirtual adapter; keeps vMotion and snapshots", answers.PVRDMA),
		huh.NewOption("SR-IOV      a virtual function of the NIC; near bare metal", answers.SRIOV),
		huh.NewOption("GPUDirect   GPU and NIC passed through, peer to peer", answers.GPUDirect),
	))
	return p.fields.init()
}

func (p *modePage) update(_ *wizard, msg tea.Msg) (tea.Cmd, bool) { return p.fields.update(msg) }

func (p *modePage) accept(w *wizard) (tea.Cmd, error) {
	w.answers = w.fabric.Propose(w.answers, w.overview)
	return forward, nil
}

const costTable = `                      PVRDMA            SR-IOV              GPUDirect
host reboots          0 (1 with PFC)    up to 2             0 to 1
VM power cycle        yes               yes                 yes
memory                fully reserved    fully reserved      fully reserved
vMotion, DRS          stays             lost                lost
snapshots, backup     stay              lost                lost
HA restart            stays             lost                lost (dynamic: stays)
latency, typical      2-8 us            2-3 us              2-3 us`

func (p *modePage) view(w *wizard, width, height int) string {
	return p.fields.view(width, 7) + "\n\n" + w.theme.Title.Render("What each costs") + "\n" + w.theme.Quiet.Render(costTable)
}
