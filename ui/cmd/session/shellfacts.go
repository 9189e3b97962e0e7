package session

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// noSSH is the reason for hosts whose shell cannot be used because a check starts nothing.
const noSSH = "the SSH service of the host is not running, and check does not start it"

// AskShells reads the firmware of the cards, Secure Boot and the log in the ESXi shells, if SSH runs already. The tools load a
// kernel module, which stays until the next boot: therefore the operator must allow it.
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
		h := facts.Inventory.Host(name)
		sys := h.System
		sys.SecureBoot, sys.Log = r.SecureBoot, sinceBoot(r.Log, h.BootTime)
		if sys.ShellError = ""; r.Err != nil {
			sys.ShellError = r.Err.Error()
		} else {
			sys.Firmware = r.Cards
		}
	}
	return ctx.Err()
}

// sinceBoot returns the lines of a log that are not older than the boot: each begins with the time in UTC (vSphere Monitoring and
// Performance, ESXi Log Files: ISO 8601). nil stays nil.
func sinceBoot(lines []string, boot time.Time) []string {
	return slices.DeleteFunc(lines, func(line string) bool {
		stamp, _, _ := strings.Cut(line, " ")
		at, err := time.Parse(time.RFC3339, stamp)
		return err == nil && at.Before(boot)
	})
}
