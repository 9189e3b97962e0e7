package bracket

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// readHosts reads the hosts of the cluster that can receive VMs: none in maintenance mode, and none that is being evacuated.
func (e *evacuation) readHosts(ctx context.Context) error {
	o, err := e.conn.One(ctx, e.cluster, "host")
	if err != nil {
		return err
	}
	hosts := wire.Value[types.ArrayOfManagedObjectReference](o, "host").ManagedObjectReference
	if len(hosts) == 0 {
		return nil
	}
	_, err = e.conn.Retrieve(ctx,
		[]types.PropertyFilterSpec{wire.Of("HostSystem", hosts, "name", "runtime.connectionState", "runtime.inMaintenanceMode",
			"vm", "datastore", "network", "summary.hardware.memorySize", "summary.quickStats.overallMemoryUsage",
			"summary.hardware.cpuMhz", "summary.hardware.numCpuCores", "summary.quickStats.overallCpuUsage")}, func(o wire.Object) {
			for _, vm := range wire.Value[types.ArrayOfManagedObjectReference](o, "vm").ManagedObjectReference {
				e.at[vm] = o.Ref
			}
			if h := stateOf(o.Ref, o); o.Ref == e.host || e.leaving.has(o.Ref) || h.connection != types.HostSystemConnectionStateConnected ||
				h.maintenance {
				return
			}
			h := &refuge{
				ref: o.Ref, name: wire.Value[string](o, "name"),
				datastores: wire.Value[types.ArrayOfManagedObjectReference](o, "datastore").ManagedObjectReference,
				networks:   wire.Value[types.ArrayOfManagedObjectReference](o, "network").ManagedObjectReference,
				freeMB: wire.Value[int64](o, "summary.hardware.memorySize")>>20 - int64(wire.Value[int32](o,
					"summary.quickStats.overallMemoryUsage")),
				freeMHz: math.MaxInt64,
			}
			if mhz := int64(wire.Value[int32](o, "summary.hardware.cpuMhz")) * int64(wire.Value[int16](o, "summary.hardware.numCpuCores")); mhz > 0 {
				h.freeMHz = mhz - int64(wire.Value[int32](o, "summary.quickStats.overallCpuUsage"))
			}
			e.refuges = append(e.refuges, h)
		})
	slices.SortFunc(e.refuges, func(a, b *refuge) int { return strings.Compare(a.name, b.name) })
	if err != nil {
		return err
	}
	return e.forgetOff(ctx)
}

// forgetOff removes powered-off VMs from the rules, as the plan does: DRS evaluates a rule again when it starts them. VMs that
// this process has shut down are kept, because they will start again.
func (e *evacuation) forgetOff(ctx context.Context) error {
	var vms []place.Ref
	for _, r := range e.rules {
		vms = append(vms, between(r)...)
	}
	slices.SortFunc(vms, func(a, b place.Ref) int { return strings.Compare(a.Value, b.Value) })
	vms = slices.DeleteFunc(slices.Compact(vms), func(vm place.Ref) bool { _, known := e.at[vm]; return !known })
	if len(vms) == 0 {
		return nil
	}
	_, err := e.conn.Retrieve(ctx, []types.PropertyFilterSpec{wire.Of("VirtualMachine", vms, "runtime.powerState")}, func(o wire.Object) {
		if wire.Value[types.VirtualMachinePowerState](o, "runtime.powerState") != types.VirtualMachinePowerStatePoweredOn &&
			!e.leaving.isOff(o.Ref) {
			delete(e.at, o.Ref)
		}
	})
	return err
}

// between returns the VMs of a rule between VMs, nil for other rules.
func between(r types.BaseClusterRuleInfo) []place.Ref {
	switch r := r.(type) {
	case *types.ClusterAntiAffinityRuleSpec:
		return r.Vm
	case *types.ClusterAffinityRuleSpec:
		return r.Vm
	}
	return nil
}

// together groups VMs that affinity rules keep on one host; most groups have one VM.
func (e *evacuation) together(vms []*leaver) [][]*leaver {
	var groups [][]*leaver
	of := map[place.Ref]int{}
	for _, vm := range vms {
		of[vm.ref] = len(groups)
		groups = append(groups, []*leaver{vm})
	}
	for _, r := range e.rules {
		if _, near := r.(*types.ClusterAffinityRuleSpec); !near {
			continue
		}
		first := -1
		for _, ref := range between(r) {
			i, leaves := of[ref]
			if !leaves || i == first {
				continue
			}
			if first < 0 {
				first = i
				continue
			}
			for _, vm := range groups[i] {
				of[vm.ref] = first
			}
			groups[first], groups[i] = append(groups[first], groups[i]...), nil
		}
	}
	return slices.DeleteFunc(groups, func(g []*leaver) bool { return g == nil })
}

// choose finds a host for VMs that belong together, and reserves the capacity.
func (e *evacuation) choose(ctx context.Context, group []*leaver) error {
	var fit []*refuge
	var whys, names []string
	for _, vm := range group {
		names = append(names, vm.name)
	}
	for _, h := range e.refuges {
		if why := e.unfit(group, h); why != "" {
			whys = append(whys, h.name+" "+why)
		} else {
			fit = append(fit, h)
		}
	}
	slices.SortStableFunc(fit, func(a, b *refuge) int { return -cmp.Compare(a.freeMB, b.freeMB) })
	if wished := e.recommended(ctx, group[0], fit); wished != nil {
		fit = append([]*refuge{wished}, slices.DeleteFunc(fit, func(h *refuge) bool { return h == wished })...)
	}
	for _, h := range fit {
		why, err := e.incompatible(ctx, group, h)
		if err != nil {
			return wire.Explain(err, e.target.Name, "check whether "+strings.Join(names, " and ")+" can move to "+h.name)
		}
		if why == "" {
			for _, vm := range group {
				vm.to = h
				h.freeMB, h.freeMHz = h.freeMB-vm.memoryMB, h.freeMHz-vm.usedMHz
				e.at[vm.ref] = h.ref
			}
			return nil
		}
		whys = append(whys, h.name+": "+why)
	}
	if len(whys) == 0 {
		whys = []string{"no host is connected and not in maintenance mode"}
	}
	what := strings.Join(names, " and ") + " away"
	if len(group) > 1 {
		what += " together, as a DRS rule wants them"
	}
	return backends.Refusedf(e.target.Name, "Move "+names[0]+" by hand, or shut it down, then run rdma-setup resume.",
		"move %s: no other host of its cluster can run it: %s", what, strings.Join(whys, "; "))
}

// unfit returns why a host cannot receive VMs that belong together, "" if it can.
func (e *evacuation) unfit(group []*leaver, h *refuge) string {
	lacks := func(want, have []place.Ref) bool {
		return slices.ContainsFunc(want, func(r place.Ref) bool { return !slices.Contains(have, r) })
	}
	var memoryMB, usedMHz int64
	for _, vm := range group {
		if lacks(vm.datastores, h.datastores) {
			return "does not reach all its datastores"
		}
		if lacks(vm.networks, h.networks) {
			return "does not have all its networks"
		}
		for _, r := range e.rules {
			if e.breaks(r, vm, h) {
				return "is excluded by the DRS rule " + r.GetClusterRuleInfo().Name
			}
		}
		memoryMB, usedMHz = memoryMB+vm.memoryMB, usedMHz+vm.usedMHz
	}
	switch {
	case h.freeMB < memoryMB:
		return fmt.Sprintf("has %d MB of free memory, %d are needed", max(0, h.freeMB), memoryMB)
	case h.freeMHz < usedMHz:
		return fmt.Sprintf("has %d MHz of free CPU, %d are used", max(0, h.freeMHz), usedMHz)
	}
	return ""
}

// breaks reports whether a VM on a host would violate a rule. Rules between VMs and hosts count only if they are mandatory.
func (e *evacuation) breaks(r types.BaseClusterRuleInfo, vm *leaver, h *refuge) bool {
	among := func(vms []place.Ref, apart bool) bool {
		return slices.Contains(vms, vm.ref) && slices.ContainsFunc(vms, func(o place.Ref) bool {
			at, known := e.at[o]
			return o != vm.ref && known && at != e.host && (at == h.ref) == apart
		})
	}
	switch r := r.(type) {
	case *types.ClusterAntiAffinityRuleSpec:
		return among(r.Vm, true)
	case *types.ClusterAffinityRuleSpec:
		return among(r.Vm, false)
	case *types.ClusterVmHostRuleInfo:
		if r.Mandatory == nil || !*r.Mandatory {
			return false
		}
		var vms, hosts, others []place.Ref
		for _, g := range e.groups {
			switch g := g.(type) {
			case *types.ClusterVmGroup:
				if g.Name == r.VmGroupName {
					vms = g.Vm
				}
			case *types.ClusterHostGroup:
				if g.Name == r.AffineHostGroupName {
					hosts = g.Host
				}
				if g.Name == r.AntiAffineHostGroupName {
					others = g.Host
				}
			}
		}
		return slices.Contains(vms, vm.ref) && (slices.Contains(others, h.ref) || r.AffineHostGroupName != "" && !slices.Contains(hosts, h.ref))
	}
	return false
}

// recommended asks DRS to which of the hosts a VM should move; nil if DRS is off or makes no recommendation. Datastores and
// resource pool stay the same: only the host of the recommendation is used.
func (e *evacuation) recommended(ctx context.Context, vm *leaver, fit []*refuge) *refuge {
	if !e.drs || len(fit) < 2 {
		return nil
	}
	spec := types.PlacementSpec{Vm: &vm.ref, PlacementType: string(types.PlacementSpecPlacementTypeRelocate), Datastores: vm.datastores,
		Rules:                     e.rules,
		DisallowPrerequisiteMoves: types.NewBool(true)}
	for _, h := range fit {
		spec.Hosts = append(spec.Hosts, h.ref)
	}
	res, err := methods.PlaceVm(ctx, e.conn.VIM(), &types.PlaceVm{This: e.cluster, PlacementSpec: spec})
	if err != nil {
		return nil
	}
	for _, r := range res.Returnval.Recommendations {
		for _, a := range r.Action {
			if p, is := a.(*types.PlacementAction); is && p.TargetHost != nil {
				if i := slices.IndexFunc(fit, func(h *refuge) bool { return h.ref == *p.TargetHost }); i >= 0 {
					return fit[i]
				}
			}
		}
	}
	return nil
}

// incompatible returns vCenter's objections to a move; "" if there are none or this vCenter cannot check it.
func (e *evacuation) incompatible(ctx context.Context, group []*leaver, h *refuge) (string, error) {
	checker := e.conn.VIM().ServiceContent.VmProvisioningChecker
	if checker == nil {
		return "", nil
	}
	for _, vm := range group {
		result, err := e.conn.Run(wire.On(ctx, vm.name), nil, wire.Starts(e.conn, methods.CheckMigrate_Task,
			&types.CheckMigrate_Task{This: *checker, Vm: vm.ref, Host: &h.ref, State: types.VirtualMachinePowerStatePoweredOn}))
		if err != nil {
			return "", err
		}
		checked, _ := result.(types.ArrayOfCheckResult)
		for _, r := range checked.CheckResult {
			for _, fault := range r.Error {
				return cmp.Or(fault.LocalizedMessage, fmt.Sprintf("%T", fault.Fault)), nil
			}
		}
	}
	return "", nil
}
