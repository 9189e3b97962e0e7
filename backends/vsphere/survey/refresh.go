package survey

import (
	"context"
	"maps"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// refreshLimit bounds one refresh: a host that does not answer must not delay the others for long.
const refreshLimit = 20 * time.Second

// refresh makes vCenter read firewall and services of hosts again. After a change on the host itself, vCenter's copy may be
// minutes old (vmware/vic issue 3139), and RefreshFirewall and RefreshServices "pick up any changes made directly on the host"
// (vSphere Web Services API, HostFirewallSystem and HostServiceSystem). They change nothing, but both require the privilege
// Host.Config.NetService, which a read-only account lacks: then the copy is used, and Host.Stale says so. RefreshStorageSystem is
// not called, because it reads every storage device of the host.
func (rd *reading) refresh(ctx context.Context, conn *wire.Conn, hosts map[place.Ref]*hostRow) []backends.Gap {
	gaps := make(chan backends.Gap, len(hosts))
	backends.InParallel(maps.All(hosts), parallel, func(ref place.Ref, h *hostRow) {
		if h.host.State != "connected" || h.firewall.Value == "" || h.services.Value == "" {
			return
		}
		ctx, cancel := context.WithTimeout(wire.On(ctx, rd.index.Name(ref)), refreshLimit)
		defer cancel()
		_, err := methods.RefreshFirewall(ctx, conn.VIM(), &types.RefreshFirewall{This: h.firewall})
		if err == nil {
			_, err = methods.RefreshServices(ctx, conn.VIM(), &types.RefreshServices{This: h.services})
		}
		if err != nil {
			h.host.Stale = wire.Text(err)
			gaps <- backends.Gap{Target: backends.HostRef(rd.index.Name(ref)), What: "firewall and services as they are now",
				Why: "vCenter's copy may be minutes old: " + h.host.Stale}
		}
	})
	return sorted(gaps)
}
