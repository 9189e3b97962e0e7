package assets

import (
	"slices"
	"sync"
)

// A GPU is one model of the table: sizes in GB (GiB) as seen by one PCI function.
type GPU struct {
	Name        string   `yaml:"name" json:"name"` // as in the mmio command: a100-80g
	Model       string   `yaml:"model" json:"model"`
	IDs         []string `yaml:"ids" json:"ids"` // vendor:device of a function, lower case hexadecimal
	Framebuffer int      `yaml:"framebuffer" json:"framebuffer_gb"`
	BAR1        int      `yaml:"bar1" json:"bar1_gb"`                  // 0: 256 MiB, no entry in the MMIO sum
	Functions   int      `yaml:"functions" json:"functions,omitempty"` // GPUs on a board; 0: one
	Verified    bool     `yaml:"verified" json:"verified"`             // BAR1 is measured, not computed
	Source      string   `yaml:"source" json:"source"`
}

var gpus = sync.OnceValues(func() ([]GPU, error) { return table[GPU]("gpus.yaml") })

// GPUs returns the table of GPUs.
func GPUs() ([]GPU, error) {
	gs, err := gpus()
	return slices.Clone(gs), err
}

// GPUByID returns a model by the PCI ids of a function: "10de", "20b5".
func GPUByID(vendor, device string) (GPU, bool) {
	gs, err := GPUs()
	if err != nil {
		return GPU{}, false
	}
	i := slices.IndexFunc(gs, func(g GPU) bool { return slices.Contains(g.IDs, vendor+":"+device) })
	if i < 0 {
		return GPU{}, false
	}
	return gs[i], true
}
