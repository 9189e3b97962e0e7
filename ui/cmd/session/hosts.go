package session

import (
	"context"
	"net"
	"os"
	"slices"
	"strconv"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/system"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// planAsks returns the questions to hosts that a plan depends on, never nil; none if neither a driver nor a vGPU is set up.
func planAsks(a *answers.Answers) []system.Question {
	ats := a.Mode == answers.GPUDirect && a.GPUDirect.ATS
	lossless := a.QoS.Lossless != "" && a.QoS.Lossless != answers.LosslessNone
	out := []system.Question{}
	if a.VFs() || lossless {
		out = append(out, system.Modules)
	}
	if a.QoS.Lossless == answers.LosslessPause {
		out = append(out, system.Pause)
	}
	if a.VFs() || ats || lossless && len(a.SRIOV.Components) > 0 || a.VGPUs() && a.GPUDirect.Manager != "" {
		out = append(out, system.Versions, system.VIBs, system.NextVIBs, system.Acceptance, system.Offers, system.Exceptions)
	} else if a.VGPUs() { // the vGPU Manager
		out = append(out, system.VIBs)
	}
	return out
}

// checkAsks returns the questions of the full check: those of everything that the site uses.
func checkAsks(a *answers.Answers, inv *backends.Inventory) []system.Question {
	out := []system.Question{system.Versions, system.Counters, system.Modules, system.Pause, system.Neighbours}
	vgpus := a.VGPUs() || slices.ContainsFunc(a.VMs, func(v answers.VM) bool {
		vm := inv.VM(v.Name)
		return vm != nil && len(vm.VGPUProfiles()) > 0
	})
	if a.Mode == answers.PVRDMA {
		out = append(out, system.Peers)
	} else {
		out = append(out, system.Resync)
	}
	if a.VFs() {
		out = append(out, system.VIBs, system.Acceptance, system.VFs)
	} else if a.GPUs() && vgpus {
		out = append(out, system.VIBs)
	}
	if a.GPUs() {
		out = append(out, system.BootDevice)
	}
	return out
}

// AskRest reads from hosts what the full check of the answers' mode leaves out, for building a copy of the site.
func (s *Session) AskRest(ctx context.Context, a *answers.Answers, inv *backends.Inventory) {
	took, err := s.VC.Took(ctx)
	if err != nil {
		inv.Gaps = append(inv.Gaps, backends.Gap{Target: backends.Ref{Type: backends.TypeVCenter}, What: "how long operations took",
			Why: err.Error()})
	}
	inv.Took = took
	what := []system.Question{system.VIBs, system.NextVIBs, system.Acceptance, system.Exceptions, system.VFs, system.BootDevice}
	if len(a.HostPackages()) > 0 {
		what = append(what, system.Offers)
	}
	s.ask(ctx, a, inv, what)
}

// Reachable returns the selected hosts that vCenter is connected to.
func Reachable(a *answers.Answers, inv *backends.Inventory) []*backends.Host {
	var out []*backends.Host
	for i := range inv.Hosts {
		if h := &inv.Hosts[i]; h.State == "connected" && (len(a.Hosts.Names) == 0 || slices.Contains(a.Hosts.Names, h.Name)) {
			out = append(out, h)
		}
	}
	return out
}

// ask reads the hosts that take part through the API, never by SSH.
func (s *Session) ask(ctx context.Context, a *answers.Answers, inv *backends.Inventory, what []system.Question) {
	hosts, pnics := Reachable(a, inv), map[string][]string{}
	for _, view := range a.Views() {
		for _, h := range hosts {
			near := backends.ChoosePNIC(h, sizing.PNICWish(view, h.Name)).Nearest
			if near != nil && near.Meant() && near.NIC.Hidden == "" && !slices.Contains(pnics[h.Name], near.NIC.Device) {
				pnics[h.Name] = append(pnics[h.Name], near.NIC.Device)
			}
		}
	}
	ctx, over := s.Waiting(ctx, "read details of the hosts, each for at most "+s.Set.HostTimeout.String(), "vCenter", -1)
	defer over()
	s.VC.Depots(a.HostPackages())
	paths := slices.DeleteFunc(a.HostPackages(), nic.ForImage)
	s.VC.System(ctx, hosts, vsphere.SystemOptions{
		Ask: what, Parallel: a.Run.Parallel, Limit: s.Set.HostTimeout, Depots: paths, PNICs: pnics, VMKNic: a.PVRDMA.VMKNic.Of,
	})
	if slices.Contains(what, system.Offers) {
		s.VC.Images(ctx, inv, hosts)
		missingFiles(a.HostPackages(), hosts)
	}
}

// missingFiles adds the files of this computer that cannot be read to what hosts with an image are offered.
func missingFiles(components []string, hosts []*backends.Host) {
	for _, file := range components {
		if !nic.IsFile(file) {
			continue
		}
		why := ""
		if info, err := os.Stat(file); err != nil {
			why = err.Error()
		} else if !info.Mode().IsRegular() {
			why = file + " is no file"
		}
		for _, h := range hosts {
			if why != "" && h.Imaged() && h.System != nil {
				h.System.Offers = append(h.System.Offers, backends.Component{Path: file, Error: why})
			}
		}
	}
}

// ShellTarget returns how to reach the shell of a host: according to the answers, else by its inventory name.
func (s *Session) ShellTarget(host string) (ssh.Target, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers == nil {
		return ssh.Target{}, false
	}
	e := s.answers.ESXi
	t := ssh.Target{Name: host, Class: "esxi", Host: host, Port: e.Port, User: e.User}
	if addr := e.Addresses[host]; addr != "" {
		t.Host = addr
		if name, port, err := net.SplitHostPort(addr); err == nil {
			if n, err := strconv.Atoi(port); err == nil {
				t.Host, t.Port = name, n
			}
		}
	}
	return t, true
}
