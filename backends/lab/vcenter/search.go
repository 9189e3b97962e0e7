package vcenter

import (
	"io"
	"net/http"
	"path"
	"slices"
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

// FindByUuid finds a VM by its BIOS or instance UUID, or a host by its BIOS UUID. Source: vSphere Web Services API, SearchIndex.
func (m search) FindByUuid(_ *simulator.Context, req *types.FindByUuid) soap.HasFault {
	in := req.Datacenter
	if in != nil && m.f.Reg.Get(*in) == nil {
		return frame.Answer(nil, frame.Gone(*in))
	}
	if in != nil && in.Type != model.Datacenter.Type {
		return frame.Answer(nil, frame.BadArgument("datacenter"))
	}
	inside := func(n int) bool { return in == nil || model.DatacenterRef(n) == *in }
	var found *types.ManagedObjectReference
	m.f.World.View(func(s *world.State) {
		for _, v := range s.VMs {
			id := v.UUID
			if req.InstanceUuid != nil && *req.InstanceUuid {
				id = model.InstanceUUID(v)
			}
			if ref := model.VMRef(v); found == nil && req.VmSearch && strings.EqualFold(id, req.Uuid) && inside(s.VMDatacenter(v)) {
				found = &ref
			}
		}
		for _, h := range s.Hosts {
			if ref := model.HostRef(h); found == nil && !req.VmSearch && strings.EqualFold(h.UUID, req.Uuid) &&
				inside(s.ClusterDatacenter(h.Cluster)) {
				found = &ref
			}
		}
	})
	return frame.Answer(types.FindByUuidResponse{Returnval: found}, nil)
}

// folder serves the files of VMs on the datastore, for example /folder/vm-01/vmware.log?dcPath=DC&dsName=shared-01. The caller
// needs a session, or must send a user name and password, and needs the privilege to browse the datastore (vSphere Web Services
// SDK, "Datastore access over HTTP").
func (f *front) folder(w http.ResponseWriter, r *http.Request) {
	user := f.user(r)
	switch {
	case user == "":
		w.Header().Set("WWW-Authenticate", `Basic realm="VMware HTTP server"`)
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	case !f.frame.Auth.Holds(user, "Datastore.Browse", model.Datastore):
		http.Error(w, "Forbidden", http.StatusForbidden)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "Method not allowed", http.StatusMethodNotAllowed)
		return
	}
	vm, name := path.Split(strings.TrimPrefix(r.URL.Path, "/folder/"))
	text, found := "", false
	f.world.View(func(s *world.State) {
		q := r.URL.Query()
		var v *world.VM
		if i := slices.IndexFunc(s.VMs, func(v *world.VM) bool { return v.Stem() == strings.Trim(vm, "/") }); i >= 0 {
			v = s.VMs[i]
		}
		if v == nil || q.Get("dsName") != "shared-01" || strings.TrimPrefix(q.Get("dcPath"), "/") != s.DatacenterName(s.VMDatacenter(v)) ||
			!slices.Contains(model.VMFiles(v), name) {
			return
		}
		text, found = model.VMFile(v, name), true
	})
	if !found {
		http.Error(w, "Not found", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = io.WriteString(w, text) // the client has disconnected
}

// user returns the user name of the caller, identified by a valid session or by name and password.
func (f *front) user(r *http.Request) string {
	if name, password, ok := r.BasicAuth(); ok && f.frame.Auth.Valid(name, password) {
		return name
	}
	f.session(r)
	c, err := r.Cookie(soap.SessionCookieName)
	if err != nil {
		return ""
	}
	return f.frame.SessionUser(strings.Trim(c.Value, `"`))
}
