// Package recipe plans a mode: it chooses hosts, pNICs and VMs, plans switch, adapters and devices, and has drivers, guests
// and waves planned by those that know them. The same answers and inventory give the same plan.
package recipe

import (
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
	"github.com/rdma-setup/rdma-setup/wizard/plan/guest"
	"github.com/rdma-setup/rdma-setup/wizard/plan/waves"
)

// Build works out the changes between an inventory and the answers. The error is a *plan.Refused when the inventory does
// not allow what was asked for (every reason at once), and of kind usage when a VM's name is ambiguous.
func Build(a *answers.Answers, inv *backends.Inventory, opts plan.Options) (*plan.Plan, error) {
	dealt, without := deal(a, inv)
	b := newBuilder(dealt, inv, opts)
	b.dealt, b.without = dealt != a, without
	b.Plan.Mode = string(a.Mode)
	switch a.Mode {
	case answers.PVRDMA:
		b.recipe(b.pvrdma)
	case answers.SRIOV:
		b.recipe(b.sriov)
	case answers.GPUDirect:
		b.recipe(b.gpudirect)
	default:
		return nil, backends.Errorf(backends.KindUsage, "", "plan with mode: pvrdma, sriov or gpudirect", "there is no mode %q", a.Mode)
	}
	return b.Finish()
}

// A builder is one way through the recipe of a mode.
type builder struct {
	*draft.Draft
	all     []*backends.Host   // that the answers name, also those that --limit leaves out
	control map[string]control // by host, in mode pvrdma
	dealt   bool               // cards of hosts were shared out among VMs (Deal)
	without []string           // VMs for which no card was left
}

func newBuilder(a *answers.Answers, inv *backends.Inventory, opts plan.Options) *builder {
	return &builder{Draft: draft.New(a, inv, opts)}
}

// recipe plans what every mode does: the switch with the RDMA pNIC of each host (or the card that a VM has whole), an
// adapter in each VM, the guests' side, and what that means for reboots and power. hosts plans what only this mode does on
// hosts.
func (b *builder) recipe(hosts func()) {
	b.selectHosts()
	b.selectVMs()
	if b.Whole() {
		b.cards()
	} else {
		b.fabrics()
	}
	hosts()
	b.otherTraffic()
	for _, v := range b.VMs {
		b.vm(v)
	}
	b.memoryFits()
	b.cpuFits()
	for _, v := range b.VMs {
		guest.Plan(b.Draft, v)
	}
	waves.Plan(b.Draft)
	b.wait()
	b.powerWaves()
	b.costs()
}
