package vms

import (
	"errors"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// Messages of a host for a VM with a passthrough device or a VF (messages msg.pciPassthru.* of ESXi 8).
const (
	noMove = "vMotion, Storage vMotion, Fault Tolerance, and PCI hot-plug cannot be used for a virtual machine with PCI DirectPath I/O device."
	noHold = "A virtual machine with a PCI DirectPath I/O device cannot be suspended when FPT devices in-use have posted interrupts enabled."
	noSnap = "A snapshot of the virtual machine cannot be taken: it has a PCI DirectPath I/O device."
)

// CreateSnapshotTask creates a snapshot. A VM with a passthrough device or a VF is refused, unless it has a vGPU.
func (m machine) CreateSnapshotTask(ctx *simulator.Context, req *types.CreateSnapshot_Task) soap.HasFault {
	task := m.f.Start(ctx, "CreateSnapshot_Task", "VirtualMachine.createSnapshot", req.This, frame.TaskOptions{}, func() (any, error) {
		var made types.ManagedObjectReference
		err := m.change(req.This, func(_ *world.State, v *world.VM) error {
			if v.Pinned() && v.ShareMB() == 0 {
				return frame.Refuse(&types.GenericVmConfigFault{Reason: noSnap}, "An error occurred while taking a snapshot: "+noSnap)
			}
			made = model.SnapshotRef(v, v.Snap(req.Name, req.Description))
			return nil
		})
		if err != nil {
			return nil, err
		}
		return made, nil
	})
	return frame.Answer(types.CreateSnapshot_TaskResponse{Returnval: task}, nil)
}

// SuspendVMTask refuses to suspend a VM with a passthrough device. The lab does not implement it for other VMs.
func (m machine) SuspendVMTask(ctx *simulator.Context, req *types.SuspendVM_Task) soap.HasFault {
	task := m.f.Start(ctx, "SuspendVM_Task", "VirtualMachine.suspend", req.This, frame.TaskOptions{}, func() (any, error) {
		return nil, m.change(req.This, func(_ *world.State, v *world.VM) error {
			if err := needPower(v, true); err != nil {
				return err
			}
			if v.Pinned() {
				return frame.Refuse(&types.GenericVmConfigFault{Reason: noHold}, noHold)
			}
			return frame.Refuse(&types.NotSupported{}, "The lab does not suspend virtual machines.")
		})
	})
	return frame.Answer(types.SuspendVM_TaskResponse{Returnval: task}, nil)
}

// RelocateVMTask moves a VM to another host. A VM with a passthrough device cannot be moved while it is on. After a move while
// it is off, its fixed devices still refer to the old host.
func (m machine) RelocateVMTask(ctx *simulator.Context, req *types.RelocateVM_Task) soap.HasFault {
	task := m.f.Start(ctx, "RelocateVM_Task", "VirtualMachine.relocate", req.This, frame.TaskOptions{}, func() (any, error) {
		return nil, m.move(req.This, req.Spec.Host)
	})
	return frame.Answer(types.RelocateVM_TaskResponse{Returnval: task}, nil)
}

func (m machine) move(vm types.ManagedObjectReference, host *types.ManagedObjectReference) error {
	if host == nil {
		return frame.BadArgument("spec.host")
	}
	return m.change(vm, func(s *world.State, v *world.VM) error {
		if err := movable(s, v, *host); err != nil {
			return err
		}
		old := s.Host(v.Host)
		for _, d := range v.Devices {
			if d.PCI != "" && d.System == "" {
				d.System = old.UUID
			}
		}
		v.Host = model.HostOf(s, *host).Name
		if v.On {
			return s.AssignVGPUs(v)
		}
		return nil
	})
}

// movable returns an error if a VM cannot move to a host. Sources: the migration faults of the vSphere Web Services API
// (CannotAccessVmDisk, SharedBusControllerNotSupported, CannotAccessNetwork, VmHostAffinityRuleViolation).
func movable(s *world.State, v *world.VM, host types.ManagedObjectReference) error {
	to := model.HostOf(s, host)
	switch {
	case to == nil:
		return frame.Gone(host)
	case !to.Managed():
		return frame.Refuse(&types.HostNotConnected{})
	case v.On && !s.Allows(v, to.Name, false):
		return frame.Refuse(&types.VmHostAffinityRuleViolation{VmName: v.Name, HostName: to.Name})
	case v.On && v.Sharing != "":
		return frame.Refuse(&types.SharedBusControllerNotSupported{},
			"The virtual machine is configured to use a SCSI controller with bus sharing.")
	case v.Local && to.Name != v.Host:
		return frame.Refuse(&types.CannotAccessVmDisk{}, "Virtual disk 'Hard disk 1' is not accessible on the host.")
	case v.On && v.Pinned():
		return frame.Refuse(&types.GenericVmConfigFault{Reason: noMove}, noMove)
	}
	for _, a := range v.Adapters {
		if d := s.Switch(a.DVS); d != nil && d.Member(to.Name) == nil {
			return frame.Refuse(&types.CannotAccessNetwork{}, "Currently connected network interface '"+a.Label+"' uses network '"+a.PortGroup+
				"', which is not accessible.")
		}
	}
	return nil
}

type checker struct{ base }

// CheckMigrateTask checks whether a VM can move to a host, without moving it.
func (m checker) CheckMigrateTask(ctx *simulator.Context, req *types.CheckMigrate_Task) soap.HasFault {
	task := m.f.Start(ctx, "CheckMigrate_Task", "VirtualMachineProvisioningChecker.checkMigrate", req.Vm, frame.TaskOptions{},
		func() (any, error) {
			if req.Host == nil {
				return nil, frame.BadArgument("host")
			}
			result := types.CheckResult{Vm: &req.Vm, Host: req.Host}
			err := m.view(req.Vm, func(s *world.State, v *world.VM, _ *world.Host) error {
				var refused *frame.Error
				if errors.As(movable(s, v, *req.Host), &refused) {
					result.Error = []types.LocalizedMethodFault{{Fault: refused.Fault, LocalizedMessage: refused.Text}}
				}
				return nil
			})
			return types.ArrayOfCheckResult{CheckResult: []types.CheckResult{result}}, err
		})
	return frame.Answer(types.CheckMigrate_TaskResponse{Returnval: task}, nil)
}

// change changes a VM and reports the change.
func (m machine) change(vm types.ManagedObjectReference, f func(*world.State, *world.VM) error) error {
	return m.f.World.Update(func(s *world.State) ([]world.Event, error) {
		v := model.VMOf(s, vm)
		if v == nil {
			return nil, frame.Gone(vm)
		}
		before := v.Host
		if err := f(s, v); err != nil {
			return nil, err
		}
		v.Changes++
		events := []world.Event{{What: world.VMDevices, VM: v.Name}}
		if v.Host != before {
			events = append(events, world.Event{What: world.HostVMs, Host: before}, world.Event{What: world.HostVMs, Host: v.Host})
		}
		return events, nil
	})
}
