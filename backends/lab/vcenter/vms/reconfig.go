package vms

import (
	"fmt"
	"maps"
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// ReconfigVMTask changes the settings that the spec contains: either all of them or, if one is refused, none.
func (m machine) ReconfigVMTask(ctx *simulator.Context, req *types.ReconfigVM_Task) soap.HasFault {
	if err := m.mayReconfigure(ctx, req); err != nil {
		return frame.Answer(nil, err)
	}
	task := m.f.Start(ctx, "ReconfigVM_Task", "VirtualMachine.reconfigure", req.This, frame.TaskOptions{Cancelable: true},
		func() (any, error) {
			return nil, m.f.World.Update(func(s *world.State) ([]world.Event, error) {
				v := model.VMOf(s, req.This)
				if v == nil {
					return nil, frame.Gone(req.This)
				}
				return reconfigure(s, v, req.Spec)
			})
		})
	return frame.Answer(types.ReconfigVM_TaskResponse{Returnval: task}, nil)
}

// mayReconfigure checks the privileges that the parts of a spec require.
func (m machine) mayReconfigure(ctx *simulator.Context, req *types.ReconfigVM_Task) error {
	spec := req.Spec
	needs := map[string]bool{
		"VirtualMachine.Config.Rename":   spec.Name != "",
		"VirtualMachine.Config.CPUCount": spec.NumCPUs != 0,
		"VirtualMachine.Config.Memory":   spec.MemoryMB != 0,
		"VirtualMachine.Config.Resource": spec.MemoryAllocation != nil || spec.CpuAllocation != nil ||
			spec.MemoryReservationLockedToMax != nil,
		"VirtualMachine.Config.AdvancedConfig": len(spec.ExtraConfig) > 0,
		"VirtualMachine.Config.Settings": spec.Firmware != "" || spec.NestedHVEnabled != nil || spec.LatencySensitivity != nil ||
			spec.BootOptions != nil,
	}
	for _, change := range spec.DeviceChange {
		c := change.GetVirtualDeviceConfigSpec()
		if c.Operation == types.VirtualDeviceConfigSpecOperationEdit {
			needs["VirtualMachine.Config.EditDevice"] = true
		} else {
			needs["VirtualMachine.Config.AddRemoveDevice"] = true
		}
		if c.Device == nil {
			continue
		}
		if err := m.mayAssign(ctx, c.Device.GetVirtualDevice().Backing); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(needs)) {
		if needs[id] {
			if err := m.f.Need(ctx, id, req.This); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m machine) mayAssign(ctx *simulator.Context, backing types.BaseVirtualDeviceBackingInfo) error {
	switch b := backing.(type) {
	case *types.VirtualEthernetCardNetworkBackingInfo:
		if b.Network != nil && m.f.Reg.Get(*b.Network) != nil {
			return m.f.Need(ctx, "Network.Assign", *b.Network)
		}
		return m.f.Need(ctx, "Network.Assign", model.VMNetwork)
	case *types.VirtualEthernetCardDistributedVirtualPortBackingInfo:
		ref := types.ManagedObjectReference{Type: "DistributedVirtualPortgroup", Value: b.Port.PortgroupKey}
		if m.f.Reg.Get(ref) != nil {
			return m.f.Need(ctx, "Network.Assign", ref)
		}
	}
	return nil
}

// reconfigure changes a copy of the VM and replaces the VM by it only if all changes are accepted.
func reconfigure(s *world.State, v *world.VM, spec types.VirtualMachineConfigSpec) ([]world.Event, error) {
	if spec.ChangeVersion != "" && spec.ChangeVersion != model.ChangeVersion(v) {
		return nil, frame.Refuse(&types.ConcurrentAccess{})
	}
	if h := s.Host(v.Host); !h.Managed() {
		return nil, frame.Refuse(&types.HostNotConnected{})
	}
	trial := *v
	trial.Extra = maps.Clone(v.Extra)
	trial.Adapters = nil
	for _, a := range v.Adapters {
		clone := *a
		trial.Adapters = append(trial.Adapters, &clone)
	}
	trial.Devices = nil
	for _, d := range v.Devices {
		clone := *d
		trial.Devices = append(trial.Devices, &clone)
	}
	if err := settings(&trial, spec); err != nil {
		return nil, err
	}
	if err := memory(&trial, spec); err != nil {
		return nil, err
	}
	if spec.LatencySensitivity != nil || spec.CpuAllocation != nil || spec.MemoryAllocation != nil ||
		spec.MemoryReservationLockedToMax != nil || spec.NumCPUs != 0 {
		if err := sensitive(s.Host(v.Host), &trial); err != nil {
			return nil, err
		}
	}
	before := connections(v)
	for i, change := range spec.DeviceChange {
		c := change.GetVirtualDeviceConfigSpec()
		if c.Device == nil {
			return nil, frame.BadArgument(fmt.Sprintf("configSpec.deviceChange[%d].device", i))
		}
		if err := device(s, &trial, i, c); err != nil {
			return nil, err
		}
	}
	if err := deviceGroups(s.Host(v.Host), v, &trial, spec.DeviceGroups); err != nil {
		return nil, err
	}
	if err := nestedFits(&trial); err != nil {
		return nil, err
	}
	trial.Changes++
	*v = trial
	events := []world.Event{{What: world.VMDevices, VM: v.Name}}
	for name := range connections(v) {
		before[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		events = append(events, world.Event{What: world.SwitchChanged, Switch: name})
	}
	return events, nil
}

func connections(v *world.VM) map[string]bool {
	names := map[string]bool{}
	for _, a := range v.Adapters {
		if a.DVS != "" {
			names[a.DVS] = true
		}
	}
	return names
}

func settings(v *world.VM, spec types.VirtualMachineConfigSpec) error {
	if spec.Name != "" {
		v.Title = world.Unescaped(spec.Name)
	}
	if spec.Annotation != "" {
		v.Note = spec.Annotation
	}
	if spec.Firmware != "" && spec.Firmware != v.Firmware {
		if err := needPower(v, false); err != nil {
			return err
		}
		if !slices.Contains([]string{"bios", "efi"}, spec.Firmware) {
			return frame.BadArgument("configSpec.firmware")
		}
		v.Firmware = spec.Firmware
	}
	if spec.NumCPUs != 0 && int(spec.NumCPUs) != v.CPUs {
		if err := needPower(v, false); err != nil {
			return err
		}
		if spec.NumCPUs < 1 || spec.NumCPUs > 768 {
			return frame.BadArgument("configSpec.numCPUs")
		}
		v.CPUs = int(spec.NumCPUs)
	}
	if on := spec.NestedHVEnabled; on != nil && *on != v.Nested {
		if err := needPower(v, false); err != nil {
			return err
		}
		v.Nested = *on
	}
	if l := spec.LatencySensitivity; l != nil {
		if !slices.Contains([]string{"low", "normal", "medium", "high"}, string(l.Level)) {
			return frame.BadArgument("configSpec.latencySensitivity.level")
		}
		v.Latency = string(l.Level)
	}
	if a := spec.CpuAllocation; a != nil && a.Reservation != nil {
		if *a.Reservation < 0 || *a.Reservation > int64(v.CPUs)*model.CoreMHz {
			return frame.BadArgument("spec.cpuAllocation.reservation")
		}
		v.CPUMHz = *a.Reservation
	}
	if v.Extra == nil && len(spec.ExtraConfig) > 0 {
		v.Extra = map[string]string{}
	}
	for _, o := range spec.ExtraConfig {
		value, ok := o.GetOptionValue().Value.(string)
		switch {
		case !ok:
			return frame.BadArgument("configSpec.extraConfig")
		case value == "":
			delete(v.Extra, o.GetOptionValue().Key)
		default:
			v.Extra[o.GetOptionValue().Key] = value
		}
	}
	return nil
}

// memory applies memory size, lock and reservation. With the lock, the reservation always equals the memory size; removing the
// lock keeps the reservation.
func memory(v *world.VM, spec types.VirtualMachineConfigSpec) error {
	if spec.MemoryMB != 0 && spec.MemoryMB != v.MemoryMB {
		if err := needPower(v, false); err != nil {
			return err
		}
		if spec.MemoryMB < 4 || spec.MemoryMB%4 != 0 {
			return frame.BadArgument("configSpec.memoryMB")
		}
		v.MemoryMB = spec.MemoryMB
	}
	if lock := spec.MemoryReservationLockedToMax; lock != nil && *lock != v.Locked {
		if err := needPower(v, false); err != nil {
			return err
		}
		v.Locked = *lock
	}
	if a := spec.MemoryAllocation; a != nil && a.Reservation != nil {
		wanted := *a.Reservation
		if wanted < 0 || wanted > v.MemoryMB || v.Locked && wanted != v.MemoryMB {
			return frame.BadArgument("spec.memoryAllocation.reservation")
		}
		v.Reserved = wanted
	}
	if v.Locked {
		v.Reserved = v.MemoryMB
	}
	return nil
}
