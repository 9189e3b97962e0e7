// Package sizing contains the rules with numbers: MMIO windows, VFs, MTU, DSCP, the capacity of a link. It does no I/O and cites
// its sources.
package sizing

import (
	"cmp"
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// A GPUCount is a number of cards of one model. FramebufferGB and BAR1MB are facts about the card in addition to the table; 0
// otherwise.
type GPUCount struct {
	Model         string
	Count         int   // boards; a K80 board is two GPUs
	FramebufferGB int   // stated for a model that is not in the table; for a known one it has to agree
	BAR1MB        int64 // read from such a card, or stated: it overrides the table
}

// CountOf returns the GPUCount of one passed-through function: by its PCI ids, else by the operator's data about the model, else
// by the framebuffer that the host reports (0: it does not).
func CountOf(g *backends.GPU, stated map[string]answers.GPUModel) GPUCount {
	known, ok := assets.GPUByID(g.Vendor, g.Device)
	s := stated[g.Vendor+":"+g.Device]
	c := GPUCount{Count: 1, BAR1MB: int64(s.BAR) << 10}
	switch {
	case ok && known.Functions > 1: // the table counts boards
		c.Model, c.FramebufferGB = known.Name+" function", known.Framebuffer
	case ok:
		c.Model, c.FramebufferGB = known.Name, s.Framebuffer
	default:
		c.Model, c.FramebufferGB = g.Model, cmp.Or(s.Framebuffer, int(g.MemoryMB>>10))
	}
	return c
}

// A Window is the MMIO window of a VM with GPUs. Sizes are GB (GiB) and values of pciPassthru.64bitMMIOSizeGB; KB, Minimal and
// Guide are 0 if no window is needed.
type Window struct {
	KB      int  `json:"kb"`      // Broadcom KB 323402, the default
	Minimal int  `json:"minimal"` // the smallest window that is large enough for the BARs
	Guide   int  `json:"guide"`   // the rule of the GPUDirect RDMA guide, section 3.6 (see MMIO); too small for many cards
	Needed  bool `json:"needed"`  // the BARs do not fit into the 3.5 GB below 4 GB

	SumFramebufferGB int      `json:"sum_framebuffer_gb"`
	SumBARGB         float64  `json:"sum_bar_gb"`   // BAR1 of all GPUs
	TotalGB          float64  `json:"total_bar_gb"` // with the small BARs of GPUs and NICs
	GuideBoots       bool     `json:"guide_boots"`  // the guide's value is large enough for the BARs
	Explanation      string   `json:"explanation"`  // the calculation as text
	Unverified       []string `json:"unverified"`   // models whose BAR1 is computed, not measured
	Warning          string   `json:"warning,omitempty"`
}

const (
	// NICBARs is the maximum that a function of an RDMA card maps: below 1 GB on every ConnectX.
	NICBARs   = 1.0
	smallBARs = 48.0 / 1024  // BAR0 16 MiB and BAR3 32 MiB of a GPU (kata-containers PR 4358, Dell KB 000199172, lspci of H100 and H200)
	smallBAR1 = 256.0 / 1024 // of cards that do not map the framebuffer: T4, display mode
	below4G   = 3.5          // 917504 pages of 4 KiB (Dell KB 000199172)
)

// The ceilings of a window in GB. Processors of today's GPU servers have at least 46 bits of physical address, which is 64 TB for
// memory and devices together (lscpu of a Xeon Platinum 8358P; Intel SDM, CPUID leaf 80000008H). A window above an eighth of that
// did not fit into the firmware of other hypervisors (tianocore/edk2 pull request 12997); the limit of ESXi is not published, so
// that one is a warning.
const (
	AddressableGB  = 64 << 10
	CommonWindowGB = AddressableGB / 8
)

// MMIO computes the 64-bit MMIO window for the GPUs of one VM. othersGB are the BARs of further passed-through devices, one each
// (a ConnectX function is below 1 GB). It fails for a model without a known framebuffer.
//
// need = sum of BAR1 (smallest power of two that holds the framebuffer) and small BARs; minimal = smallest power of two above
// need; kb = 2 x the framebuffer sum rounded up to a power of two (Broadcom KB 323402), never below minimal; guide = smallest
// power of two above the framebuffer sum (Reference Deployment Guide for RoCE accelerated HPC or ML applications with GPUDirect
// RDMA on vSphere 6.7, NVIDIA/Mellanox, section 3.6).
func MMIO(gpus []GPUCount, othersGB ...float64) (Window, error) {
	w := Window{Unverified: []string{}}
	var words []string
	table, err := assets.GPUs()
	if err != nil {
		return Window{}, err
	}
	large := 0 // framebuffer of cards that map it
	for _, g := range gpus {
		if g.Count < 1 || g.Count > 128 {
			return Window{}, fmt.Errorf("%s: %d cards; a VM takes 1 to 128", g.Model, g.Count)
		}
		m, err := modelOf(table, g)
		if err != nil {
			return Window{}, err
		}
		n := g.Count * max(1, m.Functions)
		w.SumFramebufferGB += n * m.Framebuffer
		bar := float64(m.BAR1)
		if g.BAR1MB > 0 {
			bar = float64(g.BAR1MB) / 1024
		} else if !m.Verified {
			w.Unverified = append(w.Unverified, m.Name)
		}
		if bar < 1 {
			w.SumBARGB += float64(n) * smallBAR1
			words = append(words, fmt.Sprintf("%d x %s maps only 256 MB", n, m.Name))
		} else {
			large += n * m.Framebuffer
			w.SumBARGB += float64(n) * bar
			read := ""
			if g.BAR1MB > 0 && bar != float64(m.BAR1) {
				read = fmt.Sprintf(" (read from a card or stated; the table says %d)", m.BAR1)
			}
			words = append(words, fmt.Sprintf("%d x %s of %d GB maps %g GB each%s", n, m.Name, m.Framebuffer, bar, read))
		}
		w.TotalGB += float64(n) * smallBARs
	}
	w.TotalGB += w.SumBARGB
	for _, o := range othersGB {
		w.TotalGB += o
	}
	if w.Needed = w.TotalGB > below4G; !w.Needed {
		w.Explanation = strings.Join(words, ", ") + fmt.Sprintf(": %.2f GB of BARs fit below 4 GB (limit 3.5 GB); no key is needed", w.TotalGB)
		return w, nil
	}
	w.Minimal = above(w.TotalGB)
	w.KB = max(2*pow2ceil(large), w.Minimal)
	w.Guide = above(float64(large))
	w.GuideBoots = float64(w.Guide) > w.TotalGB
	w.Explanation = explain(w, words, large)
	w.Warning = beyond(w.KB)
	return w, nil
}

// beyond returns a warning if a window may not be addressable, else "".
func beyond(gb int) string {
	switch {
	case gb >= AddressableGB:
		return fmt.Sprintf("%d GB leaves no room for memory in the %d GB that a processor with 46 bits of physical address reaches", gb,
			AddressableGB)
	case gb > CommonWindowGB:
		return fmt.Sprintf("windows above %d GB (an eighth of what 46 bits of physical address reach) are not known to work on ESXi (unverified)",
			CommonWindowGB)
	}
	return ""
}

func explain(w Window, words []string, large int) string {
	s := fmt.Sprintf(
		"%s: %g GB, with the small BARs %.2f GB; the smallest power of two above that is %d. KB 323402: %d GB of framebuffer, rounded up to "+
			"%d, doubled: %d.",
		strings.Join(words, ", "), w.SumBARGB, w.TotalGB, w.Minimal, large, pow2ceil(large), 2*pow2ceil(large))
	if w.GuideBoots {
		return s + fmt.Sprintf(" The guide's next power of two above %d is %d, which works too.", large, w.Guide)
	}
	return s + fmt.Sprintf(" The guide's next power of two above %d is %d: the VM would not power on.", large, w.Guide)
}

// modelOf returns the table's data about a model, or applies the rule to the operator's framebuffer.
func modelOf(table []assets.GPU, g GPUCount) (assets.GPU, error) {
	var names []string
	for _, m := range table {
		if strings.EqualFold(m.Name, g.Model) {
			if g.FramebufferGB > 0 && g.FramebufferGB != m.Framebuffer {
				return assets.GPU{}, fmt.Errorf("a %s has %d GB of memory, not %d", m.Name, m.Framebuffer, g.FramebufferGB)
			}
			return m, nil
		}
		names = append(names, m.Name)
	}
	if g.FramebufferGB > 0 && g.FramebufferGB <= 1024 {
		return assets.GPU{Name: g.Model, Framebuffer: g.FramebufferGB, BAR1: pow2ceil(g.FramebufferGB)}, nil
	}
	if fb, is := profileOf(g.Model); is {
		v := assets.GPU{Name: g.Model, Framebuffer: fb}
		if fb >= vgpuLarge {
			v.BAR1 = pow2ceil(fb)
		}
		return v, nil
	}
	return assets.GPU{}, fmt.Errorf("GPU %q is not in the table (%s) and its framebuffer is not given", g.Model, strings.Join(names, " "))
}

// vgpuLarge is the framebuffer in GB from which a vGPU maps it like a GPU; smaller ones need no key (stephenwagner.com 2022/09,
// frankdenneman.nl 2023/05).
const vgpuLarge = 16

var profileName = regexp.MustCompile(`^(?:grid_|nvidia_)?[a-z]+[0-9]+[a-z]*(?:[-_][a-z]+)?(?:-[0-9]+)?-([0-9]+)(?:a|b|c|q|c?me)$`)

// profileOf returns the framebuffer in GB of a vGPU by its profile name: 40 for grid_a100d-40c, 20 for grid_a100d-2-20c.
func profileOf(name string) (gb int, is bool) {
	m := profileName.FindStringSubmatch(strings.ToLower(name))
	if m == nil {
		return 0, false
	}
	gb, err := strconv.Atoi(m[1])
	return gb, err == nil && gb > 0 && gb <= 1024
}

// ProfileGB returns the framebuffer in GB of a time-sliced vGPU by its profile name; 0 for other names, and for MIG-backed
// profiles.
func ProfileGB(name string) int {
	gb, is := profileOf(name)
	if name = strings.ToLower(name); !is || migName.MatchString(name) {
		return 0
	}
	return gb
}

// migName matches profiles with the number of MIG slices before the framebuffer: a100d-2-20c.
var migName = regexp.MustCompile(`-[0-9]+-[0-9]+c?[a-z]+$`)

// Check compares a size that an operator chose with the window: a power of two, not below the minimum.
func (w Window) Check(gb int) error {
	switch {
	case gb < 1 || gb&(gb-1) != 0:
		return fmt.Errorf("%d GB is not a power of two", gb)
	case gb < w.Minimal:
		return fmt.Errorf("%d GB is too small: the BARs take %.2f GB, so %d GB is the least (KB 323402 asks for %d)", gb, w.TotalGB, w.Minimal,
			w.KB)
	case gb >= AddressableGB:
		return fmt.Errorf("%d GB is too large: %s", gb, beyond(gb))
	}
	return nil
}

func pow2ceil(n int) int {
	if n <= 1 {
		return 1
	}
	return 1 << bits.Len(uint(n-1))
}

// above returns the smallest power of two above x.
func above(x float64) int {
	p := 1
	for float64(p) <= x {
		p *= 2
	}
	return p
}
