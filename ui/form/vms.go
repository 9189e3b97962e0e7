package form

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// vmsPage chooses the VMs and their RDMA addresses.
type vmsPage struct {
	table *live.Table
	ips   map[string]netip.Prefix // by VM name, also of those not chosen
	rows  map[string]int
}

func (p *vmsPage) title() string { return "VMs and guests" }
func (p *vmsPage) hints() string { return "Space choose  a all  e edit address  / filter" }
func (p *vmsPage) typing() bool  { return p.table != nil && p.table.Typing() }

// column of the RDMA address.
const addressColumn = 1

func (p *vmsPage) enter(w *wizard) tea.Cmd {
	p.ips, p.rows = map[string]netip.Prefix{}, map[string]int{}
	chosen := map[string]bool{}
	for _, v := range w.answers.VMs {
		p.ips[v.Name] = v.IP
		chosen[v.Name] = true
	}
	var rows []live.Row
	for _, v := range w.overview.VMs {
		if !slices.Contains(w.answers.Hosts.Names, v.Host) {
			continue
		}
		ip := ""
		if p.ips[v.Name].IsValid() {
			ip = p.ips[v.Name].String()
		}
		r := live.Row{ID: v.Name, Cells: []string{v.Name, ip, v.Host, v.Power, fmt.Sprintf("vmx-%d", v.Hardware), v.GuestName}}
		switch {
		case v.Template:
			r.Disabled = "it is a template"
		case v.Power == "suspended":
			r.Disabled = "it is suspended"
		case v.FaultTolerant:
			r.Disabled = "fault tolerance is on"
		case v.VCenterVM:
			r.Disabled = "it is the vCenter itself"
		}
		p.rows[v.Name] = len(rows)
		rows = append(rows, r)
	}
	p.table = live.NewTable(w.theme, []string{"VM", "RDMA address", "Host", "Power", "Hardware", "Guest"}, rows)
	p.table.Chosen = chosen
	p.table.Edit = addressColumn
	p.table.Edited = p.edited
	return nil
}

// edited checks an address typed for one VM.
func (p *vmsPage) edited(vm, text string) error {
	ip, err := netip.ParsePrefix(text)
	if err != nil {
		return fmt.Errorf("%q: want an address with its prefix length, 192.168.50.11/24", text)
	}
	for other, taken := range p.ips {
		if other != vm && p.table.Chosen[other] && taken.Addr() == ip.Addr() {
			return fmt.Errorf("%s is the address of %s", ip.Addr(), other)
		}
	}
	p.ips[vm] = ip
	p.table.Rows[p.rows[vm]].Cells[addressColumn] = ip.String()
	p.table.Chosen[vm] = true
	return nil
}

func (p *vmsPage) update(_ *wizard, msg tea.Msg) (tea.Cmd, bool) { return p.table.Update(msg) }

func (p *vmsPage) accept(w *wizard) (tea.Cmd, error) {
	known := map[string]answers.VM{}
	for _, v := range w.answers.VMs {
		known[v.Name] = v
	}
	var vms []answers.VM
	for _, r := range p.table.Rows {
		if !p.table.Chosen[r.ID] {
			continue
		}
		v := known[r.ID]
		v.Name, v.IP = r.ID, p.ips[r.ID]
		if !v.IP.IsValid() && len(v.Adapters) == 0 {
			return nil, fmt.Errorf("%s has no RDMA address: press e on its line", r.ID)
		}
		vms = append(vms, v)
	}
	if len(vms) == 0 {
		return nil, errors.New("no VM is chosen: RDMA is for the guests in them")
	}
	w.answers.VMs = vms
	w.answers = w.fabric.Propose(w.answers, w.overview)
	return forward, nil
}

func (p *vmsPage) view(_ *wizard, width, height int) string {
	return "Which VMs get an RDMA adapter, and which address on it? The network must be one that no other adapter of the guest has.\n\n" + p.table.View(width, height-3)
}
