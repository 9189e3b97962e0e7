package esxi

import (
	"context"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// Prove logs in to a host's shell and asks who it is. "mst start" creates device files and loads kernel modules (NVIDIA Firmware
// Tools (MFT) Documentation, "mst Commands and Switches Description - VMware"), which root alone may do.
func (h *Hosts) Prove(ctx context.Context, host string) error {
	return h.with(ctx, host, func(s *shell) error {
		r, err := s.conn.Run(ctx, ssh.Command{Argv: []string{"id", "-u"}, Limit: s.limit})
		if err != nil {
			return err
		}
		if id := strings.TrimSpace(r.Stdout); r.ExitCode != 0 || id != "0" {
			return backends.Errorf(backends.KindRefused, host, "Set esxi.user in the answers to root.",
				"%s is not root in the ESXi shell (id -u says %q), and the firmware tools need root", s.conn.User(), id)
		}
		return nil
	})
}
