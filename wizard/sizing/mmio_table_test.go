package sizing_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// The sources of the expected sizes in the table. "ours" is the rule alone: BAR1 is the smallest power of two that is not smaller
// than the framebuffer, minimal the smallest power of two above the sum of the BARs.
const (
	guide36   = "Reference Deployment Guide for RoCE accelerated HPC or ML applications with GPUDirect RDMA on vSphere 6.7, section 3.6"
	kb323402  = "Broadcom KB 323402"
	dell      = "Dell KB 000199172"
	denneman  = "frankdenneman.nl 2023/05"
	kata      = "kata-containers PR 4358"
	harvester = "harvester/harvester issue 5619"
	lspciH200 = "recorded on 2026-11-26, lspci of 10de:2335: BARs of 16 MB, 256 GB and 32 MB"
	lspciPRO  = "lspci of 10de:2bb5: BAR 2 of 128 GB"
	lspciB300 = "lspci of 10de:3182: BAR 2 of 512 GB"
	lspciP40  = "lspci of a Tesla P40: BAR1 of 32 GB"
	lspciL40S = "cloud-hypervisor, docs/vfio.md: lspci of 10de:26b9"
	lspciH20  = "NVIDIA/nvtrust issue 128: lspci of 10de:2329"
	lspciH100 = "recorded on 2026-11-26, lspci of 10de:2330: BARs of 16 MB, 128 GB and 32 MB; fastfetch issue 1658"
	sdm       = "Intel SDM, CPUID leaf 80000008H: 46 bits; what ESXi takes is unverified"
	ours      = "ours"
)

// Each row is one VM: cards as the mmio command accepts them, by PCI ids (10de:20b5), with the BAR1 that was read from one
// (l40s@256 in MB); the smallest window, that of KB 323402 and that of the guide. 0 is a VM that needs no window. fails is the
// error or the warning about the window, "" if a server in its usual configuration must pass without either.
func TestMMIOTable(t *testing.T) {
	rows := []struct {
		cards              string
		minimal, kb, guide int
		source             string
		fails              string
	}{
		{"p100-16g", 32, 32, 32, dell, ""},
		{"p100-16g=2", 64, 64, 64, guide36, ""},
		{"p100-16g=3", 64, 128, 64, guide36, ""},
		{"p100-16g=4", 128, 128, 128, guide36, ""},
		{"p100-16g=8", 256, 256, 256, ours, ""},
		{"p100-12g", 32, 32, 16, ours, ""},
		{"v100-16g", 32, 32, 32, dell, ""},
		{"v100-16g=2", 64, 64, 64, guide36, ""},
		{"v100-16g=4", 128, 128, 128, ours, ""},
		{"v100-32g", 64, 64, 64, ours, ""},
		{"v100-32g=4", 256, 256, 256, ours, ""},
		{"v100-32g=8", 512, 512, 512, ours, ""},
		{"v100s-32g", 64, 64, 64, ours, ""},
		{"v100s-32g=2", 128, 128, 128, ours, ""},
		{"k80", 64, 64, 32, ours, ""},
		{"k80=2", 128, 128, 64, ours, ""},
		{"p40", 64, 64, 32, lspciP40, ""},
		{"p40=4", 256, 256, 128, lspciP40, ""},
		{"t4", 0, 0, 0, denneman, ""},
		{"t4=4", 0, 0, 0, denneman, ""},
		{"t4=8", 0, 0, 0, ours, ""},
		{"t4=12", 4, 4, 1, ours, ""},
		{"a2", 32, 32, 32, ours, ""},
		{"a2=4", 128, 128, 128, ours, ""},
		{"a16", 128, 128, 128, ours, ""},
		{"a16=2", 256, 256, 256, ours, ""},
		{"a10", 64, 64, 32, ours, ""},
		{"a10g=4", 256, 256, 128, ours, ""},
		{"a30", 64, 64, 32, harvester, ""},
		{"a30=2", 128, 128, 64, harvester, ""},
		{"a40", 128, 128, 64, ours, ""},
		{"a40=4", 512, 512, 256, ours, ""},
		{"rtx-a6000=2", 256, 256, 128, ours, ""},
		{"l4=4", 256, 256, 128, ours, ""},
		{"l40", 128, 128, 64, ours, ""},
		{"l40s=8", 1024, 1024, 512, lspciL40S, ""},
		{"rtx-6000-ada=4", 512, 512, 256, ours, ""},
		{"rtx-pro-6000", 256, 256, 128, lspciPRO, ""},
		{"rtx-pro-6000=8", 2048, 2048, 1024, lspciPRO, ""},
		{"a100-40g", 128, 128, 64, kata, ""},
		{"a100-40g=8", 1024, 1024, 512, kata, ""},
		{"a800-40g=2", 256, 256, 128, ours, ""},
		{"a100-80g", 256, 256, 128, kb323402, ""},
		{"a100-80g=2", 512, 512, 256, kb323402, ""},
		{"a100-80g=4", 1024, 1024, 512, kb323402, ""},
		{"a100-80g=8", 2048, 2048, 1024, ours, ""},
		{"a800-80g=8", 2048, 2048, 1024, ours, ""},
		{"h100-80g", 256, 256, 128, lspciH100, ""},
		{"h100-80g=8", 2048, 2048, 1024, lspciH100, ""},
		{"h800-80g=8", 2048, 2048, 1024, ours, ""},
		{"h100-94g=2", 512, 512, 256, ours, ""},
		{"h800-94g=4", 1024, 1024, 512, ours, ""},
		{"h20=8", 2048, 2048, 1024, lspciH20, ""},
		{"h20-141g=8", 4096, 4096, 2048, ours, ""},
		{"h200", 512, 512, 256, lspciH200, ""},
		{"h200=8", 4096, 4096, 2048, lspciH200, ""},
		{"b200", 512, 512, 256, ours, ""},
		{"b200=8", 4096, 4096, 2048, ours, ""},
		{"b300", 1024, 1024, 512, lspciB300, ""},
		{"b300=8", 8192, 8192, 4096, lspciB300, ""},
		{"a100-80g nic=4", 256, 256, 128, ours, ""},
		{"a100-80g nic=1 t4", 256, 256, 128, ours, ""},
		{"a30 a100-40g", 128, 128, 128, ours, ""},
		{"t4=4 a30", 64, 64, 32, ours, ""},
		{"grid_a100d-8c", 0, 0, 0, denneman, ""},
		{"grid_a100d-40c", 128, 128, 64, ours, ""},
		{"grid_a100d-80c", 256, 256, 128, ours, ""},
		{"grid_h100xm-80c=8", 2048, 2048, 1024, ours, ""},
		{"a100-1-5cme", 0, 0, 0, ours, ""},
		{"x9000:96", 256, 256, 128, ours, ""},
		{"a10=4", 256, 256, 128, ours, ""},
		{"l4", 64, 64, 32, ours, ""},
		{"a100-40g=4", 512, 512, 256, kata, ""},
		{"h100-94g", 256, 256, 128, ours, ""},
		{"t4=2", 0, 0, 0, denneman, ""},
		{"10de:15f8=4", 128, 128, 128, guide36, ""},
		{"10de:20f1", 128, 128, 64, kata, ""},
		{"10de:20b5=2", 512, 512, 256, kb323402, ""},
		{"10de:26b9", 128, 128, 64, lspciL40S, ""},
		{"10de:2329", 256, 256, 128, lspciH20, ""},
		{"10de:2330", 256, 256, 128, lspciH100, ""},
		{"10de:2330=8", 2048, 2048, 1024, lspciH100, ""},
		{"10de:2335", 512, 512, 256, lspciH200, ""},
		{"10de:2335=8", 4096, 4096, 2048, lspciH200, ""},
		{"10de:102d", 32, 32, 16, ours, ""}, // one function of a K80 board
		{"10de:ffff", 0, 0, 0, ours, "framebuffer is not given"},
		{"l40s@256", 0, 0, 0, ours, ""},
		{"a100-80g@131072=4", 1024, 1024, 512, "nvidia-smi -q: BAR1 Memory Usage, Total", ""},
		{"h100-80g@131072=8", 2048, 2048, 1024, "recorded on 2026-11-26, nvidia-smi -q of 10de:2330: BAR1 of 131072 MiB", ""},
		{"h200@262144=8", 4096, 4096, 2048, "recorded on 2026-11-26, nvidia-smi -q of 10de:2335: BAR1 of 262144 MiB", ""},
		{"b200@524288=8", 8192, 8192, 2048, ours, ""},
		{"a100-80g:80", 256, 256, 128, kb323402, ""},
		{"a100-80g:40", 0, 0, 0, ours, "80 GB of memory, not 40"},
		{"x9000", 0, 0, 0, ours, "framebuffer is not given"},
		{"a100-40g=0", 0, 0, 0, ours, "1 to 128"},
		{"a100-40g=1000", 0, 0, 0, ours, "1 to 128"},
		{"b300=16", 16384, 16384, 8192, sdm, "unverified"},
		{"b300=128", 131072, 131072, 65536, sdm, "leaves no room for memory"},
	}
	if len(rows) < 60 {
		t.Errorf("%d rows", len(rows))
	}
	for _, r := range rows {
		gpus, others := cards(t, r.cards)
		w, err := sizing.MMIO(gpus, others...)
		if err != nil {
			if r.fails == "" || !strings.Contains(err.Error(), r.fails) {
				t.Errorf("%s (%s): %v, want %q", r.cards, r.source, err, r.fails)
			}
			continue
		}
		if w.Minimal != r.minimal || w.KB != r.kb || w.Guide != r.guide || w.Needed != (r.kb > 0) || r.source == "" {
			t.Errorf("%s (%s): minimal %d kb %d guide %d, want %d %d %d", r.cards, r.source, w.Minimal, w.KB, w.Guide, r.minimal, r.kb, r.guide)
		}
		if (w.Warning == "") != (r.fails == "") || !strings.Contains(w.Warning, r.fails) {
			t.Errorf("%s: warning %q, want %q", r.cards, w.Warning, r.fails)
		}
		if !w.Needed {
			continue
		}
		if beyond := w.KB >= sizing.AddressableGB; (w.Check(w.KB) != nil) != beyond || w.Check(w.Minimal/2) == nil ||
			w.Check(w.Minimal+1) == nil {
			t.Errorf("%s: Check contradicts the window: %v", r.cards, w.Check(w.KB))
		}
		if w.GuideBoots != (r.guide >= r.minimal) || !strings.Contains(w.Explanation, "KB 323402") {
			t.Errorf("%s: the guide's value boots: %t; %s", r.cards, w.GuideBoots, w.Explanation)
		}
	}
}

// cards parses words of the form MODEL[:GB][@MB of BAR1][=COUNT] or VENDOR:DEVICE[=COUNT]; nic are RDMA cards.
func cards(t *testing.T, text string) (out []sizing.GPUCount, others []float64) {
	t.Helper()
	number := func(s string, to *int) {
		v, err := strconv.Atoi(s)
		if err != nil && s != "" {
			t.Fatal(err)
		}
		if s != "" {
			*to = v
		}
	}
	for _, word := range strings.Fields(text) {
		model, n, _ := strings.Cut(word, "=")
		model, bar, _ := strings.Cut(model, "@")
		name, gb, _ := strings.Cut(model, ":")
		c := sizing.GPUCount{Model: name}
		if name == "10de" {
			c = sizing.CountOf(&backends.GPU{Vendor: name, Device: gb, Model: "unknown"}, nil)
			gb = ""
		}
		count, mb := 1, 0
		number(n, &count)
		number(bar, &mb)
		number(gb, &c.FramebufferGB)
		c.Count, c.BAR1MB = count, int64(mb)
		if name == "nic" {
			others = append(others, slices.Repeat([]float64{sizing.NICBARs}, count)...)
			continue
		}
		out = append(out, c)
	}
	return out, others
}

// The value that was read from a card is shown beside that of the table.
func TestMMIORead(t *testing.T) {
	w, err := sizing.MMIO([]sizing.GPUCount{{Model: "b200", Count: 8, BAR1MB: 512 << 10}})
	if err != nil || len(w.Unverified) != 0 || !strings.Contains(w.Explanation, "the table says 256") {
		t.Errorf("%+v, %v", w, err)
	}
}

// A window that an operator sets is refused if no processor can address it.
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
}
