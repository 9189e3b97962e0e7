package setting

import (
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
)

// vgpus returns the vGPUs of a profile that a VM has.
func (v *vmView) vgpus(profile string) []types.BaseVirtualDevice {
	var out []types.BaseVirtualDevice
	for _, d := range v.devices {
		p, is := d.(*types.VirtualPCIPassthrough)
		if !is {
			continue
		}
		if b, is := p.Backing.(*types.VirtualPCIPassthroughVmiopBackingInfo); is && b.Vgpu == profile {
			out = append(out, d)
		}
	}
	return out
}

// vgpus adds vGPUs of a profile, or removes the last ones, until a VM has the requested number.
func vgpus(spec *types.VirtualMachineConfigSpec, v *vmView, a backends.Assignment) error {
	want := 0
	if !a.To.IsAbsent() {
		var err error
		if want, err = decode[int](a.To, a.Target.Name, "set the vGPUs "+a.Name); err != nil {
			return err
		}
	}
	have := v.vgpus(a.Name)
	for n := len(have); n > want; n-- {
		change(spec, types.VirtualDeviceConfigSpecOperationRemove, have[n-1])
	}
	for n := len(have); n < want; n++ {
		dev := &types.VirtualPCIPassthrough{}
		dev.Key = int32(-100 - len(spec.DeviceChange)) // a negative key makes vCenter assign one
		dev.Backing = &types.VirtualPCIPassthroughVmiopBackingInfo{Vgpu: a.Name}
		change(spec, types.VirtualDeviceConfigSpecOperationAdd, dev)
	}
	return nil
}
