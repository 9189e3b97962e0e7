package cmd

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// provenMoves refuses a plan that moves other VMs by vMotion if vCenter reports that no host can run one of them. It runs at
// planning time, so that no VM or host goes out of service for a run that would stop at the evacuation.
func provenMoves(ctx context.Context, s *session.Session, a *answers.Answers, inv *backends.Inventory, p *plan.Plan) error {
	if a.Run.Bystanders != answers.BystandersMigrate {
		return nil
	}
	off, down := map[string]bool{}, []string{}
	for _, b := range p.Brackets {
		switch {
		case b.Kind == backends.BracketVMPower:
			off[b.Target.Name] = true
		case plan.TakesHostDown(b.Kind) && !slices.Contains(down, b.Target.Name):
			down = append(down, b.Target.Name)
		}
	}
	var refused plan.Refused
	for _, host := range down {
		var names []string
		for _, v := range inv.VMs {
			if v.Host == host && v.Power == "poweredOn" && !v.Template && !off[v.Name] {
				names = append(names, path.Base(v.Name))
			}
		}
		if h := inv.Host(host); len(names) == 0 || h == nil || h.InMaintenance {
			continue
		}
		for _, err := range s.VC.Movable(ctx, host, names) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			remedy, kind := backends.HintOf(err), backends.KindOf(err)
			if kind == backends.KindRefused || kind == backends.KindPermanent {
				remedy, kind = "Move it by hand, or set run.bystanders to shutdown.", ""
			}
			refused.Refusals = append(refused.Refusals, plan.Refusal{Target: backends.HostRef(host), Kind: kind, Remedy: remedy,
				Why: "has to reboot, and cannot be emptied: " + strings.TrimPrefix(err.Error(), host+": ")})
		}
	}
	if len(refused.Refusals) > 0 {
		return &refused
	}
	return nil
}

func vmNames(a *answers.Answers) []string {
	var names []string
	for _, v := range a.VMs {
		names = append(names, v.Name, path.Base(v.Name))
	}
	return names
}

// groups returns vms[].group and the anti-affinity rules of DRS, by VM.
func groups(a *answers.Answers, inv *backends.Inventory) map[string][]string {
	out := map[string][]string{}
	for _, v := range inv.VMs {
		if rules := inv.KeptApart(v.Name); rules != nil {
			out[v.Name] = rules
		}
	}
	for _, v := range a.VMs {
		if v.Group != "" {
			name := v.Name
			if vm := inv.VM(v.Name); vm != nil {
				name = vm.Name
			}
			out[name] = append(out[name], v.Group)
		}
	}
	return out
}
