package session

import (
	"context"
	"errors"

	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/ui/cmd/hostfacts"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// errNoSSH is said of hosts whose shell cannot be asked because a check starts nothing.
var errNoSSH = errors.New("the SSH service of the host is not running, and a check does not start it")

// AskShells asks the firmware of the cards over the ESXi shells, where SSH runs already. The tools need a module of their
// own loaded, which stays until the next boot: that is why it is only done when the operator allows it.
func (s *Session) AskShells(ctx context.Context, a *answers.Answers, facts *checks.Facts) error {
	if err := s.reachGuests(); err != nil {
		return err
	}
	var open []string
	for _, h := range hostfacts.Reachable(a, facts.Inventory) {
		f := facts.HostFacts[h.Name]
		if h.SSHRunning {
			open = append(open, h.Name)
		} else {
			f.ShellErr = errNoSSH
		}
		facts.HostFacts[h.Name] = f
	}
	limited, cancel := context.WithTimeout(ctx, s.Set.HostTimeout)
	defer cancel()
	for name, r := range s.Shells.Read(limited, open, a.Run.Parallel) {
		f := facts.HostFacts[name]
		if f.ShellErr = r.Err; r.Err == nil {
			f.Firmware = hostfacts.Cards(r.Cards)
		}
		facts.HostFacts[name] = f
	}
	return ctx.Err()
}
