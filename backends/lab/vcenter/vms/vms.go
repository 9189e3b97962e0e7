// Package vms implements the methods of VMs in the lab's vCenter, and those of the objects that describe virtual hardware.
package vms

import (
	"io"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// Register adds the methods to a frame. The vCenter closes the returned value when it shuts down.
func Register(f *frame.Frame) io.Closer {
	b := base{f}
	l := &leases{base: b, open: map[types.ManagedObjectReference]*lease{}}
	f.Extend(ovfManager{b}, "OvfManager")
	f.Extend(pool{b, l}, "ResourcePool")
	f.Handle(l, "HttpNfcLease")
	f.Handle(machine{b}, "VirtualMachine")
	f.Handle(browser{b}, "EnvironmentBrowser")
	f.Extend(checker{b}, "VirtualMachineProvisioningChecker")
	return l
}

type base struct{ f *frame.Frame }

// view calls read with a VM and its host.
func (b base) view(ref types.ManagedObjectReference, read func(*world.State, *world.VM, *world.Host) error) error {
	err := error(frame.Gone(ref))
	b.f.World.View(func(s *world.State) {
		if v := model.VMOf(s, ref); v != nil {
			err = read(s, v, s.Host(v.Host))
		}
	})
	return err
}

func power(v *world.VM) types.VirtualMachinePowerState {
	if v.On {
		return types.VirtualMachinePowerStatePoweredOn
	}
	return types.VirtualMachinePowerStatePoweredOff
}

// needPower returns an error if a VM is not in the power state that an operation requires.
func needPower(v *world.VM, on bool) error {
	if v.On == on {
		return nil
	}
	want := types.VirtualMachinePowerStatePoweredOff
	if on {
		want = types.VirtualMachinePowerStatePoweredOn
	}
	return frame.Refuse(&types.InvalidPowerState{RequestedState: want, ExistingState: power(v)})
}

// maxHardware returns the newest virtual hardware version that a host supports (KB 2007240). ESXi 6.7 Update 2 reports the
// version 6.7.0, so it is recognized by its build number (KB 316595, "Build numbers and versions of VMware ESXi/ESX").
func maxHardware(h *world.Host) int {
	best := 13
	for _, row := range []struct {
		version  string
		hardware int
	}{{"6.5.0", 13}, {"6.7.0", 14}, {"7.0.0", 17}, {"7.0.1", 18}, {"7.0.2", 19}, {"8.0.0", 20}, {"8.0.2", 21}, {"9.0.0", 22}} {
		if !world.VersionLess(h.Version, row.version) {
			best = row.hardware
		}
	}
	if best == 14 && !world.VersionLess(h.Build, "13006603") {
		best = 15
	}
	return best
}

func ptr[T any](v T) *T { return &v }
