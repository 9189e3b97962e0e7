package model

import (
	"cmp"
	"fmt"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// Keys and unit numbers that vSphere assigns to virtual devices.
const (
	PCIController  = 100
	FirstEthernet  = 4000
	FirstPassthru  = 13000
	firstUnit      = 7
	firstSRIOVUnit = 65

	firstPassthruUnit = 18
	maxEthernet       = 10
)

// Devices returns the complete device list of a VM.
func Devices(s *world.State, v *world.VM) []types.BaseVirtualDevice {
	device := func(key int32, label, summary string) types.VirtualDevice {
		return types.VirtualDevice{Key: key, DeviceInfo: &types.Description{Label: label, Summary: summary}}
	}
	store, sharing := DatastoreRef(s.VMDatacenter(v)), types.VirtualSCSISharingNoSharing
	if v.Local {
		store = localStore(s.Host(v.Host))
	}
	if v.Sharing != "" {
		sharing = types.VirtualSCSISharing(v.Sharing)
	}
	list := []types.BaseVirtualDevice{
		&types.VirtualIDEController{VirtualController: types.VirtualController{VirtualDevice: device(200, "IDE 0", "IDE 0")}},
		&types.VirtualPCIController{VirtualController: types.VirtualController{VirtualDevice: device(PCIController, "PCI controller 0",
			"PCI controller 0")}},
		&types.VirtualMachineVideoCard{VirtualDevice: child(device(500, "Video card ", "Video card"), 0), VideoRamSizeInKB: 4096},
		&types.ParaVirtualSCSIController{VirtualSCSIController: types.VirtualSCSIController{SharedBus: sharing, ScsiCtlrUnitNumber: 7,
			VirtualController: types.VirtualController{VirtualDevice: child(device(1000, "SCSI controller 0", "VMware paravirtual SCSI"), 3)}}},
		&types.VirtualDisk{CapacityInKB: 40 << 20, CapacityInBytes: 40 << 30, VirtualDevice: types.VirtualDevice{
			Key: 2000, ControllerKey: 1000, UnitNumber: ptr(int32(0)), DeviceInfo: &types.Description{Label: "Hard disk 1",
				Summary: "41,943,040 KB"},
			Backing: &types.VirtualDiskFlatVer2BackingInfo{DiskMode: "persistent", ThinProvisioned: types.NewBool(true),
				VirtualDeviceFileBackingInfo: types.VirtualDeviceFileBackingInfo{FileName: fmt.Sprintf("[shared-01] %[1]s/%[1]s.vmdk", v.Stem()),
					Datastore: &store}}}},
	}
	for n, raw := range v.RawDisks {
		list = append(list, rawDisk(v, n, raw, &store))
	}
	unit, vf := int32(firstUnit), int32(firstSRIOVUnit)
	for _, a := range v.Adapters {
		at := unit
		if a.Type == world.SRIOV {
			at = vf
			vf--
		} else {
			unit++
		}
		list = append(list, ethernet(s, v, a, at))
	}
	for n, d := range v.Devices {
		list = append(list, passedThrough(s.Host(v.Host), d, int32(firstPassthruUnit+n)))
	}
	return list
}

// rawDisk returns a disk that maps a LUN: its file is a pointer to it. In physical mode there is no disk mode (vSphere Web Services
// API, VirtualDiskRawDiskMappingVer1BackingInfo). The device name begins with vml (Broadcom KB 320217: what vmkfstools --queryrdm
// shows). The unit number of the controller itself is skipped.
func rawDisk(v *world.VM, n int, raw world.RawDisk, store *types.ManagedObjectReference) *types.VirtualDisk {
	unit, mode := int32(n+1), types.VirtualDiskCompatibilityModePhysicalMode
	if unit >= 7 {
		unit++
	}
	if raw.Virtual {
		mode = types.VirtualDiskCompatibilityModeVirtualMode
	}
	return &types.VirtualDisk{CapacityInKB: raw.KB, CapacityInBytes: raw.KB << 10, VirtualDevice: types.VirtualDevice{
		Key: int32(2001 + n), ControllerKey: 1000, UnitNumber: &unit,
		DeviceInfo: &types.Description{Label: fmt.Sprintf("Hard disk %d", n+2), Summary: fmt.Sprintf("%d KB", raw.KB)},
		Backing: &types.VirtualDiskRawDiskMappingVer1BackingInfo{LunUuid: raw.LUN, DeviceName: cmp.Or(raw.Device, "vml."+raw.LUN),
			CompatibilityMode: string(mode), DiskMode: raw.DiskMode,
			VirtualDeviceFileBackingInfo: types.VirtualDeviceFileBackingInfo{FileName: fmt.Sprintf("[shared-01] %[1]s/%[1]s_%[2]d.vmdk", v.Stem(),
				n+1), Datastore: store}}}}
}

// passedThrough returns the virtual device for a PCI device that is passed through to a VM.
func passedThrough(h *world.Host, d *world.Passthrough, unit int32) *types.VirtualPCIPassthrough {
	p := &types.VirtualPCIPassthrough{VirtualDevice: types.VirtualDevice{Key: d.Key, ControllerKey: PCIController, UnitNumber: &unit,
		DeviceInfo: &types.Description{Label: fmt.Sprintf("PCI device %d", d.Key-FirstPassthru)}}}
	p.SlotInfo = &types.VirtualDevicePciBusSlotInfo{PciSlotNumber: world.SlotNumber(d.Slot)}
	if d.Group.Name != "" {
		p.DeviceGroupInfo = &types.VirtualDeviceDeviceGroupInfo{GroupInstanceKey: d.Group.Key, SequenceId: d.Group.Sequence}
	}
	switch {
	case d.Profile != "":
		p.Backing = &types.VirtualPCIPassthroughVmiopBackingInfo{Vgpu: d.Profile, MigrateSupported: types.NewBool(true)}
	case d.PCI == "":
		b := &types.VirtualPCIPassthroughDynamicBackingInfo{AssignedId: d.Assigned, CustomLabel: d.Label}
		for _, m := range append([]world.Make{{Vendor: d.Vendor, Device: d.Device}}, d.Others...) {
			b.AllowedDevice = append(b.AllowedDevice, types.VirtualPCIPassthroughAllowedDevice{VendorId: int32(m.Vendor), DeviceId: int32(m.Device)})
		}
		p.Backing = b
	default:
		b := &types.VirtualPCIPassthroughDeviceBackingInfo{Id: d.PCI, DeviceId: fmt.Sprintf("%x", d.Device), VendorId: int16(d.Vendor),
			SystemId: d.System}
		if h != nil && b.SystemId == "" {
			b.SystemId = h.UUID
		}
		p.Backing = b
	}
	return p
}

// virtualFunction returns an SR-IOV adapter. If the adapter can use any uplink of its switch, the backing contains that and the
// uplink in use (vSphere Web Services API 8.0 U3, VirtualSriovEthernetCardSriovBackingInfo.physicalFunctionBacking).
func virtualFunction(h *world.Host, a *world.Adapter, card types.VirtualEthernetCard) *types.VirtualSriovEthernetCard {
	pf := a.PF
	if pf == "" {
		pf = "Automatic-0000:00:00.0"
		if h != nil {
			if p, _ := h.PortOf(a); p != nil {
				pf = "Automatic-" + p.PCI
			}
		}
	}
	return &types.VirtualSriovEthernetCard{VirtualEthernetCard: card, AllowGuestOSMtuChange: types.NewBool(a.GuestMTU),
		SriovBacking: &types.VirtualSriovEthernetCardSriovBackingInfo{PhysicalFunctionBacking: &types.VirtualPCIPassthroughDeviceBackingInfo{
			Id: pf, DeviceId: "0", SystemId: "BYPASS"}}}
}

func child(d types.VirtualDevice, unit int32) types.VirtualDevice {
	d.ControllerKey, d.UnitNumber = PCIController, &unit
	return d
}

func ethernet(s *world.State, v *world.VM, a *world.Adapter, unit int32) types.BaseVirtualDevice {
	status := string(types.VirtualDeviceConnectInfoStatusOk)
	if !v.On {
		status = string(types.VirtualDeviceConnectInfoStatusUntried)
	}
	card := types.VirtualEthernetCard{
		AddressType: "assigned", MacAddress: a.MAC, WakeOnLanEnabled: types.NewBool(true),
		VirtualDevice: types.VirtualDevice{
			Key: a.Key, ControllerKey: PCIController, UnitNumber: &unit, DeviceInfo: &types.Description{Label: a.Label, Summary: a.PortGroup},
			Connectable: &types.VirtualDeviceConnectInfo{StartConnected: a.Start, AllowGuestControl: true, Connected: a.Connected && v.On,
				Status: status},
			SlotInfo: &types.VirtualDevicePciBusSlotInfo{PciSlotNumber: world.SlotNumber(a.Slot)},
		},
	}
	if d := s.Switch(a.DVS); d != nil {
		port := types.DistributedVirtualSwitchPortConnection{SwitchUuid: d.UUID, PortKey: a.PortKey, ConnectionCookie: 1}
		if g := d.PortGroup(a.PortGroup); g != nil {
			port.PortgroupKey = g.Key
		}
		card.Backing = &types.VirtualEthernetCardDistributedVirtualPortBackingInfo{Port: port}
		card.DeviceInfo.GetDescription().Summary = "DVSwitch: " + d.UUID
	} else {
		card.Backing = &types.VirtualEthernetCardNetworkBackingInfo{Network: ptr(NetworkRef(s.VMDatacenter(v))),
			VirtualDeviceDeviceBackingInfo: types.VirtualDeviceDeviceBackingInfo{DeviceName: a.PortGroup}}
	}
	switch a.Type {
	case world.PVRDMA:
		return &types.VirtualVmxnet3Vrdma{VirtualVmxnet3: types.VirtualVmxnet3{VirtualVmxnet: types.VirtualVmxnet{VirtualEthernetCard: card}},
			DeviceProtocol: a.Protocol}
	case world.SRIOV:
		return virtualFunction(s.Host(v.Host), a, card)
	case world.Other:
		return &types.VirtualE1000e{VirtualEthernetCard: card}
	}
	return &types.VirtualVmxnet3{VirtualVmxnet: types.VirtualVmxnet{VirtualEthernetCard: card}}
}

// deviceGroups returns the vendor device groups of a VM, or nil if it has none.
func deviceGroups(v *world.VM) *types.VirtualMachineVirtualDeviceGroups {
	var out *types.VirtualMachineVirtualDeviceGroups
	for _, d := range v.Devices {
		if d.Group.Sequence != 1 {
			continue
		}
		if out == nil {
			out = &types.VirtualMachineVirtualDeviceGroups{}
		}
		g := &types.VirtualMachineVirtualDeviceGroupsVendorDeviceGroup{DeviceGroupName: d.Group.Name}
		g.GroupInstanceKey = d.Group.Key
		out.DeviceGroup = append(out.DeviceGroup, g)
	}
	return out
}
