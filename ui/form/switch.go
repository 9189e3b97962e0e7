package form

import (
	"errors"
	"fmt"
	"strconv"

	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"
)

// switchPage asks for the distributed switch, its port group and the vmknic.
type switchPage struct {
	fields    *fields
	mtu, vlan string
}

func (p *switchPage) title() string { return "Switch and vmknic" }
func (p *switchPage) hints() string { return "Tab next field" }
func (p *switchPage) typing() bool  { return p.fields.typing() }

func (p *switchPage) enter(w *wizard) tea.Cmd {
	a := w.answers
	p.mtu, p.vlan = strconv.Itoa(a.Switch.MTU), strconv.Itoa(a.Switch.VLAN)
	p.fields = newFields(w.theme,
		huh.NewInput().Title("Distributed switch").Description("made new unless it exists; one that carries other traffic is refused").Value(&a.Switch.Name).Validate(notEmpty("a name")),
		huh.NewInput().Title("Port group").Value(&a.Switch.PortGroup).Validate(notEmpty("a name")),
		huh.NewInput().Title("MTU").Description("9000; physical switch ports need 9216. Changing it flaps the uplinks (KB419088)").Value(&p.mtu).Validate(number(1280, 9190)),
		huh.NewInput().Title("VLAN").Description("0: untagged").Value(&p.vlan).Validate(number(0, 4094)),
		huh.NewInput().Title("vmknic for PVRDMA").Description("control plane between hosts (Net.PVRDMAVmknic, TCP 28250); no quotes").Value(&a.PVRDMA.VMKNic).Validate(notEmpty("a vmknic")),
	)
	return p.fields.init()
}

func number(low, high int) func(string) error {
	return func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < low || n > high {
			return fmt.Errorf("want a number from %d to %d", low, high)
		}
		return nil
	}
}

func (p *switchPage) update(_ *wizard, msg tea.Msg) (tea.Cmd, bool) { return p.fields.update(msg) }

func (p *switchPage) accept(w *wizard) (tea.Cmd, error) {
	a := w.answers
	if a.Switch.Name == "" || a.Switch.PortGroup == "" {
		return nil, errors.New("switch and port group both need a name")
	}
	if err := number(1280, 9190)(p.mtu); err != nil {
		return nil, fmt.Errorf("MTU %q: %w", p.mtu, err)
	}
	if err := number(0, 4094)(p.vlan); err != nil {
		return nil, fmt.Errorf("VLAN %q: %w", p.vlan, err)
	}
	a.Switch.MTU, _ = strconv.Atoi(p.mtu)
	a.Switch.VLAN, _ = strconv.Atoi(p.vlan)
	for _, name := range a.Hosts.Names {
		if h := w.overview.Host(name); h != nil && h.VMK(a.PVRDMA.VMKNic) == nil {
			return nil, fmt.Errorf("%s has no vmknic %q", name, a.PVRDMA.VMKNic)
		}
	}
	return forward, nil
}

func (p *switchPage) view(_ *wizard, width, height int) string { return p.fields.view(width, height) }
