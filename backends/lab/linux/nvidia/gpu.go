// Package nvidia implements NVIDIA's driver in the lab's guests: its modules, nvidia-smi, and the access of network cards to
// GPU memory.
package nvidia

import (
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// A GPU is a GPU or vGPU that is assigned to the VM.
type GPU struct {
	world.GPU
	Address string // guest address: 0000:13:00.0
	Slot    int
	Class   uint16
	Device  uint16
	Sub     uint16
	Text    string // name in lspci, without the vendor: GA100 [A100 PCIe 80GB]
	BARs    []world.BAR
	NUMA    int    // NUMA node of the host
	Host    string // host address: 0000:3c:00.0; for a vGPU, that of its GPU
	Profile string // vGPU profile
	Group   string // vendor device group of a vGPU, if NVLink connects the group's members
	Root    string // root port of the host, if the VM's keys allow peer-to-peer access between its devices
}

// UUID returns the UUID of the GPU: GPU-12345678-...
func (g GPU) UUID() string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%s/%s", g.Name, g.Host, g.Profile)
	a := h.Sum64()
	fmt.Fprint(h, "2")
	b := h.Sum64()
	return fmt.Sprintf("GPU-%08x-%04x-%04x-%04x-%012x", uint32(a>>32), uint16(a>>16), uint16(a), uint16(b>>48), b&0xffffffffffff)
}

// busID returns the address in NVIDIA's format, with a domain of eight digits.
func (g GPU) busID() string { return "0000" + strings.ToUpper(g.Address) }

// bar1 returns the size in MiB of the memory region that maps the GPU's memory, the second: nvidia-smi calls it BAR1, although it is
// BAR 2 of GPUs whose first region has 64 bits.
func (g GPU) bar1() int64 {
	if len(g.BARs) < 2 {
		return 0
	}
	return g.BARs[1].MB
}

// reserved returns the memory that the driver reserves, in MiB.
func (g GPU) reserved() int64 { return g.MemoryMiB/160 + 1 }
