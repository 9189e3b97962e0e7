package form

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

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
	fields     *fields
	mtu, vlan  string
	vfs, depot string
	tuning     string
	mmio, card string // of mode gpudirect; card is the value when the page was shown
	driver     string
	lossless   string   // confirmed.switch_pfc as a word
	gpus       []string // lines
	paths      []string // values of the answers, by field
	virtual    bool
	networks   []string           // of the rails after the first
	before     answers.Switch     // of the first rail, when the page was shown
	said       map[*string]string // the answers' value when a field was filled in
}

// keep fills in the values of the answers. If the answers have not changed since the operator typed something else, that input is
// kept, so that going back loses nothing.
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
	p.keep(&p.tuning, entry.TuningWords(a.Tuning))
	p.keep(&p.lossless, entry.YesNo(a.Confirmed.SwitchPFC))
	p.keep(&p.mmio, string(a.GPUDirect.MMIO))
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
func (p *switchPage) EnterWord() string   { return p.fields.enterWord("continue") }
func (p *switchPage) Typing() bool        { return p.fields.Typing() }

// Editing reports whether Enter and Esc belong to a list of values.
func (p *switchPage) Editing() bool { return p.fields.Editing() }

func (p *switchPage) Enter(w *frame.Wizard) tea.Cmd {
	a := w.Answers
	p.fill(a)
	p.card = ""
	p.virtual, p.gpus, p.paths, p.before = a.VFs(), nil, nil, a.Switch
	var list []question
	if a.Mode == answers.GPUDirect {
		p.card = a.GPUDirect.NIC
		p.gpus = entry.GPULines(a, w.Overview)
		p.driver = strings.Join(a.GPUDirect.Driver, ", ")
		list, p.paths = gpuQuestions(a, &p.mmio, &p.driver)
	}
	mtu := question{Title: "MTU", About: "physical switch ports need 9216; a change flaps uplinks (KB 419088)", Value: &p.mtu,
		Check: func(s string) error {
			err := number(a, "switch.mtu", func(a *answers.Answers, n int) { a.Switch.MTU = n })(s)
			if n, _ := strconv.Atoi(s); err == nil && !a.WholeCard() {
				err = entry.SwitchMTU(w.Overview, a.Switch.Name, n)
			}
			return err
		}}
	if a.WholeCard() {
		mtu.About = "of the guest's interface; physical switch ports need 9216"
		list, p.paths = append(list, mtu), append(p.paths, "switch.mtu")
		p.fields = newFields(w.Theme, p.railNetworks(a, list)...)
		return p.fields.Init()
	}
	list = append(list,
		question{Title: "Distributed switch", About: "created if it does not exist; refused if it carries other traffic", Value: &a.Switch.Name,
			Check:  name(a, "switch.name", func(a *answers.Answers, s string) { a.Switch.Name = s }),
			Offers: func() []entry.Offer { return entry.Switches(a, w.Overview) }},
		question{Title: "Port group", About: "where the RDMA adapters of the VMs are connected", Value: &a.Switch.PortGroup,
			Check:  name(a, "switch.portgroup", func(a *answers.Answers, s string) { a.Switch.PortGroup = s }),
			Offers: func() []entry.Offer { return entry.PortGroups(a.Switch.Name, w.Overview) }},
		mtu,
		question{Title: "VLAN", About: "0: untagged", Value: &p.vlan,
			Check: number(a, "switch.vlan", func(a *answers.Answers, n int) { a.Switch.VLAN = n })})
	p.paths = append(p.paths, "switch.name", "switch.portgroup", "switch.mtu", "switch.vlan")
	if p.virtual {
		list = append(list,
			question{Title: "VFs", About: entry.AboutVFs, Value: &p.vfs,
				Check: number(a, "sriov.vfs", func(a *answers.Answers, n int) { a.SRIOV.VFs = n })},
			question{Title: "Components", About: entry.AboutComponents, Value: &p.depot, Check: entry.DepotPaths(a)},
			question{Title: "Account of the ESXi shell", About: entry.AboutShell, Value: &a.ESXi.User, Check: entry.ShellUser})
		p.paths = append(p.paths, "sriov.vfs", "sriov.components", "esxi.user")
		list = append(list, question{Title: "Tuning", About: entry.AboutTuning, Value: &p.tuning, Check: entry.TuningWord, Offers: entry.Tunings})
		p.paths = append(p.paths, "tuning")
		if entry.AsksLossless(a) {
			list = append(list, question{Title: "Lossless switch", About: entry.AboutLossless, Value: &p.lossless, Offers: entry.SwitchSet, Only: true})
			p.paths = append(p.paths, "confirmed.switch_pfc")
		}
	} else if a.PVRDMA.VMKNic.Create == nil { // otherwise it is created, as the answers file says
		list = append(list, question{Title: "vmknic for PVRDMA", About: "control plane between hosts (Net.PVRDMAVmknic, TCP 28250)", Value: &a.PVRDMA.VMKNic.Name,
			Check: entry.VMKNic(w.Overview, a), Offers: func() []entry.Offer { return entry.VMKNics(a, w.Overview) }})
		p.paths = append(p.paths, "pvrdma.vmknic")
	}
	p.fields = newFields(w.Theme, p.railNetworks(a, list)...)
	return p.fields.Init()
}

// railNetworks adds the networks of the rails after the first.
func (p *switchPage) railNetworks(a *answers.Answers, list []question) []question {
	p.networks = make([]string, len(a.Rails))
	for i := 1; i < len(a.Rails); i++ {
		p.networks[i] = entry.NetworkText(a.Rails[i])
		list = append(list, question{Title: "Network of " + a.Rails[i].Name, About: entry.AboutNetwork, Value: &p.networks[i], Check: entry.Network})
		p.paths = append(p.paths, fmt.Sprintf("rails[%d].network", i))
	}
	return list
}

// point moves to the field that the remedy names, else to that with the name of the switch or port group.
func (p *switchPage) point(r plan.Refusal) {
	path := map[backends.TargetType]string{backends.TypeSwitch: "switch.name", backends.TypePortGroup: "switch.portgroup"}[r.Target.Type]
	for _, word := range strings.Fields(r.Remedy) {
		if word = strings.Trim(word, ",.;"); slices.Contains(p.paths, word) {
			path = word
			break
		}
	}
	if i := slices.Index(p.paths, path); i >= 0 {
		p.fields.focus(i)
	}
}

// name requires a name that the answers accept.
func name(a *answers.Answers, path string, set func(*answers.Answers, string)) func(string) error {
	return func(s string) error {
		if err := entry.NotEmpty("a name")(s); err != nil {
			return err
		}
		few := *a
		set(&few, s)
		return entry.Problem(&few, path)
	}
}

// number requires a whole number; package answers checks the range.
func number(a *answers.Answers, path string, set func(*answers.Answers, int)) func(string) error {
	return func(s string) error {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil {
			return errors.New("want a number")
		}
		few := *a
		set(&few, n)
		return entry.Problem(&few, path)
	}
}

func (p *switchPage) Update(_ *frame.Wizard, msg tea.Msg) (tea.Cmd, bool) {
	return p.fields.Update(msg)
}

// Keep stores the fields in the answers.
func (p *switchPage) Keep(w *frame.Wizard) error {
	a := w.Answers
	if err := p.fields.Check(); err != nil {
		return err
	}
	if a.Mode == answers.GPUDirect {
		if err := a.GPUDirect.MMIO.UnmarshalText([]byte(p.mmio)); err != nil {
			return p.fields.Refuse(1, err)
		}
		a.GPUDirect.Driver = entry.Components(p.driver)
	}
	a.Switch.MTU, _ = strconv.Atoi(p.mtu)
	a.Switch.VLAN, _ = strconv.Atoi(p.vlan)
	if p.virtual {
		a.SRIOV.VFs, _ = strconv.Atoi(p.vfs)
		a.SRIOV.Components = entry.Components(p.depot)
		a.Tuning, _ = entry.TuningOf(p.tuning)
		if entry.AsksLossless(a) {
			a.Confirmed.SwitchPFC = p.lossless == "yes"
		}
	}
	for i := 1; i < len(p.networks); i++ {
		_ = entry.SetNetwork(a, i, p.networks[i]) // already validated by the field
	}
	entry.FollowFirst(a, p.before)
	p.before = a.Switch
	p.fill(a)
	for i, path := range p.paths {
		if err := entry.Problem(a, path); err != nil {
			return p.fields.Refuse(i, err)
		}
	}
	return nil
}

func (p *switchPage) Accept(w *frame.Wizard) (tea.Cmd, error) {
	if err := p.Keep(w); err != nil {
		return nil, err
	}
	if p.card != "" && p.card != w.Answers.GPUDirect.NIC { // the questions have changed
		return p.Enter(w), nil
	}
	return w.Next(), nil
}

func (p *switchPage) View(w *frame.Wizard, width, height int) string {
	if p.gpus == nil {
		return p.fields.View(width, height)
	}
	most := max(2, height-4*len(p.paths)-1)
	shown := p.gpus[:min(len(p.gpus), most)]
	intro := theme.Wrap(strings.Join(shown, "\n"), width)
	if more := len(p.gpus) - len(shown); more > 0 {
		intro += fmt.Sprintf("\nand %d more: rdma-setup discover", more)
	}
	return w.Theme.Quiet.Render(intro) + "\n\n" + p.fields.View(width, height-lines(intro)-1)
}

// gpuQuestions are the questions of mode gpudirect, with the paths of their answers.
func gpuQuestions(a *answers.Answers, mmio, driver *string) (list []question, paths []string) {
	return []question{
		{Title: "RDMA card in the VM", About: entry.AboutCard, Value: &a.GPUDirect.NIC, Offers: entry.Cards, Only: true},
		{Title: "MMIO window", About: entry.AboutMMIO, Value: mmio, Check: window, Offers: entry.MMIOs},
		{Title: "DirectPath devices", About: entry.AboutBacking, Value: &a.GPUDirect.Backing, Offers: entry.Backings, Only: true},
		{Title: "NVIDIA driver", About: entry.AboutDriver, Value: driver},
		{Title: "perftest with CUDA", About: entry.AboutPerftest, Value: &a.GPUDirect.Perftest},
	}, []string{"gpudirect.nic", "gpudirect.mmio", "gpudirect.backing", "gpudirect.driver", "gpudirect.perftest"}
}

// window reads the size of the MMIO window as the answers do.
func window(s string) error {
	var m answers.MMIO
	return m.UnmarshalText([]byte(s))
}
