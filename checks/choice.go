package checks

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// choice returns the verdict on the pNICs of a host, by the rule that plans use.
func (f *Facts) choice(h *backends.Host) backends.PNICChoice {
	return backends.ChoosePNIC(h, sizing.PNICWish(f.Answers, h.Name))
}

// choose returns the pNIC that the rows examine: the one that a plan chooses, else the closest match of those that the answers
// describe; nil if there is none.
func (f *Facts) choose(h *backends.Host) *backends.NIC {
	if near := f.choice(h).Nearest; !f.NoHCA(h) && near != nil && near.Meant() && near.NIC.Hidden == "" {
		return near.NIC
	}
	return nil
}

// NoHCA reports whether a host has no RDMA card, and the answers allow that.
func (f *Facts) NoHCA(h *backends.Host) bool {
	return backends.NoHCA(h, sizing.PNICWish(f.Answers, h.Name))
}

// HiddenPort returns the PCI function without a pNIC that the answers describe on a host; turns reports whether a plan makes it a
// pNIC. It is nil if they describe a pNIC, or nothing.
func (f *Facts) HiddenPort(h *backends.Host) (n *backends.NIC, turns bool) {
	c := f.choice(h)
	if c.Nearest == nil || c.Nearest.NIC.Hidden == "" || !c.Nearest.Meant() {
		return nil, false
	}
	return c.Nearest.NIC, c.Chosen != nil
}

// Unfit returns why the pNIC that the answers describe cannot carry their RDMA, in the words with which plans refuse it, and what
// helps. The row with that id reports it. It is "" if the pNIC can, or lacks only a link, speed or a setting that the plan is about
// to make.
func (f *Facts) Unfit(h *backends.Host) (id, why, remedy string) {
	near := f.choice(h).Nearest
	if near == nil || !near.Meant() {
		return "", "", ""
	}
	r := near.Main()
	if r.Fault != backends.NotCapable && r.Fault != backends.WrongProtocol && (r.Fault != backends.SwitchedOff || f.Before) {
		return "", "", ""
	}
	if r.Remedy != "" {
		remedy = strings.ToUpper(r.Remedy[:1]) + r.Remedy[1:] + "."
	}
	return r.Check, near.NIC.Device + " " + r.Why, remedy
}

// Blame returns the one row that reports a host without a suitable pNIC: that of the closest pNIC. The other rows then skip the
// host, so that a cause is reported once.
func (f *Facts) Blame(h *backends.Host) string {
	if near := f.choice(h).Nearest; near != nil && !f.NoHCA(h) {
		return near.Main().Check
	}
	return sizing.PNICWish(f.Answers, h.Name).PresentCheck()
}

// PassedOn reports whether the host's RDMA card is passed through to VMs: then it is no longer a pNIC.
func (f *Facts) PassedOn(h *backends.Host) bool {
	cards := f.cards(h)
	return f.Answers.WholeCard() && len(cards) > 0 && (len(f.all) < 2 || slices.Contains(cards, f.Answers.Rails[0].Card()))
}

// VCenterRef is the target for findings about vCenter itself.
func (f *Facts) VCenterRef() backends.Ref {
	return backends.Ref{Type: backends.TypeVCenter, Name: f.Inventory.VCenter.URL}
}

// ClusterRef is the target for findings about the hosts together.
func (f *Facts) ClusterRef() backends.Ref {
	return backends.Ref{Type: backends.TypeCluster, Name: cmp.Or(f.Answers.Hosts.Cluster, "none")}
}
