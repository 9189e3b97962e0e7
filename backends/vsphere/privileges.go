package vsphere

import (
	"context"
	"slices"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// A Lack is a privilege that the account does not have on an entity.
type Lack struct {
	Entity    string // its name; "vCenter" for the root
	Privilege string // Host.Config.NetService
}

// Missing tells which of the privileges the account lacks on the entities; with none given, on vCenter's root. It
// costs one call, whatever the number of entities.
func (c *Client) Missing(ctx context.Context, privileges []string, entities ...backends.Ref) ([]Lack, error) {
	const what = "ask for the account's privileges"
	vim := c.conn.VIM()
	manager := vim.ServiceContent.AuthorizationManager
	if manager == nil {
		return nil, backends.Errorf(backends.KindPermanent, "vCenter", "", "%s: this vCenter does not tell", what)
	}
	names := map[types.ManagedObjectReference]string{}
	var refs []types.ManagedObjectReference
	if len(entities) == 0 {
		refs = append(refs, vim.ServiceContent.RootFolder)
		names[refs[0]] = "vCenter"
	}
	for _, e := range entities {
		ref, err := c.places.Find(ctx, e)
		if err != nil {
			return nil, err
		}
		if _, twice := names[ref]; !twice {
			refs = append(refs, ref)
			names[ref] = e.Name
		}
	}
	res, err := methods.HasPrivilegeOnEntities(ctx, vim, &types.HasPrivilegeOnEntities{
		This: *manager, Entity: refs, SessionId: c.conn.Session(), PrivId: privileges,
	})
	if err != nil {
		return nil, wire.Explain(err, "vCenter", what)
	}
	granted := map[types.ManagedObjectReference][]string{}
	for _, e := range res.Returnval {
		for _, p := range e.PrivAvailability {
			if p.IsGranted {
				granted[e.Entity] = append(granted[e.Entity], p.PrivId)
			}
		}
	}
	var out []Lack
	for _, ref := range refs {
		for _, p := range privileges {
			if !slices.Contains(granted[ref], p) {
				out = append(out, Lack{Entity: names[ref], Privilege: p})
			}
		}
	}
	return out, nil
}
