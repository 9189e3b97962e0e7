package setting

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/survey"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// option finds an extraConfig key in the VM's spelling: VMX keys are case-insensitive. vCenter removes a key if its value is set
// to empty.
func (v *vmView) option(key string) (spelled string, value backends.Value) {
	for _, o := range v.extra {
		kv := o.GetOptionValue()
		if !strings.EqualFold(kv.Key, key) {
			continue
		}
		if text := fmt.Sprint(kv.Value); text != "" {
			return kv.Key, backends.ValueOf(text)
		}
	}
	return key, backends.Absent
}

func extra(spec *types.VirtualMachineConfigSpec, v *vmView, a backends.Assignment) error {
	key, _ := v.option(a.Name)
	text := ""
	if !a.To.IsAbsent() {
		var err error
		if text, err = backends.Decoded[string](a.To, a.Target.Name, "set "+a.Name); err != nil {
			return err
		}
	}
	spec.ExtraConfig = append(spec.ExtraConfig, &types.OptionValue{Key: key, Value: text})
	return nil
}

// passthrough finds the VM's device with a PCI address on its host. A dynamic device without an address, because the VM has not
// been powered on, matches the address of a device of its model.
func (s *vmSetter) passthrough(ctx context.Context, v *vmView, pci string) (types.BaseVirtualDevice, backends.Value, error) {
	var waiting []types.BaseVirtualDevice
	for _, d := range v.devices {
		p, ok := d.(*types.VirtualPCIPassthrough)
		if !ok {
			continue
		}
		switch b := p.Backing.(type) {
		case *types.VirtualPCIPassthroughDeviceBackingInfo:
			if strings.EqualFold(b.Id, pci) {
				return d, backends.ValueOf(backends.DeviceSpec{Backing: backends.FixedBacking, Vendor: survey.Hex(b.VendorId),
					Device: survey.PaddedHex(b.DeviceId)}), nil
			}
		case *types.VirtualPCIPassthroughDynamicBackingInfo:
			if strings.EqualFold(b.AssignedId, pci) && len(b.AllowedDevice) > 0 {
				return d, dynamicSpec(b), nil
			}
			if b.AssignedId == "" && len(b.AllowedDevice) > 0 {
				waiting = append(waiting, d)
			}
		}
	}
	if len(waiting) == 0 {
		return nil, backends.Absent, nil
	}
	want, err := s.make(ctx, v, pci)
	if err != nil {
		return nil, backends.Absent, err
	}
	for _, d := range waiting {
		b := d.(*types.VirtualPCIPassthrough).Backing.(*types.VirtualPCIPassthroughDynamicBackingInfo)
		if b.AllowedDevice[0].VendorId == want.VendorId && b.AllowedDevice[0].DeviceId == want.DeviceId {
			return d, dynamicSpec(b), nil
		}
	}
	return nil, backends.Absent, nil
}

func dynamicSpec(b *types.VirtualPCIPassthroughDynamicBackingInfo) backends.Value {
	a := b.AllowedDevice[0]
	return backends.ValueOf(backends.DeviceSpec{Backing: backends.DynamicBacking, Vendor: survey.Hex(int16(a.VendorId)),
		Device: survey.Hex(int16(a.DeviceId))})
}

// make reads the model of the device at a PCI address of the VM's host.
func (s *vmSetter) make(ctx context.Context, v *vmView, pci string) (types.VirtualPCIPassthroughAllowedDevice, error) {
	var out types.VirtualPCIPassthroughAllowedDevice
	o, err := s.conn.One(ctx, v.host, "hardware.pciDevice")
	if err != nil {
		return out, err
	}
	list, _ := o.Props["hardware.pciDevice"].(types.ArrayOfHostPciDevice)
	for _, d := range list.HostPciDevice {
		if strings.EqualFold(d.Id, pci) {
			return types.VirtualPCIPassthroughAllowedDevice{VendorId: int32(uint16(d.VendorId)), DeviceId: int32(uint16(d.DeviceId))}, nil
		}
	}
	return out, backends.Permanentf("", "compare with: rdma-setup discover", "the VM's host has no PCI device %s", pci)
}

func (s *vmSetter) device(ctx context.Context, spec *types.VirtualMachineConfigSpec, v *vmView, a backends.Assignment) error {
	old, _, err := s.passthrough(ctx, v, a.Name)
	if err != nil {
		return err
	}
	if old != nil {
		change(spec, types.VirtualDeviceConfigSpecOperationRemove, old)
	}
	if a.To.IsAbsent() {
		return nil
	}
	want, err := backends.Decoded[backends.DeviceSpec](a.To, a.Target.Name, "set the device")
	if err != nil {
		return err
	}
	dev := &types.VirtualPCIPassthrough{}
	switch want.Backing {
	case backends.FixedBacking:
		dev.Backing, err = s.fixed(ctx, v, a.Name, want)
	case backends.DynamicBacking:
		dev.Backing, err = s.dynamic(ctx, v, a.Name, want)
	default:
		err = backends.Permanentf("", "use fixed or dynamic", "a device cannot have a backing %q", want.Backing)
	}
	if err != nil {
		return err
	}
	change(spec, types.VirtualDeviceConfigSpecOperationAdd, dev)
	return nil
}

func (s *vmSetter) offered(ctx context.Context, v *vmView) (*types.ConfigTarget, error) {
	ctx = wire.On(ctx, s.places.Name(v.ref)+" (environmentBrowser)")
	res, err := methods.QueryConfigTarget(ctx, s.conn.VIM(), &types.QueryConfigTarget{This: v.browser, Host: &v.host})
	if err == nil && res.Returnval == nil {
		err = backends.Unreachablef("", "check the host's connection in vCenter", "the host of the VM offers no devices now")
	}
	if err != nil {
		return nil, err
	}
	return res.Returnval, nil
}

// fixed returns the description of a device from the VM's host, because its system id can only be read there.
func (s *vmSetter) fixed(ctx context.Context, v *vmView, pci string,
	want backends.DeviceSpec) (*types.VirtualPCIPassthroughDeviceBackingInfo, error) {
	target, err := s.offered(ctx, v)
	if err != nil {
		return nil, err
	}
	var offered []string
	for _, base := range target.PciPassthrough {
		o := base.GetVirtualMachinePciPassthroughInfo()
		dev := o.PciDevice
		offered = append(offered, dev.Id)
		if !strings.EqualFold(dev.Id, pci) {
			continue
		}
		if is := survey.Hex(dev.VendorId) + ":" + survey.Hex(dev.DeviceId); is != want.Vendor+":"+want.Device {
			return nil, backends.Conflictf("", "run it again to plan from the current state",
				"the device at %s is %s, not %s:%s", pci, is, want.Vendor, want.Device)
		}
		return &types.VirtualPCIPassthroughDeviceBackingInfo{
			VirtualDeviceDeviceBackingInfo: types.VirtualDeviceDeviceBackingInfo{DeviceName: dev.DeviceName},
			Id:                             dev.Id, DeviceId: fmt.Sprintf("%x", uint16(dev.DeviceId)), SystemId: o.SystemId, VendorId: dev.VendorId,
		}, nil
	}
	slices.Sort(offered)
	return nil,
		backends.Permanentf("",
			"enable its passthrough on the host (and reboot where the host asks for it); passed through are: "+strings.Join(offered, ", "),
			"the VM's host does not pass %s through", pci)
}

// twins refuses several dynamic devices of one model: before the VM is powered on they cannot be distinguished.
func twins(as []backends.Assignment) error {
	seen := map[backends.Value]string{}
	for _, a := range as {
		var want backends.DeviceSpec
		if a.Kind != backends.KindDevice || a.To.IsAbsent() || a.To.Decode(&want) != nil || want.Backing != backends.DynamicBacking {
			continue
		}
		if other, ok := seen[a.To]; ok && other != a.Name {
			return backends.Refusedf("", "use fixed passthrough for several devices of the same model",
				"%s and %s are the same model: as dynamic devices they cannot be told apart", other, a.Name)
		}
		seen[a.To] = a.Name
	}
	return nil
}

// dynamic requests a device of the model at the address.
func (s *vmSetter) dynamic(ctx context.Context, v *vmView, pci string,
	want backends.DeviceSpec) (*types.VirtualPCIPassthroughDynamicBackingInfo, error) {
	is, err := s.make(ctx, v, pci)
	if err != nil {
		return nil, err
	}
	if id := survey.Hex(int16(is.VendorId)) + ":" + survey.Hex(int16(is.DeviceId)); id != want.Vendor+":"+want.Device {
		return nil, backends.Conflictf("", "run it again to plan from the current state", "the device at %s is %s, not %s:%s",
			pci, id, want.Vendor, want.Device)
	}
	return &types.VirtualPCIPassthroughDynamicBackingInfo{AllowedDevice: []types.VirtualPCIPassthroughAllowedDevice{is}}, nil
}
