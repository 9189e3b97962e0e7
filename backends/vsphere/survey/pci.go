package survey

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// PCI classes (PCI Code and ID Assignment), with the base class in the upper byte.
const (
	classNetwork  = 0x02
	classDisplay  = 0x03
	classCompute  = 0x12 // processing accelerators
	classPCIToPCI = 0x0604
	classOther    = 0x0680 // other bridges: NVSwitches of NVIDIA
)

// gpuVendors make GPUs that are passed through; display controllers of other vendors are server consoles.
var gpuVendors = []string{"10de", "1002", "8086"}

// pciTree is a host's PCI list by address.
type pciTree struct {
	devices map[string]types.HostPciDevice
	passthr map[string]types.BaseHostPciPassthruInfo
	numa    map[string]int
	groups  map[string][]string // dependent devices by the device that they depend on
}

func pciOf(o wire.Object) pciTree {
	t := pciTree{
		devices: map[string]types.HostPciDevice{}, passthr: map[string]types.BaseHostPciPassthruInfo{},
		numa: map[string]int{}, groups: map[string][]string{},
	}
	for _, d := range wire.Value[types.ArrayOfHostPciDevice](o, "hardware.pciDevice").HostPciDevice {
		t.devices[d.Id] = d
	}
	for _, p := range wire.Value[types.ArrayOfHostPciPassthruInfo](o, "config.pciPassthruInfo").HostPciPassthruInfo {
		info := p.GetHostPciPassthruInfo()
		t.passthr[info.Id] = p
		if info.DependentDevice != "" {
			t.groups[info.DependentDevice] = append(t.groups[info.DependentDevice], info.Id)
		}
	}
	// The NUMA node of a device is in the NUMA list, not in the PCI list.
	for _, n := range wire.Value[types.ArrayOfHostNumaNode](o, "hardware.numaInfo.numaNode").HostNumaNode {
		for _, id := range n.PciId {
			t.numa[id] = int(n.TypeId)
		}
	}
	return t
}

// Hex formats the API's signed 16-bit ids in the usual form: -27531 is 9475.
func Hex(id int16) string { return fmt.Sprintf("%04x", uint16(id)) }

func (t pciTree) node(address string) int {
	if n, ok := t.numa[address]; ok {
		return n
	}
	return -1
}

func (t pciTree) flags(address string) (capable, enabled, active bool) {
	p, ok := t.passthr[address]
	if !ok {
		return false, false, false
	}
	info := p.GetHostPciPassthruInfo()
	return info.PassthruCapable, info.PassthruEnabled, info.PassthruActive
}

func (t pciTree) sriov(address string) *backends.SRIOV {
	s, ok := t.passthr[address].(*types.HostSriovInfo)
	if !ok {
		return nil
	}
	return &backends.SRIOV{
		Capable: s.SriovCapable, Enabled: s.SriovEnabled, Active: s.SriovActive,
		Max: int(s.MaxVirtualFunctionSupported), Requested: int(s.NumVirtualFunctionRequested), VFs: int(s.NumVirtualFunction),
	}
}

func (t pciTree) above(address string) []string {
	var chain []string
	for at := t.devices[address].ParentBridge; at != "" && !slices.Contains(chain, at); at = t.devices[at].ParentBridge {
		if d, ok := t.devices[at]; ok && uint16(d.ClassId) != classPCIToPCI {
			break // the host bridge
		}
		chain = append(chain, at)
	}
	return chain
}

func (t pciTree) gpus(graphics []types.HostGraphicsInfo) []backends.GPU {
	var out []backends.GPU
	for _, id := range t.addresses() {
		d := t.devices[id]
		class, vendor := uint16(d.ClassId)>>8, Hex(d.VendorId)
		if class != classDisplay && class != classCompute || !slices.Contains(gpuVendors, vendor) {
			continue
		}
		g := backends.GPU{PCI: id, Model: d.DeviceName, Vendor: vendor, Device: Hex(d.DeviceId), NUMA: t.node(id)}
		g.Capable, g.Enabled, g.Active = t.flags(id)
		g.Dependents = t.dependents(id)
		for _, info := range graphics {
			if info.PciId == id {
				g.MemoryMB, g.Graphics, g.VGPUMode = info.MemorySizeInKB/1024, info.GraphicsType, info.VgpuMode
			}
		}
		if chain := t.above(id); len(chain) > 0 {
			slices.Reverse(chain)
			g.RootPort, g.Switches = chain[0], chain[1:]
		}
		out = append(out, g)
	}
	return out
}

// rows returns the devices that matter for topology: adapters, GPUs, passed-through devices, and the bridges above them.
func (t pciTree) rows() []backends.PCIDevice {
	want := map[string]bool{}
	for id, d := range t.devices {
		class := uint16(d.ClassId) >> 8
		_, enabled, _ := t.flags(id)
		nvSwitch := uint16(d.ClassId) == classOther && Hex(d.VendorId) == gpuVendors[0]
		if class != classNetwork && class != classDisplay && class != classCompute && !nvSwitch && !enabled {
			continue
		}
		want[id] = true
		for _, bridge := range t.above(id) {
			want[bridge] = true
		}
	}
	var out []backends.PCIDevice
	for _, id := range t.addresses() {
		if !want[id] {
			continue
		}
		d := t.devices[id]
		row := backends.PCIDevice{
			Address: id, Vendor: Hex(d.VendorId), Device: Hex(d.DeviceId), Class: Hex(d.ClassId),
			Parent: d.ParentBridge, Name: strings.TrimSpace(d.DeviceName), NUMA: t.node(id),
		}
		row.Capable, row.Enabled, row.Active = t.flags(id)
		row.Dependents = t.dependents(id)
		out = append(out, row)
	}
	return out
}

// dependents returns the devices that are passed through together with one: those that depend on the same device (IOMMU group).
func (t pciTree) dependents(id string) []string {
	p, ok := t.passthr[id]
	if !ok {
		return nil
	}
	var out []string
	for _, other := range t.groups[p.GetHostPciPassthruInfo().DependentDevice] {
		if other != id {
			out = append(out, other)
		}
	}
	slices.Sort(out)
	return out
}

func (t pciTree) addresses() []string {
	return slices.Sorted(maps.Keys(t.devices))
}
