package bracket

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

const opRelocate = "VirtualMachine.relocate"

// movesAtOnce is how many VMs leave a host at the same time. vCenter runs up to 8 migrations per host, 4 where vMotion has a
// network of 1 Gbps, and queues the others (vCenter Server and Host Management, "Limits on Simultaneous Migrations").
const movesAtOnce = 4

// A refuge is a host that VMs can be moved to.
type refuge struct {
	ref                  place.Ref
	name                 string
	datastores, networks []place.Ref
	freeMB, freeMHz      int64
}

// A leaver is a running VM that has to leave its host.
type leaver struct {
	ref                  place.Ref
	name                 string
	memoryMB, usedMHz    int64
	datastores, networks []place.Ref
	to                   *refuge
}

// An evacuation moves the VMs of one host to other hosts.
type evacuation struct {
	site
	host, cluster place.Ref
	target        backends.Ref
	drs           bool
	rules         []types.BaseClusterRuleInfo
	groups        []types.BaseClusterGroupInfo
	at            map[place.Ref]place.Ref // current hosts of the cluster's running VMs, or the target for those that leave
	refuges       []*refuge
}

// moveAway moves the running VMs of a host that DRS does not move to other hosts of its cluster by vMotion. If DRS is on, it
// chooses the target (PlaceVm) among the hosts that have access to a VM's datastores and networks, have enough CPU and memory and
// violate no rule; otherwise the one of those with the most free memory is used. Hosts that vCenter's check excludes, for example
// because of CPU features that EVC would mask, are excluded too (CheckMigrate_Task). VMs of vSphere Cluster Services and agent
// VMs are left to vCenter. No VM is moved unless all can be; the error names those that cannot, and why.
func (s site) moveAway(ctx context.Context, host place.Ref, t backends.Ref) error {
	done, err := s.leaving.turn(ctx)
	if err != nil {
		return wire.Explain(err, t.Name, moveAwayWhat)
	}
	defer done()
	vms, e, err := s.placed(ctx, host, t, nil)
	if err != nil {
		return err
	}
	failed := make([]error, len(vms)) // a failed move does not stop the others
	backends.InParallel(slices.All(vms), movesAtOnce, func(i int, vm *leaver) { failed[i] = e.move(ctx, vm) })
	return errors.Join(failed...)
}

const moveAwayWhat = "move its VMs away"

// placed finds a target host for every VM that has to leave a host, or if in is not nil, for every VM in it. The error joins one
// error for each VM without a target.
func (s site) placed(ctx context.Context, host place.Ref, t backends.Ref, only []string) ([]*leaver, *evacuation, error) {
	o, err := s.conn.One(ctx, host, "parent", "vm")
	if err != nil {
		return nil, nil, wire.Explain(err, t.Name, moveAwayWhat)
	}
	e := &evacuation{site: s, host: host, cluster: wire.Value[place.Ref](o, "parent"), target: t, at: map[place.Ref]place.Ref{}}
	vms, err := e.leavers(ctx, wire.Value[types.ArrayOfManagedObjectReference](o, "vm").ManagedObjectReference)
	if only != nil {
		vms = slices.DeleteFunc(vms, func(vm *leaver) bool { return !slices.Contains(only, vm.name) })
	}
	if err != nil || len(vms) == 0 {
		return nil, e, wire.Explain(err, t.Name, moveAwayWhat)
	}
	if err := e.readHosts(ctx); err != nil {
		return nil, e, wire.Explain(err, t.Name, moveAwayWhat)
	}
	var refused []error
	for _, group := range e.together(vms) {
		if err := e.choose(ctx, group); err != nil {
			refused = append(refused, err)
		}
	}
	return vms, e, errors.Join(refused...)
}

// Movable checks, without moving anything, which of some running VMs of a host cannot move to any other host of its cluster. It
// returns one error for each, of kind refused if the VM is the cause.
func Movable(ctx context.Context, conn *wire.Conn, places *place.Places, host backends.Ref, vms []string) []error {
	s := site{conn: conn, places: places, opt: Options{}.filled(), leaving: newLeaving()}
	ref, err := places.Find(ctx, host)
	if err == nil {
		_, _, err = s.placed(ctx, ref, host, vms)
	}
	var all interface{ Unwrap() []error }
	switch {
	case err == nil:
		return nil
	case errors.As(err, &all):
		return all.Unwrap()
	}
	return []error{err}
}

// leavers reads the running VMs of the host that DRS does not move by itself: all if DRS is off or not fully automated, else
// those with a setting of their own (ClusterConfigInfoEx.drsVmConfig).
func (e *evacuation) leavers(ctx context.Context, vms []place.Ref) ([]*leaver, error) {
	o, err := e.conn.One(ctx, e.cluster, "configurationEx")
	if err != nil {
		return nil, err
	}
	if info, is := o.Props["configurationEx"].(types.ClusterConfigInfoEx); is {
		e.drs = info.DrsConfig.Enabled != nil && *info.DrsConfig.Enabled
		for _, r := range info.Rule {
			if on := r.GetClusterRuleInfo().Enabled; on != nil && *on {
				e.rules = append(e.rules, r)
			}
		}
		e.groups = info.Group
		if e.drs && info.DrsConfig.DefaultVmBehavior == types.DrsBehaviorFullyAutomated {
			vms = slices.DeleteFunc(vms, func(vm place.Ref) bool {
				return !slices.ContainsFunc(info.DrsVmConfig, func(c types.ClusterDrsVmConfigInfo) bool {
					return c.Key == vm && (c.Enabled != nil && !*c.Enabled || c.Behavior != "" && c.Behavior != types.DrsBehaviorFullyAutomated)
				})
			})
		}
	}
	if len(vms) == 0 {
		return nil, nil
	}
	var out []*leaver
	_, err = e.conn.Retrieve(ctx, []types.PropertyFilterSpec{wire.Of("VirtualMachine", vms, "name", "runtime.powerState", "datastore",
		"network",
		"config.managedBy", "config.hardware.memoryMB", "summary.quickStats.overallCpuUsage")}, func(o wire.Object) {
		name := backends.DisplayName(wire.Value[string](o, "name"))
		if wire.Value[types.VirtualMachinePowerState](o, "runtime.powerState") != types.VirtualMachinePowerStatePoweredOn ||
			strings.HasPrefix(name, "vCLS") || wire.Value[types.ManagedByInfo](o, "config.managedBy").ExtensionKey == "com.vmware.vim.eam" {
			return
		}
		out = append(out, &leaver{
			ref: o.Ref, name: name, memoryMB: int64(wire.Value[int32](o, "config.hardware.memoryMB")),
			usedMHz:    int64(wire.Value[int32](o, "summary.quickStats.overallCpuUsage")),
			datastores: wire.Value[types.ArrayOfManagedObjectReference](o, "datastore").ManagedObjectReference,
			networks:   wire.Value[types.ArrayOfManagedObjectReference](o, "network").ManagedObjectReference,
		})
	})
	slices.SortFunc(out, func(a, b *leaver) int {
		return cmp.Or(-cmp.Compare(a.memoryMB, b.memoryMB), strings.Compare(a.name, b.name))
	})
	return out, err
}

func (e *evacuation) move(ctx context.Context, vm *leaver) error {
	_, err := order{site: e.site, machine: vm.ref, op: opRelocate,
		send: wire.Starts(e.conn, methods.RelocateVM_Task, &types.RelocateVM_Task{
			This: vm.ref, Spec: types.VirtualMachineRelocateSpec{Host: &vm.to.ref}, Priority: types.VirtualMachineMovePriorityDefaultPriority,
		}),
		done: func(ctx context.Context) (bool, error) {
			now, err := e.conn.One(ctx, vm.ref, "runtime.host")
			return wire.Value[place.Ref](now, "runtime.host") != e.host, err
		},
	}.carryOut(ctx)
	return wire.Explain(err, e.target.Name, "move "+vm.name+" to "+vm.to.name)
}

// MoveTo moves a VM to a host, which vCenter may refuse: by vMotion if it is on.
func MoveTo(ctx context.Context, conn *wire.Conn, places *place.Places, vm, host backends.Ref) error {
	what := "move it to " + host.Name
	s := site{conn: conn, places: places, opt: Options{}.filled(), leaving: newLeaving()}
	ref, err := places.Find(ctx, vm)
	if err != nil {
		return wire.Explain(err, vm.Name, what)
	}
	to, err := places.Find(ctx, host)
	if err != nil {
		return wire.Explain(err, vm.Name, what)
	}
	now, err := conn.One(ctx, ref, "runtime.host")
	if err != nil {
		return wire.Explain(err, vm.Name, what)
	}
	e := &evacuation{site: s, host: wire.Value[place.Ref](now, "runtime.host"), target: vm}
	return e.move(ctx, &leaver{ref: ref, name: "it", to: &refuge{ref: to, name: host.Name}})
}
