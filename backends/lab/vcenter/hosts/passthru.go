package hosts

import (
	"errors"
	"fmt"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

type passthru struct{ base }

// UpdatePassthruConfig sets the number of VFs and enables passthrough of devices, one after the other until one is refused. VFs,
// and the passthrough of a network adapter, take effect after the next reboot. Other devices change immediately on hosts that
// can rebind them, unless applyNow is false.
func (m passthru) UpdatePassthruConfig(_ *simulator.Context, req *types.UpdatePassthruConfig) soap.HasFault {
	host, err := m.name(req.This)
	if err != nil {
		return frame.Answer(nil, err)
	}
	m.f.Commit.Lock()
	defer m.f.Commit.Unlock()
	rebind := false
	m.f.World.View(func(s *world.State) { rebind = model.CanRebind(s.Host(host)) })
	for _, c := range req.Config {
		config := c.GetHostPciPassthruConfig()
		if sriov, ok := c.(*types.HostSriovConfig); ok {
			err = m.f.World.SetSRIOV(host, config.Id, sriov.SriovEnabled, int(sriov.NumVirtualFunction))
		} else {
			now := rebind && (config.ApplyNow == nil || *config.ApplyNow)
			err = m.f.World.SetPassthru(host, config.Id, config.PassthruEnabled, now)
		}
		if err != nil {
			return frame.Answer(nil, configFault(err))
		}
	}
	return frame.Answer(types.UpdatePassthruConfigResponse{}, nil)
}

// configFault returns the fault for a configuration that a host refuses.
func configFault(err error) error {
	if errors.Is(err, world.ErrUnknown) || errors.Is(err, world.ErrInvalid) || errors.Is(err, world.ErrBusy) {
		return frame.Refuse(&types.HostConfigFault{}, "An error occurred during host configuration:", fmt.Sprint(err))
	}
	return err
}

// Refresh refreshes the device data of the host. Until then vCenter may show the old number of VFs.
func (m passthru) Refresh(_ *simulator.Context, req *types.Refresh) soap.HasFault {
	host, err := m.name(req.This)
	if err == nil {
		err = m.f.World.RefreshPassthru(host)
	}
	return frame.Answer(types.RefreshResponse{}, err)
}

type graphics struct{ base }

// UpdateGraphicsConfig sets the graphics type of GPUs. The type of each device must equal that of the host, because a lab host
// has one type for all devices.
func (m graphics) UpdateGraphicsConfig(_ *simulator.Context, req *types.UpdateGraphicsConfig) soap.HasFault {
	host, err := m.name(req.This)
	if err != nil {
		return frame.Answer(nil, err)
	}
	for _, d := range req.Config.DeviceType {
		if d.GraphicsType != req.Config.HostDefaultGraphicsType {
			return frame.Answer(nil, frame.BadArgument("config.deviceType"))
		}
	}
	return frame.Answer(types.UpdateGraphicsConfigResponse{}, refusal(m.f.World.SetGraphics(host, req.Config.HostDefaultGraphicsType),
		"config.hostDefaultGraphicsType"))
}

type assignable struct{ base }

// RetrieveVendorDeviceGroupInfo lists the vendor device groups, with a template for each of their devices.
func (m assignable) RetrieveVendorDeviceGroupInfo(_ *simulator.Context, req *types.RetrieveVendorDeviceGroupInfo) soap.HasFault {
	host, err := m.name(req.This)
	var res types.RetrieveVendorDeviceGroupInfoResponse
	m.f.World.View(func(s *world.State) {
		if h := s.Host(host); h != nil {
			for _, g := range h.Groups {
				info := types.VirtualMachineVendorDeviceGroupInfo{DeviceGroupName: g.Name,
					VirtualMachineTargetInfo: types.VirtualMachineTargetInfo{Name: g.Name}}
				for i, profile := range g.VGPUs {
					info.ComponentDeviceInfo = append(info.ComponentDeviceInfo, types.VirtualMachineVendorDeviceGroupInfoComponentDeviceInfo{
						Type:       string(types.VirtualMachineVendorDeviceGroupInfoComponentDeviceInfoComponentTypeNvidiaVgpu),
						VendorName: "NVIDIA", DeviceName: profile,
						Device: &types.VirtualPCIPassthrough{
							VirtualDevice: types.VirtualDevice{Backing: &types.VirtualPCIPassthroughVmiopBackingInfo{Vgpu: profile},
								DeviceGroupInfo: &types.VirtualDeviceDeviceGroupInfo{SequenceId: int32(i + 1)}}},
					})
				}
				res.Returnval = append(res.Returnval, info)
			}
		}
	})
	return frame.Answer(res, err)
}

type power struct{ base }

// ConfigurePowerPolicy sets the power policy by its key in the list of the host.
func (m power) ConfigurePowerPolicy(_ *simulator.Context, req *types.ConfigurePowerPolicy) soap.HasFault {
	host, err := m.name(req.This)
	if err != nil {
		return frame.Answer(nil, err)
	}
	policy, known := model.PowerPolicy(req.Key)
	if !known {
		return frame.Answer(nil, frame.BadArgument("key"))
	}
	return frame.Answer(types.ConfigurePowerPolicyResponse{}, m.f.World.SetPowerPolicy(host, policy))
}
