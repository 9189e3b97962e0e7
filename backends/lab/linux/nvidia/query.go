package nvidia

import (
	"context"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
)

// dkms rebuilds the modules for the running kernel.
func (d *Driver) dkms(_ context.Context, p *sh.Proc) int {
	version, _ := d.Version()
	if len(p.Args) < 2 || p.Args[1] == "status" {
		if version != "" {
			p.Printf("nvidia/%s, %s, x86_64: installed\n", version, d.Kernel.Release)
		}
		return 0
	}
	switch verb := p.Args[1]; {
	case !slices.Contains([]string{"autoinstall", "build", "install", "remove"}, verb):
		return p.Fail(1, "Error! Unknown action specified: \"%s\"", verb)
	case !p.Root():
		return p.Fail(1, "Error! You must be root to use this command.")
	case verb == "install":
		d.Rebuild()
		p.Printf("\nnvidia.ko:\nRunning module version sanity check.\n - Installing to /lib/modules/%s/updates/dkms/\n\ndepmod...\n", d.Kernel.Release)
	}
	return 0
}
