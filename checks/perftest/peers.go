package perftest

import (
	"context"
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/nvidia"
)

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
	t, ok := nvidia.ReadPeerTest(out.Stdout)
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
	from, to, one := nvidia.Slowest(t.OneWay)
	_, _, both := nvidia.Slowest(t.BothWays)
	_, _, without := nvidia.Slowest(t.Without)
	line := fmt.Sprintf("%s: bandwidth between its GPUs at the slowest pair (GPU%d to GPU%d): %.1f GB/s in one direction, %.1f GB/s in both, %.1f GB/s without P2P",
		vm, from, to, one, both, without)
	if a, b, access := nvidia.Slowest(t.Access); access == 0 {
		line += fmt.Sprintf("; P2P is not enabled between GPU%d and GPU%d: see GST-GPUP2P-040", a, b)
	}
	return line
}
