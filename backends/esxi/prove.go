package esxi

import (
	"context"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// Prove logs in to a host's shell and runs a command that does nothing. An account with shell access needs no sudo: since ESXi
// 5.1, local users with the Administrator role have full rights in the shell, as root has (VMware vSphere Blog, "vSphere 5.1:
// Full Admin Support for Named User Accounts").
func (h *Hosts) Prove(ctx context.Context, host string) error {
	return h.with(ctx, host, func(s *shell) error {
		r, err := s.conn.Run(ctx, ssh.Command{Script: "true", Limit: s.limit})
		if err == nil && r.ExitCode != 0 {
			err = backends.Errorf(backends.KindRefused, host, "Give the user the Administrator role and shell access on the host, or set another user as esxi.user in the answers.",
				"%s logged in, but has no shell: %s", s.conn.User(), backends.Clean(r.Stderr))
		}
		return err
	})
}
