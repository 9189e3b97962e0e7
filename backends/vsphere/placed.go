package vsphere

import (
	"context"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/bracket"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// HostsOf returns the current hosts of VMs, by name; VMs that no longer exist are left out.
func (c *Client) HostsOf(ctx context.Context, vms []string) (map[string]string, error) {
	names := map[types.ManagedObjectReference]string{}
	var refs []types.ManagedObjectReference
	for _, vm := range vms {
		ref, ok, err := c.places.Look(ctx, backends.VMRef(vm))
		if err != nil {
			return nil, err
		}
		if ok {
			names[ref] = vm
			refs = append(refs, ref)
		}
	}
	out := map[string]string{}
	if len(refs) == 0 {
		return out, nil
	}
	_, err := c.conn.Retrieve(ctx, []types.PropertyFilterSpec{wire.Of("VirtualMachine", refs, "runtime.host")}, func(o wire.Object) {
		out[names[o.Ref]] = c.places.Name(wire.Value[types.ManagedObjectReference](o, "runtime.host"))
	})
	return out, wire.Explain(err, "vCenter", "read where the VMs are")
}

// MoveTo moves a VM to a host: by vMotion if it is on.
func (c *Client) MoveTo(ctx context.Context, vm, host string) error {
	return bracket.MoveTo(ctx, c.conn, c.places, backends.VMRef(vm), backends.HostRef(host))
}
