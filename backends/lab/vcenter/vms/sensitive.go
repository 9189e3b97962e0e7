package vms

import (
	"fmt"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

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
			"A specified parameter was not correct: spec.memoryAllocation. The latency-sensitive virtual machine must have its memory reserved in full (%d MB).", v.MemoryMB))
	case v.CPUMHz < need:
		return frame.Refuse(&types.InvalidArgument{InvalidProperty: "spec.cpuAllocation"}, fmt.Sprintf(
			"A specified parameter was not correct: spec.cpuAllocation. The latency-sensitive virtual machine must have the CPU reservation set to at least %d MHz "+
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
