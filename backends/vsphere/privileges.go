package vsphere

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// A Lack is a privilege that the account lacks on an entity.
type Lack struct {
	Entity    string // name of the entity
	Privilege string // Host.Config.NetService
}

// Missing returns which privileges the account lacks on which of the targets; a target of type vcenter is the root of the
// inventory. It costs one call for each type of target, whatever their number.
func (c *Client) Missing(ctx context.Context, want map[backends.Ref][]string) ([]Lack, error) {
	byType := map[backends.TargetType][]backends.Ref{}
	for t := range want {
		byType[t.Type] = append(byType[t.Type], t)
	}
	var out []Lack
	for _, kind := range slices.Sorted(maps.Keys(byType)) {
		targets := byType[kind]
		slices.SortFunc(targets, func(x, y backends.Ref) int { return cmp.Compare(x.Name, y.Name) })
		lacks, err := c.missing(ctx, targets, want)
		if err != nil {
			return nil, err
		}
		out = append(out, lacks...)
	}
	return out, nil
}

func (c *Client) missing(ctx context.Context, targets []backends.Ref, want map[backends.Ref][]string) ([]Lack, error) {
	const what = "ask for the account's privileges"
	vim := c.conn.VIM()
	manager := vim.ServiceContent.AuthorizationManager
	if manager == nil {
		return nil, backends.Errorf(backends.KindPermanent, "vCenter", "", "%s: this vCenter does not report them", what)
	}
	refs := make([]types.ManagedObjectReference, len(targets))
	var privileges []string
	for i, t := range targets {
		refs[i] = vim.ServiceContent.RootFolder
		if t.Type != backends.TypeVCenter {
			var err error
			if refs[i], err = c.places.Find(ctx, t); err != nil {
				return nil, err
			}
		}
		privileges = append(privileges, want[t]...)
	}
	slices.Sort(privileges)
	res, err := methods.HasPrivilegeOnEntities(ctx, vim, &types.HasPrivilegeOnEntities{
		This: *manager, Entity: refs, SessionId: c.conn.Session(), PrivId: slices.Compact(privileges),
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
	for i, t := range targets {
		for _, p := range want[t] {
			if !slices.Contains(granted[refs[i]], p) {
				out = append(out, Lack{Entity: t.Name, Privilege: p})
			}
		}
	}
	return out, nil
}
