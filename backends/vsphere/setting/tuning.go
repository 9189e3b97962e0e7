package setting

import (
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// tuning returns the CPU reservation and the latency sensitivity, which is normal by default.
func (v *vmView) tuning(o wire.Object) {
	v.cpuMHz = wire.Value[int64](o, "config.cpuAllocation.reservation")
	level := wire.Value[types.LatencySensitivitySensitivityLevel](o, "config.latencySensitivity.level")
	if level == "" {
		level = types.LatencySensitivitySensitivityLevelNormal
	}
	v.latency = string(level)
}

func cpu(spec *types.VirtualMachineConfigSpec, a backends.Assignment) error {
	mhz, err := decode[int64](a.To, a.Target.Name, "set the CPU reservation")
	if err == nil {
		spec.CpuAllocation = &types.ResourceAllocationInfo{Reservation: ref(mhz)}
	}
	return err
}

func latency(spec *types.VirtualMachineConfigSpec, a backends.Assignment) error {
	level, err := decode[string](a.To, a.Target.Name, "set the latency sensitivity")
	if err == nil {
		spec.LatencySensitivity = &types.LatencySensitivity{Level: types.LatencySensitivitySensitivityLevel(level)}
	}
	return err
}
