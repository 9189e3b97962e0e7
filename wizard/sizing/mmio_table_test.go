package sizing_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// Where the expected sizes of the table are from. "ours" is the rule alone: BAR1 is the smallest power of two that holds
// the framebuffer, minimal the smallest power of two above the sum of the BARs.
const (
	guide36   = "Reference Deployment Guide for RoCE accelerated HPC or ML applications with GPUDirect RDMA on vSphere 6.7, section 3.6"
	kb323402  = "Broadcom KB 323402"
	dell      = "Dell KB 000199172"
	denneman  = "frankdenneman.nl 2023/05"
	kata      = "kata-containers PR 4358"
	harvester = "harvester/harvester issue 5619"
	lspciH200 = "lspci of 10de:2335: BAR 2 of 256 GB"
	lspciPRO  = "lspci of 10de:2bb5: BAR 2 of 128 GB"
	lspciB300 = "lspci of 10de:3182: BAR 2 of 512 GB"
	lspciP40  = "lspci of a Tesla P40: BAR1 of 32 GB"
	ours      = "ours"
)

// Each row is one VM: cards as the mmio command takes them, the smallest window, that of KB 323402 and that of the guide.
// 0 is a VM that needs no window.
func TestMMIOTable(t *testing.T) {
	rows := []struct {
		cards              string
		minimal, kb, guide int
		source             string
	}{
		{"p100-16g", 32, 32, 32, dell},
		{"p100-16g=2", 64, 64, 64, guide36},
		{"p100-16g=3", 64, 128, 64, guide36},
		{"p100-16g=4", 128, 128, 128, guide36},
		{"p100-16g=8", 256, 256, 256, ours},
		{"p100-12g", 32, 32, 16, ours},
		{"v100-16g", 32, 32, 32, dell},
		{"v100-16g=2", 64, 64, 64, guide36},
		{"v100-16g=4", 128, 128, 128, ours},
		{"v100-32g", 64, 64, 64, ours},
		{"v100-32g=4", 256, 256, 256, ours},
		{"v100-32g=8", 512, 512, 512, ours},
		{"v100s-32g", 64, 64, 64, ours},
		{"v100s-32g=2", 128, 128, 128, ours},
		{"k80", 64, 64, 32, ours},
		{"k80=2", 128, 128, 64, ours},
		{"p40", 64, 64, 32, lspciP40},
		{"p40=4", 256, 256, 128, lspciP40},
		{"t4", 0, 0, 0, denneman},
		{"t4=4", 0, 0, 0, denneman},
		{"t4=8", 0, 0, 0, ours},
		{"t4=12", 4, 4, 1, ours},
		{"a2", 32, 32, 32, ours},
		{"a2=4", 128, 128, 128, ours},
		{"a16", 128, 128, 128, ours},
		{"a16=2", 256, 256, 256, ours},
		{"a10", 64, 64, 32, ours},
		{"a10g=4", 256, 256, 128, ours},
		{"a30", 64, 64, 32, harvester},
		{"a30=2", 128, 128, 64, harvester},
		{"a40", 128, 128, 64, ours},
		{"a40=4", 512, 512, 256, ours},
		{"rtx-a6000=2", 256, 256, 128, ours},
		{"l4=4", 256, 256, 128, ours},
		{"l40", 128, 128, 64, ours},
		{"l40s=8", 1024, 1024, 512, ours},
		{"rtx-6000-ada=4", 512, 512, 256, ours},
		{"rtx-pro-6000", 256, 256, 128, lspciPRO},
		{"rtx-pro-6000=8", 2048, 2048, 1024, lspciPRO},
		{"a100-40g", 128, 128, 64, kata},
		{"a100-40g=8", 1024, 1024, 512, kata},
		{"a800-40g=2", 256, 256, 128, ours},
		{"a100-80g", 256, 256, 128, kb323402},
		{"a100-80g=2", 512, 512, 256, kb323402},
		{"a100-80g=4", 1024, 1024, 512, kb323402},
		{"a100-80g=8", 2048, 2048, 1024, ours},
		{"a800-80g=8", 2048, 2048, 1024, ours},
		{"h100-80g", 256, 256, 128, ours},
		{"h100-80g=8", 2048, 2048, 1024, ours},
		{"h800-80g=8", 2048, 2048, 1024, ours},
		{"h100-94g=2", 512, 512, 256, ours},
		{"h800-94g=4", 1024, 1024, 512, ours},
		{"h20=8", 2048, 2048, 1024, ours},
		{"h20-141g=8", 4096, 4096, 2048, ours},
		{"h200", 512, 512, 256, lspciH200},
		{"h200=8", 4096, 4096, 2048, lspciH200},
		{"b200", 512, 512, 256, ours},
		{"b200=8", 4096, 4096, 2048, ours},
		{"b300", 1024, 1024, 512, lspciB300},
		{"b300=8", 8192, 8192, 4096, lspciB300},
		{"a100-80g nic=4", 256, 256, 128, ours},
		{"a100-80g nic=1 t4", 256, 256, 128, ours},
		{"a30 a100-40g", 128, 128, 128, ours},
		{"t4=4 a30", 64, 64, 32, ours},
		{"grid_a100d-8c", 0, 0, 0, denneman},
		{"grid_a100d-40c", 128, 128, 64, ours},
		{"grid_a100d-80c", 256, 256, 128, ours},
		{"grid_h100xm-80c=8", 2048, 2048, 1024, ours},
		{"a100-1-5cme", 0, 0, 0, ours},
		{"x9000:96", 256, 256, 128, ours},
	}
	if len(rows) < 60 {
		t.Errorf("%d rows", len(rows))
	}
	for _, r := range rows {
		w, err := sizing.MMIO(cards(t, r.cards))
		if err != nil || w.Minimal != r.minimal || w.KB != r.kb || w.Guide != r.guide || w.Needed != (r.kb > 0) || r.source == "" {
			t.Errorf("%s (%s): minimal %d kb %d guide %d, want %d %d %d (%v)", r.cards, r.source, w.Minimal, w.KB, w.Guide, r.minimal, r.kb, r.guide, err)
		}
		if w.Needed && (w.Check(w.KB) != nil || w.Warning != "") {
			t.Errorf("%s: a server that is sold is refused or warned of: %v %s", r.cards, w.Check(w.KB), w.Warning)
		}
	}
}

// cards reads MODEL[:GB][=COUNT] words; RDMA cards are left out, their BARs never decide in this table.
func cards(t *testing.T, text string) (out []sizing.GPUCount) {
	t.Helper()
	for _, word := range strings.Fields(text) {
		model, n, _ := strings.Cut(word, "=")
		name, gb, _ := strings.Cut(model, ":")
		c := sizing.GPUCount{Model: name, Count: 1}
		for s, to := range map[string]*int{n: &c.Count, gb: &c.FramebufferGB} {
			if s == "" {
				continue
			}
			v, err := strconv.Atoi(s)
			if err != nil {
				t.Fatal(err)
			}
			*to = v
		}
		if name != "nic" {
			out = append(out, c)
		}
	}
	return out
}

// A size that is stated of a known model has to agree with it; one that was read from a card wins over the table.
func TestMMIOStatedAndRead(t *testing.T) {
	if _, err := sizing.MMIO([]sizing.GPUCount{{Model: "a100-80g", Count: 1, FramebufferGB: 40}}); err == nil || !strings.Contains(err.Error(), "80 GB of memory, not 40") {
		t.Errorf("a100-80g:40: %v", err)
	}
	if w, err := sizing.MMIO([]sizing.GPUCount{{Model: "a100-80g", Count: 1, FramebufferGB: 80}}); err != nil || w.KB != 256 {
		t.Errorf("a100-80g:80: %+v, %v", w, err)
	}
	w, err := sizing.MMIO([]sizing.GPUCount{{Model: "l40s", Count: 1, BAR1MB: 256}})
	if err != nil || w.Needed {
		t.Errorf("an L40S in display mode maps 256 MB: %+v, %v", w, err)
	}
	if w, err = sizing.MMIO([]sizing.GPUCount{{Model: "b200", Count: 8, BAR1MB: 512 << 10}}); err != nil || w.Minimal != 8192 || len(w.Unverified) != 0 || !strings.Contains(w.Explanation, "the table says 256") {
		t.Errorf("%+v, %v", w, err)
	}
}

// A window that no processor reaches is refused; one that firmware may not place is warned of.
func TestMMIOCeilings(t *testing.T) {
	w, err := sizing.MMIO([]sizing.GPUCount{{Model: "a100-80g", Count: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for gb, refused := range map[int]bool{1 << 20: true, 65536: true, 32768: false, 8192: false} {
		if err := w.Check(gb); (err != nil) != refused {
			t.Errorf("%d GB: %v", gb, err)
		}
	}
	if w, err = sizing.MMIO([]sizing.GPUCount{{Model: "b300", Count: 16}}); err != nil || !strings.Contains(w.Warning, "unverified") {
		t.Errorf("16 B300: %+v, %v", w, err)
	}
	if w, err = sizing.MMIO([]sizing.GPUCount{{Model: "b300", Count: 128}}); err != nil || w.Check(w.KB) == nil {
		t.Errorf("128 B300: %+v, %v", w, err)
	}
}
