package dvs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// versions returns the DVS versions that a vCenter offers, oldest first. None is newer than the vCenter, and none is older than
// the oldest ESXi release that it manages (vSphere Networking, "Upgrade a vSphere Distributed Switch to a Later Version"; KB
// 434420). There is no public source for the versions of 9.0.
func versions(vcenter string) []string {
	oldest := "6.0.0"
	switch {
	case !world.VersionLess(vcenter, "9.0.0"):
		oldest = "7.0.3"
	case !world.VersionLess(vcenter, "8.0.0"):
		oldest = "6.6.0"
	case !world.VersionLess(vcenter, "7.0.0"):
		oldest = "6.5.0"
	}
	all := []string{"6.0.0", "6.5.0", "6.6.0", "7.0.0", "7.0.2", "7.0.3", "8.0.0", "8.0.3", "9.0.0"}
	return slices.DeleteFunc(all, func(v string) bool {
		return world.VersionLess(v, oldest) || world.VersionLess(vcenter, releaseOf(v))
	})
}

// releaseOf returns the ESXi release that introduced a DVS version. 6.6.0 was introduced in 6.7; every other version has the
// number of its release.
func releaseOf(dvs string) string {
	if dvs == "6.6.0" {
		return "6.7.0"
	}
	return dvs
}

func newest(s *world.State) string {
	all := versions(s.VCenterVersion())
	return all[len(all)-1]
}

func available(s *world.State, version string) error {
	if !slices.Contains(versions(s.VCenterVersion()), version) {
		return frame.BadArgument("spec.productInfo.version")
	}
	return nil
}

// compatible returns an error if a host does not support a DVS version: the host must not be older than the version.
func compatible(h *world.Host, version string) error {
	if world.VersionLess(h.Version, releaseOf(version)) {
		return frame.Refuse(&types.NotSupported{}, "Host "+h.Name+" is not compatible with the VDS version "+version+".")
	}
	return nil
}

type manager struct{ base }

// QueryAvailableDvsSpec lists the available DVS versions; with recommended set, only the newest one.
func (m manager) QueryAvailableDvsSpec(_ *simulator.Context, req *types.QueryAvailableDvsSpec) soap.HasFault {
	var list []types.DistributedVirtualSwitchProductSpec
	m.f.World.View(func(s *world.State) {
		for _, v := range versions(s.VCenterVersion()) {
			if req.Recommended == nil || *req.Recommended == (v == newest(s)) {
				list = append(list, model.Product(v))
			}
		}
	})
	return frame.Answer(types.QueryAvailableDvsSpecResponse{Returnval: list}, nil)
}

// QueryDvsFeatureCapability returns the capabilities of a DVS.
func (m manager) QueryDvsFeatureCapability(_ *simulator.Context, _ *types.QueryDvsFeatureCapability) soap.HasFault {
	return frame.Answer(types.QueryDvsFeatureCapabilityResponse{Returnval: model.Feature()}, nil)
}

type folder struct{ base }

// CreateDVSTask creates a DVS in a network folder, with its uplinks and hosts.
func (m folder) CreateDVSTask(ctx *simulator.Context, req *types.CreateDVS_Task) soap.HasFault {
	parent, known := "", false
	m.f.World.View(func(s *world.State) {
		for n := range 1 + len(s.Others) {
			if req.This == model.NetFolderRef(n) {
				parent, known = world.RootFolder("n", n), true
			}
		}
	})
	if !known {
		return frame.Answer(nil, frame.Refuse(&types.NotSupported{}))
	}
	spec, extra, err := split(req.Spec.ConfigSpec)
	if err == nil {
		err = m.mayTouchHosts(ctx, req.This, spec.Host)
	}
	if err != nil {
		return frame.Answer(nil, err)
	}
	version := ""
	if p := req.Spec.ProductInfo; p != nil && p.Version != "" {
		version = p.Version
	}
	task := m.f.Start(ctx, "CreateDVS_Task", "Folder.createDistributedVirtualSwitch", req.This, frame.TaskOptions{Cancelable: true},
		func() (any, error) {
			var ref types.ManagedObjectReference
			err := m.f.World.Update(func(s *world.State) ([]world.Event, error) {
				if err := freeName(s, parent, spec.Name); err != nil {
					return nil, err
				}
				version := cmp.Or(version, newest(s))
				if err := available(s, version); err != nil {
					return nil, err
				}
				d := &world.DVS{Name: spec.Name, Folder: parent, UUID: s.SwitchUUID(), Version: version, MTU: 1500, NIOC: true, Discovery: "cdp listen",
					Uplinks: defaultUplinks(), Setting: model.SwitchExtra{Created: time.Now()}}
				hosts, err := create(s, d, spec, extra)
				if err != nil {
					return nil, err
				}
				ref = model.SwitchRef(d)
				return touched(d.Name, hosts), nil
			})
			return ref, err
		})
	return frame.Answer(types.CreateDVS_TaskResponse{Returnval: task}, nil)
}

func create(s *world.State, d *world.DVS, spec types.DVSConfigSpec, extra types.VMwareDVSConfigSpec) ([]string, error) {
	spec.Name = "" // d already has the name, and freeName has checked it
	hosts, err := reconfigure(s, d, spec, extra)
	if err != nil {
		return nil, err
	}
	s.AddSwitch(d)
	model.Number(s, d)
	return hosts, nil
}

func defaultUplinks() []string {
	var names []string
	for i := range 4 {
		names = append(names, fmt.Sprintf("Uplink %d", i+1))
	}
	return names
}

// DVSManagerExportEntityTask exports the configuration of switches and port groups. The result of the task is a list of
// EntityBackupConfig. If a selected object does not exist, the call fails with NotFound (vSphere Web Services API,
// DistributedVirtualSwitchManager). The API reference lists no required privilege.
func (m manager) DVSManagerExportEntityTask(ctx *simulator.Context, req *types.DVSManagerExportEntity_Task) soap.HasFault {
	task := m.f.Start(ctx, "DVSManagerExportEntity_Task", "dvs.DistributedVirtualSwitchManager.exportEntity", req.This, frame.TaskOptions{},
		func() (any, error) {
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
		out = append(out, types.EntityBackupConfig{EntityType: string(kind), ConfigBlob: blob, Key: key, Name: name, Container: &container,
			ConfigVersion: "1"})
		return nil
	}
	for _, set := range sets {
		switch sel := set.(type) {
		case *types.DVSSelection:
			d := model.SwitchByUUID(s, sel.DvsUuid)
			if d == nil {
				return nil, frame.Refuse(&types.NotFound{})
			}
			if err := add(types.EntityTypeDistributedVirtualSwitch, d.UUID, d.Shown(), model.FolderOf(d),
				map[string]any{"version": d.Version, "mtu": d.MTU,
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
