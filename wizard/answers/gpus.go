package answers

import "slices"

// A GPUModel is the operator's data about a GPU model, in GB; 0: not stated.
type GPUModel struct {
	Framebuffer int `yaml:"framebuffer" json:"framebuffer,omitempty"`
	BAR         int `yaml:"bar" json:"bar,omitempty"`
}

// VMGPUs are the GPUs of a VM: whole ones, written as a list of PCI addresses, vGPUs, written as {profile, count}, or the vGPUs of a
// vendor device group, written as {group}.
type VMGPUs struct {
	Whole   []PCI  `yaml:"-" json:"whole,omitempty"`
	Profile string `yaml:"profile" json:"profile,omitempty"` // vGPU profile as the host offers it: grid_a100d-80c
	Count   int    `yaml:"count" json:"count,omitempty"`     // number of vGPUs; 0 is 1
	Group   string `yaml:"group" json:"group,omitempty"`     // vendor device group as the host lists it: Nvidia:2@grid_h100xm-80c%NVLink
}

// list returns the list form; alone unless vGPUs are named.
func (g *VMGPUs) list() (items any, alone bool) { return &g.Whole, !g.Shared() && g.Count == 0 }

// Shared reports whether vGPUs are requested, by their profile or as a vendor device group.
func (g VMGPUs) Shared() bool { return g.Profile != "" || g.Group != "" }

// VGPUs returns how many vGPUs are requested by their profile.
func (g VMGPUs) VGPUs() int {
	if g.Profile == "" {
		return 0
	}
	return max(1, g.Count)
}

// VGPUs reports whether VMs get vGPUs.
func (a *Answers) VGPUs() bool {
	for _, g := range a.GPUDirect.GPUs {
		if g.Shared() {
			return a.GPUs()
		}
	}
	return false
}

// HostPackages returns the locations of all files with packages for hosts.
func (a *Answers) HostPackages() []string {
	out := slices.Clone(a.SRIOV.Components)
	if a.GPUDirect.Manager != "" && a.VGPUs() {
		out = append(out, a.GPUDirect.Manager)
	}
	return out
}
