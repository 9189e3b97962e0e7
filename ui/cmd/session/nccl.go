package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/generate"
	"github.com/rdma-setup/rdma-setup/wizard/report"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// NCCLSettings returns the NCCL settings for the guests of the answers, from their facts and the measurements; nil if no guest
// has a GPU, or no RDMA device was found.
func NCCLSettings(a *answers.Answers, inv *backends.Inventory, measured []perftest.Measurement) *report.NCCL {
	if len(measured) == 0 ||
		!slices.ContainsFunc(inv.Guests,
			func(g backends.Guest) bool { return g.NVIDIA != nil && len(g.NVIDIA.GPUs) > 0 || shares(inv.VM(g.VM)) }) {
		return nil
	}
	out := &report.NCCL{}
	net := generate.NCCL{Path: generate.Path(a.Mode)}
	net.Device, net.GID, out.Why = SharedNodes(inv, a)
	if net.Device == "" && net.GID < 0 {
		return nil
	}
	if a.QoS.Lossless == answers.LosslessPFC && a.Mode != answers.PVRDMA {
		net.Class = sizing.TrafficClass(a.QoS.DSCP, a.QoS.ECN)
	}
	var why string
	net.Level, why = gdrLevel(a, inv, measured)
	out.Why = append(out.Why, why)
	for _, v := range net.Variables(false) {
		if v.Name != "NCCL_DEBUG" {
			out.Env = append(out.Env, report.Variable(v))
		}
	}
	return out
}

// shares reports whether a VM has a vGPU.
func shares(v *backends.VM) bool {
	return v != nil && slices.ContainsFunc(v.Passthrough, func(p string) bool { return strings.HasPrefix(p, "vgpu") })
}

// levels maps the levels of nvidia-smi topo -m to NCCL's levels for the distance of GPU and NIC.
var levels = map[string]string{"PIX": "PIX", "PXB": "PXB", "PHB": "PHB", "NODE": "PHB", "SYS": "SYS", "SOC": "SYS"}

// gdrLevel chooses NCCL_NET_GDR_LEVEL: the longest measured path, PHB if none was measured, LOC if GPU memory was slower than host
// memory in any test, if a test failed, or if GPUDirect is not set up.
func gdrLevel(a *answers.Answers, inv *backends.Inventory, measured []perftest.Measurement) (level, why string) {
	off := generate.Off
	if a.Mode == answers.PVRDMA {
		return off, "GPUDirect RDMA is off: a PVRDMA adapter cannot access GPU memory, be it a whole GPU's or a vGPU's"
	}
	for _, g := range inv.Guests {
		if err := vgpuPeer(inv.VM(g.VM)); err != nil {
			return off, fmt.Sprintf("GPUDirect RDMA is off for %s: %v", g.VM, err)
		}
	}
	if a.Mode != answers.GPUDirect {
		return off, "GPUDirect RDMA is off: it was not set up (mode gpudirect)"
	}
	tried, order := 0, []string{"PIX", "PXB", "PHB", "SYS"}
	farthest := 0
	for _, m := range measured {
		if m.Test != perftest.WriteBandwidthGPU {
			continue
		}
		switch m.Verdict {
		case perftest.VerdictFail:
			if m.Error != "" {
				return off, fmt.Sprintf("GPUDirect RDMA is off: GPU memory could not be used between %s and %s", m.From, m.To)
			}
			return off, fmt.Sprintf("GPUDirect RDMA is off: between %s and %s GPU memory reached %.0f %% of the bandwidth of host memory, so "+
				"the path through host memory is faster", m.From, m.To, 100*m.AchievedGbps/m.HostGbps)
		case perftest.VerdictPass, perftest.VerdictWarn:
			tried++
			for _, g := range []perftest.GPU{m.GPU.From, m.GPU.To} {
				farthest = max(farthest, slices.Index(order, levels[g.Link]))
			}
		}
	}
	if tried == 0 {
		return "PHB", "GPU memory was not measured: try with and without NCCL_NET_GDR_LEVEL=LOC"
	}
	return order[farthest], fmt.Sprintf("GPUDirect RDMA is allowed as far as it was measured to match host memory (%s)",
		strings.Join(order[:farthest+1], ", "))
}

// Applications measures MPI or NCCL between the guests of the answers, after RDMA was measured between them. The settings of
// every rank are added here: the traffic class, and for NCCL those of NCCLSettings.
func (s *Session) Applications(ctx context.Context, a *answers.Answers, pairs string, app perftest.Application,
	measured []perftest.Measurement,
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
	over, err := s.turn(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer over()
	return r.Applications(ctx, list, app, measured, done)
}

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
