package survey

import (
	"context"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"
	"golang.org/x/sync/errgroup"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// vendorGroups reads the names of the vendor device groups of hosts that offer vGPUs (HostAssignableHardwareManager,
// RetrieveVendorDeviceGroupInfo, since vSphere API 8.0.0.1). It costs one call, and one more for each such host.
func (rd *reading) vendorGroups(ctx context.Context, conn *wire.Conn) []backends.Gap {
	hosts := map[place.Ref]*hostRow{}
	spec := types.PropertyFilterSpec{PropSet: []types.PropertySpec{{Type: "HostSystem", PathSet: []string{"configManager.assignableHardwareManager"}}}}
	for _, h := range rd.hosts {
		if len(h.host.Profiles) > 0 && h.host.State == "connected" && !old(h.host.Version) {
			hosts[h.ref] = h
			spec.ObjectSet = append(spec.ObjectSet, types.ObjectSpec{Obj: h.ref})
		}
	}
	if len(hosts) == 0 {
		return nil
	}
	managers := map[place.Ref]place.Ref{}
	if _, err := conn.Retrieve(ctx, []types.PropertyFilterSpec{spec}, func(o wire.Object) {
		managers[o.Ref] = wire.Value[place.Ref](o, "configManager.assignableHardwareManager")
	}); err != nil {
		return []backends.Gap{{Target: backends.Ref{Type: backends.TypeVCenter}, What: "vendor device groups", Why: wire.Text(err)}}
	}
	gaps := make(chan backends.Gap, len(hosts))
	var g errgroup.Group
	g.SetLimit(parallel)
	for ref, h := range hosts {
		if managers[ref].Value == "" {
			continue
		}
		g.Go(func() error {
			res, err := methods.RetrieveVendorDeviceGroupInfo(ctx, conn.VIM(), &types.RetrieveVendorDeviceGroupInfo{This: managers[ref]})
			if err != nil {
				gaps <- backends.Gap{Target: backends.HostRef(rd.index.Name(ref)), What: "vendor device groups", Why: wire.Text(err)}
				return nil
			}
			for _, group := range res.Returnval {
				h.host.DeviceGroups = append(h.host.DeviceGroups, group.DeviceGroupName)
			}
			slices.Sort(h.host.DeviceGroups)
			return nil
		})
	}
	_ = g.Wait() // failures are gaps
	return sorted(gaps)
}

// old reports whether an error means a release before groups were added to HostAssignableHardwareManager.
func old(version string) bool {
	return strings.HasPrefix(version, "6.") || strings.HasPrefix(version, "7.")
}
