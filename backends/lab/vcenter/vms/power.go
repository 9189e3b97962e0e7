package vms

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

type machine struct{ base }

// PowerOnVMTask powers a VM on.
func (m machine) PowerOnVMTask(ctx *simulator.Context, req *types.PowerOnVM_Task) soap.HasFault {
	return frame.Answer(types.PowerOnVM_TaskResponse{Returnval: m.powerOn(ctx, req.This)}, nil)
}

func (b base) powerOn(ctx *simulator.Context, vm types.ManagedObjectReference) types.ManagedObjectReference {
	return b.f.Start(ctx, "PowerOnVM_Task", "VirtualMachine.powerOn", vm, frame.TaskOptions{Silent: true, Cancelable: true},
		func() (any, error) {
			name := ""
			err := b.view(vm, func(s *world.State, v *world.VM, h *world.Host) error {
				name = v.Name
				err := mayPowerOn(s, v, h)
				var refused *powerOnError
				if errors.As(err, &refused) {
					s.LogStart(v)
					s.LogRefused(v, refused.log...)
				}
				return err
			})
			if err != nil {
				return nil, err
			}
			return nil, b.f.World.PowerOn(name)
		})
}

// noVF is the host's message if a physical function has no free VF (KB 309346).
const noVF = "No SR-IOV virtual function (VF) is available for given physical function (PF). " +
	"Module 'DevicePowerOn' power on failed. Failed to start the virtual machine."

// mayPowerOn returns an error if a host would refuse to power on the VM. A passthrough device requires a memory reservation; a
// PVRDMA adapter does not.
func mayPowerOn(s *world.State, v *world.VM, h *world.Host) error {
	if err := needPower(v, false); err != nil {
		return err
	}
	switch {
	case h == nil || !h.Managed():
		return frame.Refuse(&types.HostNotConnected{})
	case h.Maintenance:
		return frame.Refuse(&types.InvalidState{})
	case v.Template:
		return frame.Refuse(&types.NotSupported{})
	case v.CPUs > h.Threads():
		// "A virtual machine cannot have more virtual CPUs than the number of logical cores on the host" (vSphere Virtual
		// Machine Administration, "Virtual CPU Limitations"). The API has its own fault for this.
		return frame.Refuse(&types.NumVirtualCpusExceedsLimit{MaxSupportedVcpus: int32(h.Threads())}, fmt.Sprintf(
			"The total number of virtual CPUs present or requested in virtual machines' configuration has exceeded the limit on the host: %d.",
			h.Threads()))
	case (v.Pinned() || v.Latency == "high") && v.Reserved < v.MemoryMB:
		text := fmt.Sprintf("Invalid memory setting: memory reservation (sched.mem.min) should be equal to memsize(%d). ", v.MemoryMB)
		return &powerOnError{refused: frame.Refuse(&types.GenericVmConfigFault{Reason: "memory"}, text), log: []string{text}}
	case v.Latency == "high" && v.CPUMHz < int64(v.CPUs)*model.CoreMHz:
		return frame.Refuse(&types.GenericVmConfigFault{Reason: "cpu"}, fmt.Sprintf(
			"Invalid CPU reservation for the latency-sensitive VM, (sched.cpu.min) should be at least %d MHz. ", v.CPUs*model.CoreMHz))
	case v.Hardware > maxHardware(h):
		return frame.Refuse(&types.VirtualHardwareVersionNotSupported{HostName: h.Name, Host: model.HostRef(h)},
			"The virtual machine version is not compatible with the version of the host '"+h.Name+"'.")
	}
	free := h.MemoryMB
	for _, other := range s.VMs {
		if other.Host == h.Name && other.On {
			free -= other.Reserved
		}
	}
	if !s.Level(v.Reserved, v.Host, false) {
		return frame.Refuse(&types.InsufficientFailoverResourcesFault{},
			"Insufficient resources to satisfy configured failover level for vSphere HA.")
	}
	if v.Reserved > free {
		return frame.Refuse(&types.InsufficientMemoryResourcesFault{Unreserved: free << 20, Requested: v.Reserved << 20})
	}
	if err := cpuAdmits(s, v, h); err != nil {
		return err
	}
	trial := *v
	trial.Adapters = nil
	for _, a := range v.Adapters {
		clone := *a
		trial.Adapters = append(trial.Adapters, &clone)
	}
	if err := s.AssignVFs(&trial); err != nil {
		return frame.Refuse(&types.GenericVmConfigFault{Reason: "sriov"}, noVF)
	}
	return devicesFit(s, v, h)
}

// PowerOffVMTask powers a VM off.
func (m machine) PowerOffVMTask(ctx *simulator.Context, req *types.PowerOffVM_Task) soap.HasFault {
	task := m.f.Start(ctx, "PowerOffVM_Task", "VirtualMachine.powerOff", req.This, frame.TaskOptions{Silent: true}, func() (any, error) {
		return nil, m.on(req.This, m.f.World.PowerOff)
	})
	return frame.Answer(types.PowerOffVM_TaskResponse{Returnval: task}, nil)
}

// DestroyTask removes a powered-off VM and its disks. A VM that is on is refused (vSphere Automation API, "Delete Vm":
// not_allowed_in_current_state; govmomi's simulator: InvalidPowerState).
func (m machine) DestroyTask(ctx *simulator.Context, req *types.Destroy_Task) soap.HasFault {
	task := m.f.Start(ctx, "Destroy_Task", "VirtualMachine.destroy", req.This, frame.TaskOptions{}, func() (any, error) {
		name := ""
		err := m.view(req.This, func(_ *world.State, v *world.VM, h *world.Host) error {
			name = v.Name
			if h == nil || !h.Managed() {
				return frame.Refuse(&types.HostNotConnected{})
			}
			return needPower(v, false)
		})
		if err == nil {
			m.f.World.RemoveVM(name)
		}
		return nil, err
	})
	return frame.Answer(types.Destroy_TaskResponse{Returnval: task}, nil)
}

// on calls do with the name of a VM. The VM must be on, and its host must respond.
func (m machine) on(ref types.ManagedObjectReference, do func(string) error) error {
	name := ""
	err := m.view(ref, func(_ *world.State, v *world.VM, h *world.Host) error {
		name = v.Name
		if !h.Managed() {
			return frame.Refuse(&types.HostNotConnected{})
		}
		return needPower(v, true)
	})
	if err != nil {
		return err
	}
	return do(name)
}

// ShutdownGuest starts a shutdown of the guest OS and returns immediately. VMware Tools must be running.
func (m machine) ShutdownGuest(ctx *simulator.Context, req *types.ShutdownGuest) soap.HasFault {
	user := ""
	if ctx.Session != nil {
		user = ctx.Session.UserName
	}
	return frame.Answer(types.ShutdownGuestResponse{}, m.guest(req.This, func(vm string) error {
		// An event without a change notifies the watchers of the world, including EventManager.
		_ = m.f.World.Update(func(*world.State) ([]world.Event, error) {
			return []world.Event{{What: world.VMShutdown, VM: vm, Detail: user}}, nil
		})
		return m.f.World.ShutdownGuest(vm)
	}))
}

// RebootGuest starts a reboot of the guest OS and returns immediately. VMware Tools must be running.
func (m machine) RebootGuest(_ *simulator.Context, req *types.RebootGuest) soap.HasFault {
	return frame.Answer(types.RebootGuestResponse{}, m.guest(req.This, m.f.World.RebootGuest))
}

func (m machine) guest(ref types.ManagedObjectReference, do func(string) error) error {
	return m.on(ref, func(name string) error {
		up := false
		m.f.World.View(func(s *world.State) { up = s.VM(name).Guest.Up })
		if !up {
			return frame.Refuse(&types.ToolsUnavailable{})
		}
		return do(name)
	})
}

// UpgradeVMTask upgrades the virtual hardware of a powered-off VM. This cannot be undone.
func (m machine) UpgradeVMTask(ctx *simulator.Context, req *types.UpgradeVM_Task) soap.HasFault {
	task := m.f.Start(ctx, "UpgradeVM_Task", "VirtualMachine.upgradeVirtualHardware", req.This, frame.TaskOptions{}, func() (any, error) {
		return nil, m.f.World.Update(func(s *world.State) ([]world.Event, error) {
			v := model.VMOf(s, req.This)
			if v == nil {
				return nil, frame.Gone(req.This)
			}
			if err := upgrade(v, s.Host(v.Host), req.Version); err != nil {
				return nil, err
			}
			v.Changes++
			return []world.Event{{What: world.VMDevices, VM: v.Name, Detail: "hardware"}}, nil
		})
	})
	return frame.Answer(types.UpgradeVM_TaskResponse{Returnval: task}, nil)
}

// moveSlots changes the PCI slots of a VM's devices, as hardware version 20 does with EFI firmware (Broadcom KB 407595). The new
// slots are not documented; the lab uses another function of the same bridge.
func moveSlots(v *world.VM) {
	for _, a := range v.Adapters {
		a.Slot ^= 4
	}
	for _, d := range v.Devices {
		d.Slot ^= 4
	}
}

func upgrade(v *world.VM, h *world.Host, version string) error {
	if err := needPower(v, false); err != nil {
		return err
	}
	highest := maxHardware(h)
	to := highest
	if version != "" {
		if n, err := fmt.Sscanf(version, "vmx-%d", &to); err != nil || n != 1 {
			return frame.BadArgument("version")
		}
	}
	switch {
	case to > highest:
		return frame.Refuse(&types.VirtualHardwareVersionNotSupported{HostName: h.Name, Host: model.HostRef(h)},
			"The virtual machine version is not compatible with the version of the host '"+h.Name+"'.")
	case to <= v.Hardware:
		return frame.Refuse(&types.AlreadyUpgraded{})
	}
	if v.Firmware == "efi" && v.Hardware < 20 && to >= 20 {
		moveSlots(v)
	}
	v.Hardware = to
	return nil
}
