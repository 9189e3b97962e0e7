package vms

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

const (
	maxEthernet    = 10 // without VFs
	minPVRDMA      = 13 // virtual hardware version (KB 328676)
	minRoCEv2      = 14
	manyPVRDMAFrom = "7.0.2"
)

// device applies one device change to a VM.
func device(s *world.State, v *world.VM, index int, c *types.VirtualDeviceConfigSpec) error {
	card, kind, protocol := ethernet(c.Device)
	if card == nil {
		if p, ok := c.Device.(*types.VirtualPCIPassthrough); ok {
			return passthrough(s, v, index, c.Operation, p)
		}
		return frame.Refuse(&types.DeviceNotSupported{Device: fmt.Sprintf("%T", c.Device)},
			"The lab changes network adapters and passed-through devices only.")
	}
	switch c.Operation {
	case types.VirtualDeviceConfigSpecOperationAdd:
		return add(s, v, index, c.Device, card, kind, protocol)
	case types.VirtualDeviceConfigSpecOperationEdit, types.VirtualDeviceConfigSpecOperationRemove:
		i := slices.IndexFunc(v.Adapters, func(a *world.Adapter) bool { return a.Key == card.Key })
		if i < 0 {
			return frame.Refuse(ptr(at(index)))
		}
		if c.Operation == types.VirtualDeviceConfigSpecOperationEdit {
			if d, ok := c.Device.(*types.VirtualSriovEthernetCard); ok && kind == v.Adapters[i].Type && !v.On {
				if err := virtualFunction(s.Host(v.Host), index, d, v.Adapters[i]); err != nil {
					return err
				}
			}
			return edit(s, v, index, v.Adapters[i], card, kind, protocol)
		}
		if v.On && v.Adapters[i].Type == world.SRIOV {
			return hotPlug()
		}
		v.Adapters = slices.Delete(v.Adapters, i, i+1)
		return nil
	}
	return frame.BadArgument(fmt.Sprintf("configSpec.deviceChange[%d].operation", index))
}

func at(index int) types.InvalidDeviceSpec { return types.InvalidDeviceSpec{DeviceIndex: int32(index)} }

func hotPlug() error {
	return frame.Refuse(&types.GenericVmConfigFault{Reason: "The hot-plug operation failed. "}, "The hot-plug operation failed. ")
}

// ethernet returns the network adapter in a device, with its type and PVRDMA protocol, or nil if the device is another one.
func ethernet(d types.BaseVirtualDevice) (*types.VirtualEthernetCard, world.AdapterType, string) {
	switch d := d.(type) {
	case *types.VirtualVmxnet3Vrdma:
		return &d.VirtualEthernetCard, world.PVRDMA, d.DeviceProtocol
	case *types.VirtualSriovEthernetCard:
		return &d.VirtualEthernetCard, world.SRIOV, ""
	case *types.VirtualVmxnet3:
		return &d.VirtualEthernetCard, world.Vmxnet3, ""
	case types.BaseVirtualEthernetCard:
		return d.GetVirtualEthernetCard(), world.Other, ""
	}
	return nil, "", ""
}

func add(s *world.State, v *world.VM, index int, d types.BaseVirtualDevice, card *types.VirtualEthernetCard, kind world.AdapterType,
	protocol string) error {
	h := s.Host(v.Host)
	a := &world.Adapter{Type: kind, Protocol: protocol, Start: true, Slot: v.NextSlot()}
	switch kind {
	case world.PVRDMA:
		if err := pvrdma(v, h, index, a); err != nil {
			return err
		}
	case world.SRIOV:
		if v.On {
			return hotPlug()
		}
		if err := virtualFunction(h, index, d.(*types.VirtualSriovEthernetCard), a); err != nil {
			return err
		}
	}
	if kind != world.SRIOV && ethernets(v) >= maxEthernet {
		return frame.Refuse(&types.TooManyDevices{}, "The maximum number of network adapters for this virtual machine has been exceeded.")
	}
	if err := connect(s, v, h, index, a, card.Backing); err != nil {
		return err
	}
	if c := card.Connectable; c != nil {
		a.Start = c.StartConnected
	}
	a.Connected = v.On && a.Start
	mac, err := macAddress(s, v, card)
	if err != nil {
		return err
	}
	a.MAC = mac
	a.Key, a.Label = nextKey(v, kind), fmt.Sprintf("Network adapter %d", len(v.Adapters)+1)
	v.Adapters = append(v.Adapters, a)
	return nil
}

// pvrdma checks the hardware version, protocol and number of PVRDMA adapters (KB 328676; up to ten from 7.0 U2 on).
func pvrdma(v *world.VM, h *world.Host, index int, a *world.Adapter) error {
	needed := minPVRDMA
	switch a.Protocol {
	case "":
		a.Protocol = "rocev1"
	case "rocev1":
	case "rocev2":
		needed = minRoCEv2
	default:
		return frame.BadArgument(fmt.Sprintf("configSpec.deviceChange[%d].device.deviceProtocol", index))
	}
	if v.Hardware < needed {
		return frame.Refuse(&types.DeviceUnsupportedForVmVersion{InvalidDeviceSpec: at(index),
			CurrentVersion: fmt.Sprintf("vmx-%02d", v.Hardware), ExpectedVersion: fmt.Sprintf("vmx-%02d", needed)},
			fmt.Sprintf("A PVRDMA network adapter is not supported for virtual machine version vmx-%02d: it needs vmx-%02d.", v.Hardware, needed))
	}
	if len(v.RDMA()) > 0 && world.VersionLess(h.Version, manyPVRDMAFrom) {
		return frame.Refuse(&types.TooManyDevices{}, "The virtual machine has a PVRDMA network adapter already.")
	}
	return nil
}

// virtualFunction checks that the physical function has VFs. If a new adapter has no backing, or its backing contains
// "Automatic-", the host selects one of the uplinks of the switch at power-on. An edit without a backing does not change it; an
// edit whose backing has no physical function is refused (vSphere Web Services API 8.0 U3,
// VirtualSriovEthernetCard.sriovBacking, VirtualSriovEthernetCardSriovBackingInfo.physicalFunctionBacking).
func virtualFunction(h *world.Host, index int, d *types.VirtualSriovEthernetCard, a *world.Adapter) error {
	a.GuestMTU = d.AllowGuestOSMtuChange != nil && *d.AllowGuestOSMtuChange
	if d.SriovBacking == nil {
		return nil
	}
	pf := d.SriovBacking.PhysicalFunctionBacking
	if pf == nil {
		return frame.Refuse(&types.InvalidDeviceBacking{InvalidDeviceSpec: at(index)})
	}
	if strings.HasPrefix(pf.Id, "Automatic-") {
		a.PF = ""
		return nil
	}
	a.PF = pf.Id
	if p := h.PNICAt(a.PF); p != nil && p.ActiveVFs > 0 {
		return nil
	}
	return frame.Refuse(&types.InvalidDeviceBacking{InvalidDeviceSpec: at(index)})
}

func ethernets(v *world.VM) int {
	n := 0
	for _, a := range v.Adapters {
		if a.Type != world.SRIOV {
			n++
		}
	}
	return n
}

// connect resolves a backing. PVRDMA requires a port group of a DVS that the VM's host is a member of.
func connect(s *world.State, v *world.VM, h *world.Host, index int, a *world.Adapter, backing types.BaseVirtualDeviceBackingInfo) error {
	switch b := backing.(type) {
	case *types.VirtualEthernetCardDistributedVirtualPortBackingInfo:
		d := model.SwitchByUUID(s, b.Port.SwitchUuid)
		if d == nil || d.Member(h.Name) == nil {
			return frame.BadArgument("spec.deviceChange.device.port.switchUuid")
		}
		in, g := model.PortGroupByKey(s, b.Port.PortgroupKey)
		if g == nil || in != d || g.Uplink {
			return frame.BadArgument("spec.deviceChange.device.port.portgroupKey")
		}
		key := a.PortKey
		if a.DVS != d.Name || a.PortGroup != g.Name || key == "" {
			var free bool
			if key, free = model.FreePort(s, d, g, v); !free {
				return frame.Refuse(&types.ResourceNotAvailable{ContainerType: "DistributedVirtualPortgroup", ContainerName: g.Name,
					Type: "DistributedVirtualPort"},
					"No free port is available in the DVPortgroup "+g.Name+".")
			}
		}
		a.DVS, a.PortGroup, a.PortKey, a.VLAN = d.Name, g.Name, key, g.VLAN
		return nil
	case *types.VirtualEthernetCardNetworkBackingInfo:
		known := b.Network != nil && *b.Network == model.NetworkRef(s.VMDatacenter(v)) || b.Network == nil && b.DeviceName == "VM Network"
		if a.Type == world.PVRDMA || !known {
			return frame.Refuse(&types.InvalidDeviceBacking{InvalidDeviceSpec: at(index)})
		}
		a.DVS, a.PortGroup, a.PortKey, a.VLAN = "", "VM Network", "", 0
		return nil
	}
	return frame.Refuse(&types.InvalidDeviceBacking{InvalidDeviceSpec: at(index)})
}

// edit changes the network, connection state and protocol of an adapter. The type cannot be changed.
func edit(s *world.State, v *world.VM, index int, a *world.Adapter, card *types.VirtualEthernetCard, kind world.AdapterType,
	protocol string) error {
	if kind != a.Type {
		return frame.Refuse(ptr(at(index)))
	}
	if card.Backing != nil {
		if err := connect(s, v, s.Host(v.Host), index, a, card.Backing); err != nil {
			return err
		}
	}
	if protocol != "" && protocol != a.Protocol {
		if err := needPower(v, false); err != nil {
			return err
		}
		trial := *v
		trial.Adapters = nil
		changed := world.Adapter{Protocol: protocol}
		if err := pvrdma(&trial, s.Host(v.Host), index, &changed); err != nil {
			return err
		}
		a.Protocol = protocol
	}
	if c := card.Connectable; c != nil {
		a.Start = c.StartConnected
		a.Connected = v.On && c.Connected
	}
	if card.MacAddress != "" && card.MacAddress != a.MAC {
		if err := needPower(v, false); err != nil {
			return err
		}
		mac, err := macAddress(s, v, card)
		if err != nil {
			return err
		}
		a.MAC = mac
	}
	return nil
}

func macAddress(s *world.State, v *world.VM, card *types.VirtualEthernetCard) (string, error) {
	if card.MacAddress == "" {
		return freeMAC(s, v), nil
	}
	mac, err := net.ParseMAC(card.MacAddress)
	if err != nil || len(mac) != 6 || mac[0]&1 != 0 {
		return "", frame.BadArgument("spec.deviceChange.device.macAddress")
	}
	return mac.String(), nil
}

// freeMAC generates a MAC address that no other adapter uses.
func freeMAC(s *world.State, v *world.VM) string {
	used := map[string]bool{}
	for _, other := range append(slices.Clone(s.VMs), v) {
		for _, a := range other.Adapters {
			used[a.MAC] = true
		}
	}
	for n := len(v.Adapters); ; n++ {
		if mac := world.MAC(v.Index, n); !used[mac] {
			return mac
		}
	}
}

func nextKey(v *world.VM, kind world.AdapterType) int32 {
	key := int32(model.FirstEthernet)
	if kind == world.SRIOV {
		key = model.FirstPassthru + 31
	}
	for slices.ContainsFunc(v.Adapters, func(a *world.Adapter) bool { return a.Key == key }) {
		if kind == world.SRIOV {
			key--
		} else {
			key++
		}
	}
	return key
}
