// Package recipe plans a mode: it chooses hosts, pNICs and VMs, plans switch, adapters and devices, and uses other packages for
// drivers, guests and waves. Plans are deterministic.
package recipe

import (
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
	"github.com/rdma-setup/rdma-setup/wizard/plan/guest"
	"github.com/rdma-setup/rdma-setup/wizard/plan/waves"
)

// Build computes the changes between an inventory and the answers. The error is a *plan.Refused if the inventory does not allow the
// requested state (all reasons at once), and of kind usage if a VM's name is ambiguous.
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
		return nil, backends.Usagef("", "plan with mode: pvrdma, sriov or gpudirect", "there is no mode %q", a.Mode)
	}
	return b.Finish()
}

// A builder builds the plan of a mode.
type builder struct {
	*draft.Draft
	all     []*backends.Host   // named by the answers, including those that --limit excludes
	control map[string]control // by host, in mode pvrdma
	dealt   bool               // cards of hosts were distributed over VMs (Deal)
	without []string           // VMs for which no card was left
}

func newBuilder(a *answers.Answers, inv *backends.Inventory, opts plan.Options) *builder {
	return &builder{Draft: draft.New(a, inv, opts)}
}

// recipe plans the changes that all modes have in common: the switch with the RDMA pNIC of each host (or the card that is passed
// through to a VM), an adapter in each VM, the guests, and the resulting reboots and power cycles. hosts plans the mode's own part
// on hosts.
func (b *builder) recipe(hosts func()) {
	b.selectHosts()
	b.selectVMs()
	if b.WholeCard() {
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
	before := len(b.Plan.Notes)
	waves.Plan(b.Draft)
	b.wait()
	b.powerWaves()
	b.costs()
	b.tryFirst()
	b.Plan.Whole = slices.Clone(b.Plan.Notes[before:])
	b.otherCosts()
}
