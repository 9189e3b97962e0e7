package esxi

import (
	"context"
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
