package vcenter

import (
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

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
			if ref := model.HostRef(h); found == nil && !req.VmSearch && strings.EqualFold(h.UUID, req.Uuid) && inside(s.ClusterDatacenter(h.Cluster)) {
				found = &ref
			}
		}
	})
	return frame.Answer(types.FindByUuidResponse{Returnval: found}, nil)
}
