package perftest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// The tests of GPUDirect. Bandwidth and latency with GPU memory are compared with the same test with host memory. Latency is that
// of sends: perftest measures none for writes with CUDA.
const (
	WriteBandwidth    = "ib_write_bw"
	WriteBandwidthGPU = WriteBandwidth + useCUDA
	SendLatencyGPU    = SendLatency + useCUDA

	useCUDA = " --use_cuda"
)

// A GPU is the one that an end uses.
type GPU struct {
	Index  int    `json:"index"` // nvidia-smi's index, by PCI address
	Name   string `json:"name,omitempty"`
	Link   string `json:"link,omitempty"`    // path to the RDMA device, by nvidia-smi topo -m: PIX, PXB, PHB, NODE, SYS
	Host   string `json:"host,omitempty"`    // path to the NIC in the host's PCI tree, as text
	DMABuf bool   `json:"dma_buf,omitempty"` // through DMA-BUF instead of a peer memory module

	Dir     string   `json:"dir,omitempty"`     // directory of the perftest with CUDA, "" for the PATH
	Several bool     `json:"several,omitempty"` // the guest has more than one
	Apart   bool     `json:"apart,omitempty"`   // by the host's PCI tree peer-to-peer is impossible or doubtful
	Keys    []string `json:"missing,omitempty"` // missing VM settings for peer-to-peer
	Without string   `json:"without,omitempty"` // why nothing can be measured, "" if it can
	Remedy  string   `json:"remedy,omitempty"`
}

// Ends are the GPUs of both ends of a measurement.
type Ends struct {
	From GPU `json:"from"`
	To   GPU `json:"to"`
}

// String formats the ends: "GPU0 (one PCIe switch) -> GPU1 (PHB)".
func (e Ends) String() string { return e.From.String() + " -> " + e.To.String() }

// String formats a GPU: "GPU0 (one PCIe switch)", with the path to the NIC as the host sees it, else as the guest does (PIX,
// PHB).
func (g GPU) String() string {
	s := fmt.Sprintf("GPU%d", g.Index)
	if way := cmp.Or(g.Host, g.Link); way != "" {
		s += " (" + way + ")"
	}
	return s
}

// links are the paths between a GPU and a NIC, best first (nvidia-smi topo -m; SOC is the former name of SYS).
var links = []string{"PIX", "PXB", "PHB", "NODE", "SYS", "SOC"}

// Nearest chooses among that many GPUs of a guest the one nearest to an RDMA device; of several the first. Topology is keyed by
// "device GPU0"; link is "" if it is unknown.
func Nearest(topology map[string]string, device string, gpus int) (index int, link string) {
	best := len(links)
	for i := range gpus {
		l := topology[fmt.Sprintf("%s GPU%d", device, i)]
		if at := slices.Index(links, l); at >= 0 && at < best {
			index, link, best = i, l, at
		}
	}
	return index, link
}

// far reports whether a path cannot be improved by settings. The host's PCI tree is more reliable than the guest's.
func (g GPU) far() bool {
	if g.Host != "" {
		return g.Apart
	}
	return g.Link == "NODE" || g.Link == "SYS" || g.Link == "SOC"
}

// near reports whether only PCIe switches are between the GPU and its card.
func (g GPU) near() bool {
	if g.Host != "" {
		return strings.Contains(g.Host, "switch")
	}
	return g.Link == "PIX" || g.Link == "PXB"
}

// measureGPU runs one test with GPU memory and compares it with the same test with host memory.
func (r *Runner) measureGPU(ctx context.Context, p Pair, test string, port int, host *Measurement) Measurement {
	m := r.blank(p, test)
	m.GPU = &Ends{From: *p.Client.GPU, To: *p.Server.GPU}
	for _, n := range []Node{p.Client, p.Server} {
		if n.GPU.Without != "" {
			m.Verdict, m.Error, m.Hint = VerdictUnknown, n.VM+": "+n.GPU.Without, n.GPU.Remedy
			return m
		}
	}
	if host == nil || host.Error != "" {
		m.Verdict, m.Error, m.Hint = VerdictUnknown, "the same test with host memory failed", "fix that first"
		return m
	}
	moved := r.moving(ctx, p)
	out, err := r.exchange(ctx, p, test, sweep, port, &m)
	m.Counters = moved(ctx)
	if err != nil {
		m.broken(test, r.Mode, err)
		m.gpuCause()
		return m
	}
	r.read(test, out, &m)
	if m.Error != "" {
		m.gpuCause()
		return m
	}
	JudgeGPU(&m, *host, p)
	m.prove(r.Class)
	m.judgeLoss()
	return m
}

// Shares of host memory's bandwidth by which GPU memory is judged (PAIR-GDR-012).
const (
	gpuPass = 0.9
	gpuWarn = 0.5
	gpuSlow = 2 // times the latency of host memory without a warning; chosen by this project
)

// JudgeGPU compares a measurement with GPU memory with that with host memory of the same pair.
func JudgeGPU(m *Measurement, host Measurement, p Pair) {
	m.LinkGbps, m.HostGbps, m.HostUs = host.LinkGbps, host.AchievedGbps, host.AchievedUs
	if host.AchievedUs > 0 {
		m.AchievedUs, m.ExpectedUs = m.Rows[0].TypicalUs, gpuSlow*host.AchievedUs
		m.Why = fmt.Sprintf("host memory has a latency of %.2f us", host.AchievedUs)
		m.Verdict = VerdictPass
		if m.AchievedUs > m.ExpectedUs {
			m.Verdict = VerdictWarn
		}
	} else {
		m.AchievedGbps, m.ExpectedGbps = sizing.Plateau(samples(m.Rows)), host.AchievedGbps
		m.Why = fmt.Sprintf("host memory reaches %.1f Gb/s between the two, and peer to peer is not slower", host.AchievedGbps)
		switch {
		case host.AchievedGbps <= 0:
			m.Verdict, m.Hint = VerdictUnknown, "host memory was not measured, so there is nothing to compare with"
		case m.AchievedGbps >= gpuPass*host.AchievedGbps:
			m.Verdict = VerdictPass
		case m.AchievedGbps >= gpuWarn*host.AchievedGbps:
			m.Verdict = VerdictWarn
		default:
			m.Verdict = VerdictFail
		}
	}
	if p.SameHost() {
		m.Verdict, m.Hint = VerdictNotApplicable, host.Hint
	}
	if m.Verdict == VerdictWarn || m.Verdict == VerdictFail {
		m.Hint = gpuHint(p)
	}
}

// gpuHint names the likely cause of slow GPU memory: the topology if it rules out peer-to-peer, else settings.
func gpuHint(p Pair) string {
	for _, n := range []Node{p.Client, p.Server} {
		if n.GPU.far() {
			return fmt.Sprintf(
				"topology, not settings: GPU%d and %s of %s are at %s, so data goes through the CPU; give the VM the GPU below the NIC's root "+
					"port or switch, or move a card", n.GPU.Index, n.Device, n.VM, cmp.Or(n.GPU.Host, n.GPU.Link))
		}
	}
	for _, n := range []Node{p.Client, p.Server} {
		if len(n.GPU.Keys) > 0 {
			return fmt.Sprintf("the topology is fine, but %s lacks %s: without it data goes through host memory", n.VM,
				strings.Join(n.GPU.Keys, " and "))
		}
	}
	return "the topology is fine: check ACS redirection on the bridges above GPU and NIC (BIOS, PCIe switch), ATS_ENABLED of the NIC where " +
		"ATS is used, and IOMMU settings"
}

// gpuCause says what to do if a test with GPU memory failed for no known cause.
func (m *Measurement) gpuCause() {
	m.Hint = cmp.Or(m.Hint, "see the GPU checks of both guests: driver, peer memory, perftest with CUDA")
}

// gpuLine returns what comes before and after a test's name on the command line. CUDA orders GPUs by speed unless it is set to
// order them by PCI address, like nvidia-smi.
func (n Node) gpuLine(test string) (environment, command string) {
	base, gpu := strings.CutSuffix(test, useCUDA)
	if !gpu || n.GPU == nil {
		return "", test
	}
	command = fmt.Sprintf("%s --use_cuda=%d", base, n.GPU.Index)
	if n.GPU.Dir != "" {
		command = n.GPU.Dir + "/" + command
	}
	if n.GPU.DMABuf {
		command += " --use_cuda_dmabuf"
	}
	if n.GPU.Several {
		environment = "CUDA_DEVICE_ORDER=PCI_BUS_ID "
	}
	return environment, command
}

// peerTest measures between the GPUs of one VM. It is one of NVIDIA's CUDA samples, which are built where they are used: those of CUDA 11.5
// and older were installed in /usr/local/cuda/samples, and their programs are in bin/ARCHITECTURE/linux/release (NVIDIA/cuda-samples,
// README, Installation Path Structure). The CUDA Demo Suite does not contain it (NVIDIA, CUDA Demo Suite, Demos). CUDA numbers the GPUs
// as nvidia-smi does.
const peerTest = `t=$(command -v p2pBandwidthLatencyTest || ls /usr/local/cuda*/samples/bin/*/linux/release/p2pBandwidthLatencyTest 2>/dev/null | head -n 1)
[ -n "$t" ] || exit 127
CUDA_DEVICE_ORDER=PCI_BUS_ID timeout -k 5 120 "$t"`

// GPUPairs measures between the GPUs of a VM with several, and returns the result in one line. No public source has a threshold, so it
// is not judged.
func (r *Runner) GPUPairs(ctx context.Context, vm string) string {
	out, err := r.Shell.Exec(ctx, vm, Command{Line: peerTest})
	t, ok := transcript.ReadPeerTest(out.Stdout)
	why := ""
	lines := strings.Split(strings.TrimSpace(out.Stdout+out.Stderr), "\n")
	last := lines[len(lines)-1]
	switch {
	case err != nil:
		why = err.Error()
	case out.Exit == 127:
		why = "p2pBandwidthLatencyTest is not in the guest"
	case out.Exit == timedOut:
		why = "p2pBandwidthLatencyTest did not end within 2 minutes"
	case out.Exit != 0:
		why = fmt.Sprintf("p2pBandwidthLatencyTest failed (exit status %d): %s", out.Exit, last)
	case !ok:
		why = "the output of p2pBandwidthLatencyTest cannot be parsed: " + last
	}
	if why != "" {
		return vm + ": the bandwidth between its GPUs was not measured: " + why
	}
	from, to, one := transcript.Slowest(t.OneWay)
	_, _, both := transcript.Slowest(t.BothWays)
	_, _, without := transcript.Slowest(t.Without)
	line := fmt.Sprintf(
		"%s: bandwidth between its GPUs at the slowest pair (GPU%d to GPU%d): %.1f GB/s in one direction, %.1f GB/s in both, %.1f GB/s "+
			"without P2P",
		vm, from, to, one, both, without)
	if a, b, access := transcript.Slowest(t.Access); access == 0 {
		line += fmt.Sprintf("; P2P is not enabled between GPU%d and GPU%d: see GST-GPUP2P-040", a, b)
	}
	return line
}
