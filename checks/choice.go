package checks

import (
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// networkClass is the PCI class of network controllers, as the inventory spells it.
const networkClass = "02"

func (f *Facts) choose(h *backends.Host) *backends.NIC {
	var best *backends.NIC
	for i := range h.NICs {
		n := &h.NICs[i]
		if id, _ := f.against(h, n); id == "" && (best == nil || rank(f, n) > rank(f, best)) {
			best = n
		}
	}
	return best
}

// against tells which row a pNIC breaks that is not what the answers describe, and how near it came.
func (f *Facts) against(h *backends.Host, n *backends.NIC) (id string, depth int) {
	want := f.Answers.NIC
	if mac, given := want.MACs[h.Name]; given && !strings.EqualFold(string(mac), n.MAC) {
		return "HOST-PNIC-MAC-005", 0
	}
	if want.Device != "" && want.Device != n.Device && !strings.EqualFold(want.Device, n.PCI) {
		return f.absent(), 1
	}
	if want.Driver != "" && want.Driver != n.Driver {
		return "HOST-PNIC-DRIVER-006", 2
	}
	// The uplink that runs below its speed is still the one that is meant: it is not some other card.
	slow := n.SpeedMbps == 0 || n.Switch != "" && n.Switch == f.Answers.Switch.Name
	if speed := want.Speed.Mbps(); speed != 0 && n.SpeedMbps != speed && (!slow || n.MaxSpeedMbps != speed) {
		return "HOST-PNIC-SPEED-004", 3
	}
	return "", 4
}

// absent is the row that says that there is no such pNIC at all.
func (f *Facts) absent() string {
	if f.Answers.Mode == answers.PVRDMA {
		return "HOST-PNIC-RDMA-001"
	}
	return "HOST-PNIC-STATE-003"
}

// blame is the one row that names a host without a fitting pNIC: that of the pNIC which came nearest. The other rows
// then say nothing of the host, so that one cause is told once.
func (f *Facts) blame(h *backends.Host) string {
	worst, best := f.absent(), -1
	for i := range h.NICs {
		if id, depth := f.against(h, &h.NICs[i]); depth > best {
			worst, best = id, depth
		}
	}
	return worst
}

// passedOn tells whether the host's RDMA card is passed through to VMs as a whole: then it is no pNIC any more.
func (f *Facts) passedOn(h *backends.Host) bool {
	return f.Answers.WholeCard() && len(f.cards(h)) > 0
}

// cards are the PCI addresses of network cards on a host whose passthrough is on.
func (f *Facts) cards(h *backends.Host) []string {
	var out []string
	for _, d := range h.PCI {
		if d.Enabled && strings.HasPrefix(d.Class, networkClass) {
			out = append(out, d.Address)
		}
	}
	return out
}

// eachNIC asks row id about the RDMA pNIC of every selected host.
func eachNIC(id string, ask func(f *Facts, h *backends.Host, n *backends.NIC) Answer) func(*Facts) []Answer {
	return eachHost(func(f *Facts, h *backends.Host) Answer {
		n := f.nic(h)
		switch {
		case n != nil:
			return ask(f, h, n)
		case f.passedOn(h) || f.blame(h) != id:
			return Answer{}
		}
		return fail(backends.HostRef(h.Name), "no pNIC is what the answers describe (%s); there are %s", describe(f.Answers.NIC, h), nicList(h))
	})
}

func describe(n answers.NIC, h *backends.Host) string {
	var parts []string
	if s := n.Speed.String(); s != "" {
		parts = append(parts, s)
	}
	for _, s := range []string{n.Driver, n.Device, string(n.MACs[h.Name])} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if len(parts) == 0 {
		return "any RDMA pNIC"
	}
	return strings.Join(parts, ", ")
}

func nicList(h *backends.Host) string {
	var out []string
	for _, n := range h.NICs {
		speed := "no link"
		if n.SpeedMbps > 0 {
			speed = itoa(n.SpeedMbps) + " Mbps"
		}
		out = append(out, n.Device+" ("+n.Driver+", "+speed+")")
	}
	return orNone(strings.Join(out, ", "))
}

func rank(f *Facts, n *backends.NIC) int {
	r := 0
	if n.Switch != "" && n.Switch == f.Answers.Switch.Name {
		r += 8
	}
	if n.Eligible {
		r += 4
	}
	if n.RDMADevice != "" {
		r += 2
	}
	if n.SpeedMbps > 0 {
		r++
	}
	return r
}

// gpus are the GPUs of a host that the selected VMs have or shall have; chosen is false where nobody said which, and
// then they are all that could be passed through.
func (f *Facts) gpus(h *backends.Host) (list []*backends.GPU, chosen bool) {
	var named, free []*backends.GPU
	for i := range h.GPUs {
		g := &h.GPUs[i]
		if f.wanted(h, g) {
			named = append(named, g)
		} else if g.Capable {
			free = append(free, g)
		}
	}
	if len(named) > 0 {
		return named, true
	}
	return free, false
}

func (f *Facts) wanted(h *backends.Host, g *backends.GPU) bool {
	found, _ := f.vms()
	return slices.ContainsFunc(found, func(v *backends.VM) bool {
		return v.Host == h.Name && (slices.Contains(v.Passthrough, g.PCI) || slices.Contains(f.Answers.GPUDirect.GPUs[v.Name], answers.PCI(g.PCI)))
	})
}

// vmGPUs are the GPUs that a VM has now.
func (f *Facts) vmGPUs(v *backends.VM) []*backends.GPU {
	h := f.Inventory.Host(v.Host)
	if h == nil {
		return nil
	}
	var out []*backends.GPU
	for i := range h.GPUs {
		if slices.Contains(v.Passthrough, h.GPUs[i].PCI) {
			out = append(out, &h.GPUs[i])
		}
	}
	return out
}
