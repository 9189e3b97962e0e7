package system

import (
	"context"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
)

// exceptions are the accounts that lockdown mode of a host lets in; none where the account in use may not ask.
func (s *System) exceptions(ctx context.Context, host string) []string {
	_, access, err := s.part(ctx, backends.HostRef(host), func(m types.HostConfigManager) *types.ManagedObjectReference { return m.HostAccessManager })
	if err != nil {
		return nil
	}
	res, err := methods.QueryLockdownExceptions(ctx, s.conn.VIM(), &types.QueryLockdownExceptions{This: access})
	if err != nil {
		return nil
	}
	return res.Returnval
}
