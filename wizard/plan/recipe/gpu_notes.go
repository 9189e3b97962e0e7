package recipe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
)

// gpuCosts notes what the operator should know of passed-through devices before consenting.
func (b *builder) gpuCosts() {
	if slices.ContainsFunc(b.Plan.Changes, func(c plan.Change) bool { return c.Kind == backends.KindDevice }) {
		lost := "vMotion, Storage vMotion, snapshots (so image backups), suspend and resume, hot-add of memory and CPUs, fault tolerance"
		if b.Answers.GPUDirect.Backing == backends.FixedBacking {
			lost += ", HA restart and DRS"
		}
		b.Note("a VM with passed-through devices loses: %s", lost)
	}
	for _, v := range b.VMs {
		b.reach(v)
		b.room(v)
		b.policies(v)
	}
	if !b.Answers.Confirmed.Above4G {
		b.Note("\"Above 4G decoding\" must be on in the BIOS of these hosts. It cannot be detected (confirmed.above_4g); if it is off, the VMs do not power on")
	}
	if b.Answers.GPUDirect.AllowP2P && !b.Answers.GPUDirect.RelaxACS {
		b.Note("relax_acs is off: peer-to-peer then takes ATS on the RDMA card (gpudirect.ats; a host reboot, also for a card that is passed through) and switches whose ACS lets translated requests by (NVIDIA, ATS)")
	}
	if b.Whole() && b.Answers.QoS.Lossless != "none" && b.Answers.QoS.Lossless != "" {
		b.Note("qos.lossless %s is not set on a card that is passed through to a VM: set it in the guest (mlnx_qos)", b.Answers.QoS.Lossless)
	}
}

// reach says which GPUs the RDMA card can reach directly, before anything is changed.
func (b *builder) reach(v *draft.VM) {
	h := b.Part(v.Host)
	nic := b.cardOf(h, v)
	if nic == "" || len(v.GPUs) == 0 {
		return
	}
	can := 0
	var far []string
	for _, g := range v.GPUs {
		near, _ := backends.Near(g.Path(), h.Bridges(nic))
		if p := near.PeerToPeer(); p == "yes" {
			can++
		} else {
			far = append(far, fmt.Sprintf("%s (%s: %s)", g.PCI, near, map[string]string{"doubtful": "doubtful", "no": "no peer-to-peer", "unknown": "not known"}[p]))
		}
	}
	switch {
	case len(far) == 0:
	case can == 0:
		b.Each(v.Name, "NO GPU of this VM is certain to reach the RDMA card at %s by peer-to-peer: %s. Data goes through host memory. No setting changes that, only another slot (rdma-setup discover ranks the pairs)",
			nic, strings.Join(far, ", "))
	default:
		b.Each(v.Name, "%d of its GPUs reach the RDMA card at %s directly; for the others data goes through host memory: %s", can, nic, strings.Join(far, ", "))
	}
}

// room notes a VM with less memory than its GPUs like.
func (b *builder) room(v *draft.VM) {
	sum := int64(0)
	for _, g := range v.GPUs {
		sum += g.MemoryMB
	}
	if sum > 0 && v.MemoryMB*2 < sum*3 {
		b.Each(v.Name, "has %d GB of memory for %d GB of GPU memory; 1.5 times the GPU memory is recommended (VM-MEMGPU-009)", v.MemoryMB>>10, sum>>10)
	}
}

// policies notes what the cluster would do with a VM, and cannot any more.
func (b *builder) policies(v *draft.VM) {
	cl := b.Inventory.Cluster(v.Cluster)
	if cl == nil || b.Answers.GPUDirect.Backing != backends.FixedBacking {
		return
	}
	if cl.HA {
		b.Each(v.Name, "HA of %s cannot restart it on another host: plan for a manual restart, or set gpudirect.backing to dynamic", cl.Name)
	}
	if mode := cmp.Or(cl.DRSOverride[v.Name], cl.DRSMode); cl.DRS && mode == "fullyAutomated" {
		b.Each(v.Name, "DRS of %s is fully automated but cannot move it: its host can only be evacuated after the VM is shut down", cl.Name)
	}
}
