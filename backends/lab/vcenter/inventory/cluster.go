package inventory

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

type cluster struct{ base }

// ReconfigureComputeResourceTask sets DRS and HA of the cluster. Rules, groups and overrides are NotSupported: a task that
// said it had set them would lie.
func (m cluster) ReconfigureComputeResourceTask(ctx *simulator.Context, req *types.ReconfigureComputeResource_Task) soap.HasFault {
	if err := m.f.Need(ctx, "Host.Inventory.EditCluster", req.This); err != nil {
		return frame.Answer(nil, err)
	}
	task := m.f.Start(ctx, "ReconfigureComputeResource_Task", "ComputeResource.reconfigureEx", req.This, frame.Pace{}, func() (any, error) {
		spec, ok := req.Spec.(*types.ClusterConfigSpecEx)
		if !ok {
			return nil, frame.BadArgument("spec")
		}
		if len(spec.RulesSpec)+len(spec.GroupSpec)+len(spec.DrsVmConfigSpec)+len(spec.DasVmConfigSpec) > 0 ||
			spec.DpmConfig != nil && spec.DpmConfig.Enabled != nil || spec.VsanConfig != nil && spec.VsanConfig.Enabled != nil {
			return nil, frame.Refuse(&types.NotSupported{})
		}
		return nil, m.f.World.Update(func(s *world.State) ([]world.Event, error) {
			if err := services(&s.Services, spec); err != nil {
				return nil, err
			}
			return []world.Event{{What: world.Inventory, Detail: "cluster"}}, nil
		})
	})
	return frame.Answer(types.ReconfigureComputeResource_TaskResponse{Returnval: task}, nil)
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

// DisconnectHostTask ends the connection of vCenter to a host, whose VMs run on. ReconnectHostTask makes it again. Source:
// vCenter Server and Host Management, "Disconnecting and Reconnecting a Host".
func (m host) DisconnectHostTask(ctx *simulator.Context, req *types.DisconnectHost_Task) soap.HasFault {
	task := m.f.Start(ctx, "DisconnectHost_Task", "HostSystem.disconnect", req.This, frame.Pace{}, func() (any, error) {
		return nil, m.connect(req.This, false)
	})
	return frame.Answer(types.DisconnectHost_TaskResponse{Returnval: task}, nil)
}

// ReconnectHostTask connects a host that is disconnected; one that does not answer is not reached.
func (m host) ReconnectHostTask(ctx *simulator.Context, req *types.ReconnectHost_Task) soap.HasFault {
	task := m.f.Start(ctx, "ReconnectHost_Task", "HostSystem.reconnect", req.This, frame.Pace{}, func() (any, error) {
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
