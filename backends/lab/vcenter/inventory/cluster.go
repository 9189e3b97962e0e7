package inventory

import (
	"slices"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

type cluster struct{ base }

// ReconfigureComputeResourceTask sets DRS, HA and the VM affinity rules of the cluster. Groups and overrides fail with
// NotSupported, because the lab does not implement them.
func (m cluster) ReconfigureComputeResourceTask(ctx *simulator.Context, req *types.ReconfigureComputeResource_Task) soap.HasFault {
	if err := m.f.Need(ctx, "Host.Inventory.EditCluster", req.This); err != nil {
		return frame.Answer(nil, err)
	}
	task := m.f.Start(ctx, "ReconfigureComputeResource_Task", "ComputeResource.reconfigureEx", req.This, frame.TaskOptions{},
		func() (any, error) {
			spec, ok := req.Spec.(*types.ClusterConfigSpecEx)
			if !ok {
				return nil, frame.BadArgument("spec")
			}
			if len(spec.GroupSpec)+len(spec.DrsVmConfigSpec)+len(spec.DasVmConfigSpec) > 0 ||
				spec.DpmConfig != nil && spec.DpmConfig.Enabled != nil || spec.VsanConfig != nil && spec.VsanConfig.Enabled != nil {
				return nil, frame.Refuse(&types.NotSupported{})
			}
			return nil, m.f.World.Update(func(s *world.State) ([]world.Event, error) {
				of := model.ClusterServices(s, req.This)
				if err := services(of, spec); err != nil {
					return nil, err
				}
				for _, r := range spec.RulesSpec {
					if err := changeRule(s, of, r); err != nil {
						return nil, err
					}
				}
				return []world.Event{{What: world.Inventory, Detail: "cluster"}}, nil
			})
		})
	return frame.Answer(types.ReconfigureComputeResource_TaskResponse{Returnval: task}, nil)
}

// PlaceVm requests a DRS recommendation for the placement of a VM. Without DRS there is none. vCenter considers only the rules
// in the request (PlacementSpec.rules in the vSphere Web Services API), but the lab always uses the rules of its cluster.
func (m cluster) PlaceVm(_ *simulator.Context, req *types.PlaceVm) soap.HasFault {
	spec := req.PlacementSpec
	if spec.PlacementType != string(types.PlacementSpecPlacementTypeRelocate) || spec.Vm == nil {
		return frame.Answer(nil, frame.Refuse(&types.NotSupported{}))
	}
	var result types.PlacementResult
	err := error(frame.Gone(*spec.Vm))
	m.f.World.View(func(s *world.State) {
		v := model.VMOf(s, *spec.Vm)
		if v == nil {
			return
		}
		if err = nil; s.ServicesOf(v.Host).NoDRS {
			err = frame.Refuse(&types.InvalidState{})
			return
		}
		var among []string
		for _, ref := range spec.Hosts {
			if h := model.HostOf(s, ref); h != nil {
				among = append(among, h.Name)
			}
		}
		if to := s.RoomFor(v, among); to != nil {
			host, at := model.HostRef(to), model.ClusterRef(to.Cluster)
			result.Recommendations = []types.ClusterRecommendation{{Key: "1", Type: "V1", Time: time.Now(), Rating: 5, Reason: "xvmotionPlacement",
				ReasonText: "xvMotion placement",
				Target:     &at, Action: []types.BaseClusterAction{&types.PlacementAction{
					ClusterAction: types.ClusterAction{Type: "PlacementAction", Target: &host}, Vm: spec.Vm, TargetHost: &host}}}}
		}
	})
	return frame.Answer(types.PlaceVmResponse{Returnval: result}, err)
}

// GetResourceUsage returns the capacity of the hosts and of the datastores of the cluster, and how much of it is used.
func (m cluster) GetResourceUsage(_ *simulator.Context, req *types.GetResourceUsage) soap.HasFault {
	var sum types.ClusterResourceUsageSummary
	m.f.World.View(func(s *world.State) { sum = model.Usage(s, req.This) })
	return frame.Answer(types.GetResourceUsageResponse{Returnval: sum}, nil)
}

// changeRule adds or removes a VM affinity rule. Source: ClusterRuleSpec of the vSphere Web Services API.
func changeRule(s *world.State, of *world.Services, spec types.ClusterRuleSpec) error {
	switch spec.Operation {
	case types.ArrayUpdateOperationRemove:
		n := len(of.Rules)
		of.Rules = slices.DeleteFunc(of.Rules, func(r world.Rule) bool { return r.Key == spec.RemoveKey })
		if len(of.Rules) == n {
			return frame.BadArgument("spec.rulesSpec.removeKey")
		}
		return nil
	case types.ArrayUpdateOperationAdd:
	default:
		return frame.Refuse(&types.NotSupported{})
	}
	var vms []types.ManagedObjectReference
	rule := world.Rule{Key: 1}
	switch info := spec.Info.(type) {
	case *types.ClusterAntiAffinityRuleSpec:
		rule.Name, rule.Apart, vms = info.Name, true, info.Vm
	case *types.ClusterAffinityRuleSpec:
		rule.Name, vms = info.Name, info.Vm
	default:
		return frame.Refuse(&types.NotSupported{})
	}
	if enabled := spec.Info.GetClusterRuleInfo().Enabled; enabled == nil || !*enabled {
		return frame.Refuse(&types.NotSupported{})
	}
	for _, ref := range vms {
		v := model.VMOf(s, ref)
		if v == nil {
			return frame.Gone(ref)
		}
		rule.VMs = append(rule.VMs, v.Name)
	}
	if rule.Name == "" || len(rule.VMs) < 2 {
		return frame.BadArgument("spec.rulesSpec.info")
	}
	for _, r := range of.Rules {
		rule.Key = max(rule.Key, r.Key+1)
	}
	of.Rules = append(of.Rules, rule)
	return nil
}

func services(s *world.Services, spec *types.ClusterConfigSpecEx) error {
	if d := spec.DrsConfig; d != nil {
		switch d.DefaultVmBehavior {
		case "":
		case types.DrsBehaviorFullyAutomated:
			s.DRS = ""
		case types.DrsBehaviorManual, types.DrsBehaviorPartiallyAutomated:
			s.DRS = string(d.DefaultVmBehavior)
		default:
			return frame.BadArgument("spec.drsConfig.defaultVmBehavior")
		}
		if d.Enabled != nil {
			s.NoDRS = !*d.Enabled
		}
	}
	if d := spec.DasConfig; d != nil {
		if d.Enabled != nil {
			s.HA = *d.Enabled
		}
		if d.AdmissionControlEnabled != nil && !*d.AdmissionControlEnabled {
			s.Failover = 0
		}
		if p, ok := d.AdmissionControlPolicy.(*types.ClusterFailoverLevelAdmissionControlPolicy); ok {
			s.Failover = int(p.FailoverLevel)
		}
	}
	return nil
}

type host struct{ base }

// DisconnectHostTask disconnects a host from vCenter. The VMs of the host continue to run. ReconnectHostTask connects it again.
// Source: vCenter Server and Host Management, "Disconnecting and Reconnecting a Host".
func (m host) DisconnectHostTask(ctx *simulator.Context, req *types.DisconnectHost_Task) soap.HasFault {
	task := m.f.Start(ctx, "DisconnectHost_Task", "HostSystem.disconnect", req.This, frame.TaskOptions{}, func() (any, error) {
		return nil, m.connect(req.This, false)
	})
	return frame.Answer(types.DisconnectHost_TaskResponse{Returnval: task}, nil)
}

// ReconnectHostTask reconnects a disconnected host. It fails if the host does not respond.
func (m host) ReconnectHostTask(ctx *simulator.Context, req *types.ReconnectHost_Task) soap.HasFault {
	task := m.f.Start(ctx, "ReconnectHost_Task", "HostSystem.reconnect", req.This, frame.TaskOptions{}, func() (any, error) {
		return nil, m.connect(req.This, true)
	})
	return frame.Answer(types.ReconnectHost_TaskResponse{Returnval: task}, nil)
}

func (m host) connect(ref types.ManagedObjectReference, on bool) error {
	return m.f.World.Update(func(s *world.State) ([]world.Event, error) {
		h := model.HostOf(s, ref)
		switch {
		case h == nil:
			return nil, frame.Gone(ref)
		case h.Disconnected != on:
			return nil, frame.Refuse(&types.InvalidState{})
		case on && h.State != world.Up:
			return nil, frame.Refuse(&types.HostNotReachable{})
		}
		h.Disconnected = !on
		events := []world.Event{{What: world.HostNetwork, Host: h.Name, Detail: "connection"}}
		for _, v := range s.VMs {
			if v.Host == h.Name {
				events = append(events, world.Event{What: world.VMDevices, VM: v.Name})
			}
		}
		return events, nil
	})
}
