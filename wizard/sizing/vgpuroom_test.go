package sizing_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// Which vGPUs fit on one host's GPUs: time-sliced vGPUs of one size each (VMware, What's New for GPUs in vSphere 8 Update 3), of
// any size in mixed-size mode, never beside vGPUs that are backed by MIG (NVIDIA, Virtual GPU Software User Guide).
func TestPlaceVGPUs(t *testing.T) {
	for name, c := range map[string]struct {
		gpus string // GB[/mode][:profiles that run], separated by blanks
		ask  string
		left string
	}{
		"as many as the memory holds":             {"80", "a100d-40c a100d-40c", ""},
		"one more":                                {"80", "a100d-40c a100d-40c a100d-40c", "a100d-40c"},
		"another size on the same GPU":            {"80:a100d-10c", "a100d-40c", "a100d-40c"},
		"the same size on the same GPU":           {"80:a100d-10c", "a100d-10c", ""},
		"another series of the same size":         {"80:a100d-10q", "a100d-10c", ""},
		"another size on a free GPU":              {"80:a100d-10c 80", "a100d-40c", ""},
		"a GPU of that size is filled first":      {"80:a100d-40c 80", "a100d-40c a100d-80c", ""},
		"small ones take no GPU from the large":   {"80 80", "a100d-10c a100d-80c a100d-10c", ""},
		"all GPUs have vGPUs of another size":     {"80:a100d-10c 80:a100d-20c", "a100d-80c", "a100d-80c"},
		"mixed size":                              {"80/mixedSize:a100d-10c", "a100d-40c", ""},
		"mixed size, but the memory is used up":   {"80/mixedSize:a100d-40c", "a100d-40c a100d-10c", "a100d-10c"},
		"sizes differ, the mode says same":        {"80/sameSize:a100d-10c", "a100d-40c", "a100d-40c"},
		"the profile is larger than the GPU":      {"40", "a100d-80c", "a100d-80c"},
		"the smallest GPU that holds it":          {"80 40", "a100-40c a100d-80c", ""},
		"MIG beside a time-sliced vGPU":           {"80:a100d-10c", "a100d-3-40c", "a100d-3-40c"},
		"a time-sliced vGPU beside MIG":           {"80:a100d-3-40c", "a100d-40c", "a100d-40c"},
		"MIG of two sizes":                        {"80:a100d-3-40c", "a100d-2-20c", ""},
		"MIG: 7 slices":                           {"80", "a100d-4-40c a100d-3-40c a100d-1-10c", "a100d-1-10c"},
		"the GPU is in MIG mode":                  {"80/multiInstanceGpu", "a100d-40c", "a100d-40c"},
		"the GPU is in no MIG mode":               {"80/sameSize", "a100d-3-40c", "a100d-3-40c"},
		"the GPU's memory is not known: one fits": {"0", "x9-96c x9-96c", "x9-96c"},
		"there is no GPU":                         {"", "a100d-10c", "a100d-10c"},
	} {
		var gpus []sizing.SharedGPU
		for _, word := range strings.Fields(c.gpus) {
			head, has, _ := strings.Cut(word, ":")
			size, mode, _ := strings.Cut(head, "/")
			g := sizing.SharedGPU{GB: map[string]int{"80": 80, "40": 40, "0": 0}[size], Mode: mode}
			if has != "" {
				g.Has = []string{has}
			}
			gpus = append(gpus, g)
		}
		if left := sizing.PlaceVGPUs(gpus, strings.Fields(c.ask)); !slices.Equal(left, strings.Fields(c.left)) {
			t.Errorf("%s: %v are left, want %q", name, left, c.left)
		}
	}
}
