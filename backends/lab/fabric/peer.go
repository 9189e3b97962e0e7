package fabric

import (
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// A Peer describes direct access between a GPU and a NIC of one VM, without the memory of the host.
type Peer struct {
	OK       bool    // direct access works; if false, the IOMMU blocks it
	Share    float64 // fraction of the NIC's rate with host memory
	Micros   float64 // added to the latency, in microseconds
	Distance world.Distance
	Why      string
}

// The rate of a card with GPU memory as a fraction of its rate with host memory. Below one PCIe switch both rates are nearly
// equal. Across root ports, reads are limited by the buffers of the processor; across sockets, by the link between them.
const (
	switchShare = 0.985
	treeShare   = 0.97
	portsShare  = 0.42
	socketShare = 0.16
	acsShare    = 0.45 // below one switch, if ACS redirects all requests to the root port
)

// peerToPeer is the first hardware version in which devices can access each other without a configuration key.
const peerToPeer = 22

// PeerOf computes how the GPU at a PCI address of the host accesses the port with a MAC address of the VM. The configuration
// keys are those of NVIDIA's GPU Operator guide: allowP2P maps the devices to each other, and RelaxACSforP2P lets a switch route
// requests directly between them.
func PeerOf(s *world.State, vm, gpu, mac string) Peer {
	v := s.VM(vm)
	if v == nil || s.Host(v.Host) == nil {
		return Peer{Why: "no such VM"}
	}
	h := s.Host(v.Host)
	nic := ""
	if p := s.WholeOf(v, mac); p != nil {
		nic = p.PCI
	} else if a := v.Adapter(mac); a != nil && a.Type == world.SRIOV {
		if p, _ := h.PortOf(a); p != nil {
			nic = p.PCI
		}
	}
	switch {
	case gpu == "":
		return Peer{Why: "there is no GPU"}
	case h.PCIDevice(gpu) != nil && !h.PCIDevice(gpu).PassthruActive && !vgpuPeers(h.PCIDevice(gpu).GPU, v):
		return Peer{Why: "GPUDirect RDMA is not supported with this vGPU"}
	case nic == "":
		return Peer{Why: "the adapter is no function of a card"}
	}
	p := Peer{Distance: h.Distance(gpu, nic)}
	if !strings.EqualFold(v.Setting("pciPassthru.allowP2P"), "TRUE") && v.Hardware < peerToPeer {
		p.Why = "pciPassthru.allowP2P is not TRUE"
		return p
	}
	p.OK = true
	near := p.Distance == world.OneSwitch || p.Distance == world.SwitchTree
	relaxed := strings.EqualFold(v.Setting("pciPassthru.RelaxACSforP2P"), "TRUE") || translated(h, nic)
	switch {
	case near && !relaxed:
		p.Share, p.Micros, p.Why = acsShare, 0.9, "pciPassthru.RelaxACSforP2P is not TRUE"
	case p.Distance == world.OneSwitch:
		p.Share, p.Micros = switchShare, 0.3
	case near:
		p.Share, p.Micros = treeShare, 0.4
	case p.Distance == world.RootPorts:
		p.Share, p.Micros, p.Why = portsShare, 1.1, "different root ports"
	default:
		p.Share, p.Micros, p.Why = socketShare, 2.6, "different sockets"
	}
	return p
}

// vgpuPeers reports whether a card can access the memory of a VM's vGPUs. This requires vGPUs of the C series on GPUs with
// SR-IOV, which are Ampere and later (NVIDIA AI Enterprise, "GPUDirect RDMA and GPUDirect Storage", vGPU support).
func vgpuPeers(g *world.GPU, v *world.VM) bool {
	if g == nil || slices.Contains([]string{"Kepler", "Maxwell", "Pascal", "Volta", "Turing"}, g.Architecture) {
		return false
	}
	return !slices.ContainsFunc(v.Devices, func(d *world.Passthrough) bool { return d.Profile != "" && !strings.HasSuffix(d.Profile, "c") })
}

// translated reports whether the card requests translated addresses from the IOMMU (ATS). A PCIe switch can then route its
// requests directly.
func translated(h *world.Host, nic string) bool {
	c := h.Card(nic)
	return c != nil && c.Setting("ATS_ENABLED") != nil && c.Setting("ATS_ENABLED").Current == 1
}
