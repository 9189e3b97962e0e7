package setting

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/survey"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// A network identifies a distributed port group in an adapter's backing.
type network struct {
	key, uuid, dvs string // key of the port group, UUID and name of its switch
}

// network resolves a port group; its keys never change while it exists.
func (s *vmSetter) network(ctx context.Context, group string) (network, bool, error) {
	pg, ok, err := s.places.Look(ctx, backends.PortGroupRef(group))
	if err != nil || !ok {
		return network{}, false, err
	}
	s.mu.Lock()
	n, known := s.nets[pg]
	s.mu.Unlock()
	if known {
		return n, true, nil
	}
	o, err := s.conn.One(ctx, pg, "key", "config.distributedVirtualSwitch")
	if stale(err) {
		s.places.Drop(pg)
		return network{}, false, nil
	}
	if err != nil {
		return network{}, false, err
	}
	dvs := wire.Value[place.Ref](o, "config.distributedVirtualSwitch")
	sw, err := s.conn.One(ctx, dvs, "uuid", "name")
	if err != nil {
		return network{}, false, err
	}
	n = network{key: wire.Value[string](o, "key"), uuid: wire.Value[string](sw, "uuid"), dvs: s.places.Name(dvs)}
	if n.key == "" {
		n.key = pg.Value
	}
	if n.dvs == "" {
		n.dvs = backends.DisplayName(wire.Value[string](sw, "name"))
	}
	s.mu.Lock()
	s.nets[pg] = n
	s.mu.Unlock()
	return n, true, nil
}

// adapter returns the VM's adapter on the network; an RDMA adapter has priority over an ordinary one.
func (n network) adapter(devices []types.BaseVirtualDevice) (types.BaseVirtualDevice, backends.AdapterSpec, bool) {
	var found types.BaseVirtualDevice
	var spec backends.AdapterSpec
	for _, d := range devices {
		a, group, ok := survey.AdapterOf(d)
		if !ok || group != n.key || found != nil && a.Type != "pvrdma" && a.Type != "sriov" {
			continue
		}
		if found != nil && (spec.Type == "pvrdma" || spec.Type == "sriov") {
			continue
		}
		found = d
		spec = backends.AdapterSpec{Type: a.Type, Switch: n.dvs, Protocol: a.Protocol, Start: a.Start, GuestMTU: a.GuestMTU, PF: a.PF}
	}
	return found, spec, found != nil
}

// adapter adds the changes for one adapter to the reconfigure: an existing adapter is completed, one of another type is replaced,
// a missing one is added. It never creates a second one on the same port group.
func (s *vmSetter) adapter(ctx context.Context, spec *types.VirtualMachineConfigSpec, v *vmView, a backends.Assignment) error {
	net, ok, err := s.network(ctx, a.Name)
	if err != nil {
		return err
	}
	if !ok {
		if a.To.IsAbsent() {
			return nil
		}
		return backends.Conflictf("", "", "the port group %s does not exist", a.Name)
	}
	old, is, exists := net.adapter(v.devices)
	if a.To.IsAbsent() {
		if exists {
			change(spec, types.VirtualDeviceConfigSpecOperationRemove, old)
		}
		return nil
	}
	want, err := backends.Decoded[backends.AdapterSpec](a.To, a.Target.Name, "set the adapter")
	if err != nil {
		return err
	}
	if want.Switch != "" && want.Switch != net.dvs {
		return backends.Refusedf("", "choose the port group by its inventory path", "the port group %s is on %s, not on %s",
			a.Name, net.dvs, want.Switch)
	}
	if exists && is.Type == want.Type {
		if err := s.complete(ctx, old, v, want); err != nil {
			return err
		}
		change(spec, types.VirtualDeviceConfigSpecOperationEdit, old)
		return nil
	}
	if exists {
		change(spec, types.VirtualDeviceConfigSpecOperationRemove, old)
	}
	dev, err := newAdapter(want.Type)
	if err != nil {
		return err
	}
	d := dev.GetVirtualDevice()
	d.Backing = &types.VirtualEthernetCardDistributedVirtualPortBackingInfo{
		Port: types.DistributedVirtualSwitchPortConnection{SwitchUuid: net.uuid, PortgroupKey: net.key},
	}
	d.Connectable = &types.VirtualDeviceConnectInfo{AllowGuestControl: true}
	dev.(types.BaseVirtualEthernetCard).GetVirtualEthernetCard().AddressType = string(types.VirtualEthernetCardMacTypeGenerated)
	if err := s.complete(ctx, dev, v, want); err != nil {
		return err
	}
	change(spec, types.VirtualDeviceConfigSpecOperationAdd, dev)
	return nil
}

func change(spec *types.VirtualMachineConfigSpec, op types.VirtualDeviceConfigSpecOperation, d types.BaseVirtualDevice) {
	if op == types.VirtualDeviceConfigSpecOperationAdd {
		d.GetVirtualDevice().Key = int32(-100 - len(spec.DeviceChange)) // a negative key makes vCenter assign one
	}
	spec.DeviceChange = append(spec.DeviceChange, &types.VirtualDeviceConfigSpec{Operation: op, Device: d})
}

func newAdapter(kind string) (types.BaseVirtualDevice, error) {
	switch kind {
	case "pvrdma":
		return &types.VirtualVmxnet3Vrdma{}, nil
	case "vmxnet3":
		return &types.VirtualVmxnet3{}, nil
	case "sriov":
		return &types.VirtualSriovEthernetCard{}, nil
	case "e1000e":
		return &types.VirtualE1000e{}, nil
	case "e1000":
		return &types.VirtualE1000{}, nil
	}
	return nil, backends.Permanentf("", "use pvrdma, sriov or vmxnet3", "an adapter of type %q cannot be created", kind)
}

// complete sets the fields that an adapter's spec names.
func (s *vmSetter) complete(ctx context.Context, dev types.BaseVirtualDevice, v *vmView, want backends.AdapterSpec) error {
	d := dev.GetVirtualDevice()
	if d.Connectable == nil {
		d.Connectable = &types.VirtualDeviceConnectInfo{AllowGuestControl: true}
	}
	d.Connectable.StartConnected = want.Start
	switch card := dev.(type) {
	case *types.VirtualVmxnet3Vrdma:
		card.DeviceProtocol = want.Protocol
	case *types.VirtualSriovEthernetCard:
		card.AllowGuestOSMtuChange = new(want.GuestMTU)
		if want.PF == "" {
			card.SriovBacking = automatic(card.SriovBacking)
			return nil
		}
		backing, err := s.physicalFunction(ctx, v, want.PF)
		if err != nil {
			return err
		}
		card.SriovBacking = &types.VirtualSriovEthernetCardSriovBackingInfo{PhysicalFunctionBacking: backing}
	}
	return nil
}

// automatic returns the backing that allows the host to use any uplink of the switch that has a free VF. An added adapter requests
// that by having no backing; for an existing one no backing means no change (vSphere Web Services API 8.0 U3,
// VirtualSriovEthernetCard, sriovBacking).
func automatic(old *types.VirtualSriovEthernetCardSriovBackingInfo) *types.VirtualSriovEthernetCardSriovBackingInfo {
	if old == nil {
		return nil
	}
	return &types.VirtualSriovEthernetCardSriovBackingInfo{PhysicalFunctionBacking: &types.VirtualPCIPassthroughDeviceBackingInfo{
		Id: survey.AutomaticPF + "0000:00:00.0"}}
}

// physicalFunction returns the description of a PF from the VM's host, because its system id can only be read there.
func (s *vmSetter) physicalFunction(ctx context.Context, v *vmView, pf string) (*types.VirtualPCIPassthroughDeviceBackingInfo, error) {
	target, err := s.offered(ctx, v)
	if err != nil {
		return nil, err
	}
	var offered []string
	for _, o := range target.Sriov {
		dev := o.PciDevice
		offered = append(offered, dev.Id)
		if strings.EqualFold(dev.Id, pf) {
			return &types.VirtualPCIPassthroughDeviceBackingInfo{
				VirtualDeviceDeviceBackingInfo: types.VirtualDeviceDeviceBackingInfo{DeviceName: dev.DeviceName},
				Id:                             dev.Id, DeviceId: fmt.Sprintf("0x%x", uint16(dev.DeviceId)), SystemId: o.SystemId,
				VendorId: dev.VendorId,
			}, nil
		}
	}
	slices.Sort(offered)
	return nil, backends.Permanentf("", "enable VFs on it, or name one of: "+strings.Join(offered, ", "),
		"the VM's host offers no VFs on %s", pf)
}
