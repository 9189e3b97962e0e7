package vcenter

import (
	"strings"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// views creates views while the inventory is locked against changes.
type views struct {
	f    *frame.Frame
	tree *model.Tree
}

// CreateContainerView implements ViewManager.
func (m views) CreateContainerView(ctx *simulator.Context, req *types.CreateContainerView) (answer soap.HasFault) {
	m.tree.Still(func() { answer = m.f.Reg.ViewManager().CreateContainerView(ctx, req) })
	return answer
}

// clock implements ServiceInstance.CurrentTime. The other methods of ServiceInstance are the simulator's.
type clock struct{ f *frame.Frame }

// CurrentTime returns the time of the vCenter.
func (c clock) CurrentTime(*simulator.Context, *types.CurrentTime) soap.HasFault {
	now := time.Now()
	c.f.World.View(func(s *world.State) { now = now.Add(s.Skew) })
	return frame.Answer(types.CurrentTimeResponse{Returnval: now}, nil)
}

// search finds objects by path and by UUID.
type search struct{ f *frame.Frame }

// FindByInventoryPath finds an entity by its path, /DC/vm/vm-01. The first slash is optional.
func (m search) FindByInventoryPath(_ *simulator.Context, req *types.FindByInventoryPath) soap.HasFault {
	at := &model.Root
	for _, name := range split(req.InventoryPath) {
		if at = m.child(*at, name); at == nil {
			break
		}
	}
	return frame.Answer(types.FindByInventoryPathResponse{Returnval: at}, nil)
}

// FindChild finds a child of an entity by name.
func (m search) FindChild(_ *simulator.Context, req *types.FindChild) soap.HasFault {
	if m.f.Reg.Get(req.Entity) == nil {
		return frame.Answer(nil, frame.Gone(req.Entity))
	}
	return frame.Answer(types.FindChildResponse{Returnval: m.child(req.Entity, req.Name)}, nil)
}

func (m search) child(parent types.ManagedObjectReference, name string) *types.ManagedObjectReference {
	var children []types.ManagedObjectReference
	m.f.Read(parent, func(obj mo.Reference) {
		switch o := obj.(type) {
		case *mo.Datacenter:
			children = []types.ManagedObjectReference{o.VmFolder, o.HostFolder, o.DatastoreFolder, o.NetworkFolder}
		case *mo.Folder:
			children = o.ChildEntity
		case *mo.ClusterComputeResource:
			children = append(append(children, o.Host...), *o.ResourcePool)
		case *mo.ResourcePool:
			children = append(append(children, o.ResourcePool...), o.Vm...)
		case *mo.VirtualApp:
			children = append(append(children, o.ResourcePool.ResourcePool...), o.Vm...)
		}
	})
	for _, c := range children {
		if m.f.Name(c) == name {
			return &c
		}
	}
	return nil
}

func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}
