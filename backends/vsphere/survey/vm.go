package survey

import (
	"slices"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// vmRow is a VM while it is being read: names are filled in after everything was read.
type vmRow struct {
	ref, host, parent place.Ref
	vApp              place.Ref
	vm                backends.VM
	browser           place.Ref // EnvironmentBrowser of its cluster; details only
	groups            []string  // key of each adapter's distributed port group, "" for other networks
}

func vmOf(o wire.Object) *vmRow {
	r := &vmRow{ref: o.Ref, host: wire.Value[place.Ref](o, "runtime.host"), parent: wire.Value[place.Ref](o, "parent"),
		vApp: wire.Value[place.Ref](o, "parentVApp")}
	ft := text(o, "runtime.faultToleranceState")
	r.vm = backends.VM{
		Power: text(o, "runtime.powerState"), State: text(o, "runtime.connectionState"), Template: flag(o, "config.template"),
		Hardware: HardwareVersion(text(o, "config.version")), Firmware: text(o, "config.firmware"),
		GuestID: text(o, "config.guestId"), GuestName: text(o, "config.guestFullName"),
		CPUs: int(number(o, "config.hardware.numCPU")), MemoryMB: number(o, "config.hardware.memoryMB"),
		Reservation: number(o, "config.memoryAllocation.reservation"), MemoryLocked: flag(o, "config.memoryReservationLockedToMax"),
		FaultTolerant: ft != "" && ft != "notConfigured", Nested: flag(o, "config.nestedHVEnabled"),
		Latency: text(o, "config.latencySensitivity.level"), CPUHotAdd: flag(o, "config.cpuHotAddEnabled"),
		MemHotAdd: flag(o, "config.memoryHotAddEnabled"),
		Tools:     text(o, "guest.toolsRunningStatus"),
		Snapshots: snapshots(wire.Value[types.ArrayOfVirtualMachineSnapshotTree](o, "snapshot.rootSnapshotList").VirtualMachineSnapshotTree),
		VCenterVM: strings.Contains(strings.ToLower(text(o, "summary.config.product.name")), "vcenter server"),
		Adapters:  []backends.Adapter{},
		ManagedBy: wire.Value[types.ManagedByInfo](o, "config.managedBy").ExtensionKey,
	}
	if mhz, told := wire.Prop[int64](o, "config.cpuAllocation.reservation"); told {
		r.vm.CPUReserved = &mhz
	}
	if ip := text(o, "guest.ipAddress"); ip != "" {
		r.vm.IPs = []string{ip}
	}
	for _, d := range wire.Value[types.ArrayOfVirtualDevice](o, "config.hardware.device").VirtualDevice {
		if a, group, ok := AdapterOf(d); ok {
			r.vm.Adapters = append(r.vm.Adapters, a)
			r.groups = append(r.groups, group)
			continue
		}
		if disk, ok := d.(*types.VirtualDisk); ok {
			if b, ok := disk.Backing.(types.BaseVirtualDeviceFileBackingInfo); ok && b.GetVirtualDeviceFileBackingInfo().Datastore != nil {
				r.vm.Datastores = append(r.vm.Datastores, b.GetVirtualDeviceFileBackingInfo().Datastore.Value)
			}
			if b, ok := disk.Backing.(*types.VirtualDiskRawDiskMappingVer1BackingInfo); ok {
				r.vm.RawDisks = append(r.vm.RawDisks, backends.RawDisk{LUN: b.LunUuid, Device: b.DeviceName, Compatibility: b.CompatibilityMode,
					Mode:       b.DiskMode,
					CapacityKB: disk.CapacityInKB})
			}
		}
		if c, ok := d.(types.BaseVirtualSCSIController); ok {
			if sharing := c.GetVirtualSCSIController().SharedBus; sharing != "" && sharing != types.VirtualSCSISharingNoSharing {
				r.vm.BusSharing = string(sharing)
			}
		}
		if p, ok := d.(*types.VirtualPCIPassthrough); ok {
			r.vm.Passthrough = append(r.vm.Passthrough, passedThrough(p))
			r.vm.Devices = append(r.vm.Devices, AssignedOf(p))
		}
	}
	return r
}

func references(o wire.Object, path string) []string {
	var out []string
	for _, r := range wire.Value[types.ArrayOfManagedObjectReference](o, path).ManagedObjectReference {
		out = append(out, r.Value)
	}
	slices.Sort(out)
	return out
}

// HardwareVersion parses "vmx-19" as 19; 0 if it does not have that form.
func HardwareVersion(version string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(version, "vmx-"))
	if err != nil {
		return 0
	}
	return n
}

func snapshots(trees []types.VirtualMachineSnapshotTree) int {
	n := len(trees)
	for _, t := range trees {
		n += snapshots(t.ChildSnapshotList)
	}
	return n
}

// AutomaticPF begins the id of the physical function of an SR-IOV adapter if the host chooses it at power-on; it is followed by the
// one in use (vSphere Web Services API 8.0 U3, VirtualSriovEthernetCardSriovBackingInfo, physicalFunctionBacking).
const AutomaticPF = "Automatic-"

// AdapterOf reads a virtual network adapter from a device list. Group is the key of the distributed port group that it is
// connected to; for other networks it is empty and PortGroup holds their name.
func AdapterOf(d types.BaseVirtualDevice) (a backends.Adapter, group string, ok bool) {
	card, ok := d.(types.BaseVirtualEthernetCard)
	if !ok {
		return a, "", false
	}
	dev := d.GetVirtualDevice()
	a.MAC, a.Type = strings.ToLower(card.GetVirtualEthernetCard().MacAddress), adapterType(d)
	if info := dev.DeviceInfo; info != nil {
		a.Label = info.GetDescription().Label
	}
	if c := dev.Connectable; c != nil {
		a.Connected, a.Start = c.Connected, c.StartConnected
	}
	switch d := d.(type) {
	case *types.VirtualVmxnet3Vrdma:
		a.Protocol = d.DeviceProtocol
	case *types.VirtualSriovEthernetCard:
		a.GuestMTU = yes(d.AllowGuestOSMtuChange)
		if b := d.SriovBacking; b != nil && b.PhysicalFunctionBacking != nil && !strings.HasPrefix(b.PhysicalFunctionBacking.Id, AutomaticPF) {
			a.PF = b.PhysicalFunctionBacking.Id
		}
	}
	switch b := dev.Backing.(type) {
	case *types.VirtualEthernetCardDistributedVirtualPortBackingInfo:
		return a, b.Port.PortgroupKey, true
	case types.BaseVirtualDeviceDeviceBackingInfo:
		a.PortGroup = backends.DisplayName(b.GetVirtualDeviceDeviceBackingInfo().DeviceName)
	case *types.VirtualEthernetCardOpaqueNetworkBackingInfo:
		a.PortGroup = b.OpaqueNetworkId
	}
	return a, "", true
}

func adapterType(d types.BaseVirtualDevice) string {
	switch d.(type) {
	case *types.VirtualVmxnet3Vrdma:
		return "pvrdma"
	case *types.VirtualSriovEthernetCard:
		return "sriov"
	case *types.VirtualVmxnet3:
		return "vmxnet3"
	case *types.VirtualVmxnet2:
		return "vmxnet2"
	case *types.VirtualE1000e:
		return "e1000e"
	case *types.VirtualE1000:
		return "e1000"
	case *types.VirtualPCNet32:
		return "pcnet32"
	}
	return "other"
}

// AssignedOf reads an assigned device, complete or shared, from a device list.
func AssignedOf(p *types.VirtualPCIPassthrough) backends.AssignedDevice {
	d := assigned(p)
	if s, is := p.SlotInfo.(*types.VirtualDevicePciBusSlotInfo); is {
		d.Slot = int(s.PciSlotNumber)
	}
	if p.DeviceGroupInfo != nil {
		d.Group = groupKey(p.DeviceGroupInfo.GroupInstanceKey)
	}
	return d
}

func assigned(p *types.VirtualPCIPassthrough) backends.AssignedDevice {
	switch b := p.Backing.(type) {
	case *types.VirtualPCIPassthroughDeviceBackingInfo:
		return backends.AssignedDevice{PCI: b.Id, Backing: backends.FixedBacking, Vendor: Hex(b.VendorId), Device: PaddedHex(b.DeviceId)}
	case *types.VirtualPCIPassthroughDynamicBackingInfo:
		d := backends.AssignedDevice{PCI: b.AssignedId, Backing: backends.DynamicBacking}
		if len(b.AllowedDevice) > 0 {
			d.Vendor, d.Device = Hex(int16(b.AllowedDevice[0].VendorId)), Hex(int16(b.AllowedDevice[0].DeviceId))
		}
		return d
	case *types.VirtualPCIPassthroughVmiopBackingInfo:
		return backends.AssignedDevice{Backing: backends.VGPUBacking, Profile: b.Vgpu}
	}
	return backends.AssignedDevice{Backing: "unknown"}
}

// PaddedHex returns four digits for the device id that a fixed backing has as text: "0x102d", "20b5" or "b5".
func PaddedHex(id string) string {
	id = strings.TrimPrefix(strings.ToLower(id), "0x")
	return strings.Repeat("0", max(0, 4-len(id))) + id
}

// passedThrough returns the PCI address of a fixed device, or the request of a dynamic or shared one.
func passedThrough(p *types.VirtualPCIPassthrough) string {
	switch b := p.Backing.(type) {
	case *types.VirtualPCIPassthroughDeviceBackingInfo:
		return b.Id
	case *types.VirtualPCIPassthroughDynamicBackingInfo:
		if b.AssignedId != "" {
			return b.AssignedId
		}
		if b.CustomLabel != "" {
			return "dynamic " + b.CustomLabel
		}
		return "dynamic"
	case *types.VirtualPCIPassthroughVmiopBackingInfo:
		return "vgpu " + b.Vgpu
	}
	return "unknown"
}
