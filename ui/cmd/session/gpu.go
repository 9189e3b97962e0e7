package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// cardNode completes a node with a NIC that is passed through whole, for which vCenter has no adapter.
func cardNode(h *backends.Host, v *backends.VM, g *backends.Guest, name string, n *perftest.Node) {
	if n.Device != "" || g == nil || len(v.Passthrough) == 0 {
		return
	}
	d := g.CardAt(v, name)
	if d == nil {
		return
	}
	device(g, d.MAC, n)
	if pci, passthrough := backends.OfHCA(name); passthrough && h != nil {
		plugged(h, pci, n)
	}
	n.LinkMbps = cmp.Or(n.LinkMbps, int(d.RateGbps*1000))
}

// gpuOf chooses the GPU that a guest measures with: the one nearest to the RDMA device by the guest's topology. If it cannot be
// measured, Without has the reason.
func gpuOf(a *answers.Answers, inv *backends.Inventory, v *backends.VM, g *backends.Guest, portgroup, device string) *perftest.GPU {
	out := &perftest.GPU{}
	switch {
	case g == nil || g.Error != "":
		out.Without, out.Remedy = "the guest was not read", "see the checks of the guest"
		return out
	case g.NVIDIA == nil:
		out.Without, out.Remedy = "the guest has no NVIDIA driver", "install the driver, or name its packages in gpudirect.driver and apply again"
		return out
	case len(g.NVIDIA.GPUs) == 0:
		out.Without, out.Remedy = cmp.Or(g.NVIDIA.Error, "nvidia-smi lists no GPU"),
			"check the guest's kernel log for MMIO window, power and driver (rdma-setup check)"
		return out
	}
	out.Index, out.Link = perftest.Nearest(g.NVIDIA.Topology, device, len(g.NVIDIA.GPUs))
	if ways := hostWays(inv, v, portgroup); len(ways) == len(g.NVIDIA.GPUs) {
		out.Index = nearestWay(ways, out.Index)
		out.Link = g.NVIDIA.Topology[fmt.Sprintf("%s GPU%d", device, out.Index)]
		if way := ways[out.Index]; way != backends.PathUnknown {
			out.Host, out.Apart = string(way), way.PeerToPeer() != "yes"
		}
	}
	out.Name, out.Several = g.NVIDIA.GPUs[out.Index], len(g.NVIDIA.GPUs) > 1
	out.Keys = peerKeys(a, v)
	if err := vgpuPeer(v); err != nil {
		out.Without, out.Remedy = "GPUDirect RDMA is off: "+err.Error(),
			"give the VM a C-series vGPU of a GPU with SR-IOV, or a whole GPU, or set NCCL_NET_GDR_LEVEL=LOC"
		return out
	}
	if g.CUDATests == nil {
		out.Without = "no perftest built with CUDA was found"
		out.Remedy = "build perftest with CUDA_H_PATH=/usr/local/cuda/include/cuda.h and install it under /usr/local; the distribution's build " +
			"does not support GPUs"
		return out
	}
	out.Dir, out.DMABuf = g.CUDATests.Dir, g.NVIDIA.DMABuf && g.CUDATests.DMABuf
	return out
}

// vgpuPeer returns why an RDMA card cannot access the memory of a VM's vGPUs, nil if it can or if the VM has none.
func vgpuPeer(v *backends.VM) error {
	if v == nil {
		return nil
	}
	for _, d := range v.Devices {
		if d.Backing != backends.VGPUBacking {
			continue
		}
		if err := sizing.VGPUPeer(d.Profile); err != nil {
			return err
		}
	}
	return nil
}

// hostWays returns the paths from each GPU of a VM to its RDMA card, or to the port of its adapter on a port group, by the host's
// PCI tree, which has the bridges and root ports that the VM's lacks. The order is that of the VM's devices, as in a guest.
func hostWays(inv *backends.Inventory, v *backends.VM, portgroup string) []backends.Nearness {
	h := inv.Host(v.Host)
	if h == nil {
		return nil
	}
	card, _ := backends.OfHCA(portgroup)
	for _, c := range h.Cards() {
		if card == "" && slices.Contains(v.Passthrough, c.Address) {
			card = c.Address
		}
	}
	for _, ad := range v.Adapters {
		if card == "" || ad.PF != "" && ad.PortGroup == portgroup {
			card = ad.PF
		}
	}
	var out []backends.Nearness
	for _, address := range v.Passthrough {
		i := slices.IndexFunc(h.GPUs, func(g backends.GPU) bool { return g.PCI == address })
		if i < 0 {
			continue
		}
		way, _ := backends.Near(h.GPUs[i].Path(), h.Bridges(card))
		out = append(out, way)
	}
	return out
}

// nearestWay returns the index of the first of the best paths; that of the guest's choice if it is as good.
func nearestWay(ways []backends.Nearness, choice int) int {
	rank := func(i int) int {
		return slices.Index([]string{"yes", "doubtful", "unknown", "no"}, ways[i].PeerToPeer())
	}
	for i := range ways {
		if rank(i) < rank(choice) {
			choice = i
		}
	}
	return choice
}

// peerKeys returns the VMX keys for peer-to-peer that differ from the answers; none if they were not read.
func peerKeys(a *answers.Answers, v *backends.VM) []string {
	if v.Extra == nil {
		return nil
	}
	var missing []string
	for _, key := range []string{"pciPassthru.allowP2P", "pciPassthru.RelaxACSforP2P"} {
		is := key != "pciPassthru.allowP2P" && !a.GPUDirect.RelaxACS
		for name, value := range v.Extra {
			is = is || strings.EqualFold(name, key) && strings.EqualFold(strings.Trim(value, `"`), "true")
		}
		if !is {
			missing = append(missing, key)
		}
	}
	return missing
}

// measureGPUs measures within each VM of the pairs that has several GPUs, and keeps the results for Remarks.
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
