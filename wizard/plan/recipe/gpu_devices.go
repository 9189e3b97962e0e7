package recipe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
	"github.com/rdma-setup/rdma-setup/wizard/plan/driver"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

const nvidia = "10de"

// assign determines which GPUs of a host its VMs should have: those in the answers, else their current ones and all that are
// free, distributed in turn.
func (b *builder) assign(h *draft.Host) {
	on := b.vmsOn(h)
	if len(b.Answers.GPUDirect.GPUs) > 0 {
		passthrough := func(v *draft.VM) bool { return len(b.Answers.GPUDirect.GPUs[v.Wish.Name].Whole) > 0 }
		if slices.ContainsFunc(on, passthrough) && !b.allowsPassthrough(h) {
			return
		}
		shared := func(v *draft.VM) bool { return b.Answers.GPUDirect.GPUs[v.Wish.Name].Shared() }
		if b.Answers.GPUDirect.Manager != "" && slices.ContainsFunc(on, shared) && !driver.VGPUManager(b.Draft, h) {
			return
		}
		for _, v := range on {
			b.gpusNamed(h, v)
		}
		return
	}
	if !b.allowsPassthrough(h) {
		return
	}
	var free []*backends.GPU
	var taken []string
	for _, g := range b.ranked(h, on) {
		o := b.owner(h, g.PCI)
		i := slices.IndexFunc(on, func(v *draft.VM) bool { return o != nil && v.VM == o })
		switch {
		case i >= 0:
			on[i].GPUs = append(on[i].GPUs, g)
		case o != nil:
			taken = append(taken, fmt.Sprintf("%s belongs to %s", g.PCI, ownerName(o)))
		case g.Vendor != nvidia:
			taken = append(taken, fmt.Sprintf("%s is not an NVIDIA GPU", g.PCI))
		case !g.Capable:
			taken = append(taken, g.PCI+" cannot be passed through")
		default:
			free = append(free, g)
		}
	}
	if b.Answers.Several() && b.peers() {
		b.share(h, on, free)
		free = nil
	}
	for _, g := range free {
		if len(on) > 0 {
			v := slices.MinFunc(on, func(x, y *draft.VM) int { return len(x.GPUs) - len(y.GPUs) })
			v.GPUs = append(v.GPUs, g)
		}
	}
	for _, v := range on {
		if len(v.GPUs) == 0 {
			b.Refuse(backends.VMRef(v.Name), "HOST-PT-FREE-014", "remove it from vms, move it to a host with a free GPU, or free one",
				"no GPU of %s is free for it: %s", h.Name, cmp.Or(strings.Join(taken, "; "), "the host has none, or too few"))
		}
	}
}

func (b *builder) vmsOn(h *draft.Host) []*draft.VM {
	return slices.DeleteFunc(slices.Clone(b.VMs), func(v *draft.VM) bool { return v.Host != h.Name })
}

// allowsPassthrough refuses passthrough of complete GPUs of an HGX board. NVIDIA AI Enterprise 8.0, "NVIDIA NVSwitch", Limitations;
// release 9.0 does not repeat it, so --skip overrides it.
func (b *builder) allowsPassthrough(h *draft.Host) bool {
	if h.Baseboard == nil {
		return true
	}
	before := len(b.Refusals)
	offer := "the host offers none: install the NVIDIA vGPU Manager"
	for _, p := range h.Profiles {
		if slices.ContainsFunc(h.GPUs, func(g backends.GPU) bool {
			m, known := assets.GPUByID(g.Vendor, g.Device)
			return known && m.Framebuffer == sizing.ProfileGB(p)
		}) {
			offer = p
		}
	}
	groups := fmt.Sprintf("vSphere 8: Nvidia:%d@PROFILE%%NVLink", h.Baseboard.GPUs)
	if len(h.DeviceGroups) > 0 {
		groups = "this host lists " + strings.Join(h.DeviceGroups, ", ")
	}
	b.Object(backends.HostRef(h.Name), "HOST-GPU-GFX-018",
		fmt.Sprintf("give the VM vGPUs with the whole memory of a GPU (%s), up to %d, in one vendor device group (%s; "+
			"vSphere 9: a DirectPath profile); gpudirect.gpus: {VM: {group: NAME}} assigns a group", offer, h.Baseboard.GPUs, groups),
		"%s: GPU passthrough is not supported on systems with NVSwitch under VMware vSphere (NVIDIA AI Enterprise 8.0, NVIDIA NVSwitch, "+
			"limitations)", h.Baseboard)
	return len(b.Refusals) == before
}

// ranked returns the GPUs of a host, nearest to the RDMA card first.
func (b *builder) ranked(h *draft.Host, on []*draft.VM) []*backends.GPU {
	var out []*backends.GPU
	for i := range h.GPUs {
		out = append(out, &h.GPUs[i])
	}
	if len(on) > 0 {
		nic := ""
		if b.peers() {
			nic = b.cardOf(h, on[0])
		}
		order := []string{"yes", "doubtful", "unknown", "no"}
		slices.SortStableFunc(out, func(x, y *backends.GPU) int {
			nx, _ := backends.Near(x.Path(), h.Bridges(nic))
			ny, _ := backends.Near(y.Path(), h.Bridges(nic))
			return slices.Index(order, nx.PeerToPeer()) - slices.Index(order, ny.PeerToPeer())
		})
	}
	return out
}

// cardOf returns the PCI address of a VM's RDMA card, "" if none was chosen.
func (b *builder) cardOf(h *draft.Host, v *draft.VM) string {
	switch {
	case len(v.Cards) > 0:
		return v.Cards[0].Address
	case h.Chosen != nil:
		return h.Chosen.PCI
	}
	return ""
}

func (b *builder) gpusNamed(h *draft.Host, v *draft.VM) {
	ref := backends.VMRef(v.Name)
	list, ok := b.Answers.GPUDirect.GPUs[v.Wish.Name]
	if !ok && !b.peers() {
		return // it has only a PVRDMA adapter
	}
	if !ok {
		b.Refuse(ref, "", "name its GPUs, or remove it from vms", "gpudirect.gpus names GPUs for other VMs and none for this one")
		return
	}
	if list.Shared() {
		b.vgpusNamed(h, v, list)
		return
	}
	for _, pci := range list.Whole {
		i := slices.IndexFunc(h.GPUs, func(g backends.GPU) bool { return strings.EqualFold(g.PCI, string(pci)) })
		if i < 0 {
			have := backends.Each(h.GPUs, func(g backends.GPU) string { return g.PCI })
			b.Refuse(ref, "HOST-PT-FREE-014", "name one of: "+cmp.Or(strings.Join(have, ", "), "there is none"), "%s has no GPU at %s", h.Name, pci)
			continue
		}
		g := &h.GPUs[i]
		if o := b.owner(h, g.PCI); o != nil && o != v.VM {
			b.Refuse(ref, "HOST-PT-FREE-014", takeFrom(o)+", or name another GPU in gpudirect.gpus", "the GPU at %s belongs to %s", g.PCI,
				ownerName(o))
			continue
		}
		v.GPUs = append(v.GPUs, g)
	}
}

// devices plans the passed-through devices of a VM, its VMX keys, and disables what is incompatible with them.
func (b *builder) devices(v *draft.VM) []plan.Change {
	if len(v.GPUs) == 0 && v.VGPUs == 0 && len(v.Cards) == 0 && !b.peers() || !b.takesDevices(v) {
		return nil
	}
	ref := backends.VMRef(v.Name)
	var out []plan.Change
	nested := backends.Setting{Target: ref, Kind: backends.KindNested}
	out = append(out, plan.Change{Setting: nested, From: b.Now(nested), To: backends.ValueOf(false),
		Why: "nested virtualization cannot be on beside peer-to-peer (KB 437651)"})
	out = append(out, b.keys(v)...)
	for _, c := range v.Cards {
		out = append(out, b.device(v, c.Address, c.Vendor, c.Device, "the RDMA card ("+cmp.Or(c.Name, c.Device)+"), whole"))
	}
	for _, g := range v.GPUs {
		out = append(out, b.device(v, g.PCI, g.Vendor, g.Device, "the GPU ("+g.Model+")"))
	}
	if v.Group != "" {
		s := backends.Setting{Target: ref, Kind: backends.KindDeviceGroup, Name: v.Group}
		out = append(out, plan.Change{Setting: s, From: b.Now(s), To: backends.ValueOf(true),
			Why: fmt.Sprintf("%d vGPUs %s as one unit: ESXi assigns GPUs that are connected with each other", v.VGPUs, v.VGPU)})
	} else if v.VGPUs > 0 {
		s := backends.Setting{Target: ref, Kind: backends.KindVGPU, Name: v.VGPU}
		out = append(out, plan.Change{Setting: s, From: b.Now(s), To: backends.ValueOf(v.VGPUs),
			Why: "vGPUs of its host's GPUs; ESXi chooses the GPUs at power-on"})
	}
	return out
}

// device plans one device; if the VM has it already its backing is kept.
func (b *builder) device(v *draft.VM, pci, vendor, dev, what string) plan.Change {
	s := backends.Setting{Target: backends.VMRef(v.Name), Kind: backends.KindDevice, Name: pci}
	c := plan.Change{Setting: s, From: b.Now(s), Why: what + ", " + b.Answers.GPUDirect.Backing,
		Disrupts: []plan.Disruption{plan.NoVMotion, plan.NoSnapshots, plan.NoSuspend}}
	c.To = backends.ValueOf(backends.DeviceSpec{Backing: b.Answers.GPUDirect.Backing, Vendor: vendor, Device: dev})
	if b.Answers.GPUDirect.Backing == backends.FixedBacking {
		c.Disrupts = append(c.Disrupts, plan.NoHA)
	}
	if !c.From.IsAbsent() {
		c.To = c.From
	}
	return c
}

func (b *builder) takesDevices(v *draft.VM) bool {
	ref, before := backends.VMRef(v.Name), len(b.Refusals)
	for _, d := range v.Devices {
		if d.Backing == backends.VGPUBacking && d.Profile != v.VGPU && v.Group == "" && (b.peers() || v.VGPUs > 0) {
			b.Refuse(ref, "HOST-GPU-GFX-018", fmt.Sprintf("take the vGPU out first, or ask for it in gpudirect.gpus: {profile: %s, count: %d}",
				d.Profile, v.VM.VGPUs(d.Profile)),
				"has the vGPU %s, which the answers do not give it", d.Profile)
		}
	}
	if v.Snapshots > 0 {
		have := fmt.Sprintf("%d snapshots", v.Snapshots)
		if v.Snapshots == 1 {
			have = "a snapshot"
		}
		b.Object(ref, "VM-SNAP-005", "delete or consolidate them first",
			"has %s, and a VM with passed-through devices cannot be reverted to a snapshot", have)
	}
	n := len(v.GPUs)
	for _, d := range v.Devices {
		if !slices.ContainsFunc(v.GPUs, func(g *backends.GPU) bool { return g.PCI == d.PCI }) && !slices.ContainsFunc(v.Cards, d.Is) {
			n++
		}
	}
	n += len(v.Cards) + max(0, v.VGPUs-v.VM.VGPUs(v.VGPU))
	if b.Virtual() {
		n += len(v.Nets)
	}
	if limit := sizing.PassthroughLimit(v.To, !newer("8.0.1", b.Part(v.Host).Version)); n > limit {
		b.Refuse(ref, "VM-PTCOUNT-026", "give it fewer devices, or upgrade its hardware version",
			"would have %d passed-through devices; hardware version %d takes %d (KB 309986)", n, v.To, limit)
	}
	if b.Answers.GPUDirect.Backing == backends.DynamicBacking {
		b.dynamic(v)
	}
	if v.Group != "" && v.To < sizing.HardwareDeviceGroup {
		b.NoteEach(v.Name,
			"[has|have] hardware version %d: vendor device groups came with ESXi 8.0 and version %d, and no public source says whether earlier "+
				"versions take one "+
				"(unverified). If vCenter refuses it, write hardware: upgrade for this VM (it cannot be undone)", v.To, sizing.HardwareDeviceGroup)
	}
	return len(b.Refusals) == before
}

func (b *builder) dynamic(v *draft.VM) {
	ref := backends.VMRef(v.Name)
	if v.To < sizing.HardwareDynamic {
		b.Refuse(ref, "VM-HWVER-DDIO-003", "set gpudirect.backing to fixed, or write hardware: upgrade for this VM (it cannot be undone)",
			"has hardware version %d; dynamic devices need %d (vSphere 7.0)", v.To, sizing.HardwareDynamic)
	}
	makes := map[string]string{}
	for _, g := range v.GPUs {
		if other := makes[g.Device]; other != "" {
			b.Refuse(ref, "", "set gpudirect.backing to fixed, or name one GPU for it in gpudirect.gpus",
				"%s and %s are the same model: as dynamic devices they cannot be told apart", other, g.PCI)
			return
		}
		makes[g.Device] = g.PCI
	}
	if len(v.Cards) > 1 {
		b.Refuse(ref, "", "set gpudirect.backing to fixed", "has cards on %d rails: as dynamic devices any of them may be on any rail",
			len(v.Cards))
		return
	}
	b.NoteEach(v.Name,
		"dynamic devices: at power-on ESXi may assign another GPU or card of the same model, even one that is not close to the other")
}
