// Package nvidia implements NVIDIA's driver in the lab's guests: its modules, nvidia-smi, and the access of network
// cards to GPU memory.
package nvidia

import (
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// A GPU is a GPU, or a vGPU, that is assigned to the VM.
type GPU struct {
	world.GPU
	Address string // in the guest: 0000:13:00.0
	Slot    int
	Class   uint16
	Device  uint16
	Sub     uint16
	Text    string // of lspci, without the vendor: GA100 [A100 PCIe 80GB]
	BARs    []world.BAR
	NUMA    int    // of the host
	Host    string // address in the host: 0000:3c:00.0; for a vGPU, that of its GPU
	Profile string // of a share
	Group   string // of a share: the vendor device group that it is in, if NVLink connects its members
	Root    string // root port of the host, if the VM's keys let its devices reach each other
}

// UUID is the GPU's, GPU-12345678-...
func (g GPU) UUID() string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%s/%s", g.Name, g.Host, g.Profile)
	a := h.Sum64()
	fmt.Fprint(h, "2")
	b := h.Sum64()
	return fmt.Sprintf("GPU-%08x-%04x-%04x-%04x-%012x", uint32(a>>32), uint16(a>>16), uint16(a), uint16(b>>48), b&0xffffffffffff)
}

// busID is the address with a domain of eight digits, as NVIDIA writes it.
func (g GPU) busID() string { return "0000" + strings.ToUpper(g.Address) }

// bar1 is the size of the region over the GPU's memory, in MiB.
func (g GPU) bar1() int64 {
	for _, b := range g.BARs {
		if b.Index == 1 {
			return b.MB
		}
	}
	return 0
}

// reserved returns the memory that the driver reserves, in MiB.
func (g GPU) reserved() int64 { return g.MemoryMiB/160 + 1 }
