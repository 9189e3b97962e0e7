package inventory

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

type vm struct{ base }

func (b base) changeVM(ref types.ManagedObjectReference, change func(*world.State, *world.VM) error) error {
	return b.f.World.Update(func(s *world.State) ([]world.Event, error) {
		v := model.VMOf(s, ref)
		if v == nil {
			return nil, frame.Gone(ref)
		}
		if err := change(s, v); err != nil {
			return nil, err
		}
		v.Changes++
		return []world.Event{{What: world.VMDevices, VM: v.Name}}, nil
	})
}

// RenameTask renames a VM. Its folder on the datastore keeps the old name.
func (m vm) RenameTask(ctx *simulator.Context, req *types.Rename_Task) soap.HasFault {
	if err := m.f.Need(ctx, "VirtualMachine.Config.Rename", req.This); err != nil {
		return frame.Answer(nil, err)
	}
	task := m.f.Start(ctx, "Rename_Task", "VirtualMachine.rename", req.This, frame.TaskOptions{}, func() (any, error) {
		return nil, m.changeVM(req.This, func(s *world.State, v *world.VM) error {
			name := world.Unescaped(req.NewName)
			if err := validName(name); err != nil {
				return err
			}
			if err := free(s, v.Folder, name, req.This); err != nil {
				return err
			}
			v.Title = name
			return nil
		})
	})
	return frame.Answer(types.Rename_TaskResponse{Returnval: task}, nil)
}

// MarkAsTemplate converts a powered-off VM to a template. Source: vSphere Web Services API, VirtualMachine.MarkAsTemplate:
// InvalidPowerState if the VM is not powered off.
func (m vm) MarkAsTemplate(ctx *simulator.Context, req *types.MarkAsTemplate) soap.HasFault {
	err := m.f.Need(ctx, "VirtualMachine.Provisioning.MarkAsTemplate", req.This)
	if err == nil {
		err = m.changeVM(req.This, func(_ *world.State, v *world.VM) error {
			switch {
			case v.On:
				return frame.Refuse(&types.InvalidPowerState{RequestedState: types.VirtualMachinePowerStatePoweredOff,
					ExistingState: types.VirtualMachinePowerStatePoweredOn})
			case v.Template:
				return frame.Refuse(&types.NotSupported{})
			}
			v.Template = true
			return nil
		})
	}
	return frame.Answer(types.MarkAsTemplateResponse{}, err)
}

// MarkAsVirtualMachine converts a template to a VM, in a pool and usually on a host.
func (m vm) MarkAsVirtualMachine(ctx *simulator.Context, req *types.MarkAsVirtualMachine) soap.HasFault {
	err := m.f.Need(ctx, "VirtualMachine.Provisioning.MarkAsVM", req.This)
	if err == nil {
		err = m.changeVM(req.This, func(s *world.State, v *world.VM) error {
			if !v.Template {
				return frame.Refuse(&types.InvalidState{})
			}
			if req.Host != nil {
				h := model.HostOf(s, *req.Host)
				if h == nil {
					return frame.Gone(*req.Host)
				}
				v.Host = h.Name
			}
			v.Template = false
			return nil
		})
	}
	return frame.Answer(types.MarkAsVirtualMachineResponse{}, err)
}

// drop removes snapshots from a VM and from the inventory.
func (b base) drop(vm types.ManagedObjectReference, gone func(types.ManagedObjectReference) bool) error {
	var refs []types.ManagedObjectReference
	err := b.changeVM(vm, func(_ *world.State, v *world.VM) error {
		v.Snaps = slices.DeleteFunc(slices.Clone(v.Snaps), func(shot world.Snapshot) bool {
			ref := model.SnapshotRef(v, shot)
			if !gone(ref) {
				return false
			}
			refs = append(refs, ref)
			return true
		})
		return nil
	})
	for _, ref := range refs {
		b.f.Remove(ref)
	}
	return err
}

// RemoveAllSnapshotsTask removes all snapshots of a VM, regardless of its devices.
func (m vm) RemoveAllSnapshotsTask(ctx *simulator.Context, req *types.RemoveAllSnapshots_Task) soap.HasFault {
	if err := m.f.Need(ctx, "VirtualMachine.State.RemoveSnapshot", req.This); err != nil {
		return frame.Answer(nil, err)
	}
	task := m.f.Start(ctx, "RemoveAllSnapshots_Task", "VirtualMachine.removeAllSnapshots", req.This, frame.TaskOptions{}, func() (any, error) {
		return nil, m.drop(req.This, func(types.ManagedObjectReference) bool { return true })
	})
	return frame.Answer(types.RemoveAllSnapshots_TaskResponse{Returnval: task}, nil)
}

type snapshot struct{ base }

// owner returns the VM and the child snapshots of a snapshot.
func (m snapshot) owner(ref types.ManagedObjectReference) (
	vm types.ManagedObjectReference, upon []types.ManagedObjectReference, err error,
) {
	err = frame.Gone(ref)
	m.f.World.View(func(s *world.State) {
		for _, v := range s.VMs {
			for n, shot := range v.Snaps {
				if model.SnapshotRef(v, shot) != ref {
					continue
				}
				vm, err = model.VMRef(v), nil
				for _, later := range v.Snaps[n+1:] {
					upon = append(upon, model.SnapshotRef(v, later))
				}
			}
		}
	})
	return vm, upon, err
}

// RemoveSnapshotTask removes a snapshot, and on request also its children.
func (m snapshot) RemoveSnapshotTask(ctx *simulator.Context, req *types.RemoveSnapshot_Task) soap.HasFault {
	vm, upon, err := m.owner(req.This)
	if err == nil {
		err = m.f.Need(ctx, "VirtualMachine.State.RemoveSnapshot", vm)
	}
	if err != nil {
		return frame.Answer(nil, err)
	}
	task := m.f.Start(ctx, "RemoveSnapshot_Task", "vm.Snapshot.remove", vm, frame.TaskOptions{}, func() (any, error) {
		return nil, m.drop(vm, func(ref types.ManagedObjectReference) bool {
			return ref == req.This || req.RemoveChildren && slices.Contains(upon, ref)
		})
	})
	return frame.Answer(types.RemoveSnapshot_TaskResponse{Returnval: task}, nil)
}
