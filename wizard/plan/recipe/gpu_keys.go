package recipe

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// The VMX keys of passthrough, as VMware and NVIDIA spell them; a key that a VM has keeps its spelling.
const (
	KeyUse64  = "pciPassthru.use64bitMMIO"
	KeySize64 = "pciPassthru.64bitMMIOSizeGB"
	KeyP2P    = "pciPassthru.allowP2P"
	KeyACS    = "pciPassthru.RelaxACSforP2P"
)

func (b *builder) keys(v *draft.VM) []plan.Change {
	ref := backends.VMRef(v.Name)
	if v.Extra == nil {
		b.Refuse(ref, "VM-EXTRAKEYS-029", b.gapRemedy(ref, ""), "its VMX keys could not be read")
		return nil
	}
	spelled := map[string]string{}
	for _, k := range slices.Sorted(maps.Keys(v.Extra)) {
		if other, twice := spelled[strings.ToLower(k)]; twice {
			b.Refuse(ref, "VM-EXTRAKEYS-029", "delete one of them in the VM's advanced parameters",
				"has both %s and %s: it is not known which one ESXi uses", other, k)
			return nil
		}
		spelled[strings.ToLower(k)] = k
	}
	var out []plan.Change
	key := func(name, value, why string) {
		if is := spelled[strings.ToLower(name)]; is != "" {
			name = is
		}
		s := backends.Setting{Target: ref, Kind: backends.KindExtra, Name: name}
		c := plan.Change{Setting: s, From: b.Now(s), To: backends.ValueOf(value), Why: why}
		if strings.EqualFold(v.Extra[name], value) {
			c.To = c.From
		}
		out = append(out, c)
	}
	if size, why := b.window(v, v.Extra[spelled[strings.ToLower(KeySize64)]]); size > 0 {
		key(KeyUse64, "TRUE", "large BARs need 64-bit MMIO, which takes EFI firmware")
		key(KeySize64, strconv.Itoa(size), why)
	}
	if b.peers() && b.Answers.GPUDirect.AllowP2P {
		key(KeyP2P, "TRUE", "lets devices of one VM access each other's memory (VMware: Scaling HPC and ML with GPUDirect RDMA on vSphere 6.7)")
	}
	if b.peers() && b.Answers.GPUDirect.RelaxACS {
		key(KeyACS, "TRUE", "lets them do so through the PCIe switch that both are on (NVIDIA GPU Operator: GPUDirect RDMA)")
	}
	return out
}

// peers reports whether the RDMA device in a VM can access the memory of its GPUs: a PVRDMA adapter is not a PCI device of the host
// (RDG: RoCE accelerated ML and HPC on Kubernetes with vGPU and PVRDMA, NVIDIA/Mellanox, 2019: NCCL_IB_GDR_LEVEL=0).
func (b *builder) peers() bool { return b.Answers.Mode == answers.GPUDirect }

// window returns the size of the MMIO window in GB and its origin; 0 if none is needed or it cannot be computed. A larger
// existing one stays, unless the answers set a number.
func (b *builder) window(v *draft.VM, now string) (int, string) {
	ref, chosen := backends.VMRef(v.Name), b.Answers.GPUDirect.MMIO
	var list []sizing.GPUCount
	for _, g := range v.GPUs {
		c := sizing.CountOf(g, b.Answers.GPUDirect.Models)
		c.BAR1MB = cmp.Or(b.Inventory.BAR1(g.Vendor, g.Device), c.BAR1MB)
		if i := slices.IndexFunc(list, func(o sizing.GPUCount) bool {
			return o.Model == c.Model && o.FramebufferGB == c.FramebufferGB && o.BAR1MB == c.BAR1MB
		}); i >= 0 {
			list[i].Count++
			continue
		}
		list = append(list, c)
	}
	if v.VGPUs > 0 {
		list = append(list, sizing.GPUCount{Model: v.VGPU, Count: v.VGPUs})
	}
	if len(list) == 0 {
		return 0, "" // refused
	}
	others := make([]float64, max(1, len(v.Nets)))
	for i := range others {
		others[i] = sizing.NICBARs
	}
	w, err := sizing.MMIO(list, others...)
	switch {
	case err != nil && chosen.GB() > 0:
		b.NoteEach(v.Name, "the MMIO window of %d GB is taken from the answers without a check: %v", chosen.GB(), err)
		return chosen.GB(), fmt.Sprintf("%d GB, as the answers say", chosen.GB())
	case err != nil:
		b.Refuse(ref, "VM-MMIO-SIZE-024",
			"state the sizes of the model in gpudirect.models, as {10de:2fff: {framebuffer: 48, bar: 64}} (nvidia-smi -q, or "+
				"vmware.log of a VM that has it), or set gpudirect.mmio to a power of two in GB above the sum",
			"the MMIO window cannot be worked out: %v", err)
		return 0, ""
	case v.Firmware != "efi" && w.Needed:
		b.Refuse(ref, "VM-FIRMWARE-022",
			"create a new VM with EFI firmware and reinstall the guest (its data disks can be attached there); with its firmware changed, this VM "+
				"would not boot",
			"has BIOS firmware, and its GPUs map %.2f GB, for which the guest has to be installed with EFI", w.TotalGB)
		return 0, ""
	case !w.Needed:
		return 0, ""
	}
	size := map[answers.MMIO]int{"kb": w.KB, "minimal": w.Minimal, "guide": w.Guide}[chosen]
	if chosen.GB() > 0 {
		size = chosen.GB()
	}
	if err := w.Check(size); err != nil {
		b.Object(ref, "VM-MMIO-SIZE-024",
			fmt.Sprintf(
				"set gpudirect.mmio to kb, which results in %d; with --skip VM-MMIO-SIZE-024 it is written anyway, and the VM will not power on", w.KB),
			"gpudirect.mmio %s: %v", chosen, err)
	}
	if w.Warning != "" {
		b.NoteEach(v.Name, "%s", w.Warning)
	}
	if n, err := strconv.Atoi(strings.TrimSpace(now)); err == nil && chosen.GB() == 0 && n > size && w.Check(n) == nil {
		return n, "it is larger than needed and stays"
	}
	return size, w.Explanation
}
