package recipe

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// checkVGPU is the check for GPUs that provide vGPUs.
const checkVGPU = "HOST-GPU-GFX-018"

func (b *builder) vgpusNamed(h *draft.Host, v *draft.VM, wish answers.VMGPUs) {
	ref := backends.VMRef(v.Name)
	if wish.Group != "" && !b.groupNamed(h, v, &wish) {
		return
	}
	installed, manager := vgpuManager(h)
	missing := !installed && h.Manager == "" && h.System != nil && h.System.VIBs.Known()
	switch listed := slices.Contains(h.Profiles, wish.Profile); {
	case !listed && h.Manager != "":
		b.NoteEach(h.Name, "the NVIDIA vGPU Manager is installed by this run: whether the host offers %s is known when it runs", wish.Profile)
	case len(h.Profiles) == 0 && installed && !h.ServesVGPUs():
		// No public source says whether a host lists profiles while its GPUs are not of type Shared Direct.
		b.NoteEach(h.Name,
			"[lists|list] no vGPU profile yet: %s. Whether [it offers|they offer] %s is known when [its|their] GPUs are of type Shared Direct "+
				"(unverified)", manager, wish.Profile)
	case missing, len(h.Profiles) == 0: // a host may list profiles of a manager that was removed
		before := len(b.Refusals)
		b.Object(backends.HostRef(h.Name), checkVGPU,
			"name the NVIDIA vGPU Manager of the release of the guests' driver in gpudirect.manager, or install it with an image or as a component "+
				"(vSphere Lifecycle Manager), or with esxcli software component apply; it needs SR-IOV and VT-d (AMD: IOMMU) in the BIOS. The host "+
				"then lists profiles (rdma-setup discover)",
			"cannot serve vGPUs: %s", manager)
		if len(b.Refusals) > before {
			return
		}
	case !listed:
		b.Refuse(ref, checkVGPU, "name one of: "+strings.Join(h.Profiles, ", "), "%s offers no vGPU %s", h.Name, wish.Profile)
		return
	}
	if b.peers() {
		if err := sizing.VGPUPeer(wish.Profile); err != nil {
			b.Object(ref, checkVGPU,
				"name a C-series profile of a GPU with SR-IOV, or use gpudirect.nic: pvrdma, where data goes through host memory", "%v", err)
			return
		}
		for _, c := range v.Cards {
			if err := sizing.PeerCard(c.Vendor, c.Device); err != nil {
				b.Object(ref, checkVGPU, "use a newer card, or gpudirect.nic: pvrdma, where data goes through host memory", "%s: %v", c.Address, err)
				return
			}
		}
	}
	v.VGPU, v.VGPUs = wish.Profile, wish.VGPUs()
	if h.Baseboard != nil && v.VGPUs > 1 && v.Group == "" {
		b.NoteEach(v.Name, "its vGPUs use NVLink only in one vendor device group: gpudirect.gpus: {%s: {group: \"Nvidia:%d@%s%%NVLink\"}}",
			v.Name, v.VGPUs, v.VGPU)
	}
	if h.Baseboard != nil && h.Baseboard.Generation == "Blackwell" { // NVIDIA AI Enterprise 9.0, "NVIDIA NVSwitch"
		b.NoteEach(h.Name,
			"%s: NVSwitches need NVIDIA's Fabric Manager CRX component on the host (NVIDIA AI Enterprise Infra 8.2), which is neither installed "+
				"nor checked here", h.Baseboard)
	}
	b.vgpuRoom(h, v)
}

// groupNamed resolves the vendor device group that the answers name to its vGPUs, and reports whether the VM can have it. A group is
// added or removed as a whole (vSphere Web Services API, VirtualMachineVirtualDeviceGroups; NVIDIA AI Enterprise 8.0, Device Groups).
func (b *builder) groupNamed(h *draft.Host, v *draft.VM, wish *answers.VMGPUs) bool {
	ref, profiles := backends.VMRef(v.Name), h.GroupVGPUs[wish.Group]
	other := func(d backends.AssignedDevice) bool {
		return d.Backing == backends.VGPUBacking && d.Group != wish.Group
	}
	i := slices.IndexFunc(v.Devices, other)
	switch {
	case !slices.Contains(h.DeviceGroups, wish.Group):
		offer := "groups need vSphere 8 and a running NVIDIA vGPU Manager (rdma-setup discover lists them)"
		if len(h.DeviceGroups) > 0 {
			offer = "name one of: " + strings.Join(h.DeviceGroups, ", ")
		}
		b.Refuse(ref, checkVGPU, offer, "%s lists no vendor device group %s", h.Name, wish.Group)
	case len(slices.Compact(slices.Clone(profiles))) != 1:
		b.Refuse(ref, checkVGPU, "name a group of vGPUs with one profile, or add this one in the vSphere Client",
			"the vendor device group %s does not consist of vGPUs with one profile", wish.Group)
	case i >= 0:
		b.Refuse(ref, checkVGPU, "remove it from the VM first", "has the vGPU %s, which is not in the vendor device group %s",
			v.Devices[i].Profile, wish.Group)
	default:
		v.Group, wish.Profile, wish.Count = wish.Group, profiles[0], len(profiles)
		return true
	}
	return false
}

// vgpuManager reports whether the vGPU Manager is known to be installed, and describes the known facts.
func vgpuManager(h *draft.Host) (installed bool, text string) {
	if h.System == nil || !h.System.VIBs.Known() {
		return false, "the list of its VIBs was not read, so that it is not known whether the NVIDIA vGPU Manager is installed"
	}
	if name, v := backends.VGPUManager(h.System.VIBs.Value); name != "" {
		return true, fmt.Sprintf("%s %s is installed (nvidia-smi in the ESXi shell says whether it runs)", name, v.Version)
	}
	return false, "the NVIDIA vGPU Manager is not installed (no VIB NVD-* or NVIDIA-*)"
}

// vgpuGPUs returns the GPUs of a host that can provide vGPUs of a profile.
func vgpuGPUs(h *draft.Host, profile string) (out []*backends.GPU) {
	for i := range h.GPUs {
		g := &h.GPUs[i]
		if gb := framebuffer(g); g.Vendor == nvidia && !g.Enabled && !g.Active && (gb == 0 || gb >= sizing.VGPUFrame(profile)) {
			out = append(out, g)
		}
	}
	return out
}

// framebuffer returns the memory of a GPU in GB: by its PCI ids, else as reported by the host, which may exclude the part used for ECC.
func framebuffer(g *backends.GPU) int {
	if m, known := assets.GPUByID(g.Vendor, g.Device); known {
		return m.Framebuffer
	}
	return int((g.MemoryMB*21/20 + 1023) >> 10)
}

// vgpuRoom refuses the vGPUs of a VM if the GPUs of its host have no room for all requested so far beside those of other running
// VMs.
func (b *builder) vgpuRoom(h *draft.Host, v *draft.VM) {
	var asked, elsewhere []string
	for _, o := range b.VMs {
		for range o.VGPUs {
			if o.Host == h.Name {
				asked = append(asked, o.VGPU)
			}
		}
	}
	running := map[string][]string{}
	for i := range b.Inventory.VMs {
		if o := &b.Inventory.VMs[i]; o.Host == h.Name && o.Power == "poweredOn" && b.ByVM[o.Name] == nil {
			running[o.Name] = o.VGPUProfiles()
		}
	}
	var gpus []sizing.SharedGPU
	var used []string
	for _, g := range vgpuGPUs(h, "") {
		s := sizing.SharedGPU{GB: framebuffer(g), Mode: g.VGPUMode}
		for _, vm := range g.SharedBy {
			if has := running[vm]; len(has) > 0 {
				s.Has, running[vm] = append(s.Has, has[0]), has[1:]
				used = append(used, fmt.Sprintf("%s has %s of %s", g.PCI, has[0], vm))
			}
		}
		gpus = append(gpus, s)
	}
	for _, vm := range slices.Sorted(maps.Keys(running)) {
		for _, profile := range running[vm] {
			elsewhere = append(elsewhere, profile)
			used = append(used, fmt.Sprintf("%s of %s is on one of them", profile, vm))
		}
	}
	sizing.PlaceVGPUs(gpus, elsewhere) // vCenter does not say which GPUs they are of
	left := sizing.PlaceVGPUs(gpus, asked)
	if len(left) == 0 {
		return
	}
	b.Object(backends.VMRef(v.Name), checkVGPU,
		"ask for fewer, name another profile, free a GPU, or set GPUs to mixed size (vSphere 8.0 U3: host, Configure, Hardware, Graphics)",
		"%s has no room for %d of %d vGPUs that are asked for there (%s): %d GPUs serve for vGPUs, %s. %s", h.Name, len(left), len(asked),
		left[0], len(gpus),
		cmp.Or(strings.Join(used, ", "), "and no other VM runs with one"), sizing.SameSize)
}

// graphics plans that the GPUs of a host provide vGPUs, if a VM on it should have some, and reports whether that needs a reboot
// (NVIDIA, Virtual GPU Software User Guide, "Changing the Default Graphics Type in VMware vSphere": set the host and each GPU to
// Shared Direct, then restart the ESXi host).
func (b *builder) graphics(h *draft.Host) (out []plan.Change, reboot bool) {
	if !slices.ContainsFunc(b.VMs, func(v *draft.VM) bool { return v.Host == h.Name && v.VGPUs > 0 }) {
		return nil, false
	}
	ref := backends.HostRef(h.Name)
	set := backends.Setting{Target: ref, Kind: backends.KindGraphics}
	live := backends.Setting{Target: ref, Kind: backends.KindActiveGraphics}
	if h.Manager != "" { // what the host reports before the vGPU Manager runs may differ
		spec := backends.GraphicsSpec{Default: backends.SharedDirect, Devices: map[string]string{}}
		for _, g := range vgpuGPUs(h, "") {
			spec.Devices[g.PCI] = backends.SharedDirect
		}
		unread := backends.Unknown(h.Manager)
		return []plan.Change{
			{Setting: set, From: unread, To: backends.ValueOf(spec), After: append([]string{h.Manager}, h.Reboots[0]),
				Why: "GPUs that serve for vGPUs have the graphics type Shared Direct"},
			{Setting: live, From: unread, To: backends.ValueOf(true), State: true, After: []string{set.ID()},
				Why: "checked after the last reboot: without a running vGPU Manager the GPUs stay of type Basic"},
		}, true
	}
	from := b.Now(set)
	spec := backends.GraphicsSpec{Devices: map[string]string{}}
	if !from.Known() || from.Decode(&spec) != nil {
		b.Refuse(ref, checkVGPU, "check the host's connection in vCenter", "its graphics settings could not be read")
		return nil, false
	}
	spec.Default = backends.SharedDirect
	for id := range spec.Devices {
		spec.Devices[id] = backends.SharedDirect
	}
	out = append(out, plan.Change{Setting: set, From: from, To: backends.ValueOf(spec),
		Why: "GPUs that serve for vGPUs have the graphics type Shared Direct"})
	if reboot = !h.ServesVGPUs(); reboot {
		out = append(out, plan.Change{Setting: live, From: b.Now(live), To: backends.ValueOf(true), State: true,
			After: []string{set.ID()},
			Why:   "checked after the reboot: without a running vGPU Manager the GPUs stay of type Basic"})
	}
	return out, reboot
}

// reachVGPU notes whether the RDMA card can access the GPUs of a VM's vGPUs, before anything is changed. ESXi chooses the GPU of
// a vGPU at power-on, unless a vendor device group binds it to the card (VMware, vSphere 8 Device Groups for NVIDIA GPUs and
// NICs).
func (b *builder) reachVGPU(h *draft.Host, v *draft.VM, nic string) {
	var near, far []string
	for _, g := range vgpuGPUs(h, v.VGPU) {
		way, _ := backends.Near(g.Path(), h.Bridges(nic))
		if way.PeerToPeer() == "no" {
			far = append(far, g.PCI)
		} else {
			near = append(near, g.PCI)
		}
	}
	switch {
	case len(near) == 0 && v.VM.VGPUs(v.VGPU) == 0:
		b.Object(backends.VMRef(v.Name), "HOST-GPU-ROOT-016",
			"move the card to another slot; with --skip HOST-GPU-ROOT-016 the vGPU is assigned anyway, and its data goes through host memory",
			"no GPU of %s that can serve for a vGPU %s can reach the RDMA card at %s by peer-to-peer: %s", h.Name, v.VGPU, nic,
			cmp.Or(strings.Join(far, ", "), "there is none"))
	case len(far) > 0:
		b.NoteEach(v.Name,
			"ESXi chooses the GPU of [its|their] vGPU: %s can reach the RDMA card at %s, %s cannot. A vendor device group of GPU and card "+
				"(vSphere 8) holds them together; "+
				"it is not set here", strings.Join(near, ", "), nic, strings.Join(far, ", "))
	}
}
