// Package dvs implements the methods of distributed switches and port groups in the lab's vCenter.
package dvs

import (
	"errors"
	"strconv"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// Register adds the methods to a frame.
func Register(f *frame.Frame) {
	b := base{f}
	f.Handle(folder{b}, "Folder")
	f.Handle(sw{b}, "VmwareDistributedVirtualSwitch")
	f.Handle(group{b}, "DistributedVirtualPortgroup")
	f.Handle(manager{b}, "DistributedVirtualSwitchManager")
}

type base struct{ f *frame.Frame }

// edit changes a DVS in the world and reports the change of the switch and of the affected hosts. change returns the hosts whose
// own network changed.
func (b base) edit(ref types.ManagedObjectReference, change func(*world.State, *world.DVS) (hosts []string, err error)) error {
	return b.f.World.Update(func(s *world.State) ([]world.Event, error) {
		d := model.SwitchOf(s, ref)
		if d == nil {
			return nil, frame.Gone(ref)
		}
		hosts, err := change(s, d)
		if err != nil {
			return nil, err
		}
		d.Changes++
		return touched(d.Name, hosts), nil
	})
}

func touched(name string, hosts []string) []world.Event {
	events := []world.Event{{What: world.SwitchChanged, Switch: name}}
	for _, h := range hosts {
		events = append(events, world.Event{What: world.HostNetwork, Host: h, Switch: name})
	}
	return events
}

func members(d *world.DVS) []string {
	var list []string
	for _, m := range d.Members {
		list = append(list, m.Host)
	}
	return list
}

// current checks the version of the configuration that a change is based on.
func current(given string, changes int) error {
	switch given {
	case "":
		return frame.BadArgument("spec.configVersion")
	case strconv.Itoa(changes):
		return nil
	}
	return frame.Refuse(&types.ConcurrentAccess{})
}

// freeName checks the name of a new object in a network folder; folder "" is the first datacenter's folder network. Names must be
// unique within their parent (vSphere Web Services API, ManagedEntity.name).
func freeName(s *world.State, folder, name string) error {
	if name == "" || len(name) > 80 {
		return frame.Refuse(&types.InvalidName{Name: name})
	}
	for n := range 1 + len(s.Others) {
		if name == "VM Network" && folder == world.RootFolder("n", n) {
			return frame.Refuse(&types.DuplicateName{Name: name, Object: model.NetworkRef(n)})
		}
	}
	for _, d := range s.Switches {
		if d.Folder != folder {
			continue
		}
		if d.Shown() == name {
			return frame.Refuse(&types.DuplicateName{Name: name, Object: model.SwitchRef(d)})
		}
		if p := d.PortGroup(name); p != nil {
			return frame.Refuse(&types.DuplicateName{Name: name, Object: model.PortGroupRef(p)})
		}
	}
	return nil
}

// mayTouchHosts checks that the caller has the required privileges on the hosts in a spec.
func (b base) mayTouchHosts(ctx *simulator.Context, sw types.ManagedObjectReference,
	hosts []types.DistributedVirtualSwitchHostMemberConfigSpec) error {
	if len(hosts) == 0 {
		return nil
	}
	if err := b.f.Need(ctx, "DVSwitch.HostOp", sw); err != nil {
		return err
	}
	for _, h := range hosts {
		if err := b.f.Need(ctx, "Host.Config.Network", h.Host); err != nil {
			return err
		}
	}
	return nil
}

type sw struct{ base }

// ReconfigureDvsTask changes only the settings that the spec contains.
func (m sw) ReconfigureDvsTask(ctx *simulator.Context, req *types.ReconfigureDvs_Task) soap.HasFault {
	spec, extra, err := split(req.Spec)
	if err == nil {
		err = m.mayTouchHosts(ctx, req.This, spec.Host)
	}
	if err != nil {
		return frame.Answer(nil, err)
	}
	task := m.f.Start(ctx, "ReconfigureDvs_Task", "dvs.DistributedVirtualSwitch.reconfigure", req.This, frame.TaskOptions{Cancelable: true},
		func() (any, error) {
			return nil, m.edit(req.This, func(s *world.State, d *world.DVS) ([]string, error) {
				if err := current(spec.ConfigVersion, d.Changes); err != nil {
					return nil, err
				}
				return reconfigure(s, d, spec, extra)
			})
		})
	return frame.Answer(types.ReconfigureDvs_TaskResponse{Returnval: task}, nil)
}

// EnableNetworkResourceManagement enables or disables Network I/O Control.
func (m sw) EnableNetworkResourceManagement(_ *simulator.Context, req *types.EnableNetworkResourceManagement) soap.HasFault {
	m.f.Commit.Lock()
	defer m.f.Commit.Unlock()
	err := m.edit(req.This, func(_ *world.State, d *world.DVS) ([]string, error) {
		d.NIOC = req.Enable
		return nil, nil
	})
	return frame.Answer(types.EnableNetworkResourceManagementResponse{}, err)
}

// DestroyTask removes a DVS with its port groups and frees its uplinks. It fails if anything is connected to the DVS.
func (m sw) DestroyTask(ctx *simulator.Context, req *types.Destroy_Task) soap.HasFault {
	task := m.f.Start(ctx, "Destroy_Task", "dvs.DistributedVirtualSwitch.destroy", req.This, frame.TaskOptions{}, func() (any, error) {
		return nil, m.f.World.Update(func(s *world.State) ([]world.Event, error) {
			d := model.SwitchOf(s, req.This)
			if d == nil {
				return nil, frame.Gone(req.This)
			}
			if used := s.Connected(d, ""); len(used) > 0 {
				return nil, inUse("DistributedVirtualSwitch", d.Name)
			}
			s.RemoveSwitch(d.Name)
			return touched(d.Name, members(d)), nil
		})
	})
	return frame.Answer(types.Destroy_TaskResponse{Returnval: task}, nil)
}

// RenameTask renames a DVS.
func (m sw) RenameTask(ctx *simulator.Context, req *types.Rename_Task) soap.HasFault {
	task := m.f.Start(ctx, "Rename_Task", "ManagedEntity.rename", req.This, frame.TaskOptions{}, func() (any, error) {
		return nil, m.edit(req.This, func(s *world.State, d *world.DVS) ([]string, error) { return rename(s, d, req.NewName) })
	})
	return frame.Answer(types.Rename_TaskResponse{Returnval: task}, nil)
}

func rename(s *world.State, d *world.DVS, name string) ([]string, error) {
	if name == d.Shown() {
		return nil, nil
	}
	if err := freeName(s, d.Folder, name); err != nil {
		return nil, err
	}
	s.RenameSwitch(d, name)
	return members(d), nil
}

// PerformDvsProductSpecOperationTask upgrades a DVS. This cannot be undone.
func (m sw) PerformDvsProductSpecOperationTask(ctx *simulator.Context, req *types.PerformDvsProductSpecOperation_Task) soap.HasFault {
	if req.Operation != "upgrade" || req.ProductSpec == nil {
		return frame.Answer(nil, frame.Refuse(&types.NotSupported{}))
	}
	task := m.f.Start(ctx, "PerformDvsProductSpecOperation_Task", "dvs.DistributedVirtualSwitch.performProductSpecOperation", req.This,
		frame.TaskOptions{}, func() (any, error) {
			return nil, m.edit(req.This, func(s *world.State, d *world.DVS) ([]string, error) {
				version := req.ProductSpec.Version
				if err := available(s, version); err != nil {
					return nil, err
				}
				if !world.VersionLess(d.Version, version) {
					return nil, frame.BadArgument("productSpec.version")
				}
				var faults bulk
				for _, host := range members(d) {
					if err := compatible(s.Host(host), version); err != nil {
						faults.add(s.Host(host), err)
					}
				}
				if err := faults.err(); err != nil {
					return nil, err
				}
				d.Version = version
				return nil, nil
			})
		})
	return frame.Answer(types.PerformDvsProductSpecOperation_TaskResponse{Returnval: task}, nil)
}

func inUse(kind, name string) error {
	return frame.Refuse(&types.ResourceInUse{Type: kind, Name: name})
}

// A bulk collects the faults of individual hosts.
type bulk []types.DvsOperationBulkFaultFaultOnHost

func (b *bulk) add(h *world.Host, err error) {
	var e *frame.Error
	if !errors.As(err, &e) {
		e = frame.Refuse(&types.SystemError{Reason: err.Error()})
	}
	*b = append(*b, types.DvsOperationBulkFaultFaultOnHost{Host: model.HostRef(h),
		Fault: types.LocalizedMethodFault{Fault: e.Fault, LocalizedMessage: e.Text}})
}

func (b bulk) err() error {
	if len(b) == 0 {
		return nil
	}
	return frame.Refuse(&types.DvsOperationBulkFault{HostFault: b})
}
