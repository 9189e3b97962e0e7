package esxi

import (
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// password checks a password for root. After Security.AccountLockFailures consecutive failed logins, the account is locked for
// Security.AccountUnlockTime seconds, and the correct password is refused too (vSphere Security, "ESXi Passwords and Account
// Lockout": over SSH and the API, 5 and 900 by default since 6.5; Broadcom KB 436299). Logins with a key are not counted.
func (h *Host) password(given string) bool {
	verdict := "refused"
	_ = h.world.Update(func(s *world.State) ([]world.Event, error) {
		host := s.Host(h.name)
		if host == nil {
			return nil, nil
		}
		right := host.Password
		if right == "" {
			right = h.world.Secrets.ESXi
		}
		most, _ := host.Options["Security.AccountLockFailures"].(int64) // if 0 or missing, the account is never locked
		wait, _ := host.Options["Security.AccountUnlockTime"].(int64)
		now := time.Now()
		switch {
		case now.Before(host.LockedUntil):
			verdict = "locked"
		case given == right:
			verdict, host.Refused = "accepted", 0
		default:
			if host.Refused++; most > 0 && int64(host.Refused) >= most {
				host.Refused, host.LockedUntil = 0, now.Add(time.Duration(wait)*time.Second)
			}
		}
		return []world.Event{{What: world.HostLogin, Host: h.name, Detail: verdict}}, nil
	})
	return verdict == "accepted"
}
