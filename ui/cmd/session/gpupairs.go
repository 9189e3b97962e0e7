package session

import (
	"context"
	"slices"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
)

// measureGPUs measures within each VM of the pairs that has several GPUs, and keeps the results for GPUPairs.
func (s *Session) measureGPUs(ctx context.Context, r *perftest.Runner, pairs []perftest.Pair) {
	var lines, seen []string
	inv := s.Last(nil)
	for _, p := range pairs {
		for _, n := range []perftest.Node{p.Client, p.Server} {
			if g := inv.Guest(n.VM); r.Bandwidth && !slices.Contains(seen, n.VM) && g != nil && g.NVIDIA != nil && len(g.NVIDIA.Devices) > 1 {
				lines, seen = append(lines, r.GPUPairs(ctx, n.VM)), append(seen, n.VM)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gpuPairs = lines
}

// GPUPairs returns one line for each VM with several GPUs that Measure has measured last.
func (s *Session) GPUPairs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gpuPairs
}
