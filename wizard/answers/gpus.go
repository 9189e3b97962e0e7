package answers

// VMGPUs are the GPUs of a VM: whole ones, written as a list of PCI addresses, or vGPUs, written as {profile, count}.
type VMGPUs struct {
	Whole   []PCI  `yaml:"-" json:"whole,omitempty"`
	Profile string `yaml:"profile" json:"profile,omitempty"` // vGPU profile as the host offers it: grid_a100d-80c
	Count   int    `yaml:"count" json:"count,omitempty"`     // number of vGPUs; 0 is 1
}

// list returns the list form; alone unless vGPUs are named.
func (g *VMGPUs) list() (items any, alone bool) { return &g.Whole, g.Profile == "" && g.Count == 0 }

// VGPUs returns how many vGPUs are requested.
func (g VMGPUs) VGPUs() int {
	if g.Profile == "" {
		return 0
	}
	return max(1, g.Count)
}

// VGPUs reports whether VMs get vGPUs.
func (a *Answers) VGPUs() bool {
	for _, g := range a.GPUDirect.GPUs {
		if g.VGPUs() > 0 {
			return a.GPUs()
		}
	}
	return false
}
