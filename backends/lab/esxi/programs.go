package esxi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

func (h *Host) programs() map[string]sh.Program {
	return map[string]sh.Program{"vsish": h.vsish, "secureBoot.py": h.secureBoot, "reboot": h.reboot}
}

// secureBoot prints whether UEFI Secure Boot was enabled at boot.
func (h *Host) secureBoot(_ context.Context, p *sh.Proc) int {
	if len(p.Args) != 2 || p.Args[1] != "-s" {
		p.Errorf("usage: secureBoot.py [-h] [-a | -c | -s]\n")
		return 2
	}
	word := "Disabled"
	h.host(func(host *world.Host) {
		if host.SecureBoot {
			word = "Enabled"
		}
	})
	p.Printf("%s\n", word)
	return 0
}

func (h *Host) host(f func(*world.Host)) {
	h.world.View(func(s *world.State) {
		if host := s.Host(h.name); host != nil {
			f(host)
		}
	})
}

func (h *Host) reboot(context.Context, *sh.Proc) int {
	w, name := h.world, h.name
	w.After(30*time.Millisecond, func() { _ = w.RebootHost(name) }) // a host that is already shutting down ignores a second request
	return 0
}

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

// vsish prints the statistics of pNICs: the general ones, then those of the driver. nmlx5 uses the counter names that ethtool
// shows for mlx5 on Linux.
func (h *Host) vsish(_ context.Context, p *sh.Proc) int {
	args := p.Args[1:]
	if len(args) != 3 || args[0] != "-e" || !slices.Contains([]string{"get", "cat"}, args[1]) {
		fmt.Fprintf(p.Stderr, "Usage: vsish -e <command> <node>\n")
		return 1
	}
	device, ok := strings.CutSuffix(strings.TrimPrefix(args[2], "/net/pNics/"), "/stats")
	text := ""
	h.world.View(func(s *world.State) {
		host := s.Host(h.name)
		if nic := host.PNIC(device); ok && nic != nil {
			text = stats(nic)
		}
	})
	if text == "" {
		fmt.Fprintf(p.Stderr, "VSISHCmdGetInt():Get failed: Not found\n")
		return 1
	}
	p.Printf("%s", text)
	return 0
}

func stats(nic *world.PNIC) string {
	return "device {\n  -- General Statistics:\n  Rx Packets:184213\n  Tx Packets:90312\n  Rx Bytes:21913320\n  Tx Bytes:8120443\n" +
		"  -- Driver Specific Statistics:\n" + nic.Statistics("  ") + "}\n"
}
