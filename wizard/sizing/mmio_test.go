package sizing_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

func gpus(pairs ...any) []sizing.GPUCount {
	var out []sizing.GPUCount
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, sizing.GPUCount{Model: pairs[i].(string), Count: pairs[i+1].(int)})
	}
	return out
}

// guide follows section 3.6 of the Reference Deployment Guide for RoCE accelerated HPC or ML applications with
// GPUDirect RDMA on vSphere 6.7 (NVIDIA/Mellanox), minimal follows from the BARs, kb from
// Broadcom KB 323402.
func TestMMIO(t *testing.T) {
	for name, c := range map[string]struct {
		gpus                   []sizing.GPUCount
		fb, guide, minimal, kb int
		boots                  bool
	}{
		"1 x 16 P100":                       {gpus("p100-16g", 1), 16, 32, 32, 32, true},
		"1 x 16 V100":                       {gpus("v100-16g", 1), 16, 32, 32, 32, true},
		"2 x 16, the guide's own example":   {gpus("v100-16g", 2), 32, 64, 64, 64, true},
		"3 x 16":                            {gpus("v100-16g", 3), 48, 64, 64, 128, true},
		"4 x 16":                            {gpus("v100-16g", 4), 64, 128, 128, 128, true},
		"8 x 16":                            {gpus("p100-16g", 8), 128, 256, 256, 256, true},
		"1 x 24 A10":                        {gpus("a10", 1), 24, 32, 64, 64, false},
		"1 x 24 A30":                        {gpus("a30", 1), 24, 32, 64, 64, false},
		"1 x 24 L4":                         {gpus("l4", 1), 24, 32, 64, 64, false},
		"1 x 24 P40, BAR1 measured":         {gpus("p40", 1), 24, 32, 64, 64, false},
		"2 x 24":                            {gpus("a30", 2), 48, 64, 128, 128, false},
		"4 x 24":                            {gpus("a10", 4), 96, 128, 256, 256, false},
		"1 x 32 V100":                       {gpus("v100-32g", 1), 32, 64, 64, 64, true},
		"1 x 40 A100, BAR1 measured":        {gpus("a100-40g", 1), 40, 64, 128, 128, false},
		"4 x 40":                            {gpus("a100-40g", 4), 160, 256, 512, 512, false},
		"8 x 40":                            {gpus("a100-40g", 8), 320, 512, 1024, 1024, false},
		"1 x 48 A40":                        {gpus("a40", 1), 48, 64, 128, 128, false},
		"1 x 48 L40S":                       {gpus("l40s", 1), 48, 64, 128, 128, false},
		"1 x 80 A100 (KB 323402's example)": {gpus("a100-80g", 1), 80, 128, 256, 256, false},
		"1 x 80 H100":                       {gpus("h100-80g", 1), 80, 128, 256, 256, false},
		"2 x 80":                            {gpus("a100-80g", 2), 160, 256, 512, 512, false},
		"4 x 80":                            {gpus("a100-80g", 4), 320, 512, 1024, 1024, false},
		"8 x 80":                            {gpus("h100-80g", 8), 640, 1024, 2048, 2048, false},
		"1 x 94 H100 NVL":                   {gpus("h100-94g", 1), 94, 128, 256, 256, false},
		"1 x 141 H200":                      {gpus("h200", 1), 141, 256, 512, 512, false},
		"8 x 141":                           {gpus("h200", 8), 1128, 2048, 4096, 4096, false},
		"1 x 180 B200":                      {gpus("b200", 1), 180, 256, 512, 512, false},
		"8 x 180":                           {gpus("b200", 8), 1440, 2048, 4096, 4096, false},
		"K80, a board of two GPUs":          {gpus("k80", 1), 24, 32, 64, 64, false},
		"mixed 24 + 40":                     {gpus("a30", 1, "a100-40g", 1), 64, 128, 128, 128, true},
		"a T4 beside an A100 counts little": {gpus("t4", 4, "a30", 1), 88, 32, 64, 64, false},
	} {
		w, err := sizing.MMIO(c.gpus)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if w.SumFramebufferGB != c.fb || w.Guide != c.guide || w.Minimal != c.minimal || w.KB != c.kb || w.GuideBoots != c.boots || !w.Needed {
			t.Errorf("%s: %+v, want fb %d guide %d minimal %d kb %d boots %v", name, w, c.fb, c.guide, c.minimal, c.kb, c.boots)
		}
		if w.Check(w.KB) != nil || w.Check(w.Minimal) != nil || w.Check(w.Minimal/2) == nil || w.Check(w.Minimal+1) == nil {
			t.Errorf("%s: Check contradicts the window", name)
		}
		if (w.Check(w.Guide) == nil) != c.boots {
			t.Errorf("%s: Check of the guide's value", name)
		}
		if !strings.Contains(w.Explanation, "KB 323402") {
			t.Errorf("%s: explanation %q", name, w.Explanation)
		}
	}
}

func TestMMIOIsNotNeededForT4(t *testing.T) {
	w, err := sizing.MMIO(gpus("t4", 2))
	if err != nil || w.Needed || w.KB != 0 || w.Minimal != 0 || w.Guide != 0 || w.SumFramebufferGB != 32 {
		t.Errorf("frankdenneman.nl 2023/05: %+v, %v", w, err)
	}
}

func TestMMIOInventsNothing(t *testing.T) {
	for name, g := range map[string][]sizing.GPUCount{
		"unknown model": gpus("x9000", 1), "none of it": gpus("a100-40g", 0), "far too many": gpus("a100-40g", 1000),
	} {
		if w, err := sizing.MMIO(g); err == nil {
			t.Errorf("%s: %+v", name, w)
		}
	}
	w, err := sizing.MMIO([]sizing.GPUCount{{Model: "x9000", Count: 1, FramebufferGB: 96}})
	if err != nil || w.Minimal != 256 || w.KB != 256 || len(w.Unverified) != 1 {
		t.Errorf("a framebuffer that the operator gives: %+v, %v", w, err)
	}
}

// Property: the default always holds the BARs, whatever the mix.
func TestKBIsNeverBelowTheMinimum(t *testing.T) {
	table, err := assets.GPUs()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		var g []sizing.GPUCount
		for range 1 + r.IntN(3) {
			g = append(g, sizing.GPUCount{Model: table[r.IntN(len(table))].Name, Count: 1 + r.IntN(8)})
		}
		w, err := sizing.MMIO(g, 0.03125)
		if err != nil {
			t.Fatal(err)
		}
		if w.Needed && (w.KB < w.Minimal || float64(w.Minimal) <= w.TotalGB || float64(w.Minimal) > 2*w.TotalGB) {
			t.Fatalf("%v: %+v", g, w)
		}
	}
}

func TestMMIOFieldsAreThoseOfTheContract(t *testing.T) {
	w, err := sizing.MMIO(gpus("a100-80g", 4))
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"kb":1024`, `"minimal":1024`, `"guide":512`, `"needed":true`, `"sum_framebuffer_gb":320`, `"sum_bar_gb":512`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s is missing in %s", want, b)
		}
	}
}
