package session

import (
	"context"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// noSSH is said of hosts whose shell cannot be asked because a check starts nothing.
const noSSH = "the SSH service of the host is not running, and check does not start it"

// AskShells asks the firmware of the cards over the ESXi shells, where SSH runs already. The tools need a module of their
// own loaded, which stays until the next boot: that is why it is only done when the operator allows it.
func (s *Session) AskShells(ctx context.Context, a *answers.Answers, facts *checks.Facts) error {
	if err := s.reachGuests(); err != nil {
		return err
	}
	var open []string
	for _, h := range Reachable(a, facts.Inventory) {
		if h.System == nil {
			h.System = &backends.HostSystem{}
		}
		if h.SSHRunning {
			open = append(open, h.Name)
		} else {
			h.System.ShellError = noSSH
		}
	}
	limited, cancel := context.WithTimeout(ctx, s.Set.HostTimeout)
	defer cancel()
	for name, r := range s.Shells.Read(limited, open, a.Run.Parallel) {
		sys := facts.Inventory.Host(name).System
		if sys.ShellError = ""; r.Err != nil {
			sys.ShellError = r.Err.Error()
		} else {
			sys.Firmware = r.Cards
		}
	}
	return ctx.Err()
}
