package dvs

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

const maxPorts = 8192

// AddDVPortgroupTask adds port groups: either all of them or none.
func (m sw) AddDVPortgroupTask(ctx *simulator.Context, req *types.AddDVPortgroup_Task) soap.HasFault {
	task := m.f.Start(ctx, "AddDVPortgroup_Task", "dvs.DistributedVirtualSwitch.addPortgroups", req.This, frame.TaskOptions{Cancelable: true},
		func() (any, error) {
			_, err := m.addGroups(req.This, req.Spec)
			return nil, err
		})
	return frame.Answer(types.AddDVPortgroup_TaskResponse{Returnval: task}, nil)
}

func (m sw) addGroups(ref types.ManagedObjectReference,
	specs []types.DVPortgroupConfigSpec) (refs []types.ManagedObjectReference, err error) {
	err = m.edit(ref, func(s *world.State, d *world.DVS) ([]string, error) {
		var groups []*world.PortGroup
		for _, spec := range specs {
			if err := freeName(s, d.Folder, spec.Name); err != nil {
				return nil, err
			}
			if slices.ContainsFunc(groups, func(g *world.PortGroup) bool { return g.Name == spec.Name }) {
				return nil, frame.Refuse(&types.DuplicateName{Name: spec.Name, Object: ref})
			}
			g := &world.PortGroup{Name: spec.Name, Binding: "earlyBinding", Expand: true}
			if err := apply(d, g, spec); err != nil {
				return nil, err
			}
			groups = append(groups, g)
		}
		d.PortGroups = append(d.PortGroups, groups...)
		model.Number(s, d)
		for _, g := range groups {
			refs = append(refs, model.PortGroupRef(g))
		}
		return members(d), nil
	})
	return refs, err
}

type group struct{ base }

// ReconfigureDVPortgroupTask changes the settings that the spec contains and keeps the others.
func (m group) ReconfigureDVPortgroupTask(ctx *simulator.Context, req *types.ReconfigureDVPortgroup_Task) soap.HasFault {
	task := m.f.Start(ctx, "ReconfigureDVPortgroup_Task", "dvs.DistributedVirtualPortgroup.reconfigure", req.This,
		frame.TaskOptions{Cancelable: true}, func() (any, error) {
			return nil, m.edit(req.This, func(s *world.State, d *world.DVS, g *world.PortGroup) error {
				if err := current(req.Spec.ConfigVersion, g.Changes); err != nil {
					return err
				}
				if name := req.Spec.Name; name != "" && name != g.Name {
					if err := freeName(s, d.Folder, name); err != nil {
						return err
					}
				}
				trial := *g
				if err := apply(d, &trial, req.Spec); err != nil {
					return err
				}
				if trial.Ports < len(s.Connected(d, g.Name)) {
					return inUse("DistributedVirtualPort", g.Name)
				}
				if trial.Name != g.Name {
					s.RenamePortGroup(d, g, trial.Name)
				}
				*g = trial
				return nil
			})
		})
	return frame.Answer(types.ReconfigureDVPortgroup_TaskResponse{Returnval: task}, nil)
}

// DestroyTask removes a port group. It fails if anything is connected to the port group.
func (m group) DestroyTask(ctx *simulator.Context, req *types.Destroy_Task) soap.HasFault {
	task := m.f.Start(ctx, "Destroy_Task", "dvs.DistributedVirtualPortgroup.destroy", req.This, frame.TaskOptions{}, func() (any, error) {
		return nil, m.edit(req.This, func(s *world.State, d *world.DVS, g *world.PortGroup) error {
			if g.Uplink {
				return frame.Refuse(&types.NotSupported{})
			}
			if len(s.Connected(d, g.Name)) > 0 {
				return inUse("DistributedVirtualPortgroup", g.Name)
			}
			d.PortGroups = slices.DeleteFunc(d.PortGroups, func(p *world.PortGroup) bool { return p == g })
			return nil
		})
	})
	return frame.Answer(types.Destroy_TaskResponse{Returnval: task}, nil)
}

// RenameTask renames a port group.
func (m group) RenameTask(ctx *simulator.Context, req *types.Rename_Task) soap.HasFault {
	task := m.f.Start(ctx, "Rename_Task", "ManagedEntity.rename", req.This, frame.TaskOptions{}, func() (any, error) {
		return nil, m.edit(req.This, func(s *world.State, d *world.DVS, g *world.PortGroup) error {
			if err := freeName(s, d.Folder, req.NewName); err != nil {
				return err
			}
			s.RenamePortGroup(d, g, req.NewName)
			return nil
		})
	})
	return frame.Answer(types.Rename_TaskResponse{Returnval: task}, nil)
}

func (m group) edit(ref types.ManagedObjectReference, change func(*world.State, *world.DVS, *world.PortGroup) error) error {
	return m.f.World.Update(func(s *world.State) ([]world.Event, error) {
		d, g := model.PortGroupByKey(s, ref.Value)
		if g == nil {
			return nil, frame.Gone(ref)
		}
		if err := change(s, d, g); err != nil {
			return nil, err
		}
		g.Changes++
		return touched(d.Name, members(d)), nil
	})
}

// apply writes a spec to a port group. Fields that are not set are not changed.
func apply(d *world.DVS, g *world.PortGroup, spec types.DVPortgroupConfigSpec) error {
	if spec.Type != "" {
		if !slices.Contains([]string{"earlyBinding", "lateBinding", "ephemeral"}, spec.Type) {
			return frame.BadArgument("spec.type")
		}
		g.Binding = spec.Type
	}
	if spec.NumPorts < 0 || spec.NumPorts > maxPorts {
		return frame.BadArgument("spec.numPorts")
	}
	if spec.NumPorts > 0 {
		g.Ports = int(spec.NumPorts)
	}
	if spec.AutoExpand != nil {
		g.Expand = *spec.AutoExpand
	}
	if spec.Name != "" {
		g.Name = spec.Name
	}
	if spec.Description != "" {
		g.Note = spec.Description
	}
	if spec.DefaultPortConfig == nil {
		return nil
	}
	set, ok := spec.DefaultPortConfig.(*types.VMwareDVSPortSetting)
	if !ok {
		return frame.BadArgument("spec.defaultPortConfig")
	}
	if err := vlan(g, set.Vlan); err != nil {
		return err
	}
	if err := teaming(d, g, set.UplinkTeamingPolicy); err != nil {
		return err
	}
	g.Setting = merge(g.Setting, *set)
	return nil
}

func vlan(g *world.PortGroup, spec types.BaseVmwareDistributedVirtualSwitchVlanSpec) error {
	bad := frame.BadArgument("spec.defaultPortConfig.vlan")
	switch v := spec.(type) {
	case nil:
	case *types.VmwareDistributedVirtualSwitchVlanIdSpec:
		if v.VlanId < 0 || v.VlanId > 4094 {
			return bad
		}
		g.VLAN, g.Trunk = int(v.VlanId), ""
	case *types.VmwareDistributedVirtualSwitchTrunkVlanSpec:
		if len(v.VlanId) == 0 {
			return bad
		}
		for _, r := range v.VlanId {
			if r.Start < 0 || r.End > 4094 || r.Start > r.End {
				return bad
			}
		}
		g.VLAN, g.Trunk = 0, trunk(v.VlanId)
	default:
		return bad
	}
	return nil
}
