package hosts

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

type firewall struct{ base }

// EnableRuleset opens a ruleset on one host. Opening an open ruleset is not an error.
func (m firewall) EnableRuleset(_ *simulator.Context, req *types.EnableRuleset) soap.HasFault {
	return frame.Answer(types.EnableRulesetResponse{}, m.set(req.This, req.Id, true))
}

// DisableRuleset closes a ruleset on one host.
func (m firewall) DisableRuleset(_ *simulator.Context, req *types.DisableRuleset) soap.HasFault {
	return frame.Answer(types.DisableRulesetResponse{}, m.set(req.This, req.Id, false))
}

func (m firewall) set(ref types.ManagedObjectReference, id string, on bool) error {
	host, err := m.name(ref)
	if err != nil {
		return err
	}
	return refusal(m.f.World.SetRuleset(host, id, on), "id")
}

// RefreshFirewall refreshes the firewall data of the host.
func (m firewall) RefreshFirewall(_ *simulator.Context, req *types.RefreshFirewall) soap.HasFault {
	host, err := m.name(req.This)
	if err == nil {
		err = m.f.World.RefreshFirewall(host)
	}
	return frame.Answer(types.RefreshFirewallResponse{}, err)
}

type services struct{ base }

// StartService starts a stopped service.
func (m services) StartService(_ *simulator.Context, req *types.StartService) soap.HasFault {
	return frame.Answer(types.StartServiceResponse{}, m.run(req.This, req.Id, true, false))
}

// StopService stops a running service.
func (m services) StopService(_ *simulator.Context, req *types.StopService) soap.HasFault {
	return frame.Answer(types.StopServiceResponse{}, m.run(req.This, req.Id, false, false))
}

func (m services) run(ref types.ManagedObjectReference, id string, running, again bool) error {
	host, err := m.name(ref)
	if err != nil {
		return err
	}
	same := false
	m.f.World.View(func(s *world.State) {
		if svc := s.Host(host).Service(id); svc != nil {
			same = svc.Running == running
		}
	})
	if same && !again {
		return frame.Refuse(&types.InvalidState{})
	}
	return refusal(m.f.World.SetService(host, id, running), "id")
}

// RefreshServices refreshes the service data of the host.
func (m services) RefreshServices(_ *simulator.Context, req *types.RefreshServices) soap.HasFault {
	host, err := m.name(req.This)
	if err == nil {
		err = m.f.World.RefreshServices(host)
	}
	return frame.Answer(types.RefreshServicesResponse{}, err)
}
