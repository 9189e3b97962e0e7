// Package inventory implements the methods that rename, move and organize objects of the lab's inventory: folders, templates,
// snapshots, the settings of the cluster, and the connection of hosts.
package inventory

import (
	"fmt"
	"strings"

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
	f.Extend(folder{b}, "Folder")
	f.Extend(vm{b}, "VirtualMachine")
	f.Handle(snapshot{b}, "VirtualMachineSnapshot")
	f.Extend(host{b}, "HostSystem")
	f.Handle(cluster{b}, "ClusterComputeResource")
	f.Extend(named{b}, "Datacenter", "ResourcePool", "Datastore", "VirtualApp", "ClusterComputeResource")
}

type base struct{ f *frame.Frame }

// maxName is the limit for the length of a name in characters (vSphere Web Services API, ManagedEntity.name: less than 80).
const maxName = 80

func validName(name string) error {
	if strings.TrimSpace(name) == "" || len(name) > maxName {
		return frame.Refuse(&types.InvalidName{Name: name})
	}
	return nil
}

// free returns an error if a name is already used in a VM folder.
func free(s *world.State, parent, name string, self types.ManagedObjectReference) error {
	for _, f := range s.Folders {
		if f.Parent == parent && f.Name == name && folderRef(f) != self {
			return frame.Refuse(&types.DuplicateName{Name: name, Object: folderRef(f)})
		}
	}
	for _, v := range s.VMs {
		if v.Folder == parent && model.Shown(v) == world.Escaped(name) && model.VMRef(v) != self {
			return frame.Refuse(&types.DuplicateName{Name: name, Object: model.VMRef(v)})
		}
	}
	return nil
}

func folderRef(f *world.Folder) types.ManagedObjectReference {
	return types.ManagedObjectReference{Type: "Folder", Value: f.ID}
}

// named renames entities of which the lab has exactly one, so that names cannot conflict.
type named struct{ base }

// RenameTask renames an entity. In the stored name, / \ and % are escaped.
func (m named) RenameTask(ctx *simulator.Context, req *types.Rename_Task) soap.HasFault {
	task := m.f.Start(ctx, "Rename_Task", "ManagedEntity.rename", req.This, frame.TaskOptions{}, func() (any, error) {
		name := world.Unescaped(req.NewName)
		if err := validName(name); err != nil {
			return nil, err
		}
		m.f.Update(req.This, frame.Set("name", world.Escaped(name)))
		return nil, nil
	})
	return frame.Answer(types.Rename_TaskResponse{Returnval: task}, nil)
}

type folder struct{ base }

// id returns the id of a VM folder in the world, and false for all other folders.
func id(s *world.State, ref types.ManagedObjectReference) (string, bool) {
	for n := range 1 + len(s.Others) {
		if ref == model.VMFolderRef(n) {
			return world.RootFolder("v", n), true
		}
	}
	return ref.Value, s.Folder(ref.Value) != nil
}

// CreateFolder creates a VM folder. Other folders cannot be created in the lab.
func (m folder) CreateFolder(ctx *simulator.Context, req *types.CreateFolder) soap.HasFault {
	if err := m.f.Need(ctx, "Folder.Create", req.This); err != nil {
		return frame.Answer(nil, err)
	}
	var made types.ManagedObjectReference
	err := m.f.World.Update(func(s *world.State) ([]world.Event, error) {
		parent, ok := id(s, req.This)
		name := world.Unescaped(req.Name)
		if !ok {
			return nil, frame.Refuse(&types.NotSupported{})
		}
		if err := validName(name); err != nil {
			return nil, err
		}
		if err := free(s, parent, name, made); err != nil {
			return nil, err
		}
		f := &world.Folder{ID: fmt.Sprintf("group-v%d", s.NextID()), Name: name, Parent: parent}
		s.Folders = append(s.Folders, f)
		made = folderRef(f)
		return []world.Event{{What: world.Inventory, Detail: "folder " + name}}, nil
	})
	return frame.Answer(types.CreateFolderResponse{Returnval: made}, err)
}

// MoveIntoFolderTask moves VMs and folders into a VM folder.
func (m folder) MoveIntoFolderTask(ctx *simulator.Context, req *types.MoveIntoFolder_Task) soap.HasFault {
	if err := m.f.Need(ctx, "VirtualMachine.Inventory.Move", req.This); err != nil {
		return frame.Answer(nil, err)
	}
	task := m.f.Start(ctx, "MoveIntoFolder_Task", "Folder.moveInto", req.This, frame.TaskOptions{}, func() (any, error) {
		return nil, m.f.World.Update(func(s *world.State) ([]world.Event, error) { return move(s, req) })
	})
	return frame.Answer(types.MoveIntoFolder_TaskResponse{Returnval: task}, nil)
}

func move(s *world.State, req *types.MoveIntoFolder_Task) ([]world.Event, error) {
	to, ok := id(s, req.This)
	if !ok {
		return nil, frame.Refuse(&types.NotSupported{})
	}
	events := []world.Event{}
	for _, ref := range req.List {
		v, f := model.VMOf(s, ref), s.Folder(ref.Value)
		switch {
		case v != nil && s.VMDatacenter(v) != s.FolderDatacenter(to), f != nil && s.FolderDatacenter(f.ID) != s.FolderDatacenter(to):
			return nil, frame.Refuse(&types.NotSupported{}) // a move to another datacenter; which fault vCenter returns has no witness
		case v != nil && v.VApp == "":
			if err := free(s, to, world.Unescaped(model.Shown(v)), ref); err != nil {
				return nil, err
			}
			v.Folder = to
			events = append(events, world.Event{What: world.VMDevices, VM: v.Name})
		case f != nil:
			for at := s.Folder(to); at != nil; at = s.Folder(at.Parent) {
				if at == f { // a folder cannot be moved into itself
					return nil, frame.Refuse(&types.InvalidFolder{Target: folderRef(f)}, "A folder cannot be moved into itself.")
				}
			}
			if err := free(s, to, f.Name, ref); err != nil {
				return nil, err
			}
			f.Parent = to
		default:
			return nil, frame.Refuse(&types.NotSupported{})
		}
	}
	return append(events, world.Event{What: world.Inventory, Detail: "move"}), nil
}

// RenameTask renames a folder.
func (m folder) RenameTask(ctx *simulator.Context, req *types.Rename_Task) soap.HasFault {
	known := false
	m.f.World.View(func(s *world.State) { known = s.Folder(req.This.Value) != nil })
	if !known {
		return named(m).RenameTask(ctx, req)
	}
	task := m.f.Start(ctx, "Rename_Task", "ManagedEntity.rename", req.This, frame.TaskOptions{}, func() (any, error) {
		return nil, m.f.World.Update(func(s *world.State) ([]world.Event, error) {
			f, name := s.Folder(req.This.Value), world.Unescaped(req.NewName)
			if err := validName(name); err != nil {
				return nil, err
			}
			if err := free(s, f.Parent, name, req.This); err != nil {
				return nil, err
			}
			f.Name = name
			return []world.Event{{What: world.Inventory, Detail: "rename " + name}}, nil
		})
	})
	return frame.Answer(types.Rename_TaskResponse{Returnval: task}, nil)
}
