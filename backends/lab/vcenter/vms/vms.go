// Package vms implements the methods of VMs in the lab's vCenter, and those of the objects that describe virtual hardware.
package vms

import (
	"fmt"
	"io"
	"slices"

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

// sensitive returns an error if a latency-sensitive VM lacks the required reservations. Hosts of 7.0 and later check this when
// the VM is edited, older hosts at power-on (see mayPowerOn).
func sensitive(h *world.Host, v *world.VM) error {
	if v.Latency != "high" || h == nil || h.Version < "7" {
		return nil
	}
	need := int64(v.CPUs) * model.CoreMHz
	switch {
	case v.Reserved < v.MemoryMB:
		return frame.Refuse(&types.InvalidArgument{InvalidProperty: "spec.memoryAllocation"}, fmt.Sprintf(
			"A specified parameter was not correct: spec.memoryAllocation. The latency-sensitive virtual machine must have its memory reserved in "+
				"full (%d MB).", v.MemoryMB))
	case v.CPUMHz < need:
		return frame.Refuse(&types.InvalidArgument{InvalidProperty: "spec.cpuAllocation"}, fmt.Sprintf(
			"A specified parameter was not correct: spec.cpuAllocation. The latency-sensitive virtual machine must have the CPU reservation set "+
				"to at least %d MHz "+
				"(the number of low latency virtual CPUs multiplied by the measured physical CPU speed).", need))
	}
	return nil
}

// cpuAdmits returns an error if the CPU reservation of a VM exceeds the free capacity of the host. ESXi reserves some capacity
// for itself.
func cpuAdmits(s *world.State, v *world.VM, h *world.Host) error {
	all := int64(h.Cores) * model.CoreMHz
	free := all - all/16
	for _, other := range s.VMs {
		if other.Host == h.Name && other.On {
			free -= other.CPUMHz
		}
	}
	if v.CPUMHz > free {
		return frame.Refuse(&types.InsufficientCpuResourcesFault{Unreserved: free, Requested: v.CPUMHz})
	}
	return nil
}

// deviceGroups compares the vendor device groups of a changed VM with those in a spec. A group is added or removed with all its
// devices in one request, and cannot be changed. A new group has a negative key, which is replaced by a new one (vSphere Web
// Services API, VirtualMachineVirtualDeviceGroups and VirtualMachineVirtualDeviceGroupsDeviceGroup).
func deviceGroups(h *world.Host, before, v *world.VM, spec *types.VirtualMachineVirtualDeviceGroups) error {
	refused := frame.BadArgument("configSpec.deviceGroups")
	had := members(before)
	wanted := map[int32]string{}
	for key, list := range had {
		wanted[key] = list[0].Group.Name
	}
	if spec != nil {
		clear(wanted)
		for _, base := range spec.DeviceGroup {
			g, is := base.(*types.VirtualMachineVirtualDeviceGroupsVendorDeviceGroup)
			if !is || g.GroupInstanceKey >= 0 && (had[g.GroupInstanceKey] == nil || had[g.GroupInstanceKey][0].Group.Name != g.DeviceGroupName) {
				return refused
			}
			wanted[g.GroupInstanceKey] = g.DeviceGroupName
		}
	}
	now := members(v)
	for key, list := range now {
		name, is := wanted[key]
		if !is || key >= 0 && len(list) != len(had[key]) ||
			key >= 0 && slices.ContainsFunc(list, func(d *world.Passthrough) bool { return d.Group.Name == "" }) {
			return refused
		}
		if key < 0 && !whole(h, name, list) {
			return refused
		}
	}
	for key, name := range wanted {
		if len(now[key]) == 0 {
			return refused
		}
		if key >= 0 {
			continue
		}
		own := int32(0)
		for members(v)[own] != nil {
			own++
		}
		for _, d := range now[key] {
			d.Group.Key, d.Group.Name = own, name
		}
	}
	return nil
}

// members returns the devices in a VM's groups by group key.
func members(v *world.VM) map[int32][]*world.Passthrough {
	out := map[int32][]*world.Passthrough{}
	for _, d := range v.Devices {
		if d.Group != (world.Place{}) {
			out[d.Group.Key] = append(out[d.Group.Key], d)
		}
	}
	return out
}

// whole reports whether a list contains exactly the devices of a group of the host.
func whole(h *world.Host, name string, list []*world.Passthrough) bool {
	i := slices.IndexFunc(h.Groups, func(g world.DeviceGroup) bool { return g.Name == name })
	if i < 0 || len(list) != len(h.Groups[i].VGPUs) {
		return false
	}
	for n, profile := range h.Groups[i].VGPUs {
		if !slices.ContainsFunc(list, func(d *world.Passthrough) bool { return d.Group.Sequence == int32(n+1) && d.Profile == profile }) {
			return false
		}
	}
	return true
}
