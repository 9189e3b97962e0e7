package form

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// switchPage asks for the distributed switch and its port group, and for what the mode needs besides: the vmknic of
// PVRDMA, VFs and how they are made, or what goes with GPUs, where a whole card takes no switch.
type switchPage struct {
	fields     *fields
	mtu, vlan  string
	vfs, depot string
	tuning     string
	mmio, card string // of mode gpudirect; card as it was when the page was shown
	driver     string
	lossless   string   // confirmed.switch_pfc as a word
	gpus       []string // lines
	paths      []string // of the answers, by field
	virtual    bool
	said       map[*string]string // what the answers said when a field was filled in
}

// keep fills in what the answers say, unless they still say what they said before somebody typed over it: going back
// loses nothing.
func (p *switchPage) keep(field *string, says string) {
	if said, filled := p.said[field]; !filled || said != says {
		*field = says
	}
	p.said[field] = says
}

func (p *switchPage) fill(a *answers.Answers) {
	if p.said == nil {
		p.said = map[*string]string{}
	}
	p.keep(&p.mtu, strconv.Itoa(a.Switch.MTU))
	p.keep(&p.vlan, strconv.Itoa(a.Switch.VLAN))
	p.keep(&p.vfs, strconv.Itoa(a.SRIOV.VFs))
	p.keep(&p.depot, strings.Join(a.SRIOV.Components, ", "))
	p.keep(&p.tuning, tuningWords(a.Tuning))
	p.keep(&p.lossless, yesNo(a.Confirmed.SwitchPFC))
	p.keep(&p.mmio, string(a.GPUDirect.MMIO))
}

func (p *switchPage) title() string {
	switch {
	case p.gpus != nil:
		return "GPUs"
	case p.virtual:
		return "Switch and VFs"
	}
	return "Switch and vmknic"
}
func (p *switchPage) hints() []hint     { return []hint{{"Tab", "next field"}} }
func (p *switchPage) enterWord() string { return "go on" }
func (p *switchPage) typing() bool      { return p.fields.typing() }

func (p *switchPage) enter(w *wizard) tea.Cmd {
	a := w.answers
	p.fill(a)
	p.virtual, p.gpus, p.paths = a.VFs(), nil, nil
	var list []question
	if a.Mode == answers.GPUDirect {
		p.card = a.GPUDirect.NIC
		p.gpus = gpuLines(a, w.overview)
		p.driver = strings.Join(a.GPUDirect.Driver, ", ")
		list, p.paths = gpuQuestions(a, &p.mmio, &p.driver)
	}
	mtu := question{title: "MTU", about: "physical switch ports need 9216; a change flaps uplinks (KB419088)", value: &p.mtu, check: number}
	if a.WholeCard() {
		mtu.about = "of the guest's interface; physical switch ports need 9216"
		list, p.paths = append(list, mtu), append(p.paths, "switch.mtu")
		p.fields = newFields(w.theme, list...)
		return p.fields.init()
	}
	list = append(list,
		question{title: "Distributed switch", about: "made new unless it exists; one that carries other traffic is refused", value: &a.Switch.Name, check: notEmpty("a name")},
		question{title: "Port group", about: "where the RDMA adapters of the VMs are connected", value: &a.Switch.PortGroup, check: notEmpty("a name")},
		mtu,
		question{title: "VLAN", about: "0: untagged", value: &p.vlan, check: number})
	p.paths = append(p.paths, "switch.name", "switch.portgroup", "switch.mtu", "switch.vlan")
	if p.virtual {
		list = append(list,
			question{title: "VFs", about: aboutVFs, value: &p.vfs, check: number},
			question{title: "Components", about: aboutComponents, value: &p.depot, check: depotPaths(a)},
			question{title: "Account of the ESXi shell", about: aboutShell, value: &a.ESXi.User, check: shellUser})
		p.paths = append(p.paths, "sriov.vfs", "sriov.components", "esxi.user")
		list = append(list, question{title: "Tuning", about: aboutTuning, value: &p.tuning, check: tuningWord})
		p.paths = append(p.paths, "tuning")
		if asksLossless(a) {
			list = append(list, question{title: "Lossless switch", about: aboutLossless, value: &p.lossless, check: oneOf("yes", "no")})
			p.paths = append(p.paths, "confirmed.switch_pfc")
		}
	} else {
		list = append(list, question{title: "vmknic for PVRDMA", about: "control plane between hosts (Net.PVRDMAVmknic, TCP 28250)", value: &a.PVRDMA.VMKNic, check: vmknic(w.overview, a)})
		p.paths = append(p.paths, "pvrdma.vmknic")
	}
	p.fields = newFields(w.theme, list...)
	return p.fields.init()
}

// number wants a whole number; which ones are allowed the answers know.
func number(s string) error {
	if _, err := strconv.Atoi(strings.TrimSpace(s)); err != nil {
		return errors.New("want a number")
	}
	return nil
}

// vmknic checks that every chosen host has the vmknic.
func vmknic(inv *backends.Inventory, a *answers.Answers) func(string) error {
	return func(s string) error {
		var without []string
		member := members(a)
		for _, h := range inv.Hosts {
			if member[h.Name] && h.VMK(s) == nil {
				without = append(without, h.Name)
			}
		}
		switch {
		case s == "":
			return errors.New("give a vmknic, vmk0 for instance")
		case len(without) > 0:
			return fmt.Errorf("no vmknic %q on %s", plain.Clean(s), plain.Names(without))
		}
		return nil
	}
}

func (p *switchPage) update(_ *wizard, msg tea.Msg) (tea.Cmd, bool) { return p.fields.update(msg) }

func (p *switchPage) accept(w *wizard) (tea.Cmd, error) {
	a := w.answers
	for _, s := range []*string{&a.GPUDirect.NIC, &a.GPUDirect.Backing, &p.mmio, &p.driver, &a.GPUDirect.Perftest, &a.Switch.Name, &a.Switch.PortGroup, &a.PVRDMA.VMKNic, &a.ESXi.User, &p.mtu, &p.vlan, &p.vfs, &p.tuning, &p.lossless} {
		*s = strings.TrimSpace(*s)
	}
	if err := p.fields.check(); err != nil {
		return nil, err
	}
	if a.Mode == answers.GPUDirect {
		if err := a.GPUDirect.MMIO.UnmarshalText([]byte(p.mmio)); err != nil {
			return nil, p.fields.refuse(1, err)
		}
		a.GPUDirect.Driver = components(p.driver)
		if p.card != a.GPUDirect.NIC { // the questions are others now
			return p.enter(w), nil
		}
	}
	a.Switch.MTU, _ = strconv.Atoi(p.mtu)
	a.Switch.VLAN, _ = strconv.Atoi(p.vlan)
	if p.virtual {
		a.SRIOV.VFs, _ = strconv.Atoi(p.vfs)
		a.SRIOV.Components = components(p.depot)
		a.Tuning, _ = tuningOf(p.tuning)
		if asksLossless(a) {
			a.Confirmed.SwitchPFC = p.lossless == "yes"
		}
	}
	p.fill(a)
	for i, path := range p.paths {
		if err := problem(a, path); err != nil {
			return nil, p.fields.refuse(i, err)
		}
	}
	return w.next(), nil
}

func (p *switchPage) view(w *wizard, width, height int) string {
	if p.gpus == nil {
		return p.fields.view(width, height)
	}
	most := max(2, height-4*len(p.paths)-1)
	shown := p.gpus[:min(len(p.gpus), most)]
	intro := theme.Wrap(strings.Join(shown, "\n"), width)
	if more := len(p.gpus) - len(shown); more > 0 {
		intro += fmt.Sprintf("\nand %d more: rdma-setup discover", more)
	}
	return w.theme.Quiet.Render(intro) + "\n\n" + p.fields.view(width, height-lines(intro)-1)
}
