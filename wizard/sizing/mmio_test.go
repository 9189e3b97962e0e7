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

// A framebuffer that the operator sets is used, and reported as unverified.
func TestMMIOOfUnknownModel(t *testing.T) {
	w, err := sizing.MMIO([]sizing.GPUCount{{Model: "x9000", Count: 1, FramebufferGB: 96}})
	if err != nil || len(w.Unverified) != 1 {
		t.Errorf("a framebuffer that the operator gives: %+v, %v", w, err)
	}
}

// Property: the default window is always large enough for the BARs, whatever the mix.
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
	for _, want := range []string{`"kb":1024`, `"minimal":1024`, `"guide":512`, `"needed":true`, `"sum_framebuffer_gb":320`,
		`"sum_bar_gb":512`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s is missing in %s", want, b)
		}
	}
}
