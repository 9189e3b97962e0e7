package recipe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
	"github.com/rdma-setup/rdma-setup/wizard/plan/nmlx5"
)

// A fault is a reason against a pNIC. Deeper faults were found later: the pNIC was nearer to what was asked for.
type fault struct {
	depth              int
	check, why, remedy string
}

// How deep a pNIC got before it was turned down.
const (
	depthAsked = iota // not the one that the answers describe
	depthLink         // described, but no link: the choice is among those that are up
	depthRDMA         // up, but no RDMA device
	depthRoCE         // RDMA, but the wrong protocol
	depthOwner        // belongs to a DPU
	depthFree         // fit, but used for something else
	depthNone         // nothing against it
)

// chooseNIC finds the one pNIC of a host that the answers describe and facts allow, nil after a refusal.
// HOST-PNIC checks; the HCA is the only uplink of a PVRDMA switch (VMware "PVRDMA Support").
func (b *builder) chooseNIC(h *draft.Host) *backends.NIC {
	if n, forced := b.forced(h); forced {
		return n
	}
	var fit []*backends.NIC
	best := fault{depth: -1}
	var seen []string
	for i := range h.NICs {
		n := &h.NICs[i]
		f := b.against(h, n)
		if f.depth == depthNone {
			fit = append(fit, n)
			continue
		}
		if f.depth > depthAsked || len(h.NICs) <= 8 {
			seen = append(seen, fmt.Sprintf("%s %s", n.Device, f.why))
		}
		if f.depth > best.depth {
			best = f
		}
	}
	if len(fit) > 1 {
		// An uplink of our switch was chosen before; it stays chosen.
		if i := slices.IndexFunc(fit, func(n *backends.NIC) bool { return n.Switch == b.Answers.Switch.Name }); i >= 0 && !b.Whole() {
			return fit[i]
		}
		b.Refuse(backends.HostRef(h.Name), "", "choose one by nic.device or nic.macs", "several pNICs fit: %s", strings.Join(devices(fit), ", "))
		return nil
	}
	if len(fit) == 1 {
		return fit[0]
	}
	if len(h.NICs) == 0 {
		best = fault{check: "HOST-PNIC-RDMA-001", remedy: "check the host: vCenter lists no pNIC at all"}
		seen = []string{"it has no pNIC"}
	}
	b.Refuse(backends.HostRef(h.Name), best.check, best.remedy, "no pNIC fits: %s", strings.Join(seen, "; "))
	return nil
}

func (b *builder) forced(h *draft.Host) (*backends.NIC, bool) {
	for _, spec := range b.Options.ForceNIC {
		i := strings.LastIndex(spec, "/")
		if i < 0 || spec[:i] != h.Name {
			continue
		}
		n := h.NIC(spec[i+1:])
		if n == nil {
			b.Refuse(backends.HostRef(h.Name), "HOST-PNIC-RDMA-001", "name one of: "+strings.Join(devices(pointers(h.NICs)), ", "),
				"--force-nic names %q, which the host does not have", spec[i+1:])
			return nil, true
		}
		if f := b.unfit(h, n); f.depth != depthNone {
			b.Refuse(backends.HostRef(h.Name), f.check, f.remedy, "--force-nic %s: %s", n.Device, f.why)
			return nil, true
		}
		if b.Whole() && (n.Switch != "" || len(n.Roles) > 0) {
			b.Refuse(backends.HostRef(h.Name), "HOST-PNIC-USED-012", "take it off its switch first, or choose another pNIC",
				"--force-nic %s: it %s; a card that the host uses cannot be passed through", n.Device, usage(n))
			return nil, true
		}
		if lastOfManagement(h, n) {
			b.Refuse(backends.HostRef(h.Name), "HOST-PNIC-USED-012", "give "+n.Switch+" another uplink with link, see that the host stays reachable over it, then run this again",
				"--force-nic %s: it %s, where no other uplink has link: vCenter would lose the host", n.Device, usage(n))
			return nil, true
		}
		if n.Switch != "" && n.Switch != b.Answers.Switch.Name || len(n.Roles) > 0 {
			b.Note("%s: %s is taken by force; it %s, and that traffic stops on it", h.Name, n.Device, usage(n))
		}
		return n, true
	}
	return nil, false
}

// lastOfManagement tells whether a host's management would be cut with this pNIC: no force takes it. vCenter rolls back
// such a change by itself only where its network rollback is on (vSphere Networking, Networking Rollback).
func lastOfManagement(h *draft.Host, n *backends.NIC) bool {
	return slices.Contains(n.Roles, "management") && !slices.ContainsFunc(h.NICs, func(o backends.NIC) bool {
		return o.Device != n.Device && o.Switch == n.Switch && o.SpeedMbps > 0
	})
}

// against tells the first thing that speaks against a pNIC.
func (b *builder) against(h *draft.Host, n *backends.NIC) fault {
	if f := b.described(h, n); f.depth != depthNone {
		return f
	}
	if f := b.unfit(h, n); f.depth != depthNone {
		return f
	}
	if n.Switch == b.Answers.Switch.Name && len(n.Roles) == 0 && !b.Whole() {
		return fault{depth: depthNone}
	}
	if n.Switch != "" || len(n.Roles) > 0 {
		return fault{depthFree, "HOST-PNIC-USED-012", usage(n), b.otherNIC(n)}
	}
	return fault{depth: depthNone}
}

func (b *builder) otherNIC(n *backends.NIC) string {
	if b.Whole() {
		return "choose another pNIC, or take it off its switch first"
	}
	return "choose another pNIC, or move that traffic first; --force-nic HOST/" + n.Device + " takes it all the same"
}

// usage says what a pNIC that is not free does.
func usage(n *backends.NIC) string {
	switch {
	case n.Switch != "" && len(n.Roles) > 0:
		return fmt.Sprintf("carries %s on %s", strings.Join(n.Roles, ", "), n.Switch)
	case len(n.Roles) > 0:
		return "carries " + strings.Join(n.Roles, ", ")
	}
	return "is an uplink of " + n.Switch
}

// described holds a pNIC against nic: of the answers.
func (b *builder) described(h *draft.Host, n *backends.NIC) fault {
	want := b.Answers.NIC
	if mac, ok := want.MACs[h.Name]; ok && !strings.EqualFold(n.MAC, string(mac)) {
		return fault{depthAsked, "HOST-PNIC-MAC-005", "has MAC " + n.MAC, "correct nic.macs for this host"}
	}
	if want.Device != "" && n.Device != want.Device && !strings.EqualFold(n.PCI, want.Device) {
		return fault{depthAsked, "HOST-PNIC-RDMA-001", "is not " + want.Device, "correct nic.device, or choose by nic.macs"}
	}
	if want.Driver != "" && n.Driver != want.Driver {
		return fault{depthAsked, "HOST-PNIC-DRIVER-006", "has driver " + n.Driver, "install the driver, or correct nic.driver"}
	}
	down := n.SpeedMbps == 0 && (n.MaxSpeedMbps == 0 || n.MaxSpeedMbps == want.Speed.Mbps()) // without a link it may yet be the one
	if s := want.Speed.Mbps(); s > 0 && n.SpeedMbps != s && !down {
		return fault{depthAsked, "HOST-PNIC-SPEED-004", "runs at " + speed(n), "check cable and switch port, or correct nic.speed"}
	}
	return fault{depth: depthNone}
}

func speed(n *backends.NIC) string {
	switch s := n.SpeedMbps; {
	case s == 0 && n.MaxSpeedMbps > 0:
		return fmt.Sprintf("no speed (no link; up to %gG)", float64(n.MaxSpeedMbps)/1000)
	case s == 0:
		return "no speed (no link)"
	default:
		return fmt.Sprintf("%gG", float64(s)/1000)
	}
}

// unfit tells what a pNIC lacks for PVRDMA, whoever asks for it (rules: HCA with an RDMA device that speaks the
// protocol; a DPU's ports are not the host's to use).
func (b *builder) unfit(h *draft.Host, n *backends.NIC) fault {
	switch {
	case b.Virtual():
		return b.unfitForVFs(h, n)
	case b.Whole():
		return b.unfitForPassthrough(h, n)
	}
	proto := b.Answers.PVRDMA.Protocol
	switch {
	case n.SpeedMbps == 0:
		return fault{depthLink, "HOST-PNIC-STATE-003", "has no link", "check cable, optics and switch port"}
	case n.RDMADevice == "":
		return fault{depthRDMA, "HOST-PNIC-RDMA-001", "has no RDMA device",
			"load the RDMA driver (nmlx5_rdma, irdman, bnxtroce, qedrntv), or choose another pNIC"}
	case proto == "rocev2" && !n.RoCEv2 && n.RoCEv1:
		return fault{depthRoCE, "HOST-PNIC-ROCEV2-002", "speaks only RoCE v1", "set pvrdma.protocol to rocev1, or choose another pNIC"}
	case proto == "rocev2" && !n.RoCEv2, proto == "rocev1" && !n.RoCEv1 && !n.RoCEv2:
		return fault{depthRoCE, "HOST-PNIC-ROCEV2-002", "speaks only iWARP", "switch the NIC to RoCE v2 by its driver's parameter, or choose another pNIC"}
	case proto == "rocev1" && !n.RoCEv1:
		return fault{depthRoCE, "HOST-PNIC-ROCEV2-002", "does not speak RoCE v1", "set pvrdma.protocol to rocev2"}
	case n.DPU != "":
		return fault{depthOwner, "HOST-PNIC-RDMA-001", "belongs to the DPU " + n.DPU, "choose another pNIC: PVRDMA does not run through a DPU"}
	}
	return fault{depth: depthNone}
}

// unfitForVFs tells what a pNIC lacks for VFs. That its function offers none yet is no reason: firmware and BIOS look the
// same from here, and the firmware is set on the way.
func (b *builder) unfitForVFs(h *draft.Host, n *backends.NIC) fault {
	switch {
	case n.SpeedMbps == 0:
		return fault{depthLink, "HOST-PNIC-STATE-003", "has no link", "check cable, optics and switch port"}
	case n.Driver != nmlx5.Core:
		return fault{depthRDMA, "HOST-PNIC-DRIVER-006", "has driver " + n.Driver + ", and the way to VFs is that of ConnectX cards (" + nmlx5.Core + ")",
			"choose a port of a ConnectX card, or mode pvrdma"}
	case n.DPU != "":
		return fault{depthOwner, "HOST-PNIC-RDMA-001", "belongs to the DPU " + n.DPU, "choose another pNIC: a DPU's ports are not the host's to use"}
	case n.SRIOV == nil || !n.SRIOV.Capable:
		b.Each(h.Name, "%s offers no SR-IOV yet; where the firmware is not the reason: %s", n.Device, nmlx5.BIOSHelp(h.Vendor))
	}
	return fault{depth: depthNone}
}

func devices(ns []*backends.NIC) []string {
	out := make([]string, len(ns))
	for i, n := range ns {
		out[i] = n.Device
	}
	slices.Sort(out)
	return out
}

func pointers(ns []backends.NIC) []*backends.NIC {
	out := make([]*backends.NIC, len(ns))
	for i := range ns {
		out[i] = &ns[i]
	}
	return out
}
