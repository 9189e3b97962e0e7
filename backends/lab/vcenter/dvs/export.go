package dvs

import (
	"encoding/json"
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// DVSManagerExportEntityTask exports the configuration of switches and port groups. The result of the task is a list of
// EntityBackupConfig. If a selected object does not exist, the call fails with NotFound (vSphere Web Services API,
// DistributedVirtualSwitchManager). The API reference lists no required privilege.
func (m manager) DVSManagerExportEntityTask(ctx *simulator.Context, req *types.DVSManagerExportEntity_Task) soap.HasFault {
	task := m.f.Start(ctx, "DVSManagerExportEntity_Task", "dvs.DistributedVirtualSwitchManager.exportEntity", req.This, frame.TaskOptions{}, func() (any, error) {
		var out types.ArrayOfEntityBackupConfig
		var err error
		m.f.World.View(func(s *world.State) { out.EntityBackupConfig, err = exported(s, req.SelectionSet) })
		return out, err
	})
	return frame.Answer(types.DVSManagerExportEntity_TaskResponse{Returnval: task}, nil)
}

func exported(s *world.State, sets []types.BaseSelectionSet) ([]types.EntityBackupConfig, error) {
	var out []types.EntityBackupConfig
	add := func(kind types.EntityType, key, name string, container types.ManagedObjectReference, what any) error {
		blob, err := json.Marshal(what)
		if err != nil {
			return err
		}
		out = append(out, types.EntityBackupConfig{EntityType: string(kind), ConfigBlob: blob, Key: key, Name: name, Container: &container, ConfigVersion: "1"})
		return nil
	}
	for _, set := range sets {
		switch sel := set.(type) {
		case *types.DVSSelection:
			d := model.SwitchByUUID(s, sel.DvsUuid)
			if d == nil {
				return nil, frame.Refuse(&types.NotFound{})
			}
			if err := add(types.EntityTypeDistributedVirtualSwitch, d.UUID, d.Shown(), model.FolderOf(d), map[string]any{"version": d.Version, "mtu": d.MTU,
				"uplinks": d.Uplinks, "members": d.Members}); err != nil {
				return nil, err
			}
		case *types.DVPortgroupSelection:
			d := model.SwitchByUUID(s, sel.DvsUuid)
			if d == nil {
				return nil, frame.Refuse(&types.NotFound{})
			}
			for _, key := range sel.PortgroupKey {
				i := slices.IndexFunc(d.PortGroups, func(g *world.PortGroup) bool { return g.Key == key })
				if i < 0 {
					return nil, frame.Refuse(&types.NotFound{})
				}
				if err := add(types.EntityTypeDistributedVirtualPortgroup, key, d.PortGroups[i].Name, model.SwitchRef(d), d.PortGroups[i]); err != nil {
					return nil, err
				}
			}
		default:
			return nil, frame.BadArgument("selectionSet")
		}
	}
	return out, nil
}
