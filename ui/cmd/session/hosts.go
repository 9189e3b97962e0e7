package session

import (
	"context"
	"net"
	"strconv"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
	"github.com/rdma-setup/rdma-setup/ui/cmd/hostfacts"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// asksDriver tells whether a plan depends on what only esxcli tells of a host's driver.
func asksDriver(a *answers.Answers) bool {
	return a.VFs() || a.Mode == answers.GPUDirect && a.GPUDirect.ATS || a.QoS.Lossless != "" && a.QoS.Lossless != answers.LosslessNone
}

// systems asks the hosts that take part by esxcli, through the API: never by SSH.
func (s *Session) systems(ctx context.Context, a *answers.Answers, inv *backends.Inventory) {
	var names []string
	for _, h := range hostfacts.Reachable(a, inv) {
		names = append(names, h.Name)
	}
	s.VC.Depots(a.SRIOV.Components)
	found := s.VC.System(ctx, names, vsphere.SystemOptions{Parallel: a.Run.Parallel, Depots: a.SRIOV.Components})
	for i := range inv.Hosts {
		if sys := found[inv.Hosts[i].Name]; sys != nil {
			inv.Hosts[i].System = sys
		}
	}
}

// shellTarget says how the shell of a host is reached: as the answers tell, else by its inventory name.
func (s *Session) shellTarget(host string) (ssh.Target, bool) {
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
