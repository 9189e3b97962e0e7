package recipe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// gpuCosts adds notes about the restrictions that passed-through devices bring.
func (b *builder) gpuCosts() {
	if slices.ContainsFunc(b.Plan.Changes, func(c plan.Change) bool { return c.Kind == backends.KindDevice }) {
		lost := "vMotion, Storage vMotion, snapshots (so image backups), suspend and resume, hot-add of memory and CPUs, fault tolerance"
		if b.Answers.GPUDirect.Backing == backends.FixedBacking {
			lost += ", HA restart and DRS"
		}
		b.Note("a VM with passed-through devices loses: %s", lost)
	}
	for _, v := range b.VMs {
		if b.peers() && b.Answers.Several() {
			b.reachRails(v)
		} else if b.peers() {
			b.reach(v)
		} else if len(v.GPUs) > 0 || v.VGPUs > 0 {
			b.NoteEach(v.Name,
				"data of [its|their] GPUs goes through host memory: a PVRDMA adapter cannot access GPU memory (NCCL_NET_GDR_LEVEL=LOC)")
		}
		b.room(v)
		b.policies(v)
	}
	if !b.Answers.Confirmed.Above4G {
		b.Note(
			"\"Above 4G decoding\" must be on in the BIOS of these hosts. It cannot be detected (confirmed.above_4g); if it is off, the VMs do " +
				"not power on")
	}
	if b.peers() && b.Answers.GPUDirect.AllowP2P && !b.Answers.GPUDirect.RelaxACS {
		b.Note(
			"relax_acs is off: peer-to-peer then takes ATS on the RDMA card (gpudirect.ats; a host reboot, also for a card that is passed " +
				"through) and " +
				"switches whose ACS lets translated requests by (NVIDIA, ATS)")
	}
	if b.WholeCard() && b.Answers.QoS.Lossless == answers.LosslessPause {
		b.Note("qos.lossless pause is not set on a card that is passed through to a VM: set it in the guest (ethtool -A)")
	}
}

// reach adds a note, before anything is changed, about which GPUs the RDMA card can access directly.
func (b *builder) reach(v *draft.VM) {
	h := b.Part(v.Host)
	nic := b.cardOf(h, v)
	if v.VGPUs > 0 && nic != "" {
		b.reachVGPU(h, v, nic)
	}
	if nic == "" || len(v.GPUs) == 0 {
		return
	}
	can, hopeless := 0, true
	var far []string
	for _, g := range v.GPUs {
		near, _ := backends.Near(g.Path(), h.Bridges(nic))
		p := near.PeerToPeer()
		if hopeless = hopeless && p == "no"; p == "yes" {
			can++
		} else {
			far = append(far,
				fmt.Sprintf("%s (%s: %s)", g.PCI, near, map[string]string{"doubtful": "doubtful", "no": "no peer-to-peer", "unknown": "not known"}[p]))
		}
	}
	assigned := b.has(v, nic) && !slices.ContainsFunc(v.GPUs, func(g *backends.GPU) bool { return !b.has(v, g.PCI) })
	switch {
	case len(far) == 0:
	case hopeless && !assigned: // before hosts reboot in vain
		b.Object(backends.VMRef(v.Name), "HOST-GPU-ROOT-016",
			"name a GPU below the root port of the card in gpudirect.gpus (rdma-setup discover ranks the pairs), or move the card to another "+
				"slot; with --skip "+
				"HOST-GPU-ROOT-016 the GPU is assigned anyway, and its data goes through host memory",
			"no GPU of this VM can reach the RDMA card at %s by peer-to-peer: %s (NVIDIA GPU Operator, GPUDirect RDMA: both below one PCIe "+
				"root complex)", nic, strings.Join(far, ", "))
	case can == 0:
		b.NoteEach(v.Name,
			"NO GPU of [this VM|these VMs] is certain to reach the RDMA card at %s by peer-to-peer: %s. Data goes through host memory. No "+
				"setting changes "+
				"that, only another slot (rdma-setup discover ranks the pairs)",
			nic, strings.Join(far, ", "))
	default:
		b.NoteEach(v.Name, "%d of [its|their] GPUs reach the RDMA card at %s directly; for the others data goes through host memory: %s", can,
			nic, strings.Join(far, ", "))
	}
}

// room adds a note if a VM has less memory than recommended for its GPUs.
func (b *builder) room(v *draft.VM) {
	sum := int64(v.VGPUs*sizing.VGPUFrame(v.VGPU)) << 10
	for _, g := range v.GPUs {
		sum += g.MemoryMB
	}
	if sum > 0 && v.MemoryMB*2 < sum*3 {
		b.NoteEach(v.Name, "[has|have] %d GB of memory for %d GB of GPU memory; 1.5 times the GPU memory is recommended (VM-MEMGPU-009)",
			v.MemoryMB>>10, sum>>10)
	}
}

// policies adds a note about cluster features that no longer work for a VM.
func (b *builder) policies(v *draft.VM) {
	cl := b.Inventory.Cluster(v.Cluster)
	if cl == nil || b.Answers.GPUDirect.Backing != backends.FixedBacking {
		return
	}
	if cl.HA {
		b.NoteEach(v.Name, "HA of %s cannot restart [it|them] on another host: plan for a manual restart, or set gpudirect.backing to dynamic",
			cl.Name)
	}
	if mode := cmp.Or(cl.DRSOverride[v.Name], cl.DRSMode); cl.DRS && mode == "fullyAutomated" {
		b.NoteEach(v.Name,
			"DRS of %s is fully automated but cannot move [it: its host|them: their hosts] can only be evacuated after the [VM is|VMs "+
				"are] shut down", cl.Name)
	}
}
