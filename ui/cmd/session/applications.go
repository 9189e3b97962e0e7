package session

import (
	"context"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/generate"
)

// Applications measures MPI or NCCL between the guests of the answers, after RDMA was measured between them. The settings of
// every rank are added here: the traffic class, and for NCCL those of NCCLSettings.
func (s *Session) Applications(ctx context.Context, a *answers.Answers, pairs string, app perftest.Application, measured []perftest.Measurement,
	done func(perftest.Measurement)) ([]perftest.Measurement, error) {
	inv := s.Last(nil)
	list, err := perftest.Pairs(railNodes(a, inv)[0], pairs)
	if err != nil {
		return nil, console.Usage("use ring, all, or two VMs of the answers as VM:VM", "%v", err)
	}
	app.Network = network(a, inv)
	app.Env = []string{"NCCL_DEBUG=INFO"}
	if !app.NCCL {
		app.Env = nil
	}
	_, gid, _ := SharedNodes(inv, a)
	if c := class(a); c != nil && a.Mode != answers.PVRDMA {
		app.Env = append(app.Env, backends.ClassVariables(c.TrafficClass, gid)...)
	}
	if app.NCCL {
		net := generate.NCCL{Path: generate.Path(a.Mode), GID: -1}
		net.Device, _, _ = SharedNodes(inv, a)
		net.Level, _ = gdrLevel(a, inv, measured)
		for _, v := range net.Variables(false) {
			if v.Name != "NCCL_DEBUG" {
				app.Env = append(app.Env, v.Name+"="+v.Value)
			}
		}
	}
	r := perftest.Runner{Shell: guestShell{s.Guests}, Mode: string(a.Mode), Class: class(a), Simulated: inv.VCenter.Simulated, Now: s.Env.Now}
	return r.Applications(ctx, list, app, measured, done)
}

// network is the network of the first VM's first address.
func network(a *answers.Answers, inv *backends.Inventory) string {
	for _, v := range a.VMs {
		vm, n := inv.VM(v.Name), a.Networks(v)
		if vm == nil || len(n) == 0 {
			continue
		}
		if ip := found(inv, vm, n[0]); ip.IsValid() {
			return ip.Masked().String()
		}
	}
	return ""
}
