package survey

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"
	"golang.org/x/sync/errgroup"

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

// AskRDMA reads the RDMA devices of one host, by name. NIC is the paired pNIC.
type AskRDMA func(ctx context.Context, host string) ([]backends.RDMADevice, error)

// older reads the RDMA devices of connected hosts before ESXi 7.0, whose network info lacks them (vSphere Web Services API,
// HostRdmaDevice: since vSphere API 7.0), whatever the version of vCenter.
func (rd *reading) older(ctx context.Context, ask func(*place.Index) AskRDMA) []backends.Gap {
	var rows []*hostRow
	for _, h := range rd.hosts {
		if strings.HasPrefix(h.host.Version, "6.") && h.host.State == "connected" && len(h.host.RDMA) == 0 {
			rows = append(rows, h)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	devices := ask(rd.index)
	errs := make([]error, len(rows))
	backends.InParallel(slices.All(rows), parallel, func(i int, h *hostRow) {
		var found []backends.RDMADevice
		found, errs[i] = devices(ctx, rd.index.Name(h.ref))
		h.pair(found)
	})
	var gaps []backends.Gap
	for i, err := range errs {
		if err != nil {
			gaps = append(gaps, backends.Gap{Target: backends.HostRef(rd.index.Name(rows[i].ref)), What: "RDMA devices",
				Why: "ESXi " + rows[i].host.Version + " does not report them through the API, and esxcli rdma device list failed: " + err.Error()})
		}
	}
	return gaps
}

// pair stores RDMA devices in the host and in their paired pNICs.
func (r *hostRow) pair(devices []backends.RDMADevice) {
	for _, d := range devices {
		if i := slices.IndexFunc(r.host.NICs, func(n backends.NIC) bool { return n.Device == d.NIC }); i >= 0 {
			n := &r.host.NICs[i]
			n.RDMADevice, n.RDMAState = d.Name, d.State
			n.RoCEv1, n.RoCEv2, n.IWARP = d.RoCEv1, d.RoCEv2, d.IWARP
		}
		r.host.RDMA = append(r.host.RDMA, d)
	}
}

// A guestOS identifies a guest OS and hardware version in a cluster: the list of supported adapters depends on them.
type guestOS struct {
	browser  place.Ref // one per cluster (VirtualMachine.environmentBrowser: that of the compute resource)
	hardware int
	id       string // GuestOsIdentifier
}

// askGuestOS reads which adapters vCenter supports for the guest OS of VMs: one call for each guest OS and hardware version of a
// cluster. Source: vSphere Web Services API, EnvironmentBrowser.QueryConfigOptionEx; for an unknown guest id it returns the whole
// list.
func (rd *reading) askGuestOS(ctx context.Context, conn *wire.Conn, vms map[place.Ref]*vmRow) ([]backends.Gap, error) {
	alike := map[guestOS][]*vmRow{}
	for _, v := range vms {
		if v.browser.Value != "" && v.vm.Hardware > 0 && v.vm.GuestID != "" {
			k := guestOS{v.browser, v.vm.Hardware, v.vm.GuestID}
			alike[k] = append(alike[k], v)
		}
	}
	gaps := make(chan backends.Gap, len(vms))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for k, rows := range alike {
		g.Go(func() error {
			cards, err := k.adapters(wire.On(ctx, rd.index.Name(rows[0].ref)+" (environmentBrowser)"), conn)
			if err != nil && ctx.Err() != nil {
				return err
			}
			for _, v := range rows {
				if v.vm.GuestAdapters = cards; err != nil {
					gaps <- backends.Gap{Target: backends.VMRef(rd.index.Name(v.ref)), What: "adapters for guest OS " + k.id, Why: wire.Text(err)}
				}
			}
			return nil
		})
	}
	err := g.Wait()
	return sorted(gaps), err
}

// adapters returns the supported classes; nil if vCenter has no such configuration, empty if it does not list the guest OS.
func (k guestOS) adapters(ctx context.Context, conn *wire.Conn) ([]string, error) {
	res, err := methods.QueryConfigOptionEx(ctx, conn.VIM(), &types.QueryConfigOptionEx{This: k.browser,
		Spec: &types.EnvironmentBrowserConfigOptionQuerySpec{Key: fmt.Sprintf("vmx-%02d", k.hardware), GuestId: []string{k.id}}})
	if err != nil || res.Returnval == nil {
		return nil, err
	}
	for _, d := range res.Returnval.GuestOSDescriptor {
		if d.Id == k.id {
			return append([]string{}, d.SupportedEthernetCard...), nil
		}
	}
	return []string{}, nil
}
