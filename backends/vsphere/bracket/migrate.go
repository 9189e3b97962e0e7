package bracket

import (
	"context"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

const opRelocate = "VirtualMachine.relocate"

// A refuge is a host that a VM may move to.
type refuge struct {
	ref                  place.Ref
	datastores, networks []place.Ref
	freeMB               int64
}

// moveAway moves every running VM of a host to another host of its cluster by vMotion, one after the other: to the one with
// the most free memory among those that reach all its datastores and networks. VMs of vSphere Cluster Services and agent
// VMs are left to vCenter. A VM that cannot move is an error that names it; the host keeps what is left.
func (s site) moveAway(ctx context.Context, host place.Ref, t backends.Ref) error {
	const what = "move its VMs away"
	s.leaving.mu.Lock()
	defer s.leaving.mu.Unlock()
	s.leaving.hosts[host] = true
	o, err := s.conn.One(ctx, host, "parent", "vm")
	if err != nil {
		return wire.Explain(err, t.Name, what)
	}
	vms := wire.Value[types.ArrayOfManagedObjectReference](o, "vm").ManagedObjectReference
	vms, err = s.unmoved(ctx, wire.Value[place.Ref](o, "parent"), vms)
	if err != nil || len(vms) == 0 {
		return wire.Explain(err, t.Name, what)
	}
	hosts, err := s.refuges(ctx, host, wire.Value[place.Ref](o, "parent"))
	if err != nil {
		return wire.Explain(err, t.Name, what)
	}
	for _, ref := range vms {
		if err := s.moveOne(ctx, ref, hosts, t); err != nil {
			return err
		}
	}
	return nil
}

// unmoved returns the VMs that DRS does not move by itself when their host enters maintenance mode: all where it is off or not
// fully automated, else those with a setting of their own (ClusterConfigInfoEx.drsVmConfig).
func (s site) unmoved(ctx context.Context, cluster place.Ref, vms []place.Ref) ([]place.Ref, error) {
	o, err := s.conn.One(ctx, cluster, "configurationEx")
	if err != nil {
		return nil, err
	}
	info, is := o.Props["configurationEx"].(types.ClusterConfigInfoEx)
	if !is || info.DrsConfig.Enabled == nil || !*info.DrsConfig.Enabled || info.DrsConfig.DefaultVmBehavior != types.DrsBehaviorFullyAutomated {
		return vms, nil
	}
	return slices.DeleteFunc(vms, func(vm place.Ref) bool {
		return !slices.ContainsFunc(info.DrsVmConfig, func(c types.ClusterDrsVmConfigInfo) bool {
			return c.Key == vm && (c.Enabled != nil && !*c.Enabled || c.Behavior != "" && c.Behavior != types.DrsBehaviorFullyAutomated)
		})
	}), nil
}

// refuges are the hosts of a cluster that take VMs: none that was emptied or is about to be, in this run.
func (s site) refuges(ctx context.Context, host, cluster place.Ref) ([]*refuge, error) {
	o, err := s.conn.One(ctx, cluster, "host")
	if err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(wire.Value[types.ArrayOfManagedObjectReference](o, "host").ManagedObjectReference,
		func(r types.ManagedObjectReference) bool { return s.leaving.hosts[r] })
	if len(others) == 0 {
		return nil, nil
	}
	var out []*refuge
	_, err = s.conn.Retrieve(ctx, []types.PropertyFilterSpec{wire.Of("HostSystem", others, "runtime.connectionState", "runtime.inMaintenanceMode",
		"datastore", "network", "summary.hardware.memorySize", "summary.quickStats.overallMemoryUsage")}, func(o wire.Object) {
		if h := stateOf(o.Ref, o); h.connection != types.HostSystemConnectionStateConnected || h.maintenance {
			return
		}
		out = append(out, &refuge{
			ref: o.Ref, datastores: wire.Value[types.ArrayOfManagedObjectReference](o, "datastore").ManagedObjectReference,
			networks: wire.Value[types.ArrayOfManagedObjectReference](o, "network").ManagedObjectReference,
			freeMB:   wire.Value[int64](o, "summary.hardware.memorySize")>>20 - int64(wire.Value[int32](o, "summary.quickStats.overallMemoryUsage")),
		})
	})
	return out, err
}

func (s site) moveOne(ctx context.Context, vm place.Ref, hosts []*refuge, t backends.Ref) error {
	o, err := s.conn.One(ctx, vm, "name", "runtime.powerState", "runtime.host", "datastore", "network", "config.managedBy", "config.hardware.memoryMB")
	if err != nil {
		return wire.Explain(err, t.Name, "move its VMs away")
	}
	name := wire.Value[string](o, "name")
	if wire.Value[types.VirtualMachinePowerState](o, "runtime.powerState") != types.VirtualMachinePowerStatePoweredOn ||
		strings.HasPrefix(name, "vCLS") || wire.Value[types.ManagedByInfo](o, "config.managedBy").ExtensionKey == "com.vmware.vim.eam" {
		return nil
	}
	from := wire.Value[place.Ref](o, "runtime.host")
	memory := int64(wire.Value[int32](o, "config.hardware.memoryMB"))
	lacks := func(have []place.Ref, path string) bool {
		return slices.ContainsFunc(wire.Value[types.ArrayOfManagedObjectReference](o, path).ManagedObjectReference,
			func(r types.ManagedObjectReference) bool { return !slices.Contains(have, r) })
	}
	var to *refuge
	for _, h := range hosts {
		if !lacks(h.datastores, "datastore") && !lacks(h.networks, "network") && h.freeMB >= memory && (to == nil || h.freeMB > to.freeMB) {
			to = h
		}
	}
	if to == nil {
		return backends.Errorf(backends.KindRefused, t.Name, "Move "+name+" by hand, or shut it down, then resume.",
			"move %s away: no other host of its cluster has its datastores, its networks and %d MB of free memory", name, memory)
	}
	to.freeMB -= memory
	_, err = order{site: s, machine: vm, op: opRelocate,
		send: func(ctx context.Context) (types.ManagedObjectReference, error) {
			res, err := methods.RelocateVM_Task(ctx, s.conn.VIM(), &types.RelocateVM_Task{
				This: vm, Spec: types.VirtualMachineRelocateSpec{Host: &to.ref}, Priority: types.VirtualMachineMovePriorityDefaultPriority,
			})
			if err != nil {
				return types.ManagedObjectReference{}, err
			}
			return res.Returnval, nil
		},
		done: func(ctx context.Context) (bool, error) {
			now, err := s.conn.One(ctx, vm, "runtime.host")
			return wire.Value[place.Ref](now, "runtime.host") != from, err
		},
	}.carryOut(ctx)
	return wire.Explain(err, t.Name, "move "+name+" to another host")
}
