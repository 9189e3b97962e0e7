package form

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// switchPage asks for the distributed switch, its port group and the vmknic.
type switchPage struct {
	fields    *fields
	mtu, vlan string
}

func (p *switchPage) title() string     { return "Switch and vmknic" }
func (p *switchPage) hints() []hint     { return []hint{{"Tab", "next field"}} }
func (p *switchPage) enterWord() string { return "go on" }
func (p *switchPage) typing() bool      { return p.fields.typing() }

func (p *switchPage) enter(w *wizard) tea.Cmd {
	a := w.answers
	p.mtu, p.vlan = strconv.Itoa(a.Switch.MTU), strconv.Itoa(a.Switch.VLAN)
	p.fields = newFields(w.theme,
		question{title: "Distributed switch", about: "made new unless it exists; one that carries other traffic is refused", value: &a.Switch.Name, check: notEmpty("a name")},
		question{title: "Port group", about: "where the RDMA adapters of the VMs are connected", value: &a.Switch.PortGroup, check: notEmpty("a name")},
		question{title: "MTU", about: "physical switch ports need 9216; a change flaps uplinks (KB419088)", value: &p.mtu, check: number},
		question{title: "VLAN", about: "0: untagged", value: &p.vlan, check: number},
		question{title: "vmknic for PVRDMA", about: "control plane between hosts (Net.PVRDMAVmknic, TCP 28250)", value: &a.PVRDMA.VMKNic, check: vmknic(w.overview, a)},
	)
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
	for _, s := range []*string{&a.Switch.Name, &a.Switch.PortGroup, &a.PVRDMA.VMKNic, &p.mtu, &p.vlan} {
		*s = strings.TrimSpace(*s)
	}
	if err := p.fields.check(); err != nil {
		return nil, err
	}
	a.Switch.MTU, _ = strconv.Atoi(p.mtu)
	a.Switch.VLAN, _ = strconv.Atoi(p.vlan)
	for i, path := range []string{"switch.name", "switch.portgroup", "switch.mtu", "switch.vlan", "pvrdma.vmknic"} {
		if err := problem(a, path); err != nil {
			return nil, p.fields.refuse(i, err)
		}
	}
	return w.next(), nil
}

func (p *switchPage) view(_ *wizard, width, height int) string { return p.fields.view(width, height) }
