package survey

import (
	"context"
	"fmt"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"
	"golang.org/x/sync/errgroup"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

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
			cards, err := k.adapters(ctx, conn)
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
