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

// SearchIndex finds VMs by the data that VMware Tools report about their guests, and hosts by their names and addresses. Source:
// vSphere Web Services API, Managed Object - SearchIndex.

// all returns the VMs, or the hosts, of a datacenter that the given function accepts; those of all datacenters if it is nil.
func (m search) all(vms bool, in *types.ManagedObjectReference, vm func(*world.VM) bool, host func(*world.Host) bool) ([]types.ManagedObjectReference, error) {
	if in != nil && m.f.Reg.Get(*in) == nil {
		return nil, frame.Gone(*in)
	}
	if in != nil && in.Type != model.Datacenter.Type {
		return nil, frame.BadArgument("datacenter")
	}
	inside := func(n int) bool { return in == nil || model.DatacenterRef(n) == *in }
	var found []types.ManagedObjectReference
	m.f.World.View(func(s *world.State) {
		for _, v := range s.VMs {
			if vms && inside(s.VMDatacenter(v)) && vm(v) {
				found = append(found, model.VMRef(v))
			}
		}
		for _, h := range s.Hosts {
			if !vms && inside(s.ClusterDatacenter(h.Cluster)) && host(h) {
				found = append(found, model.HostRef(h))
			}
		}
	})
	return found, nil
}

func first(list []types.ManagedObjectReference) *types.ManagedObjectReference {
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

func (m search) byUUID(uuid string, vms bool, instance *bool, in *types.ManagedObjectReference) ([]types.ManagedObjectReference, error) {
	return m.all(vms, in, func(v *world.VM) bool {
		if instance != nil && *instance {
			return strings.EqualFold(model.InstanceUUID(v), uuid)
		}
		return strings.EqualFold(v.UUID, uuid)
	}, func(h *world.Host) bool { return strings.EqualFold(h.UUID, uuid) })
}

// FindByUuid finds a VM by its BIOS or instance UUID, or a host by its BIOS UUID.
func (m search) FindByUuid(_ *simulator.Context, req *types.FindByUuid) soap.HasFault {
	list, err := m.byUUID(req.Uuid, req.VmSearch, req.InstanceUuid, req.Datacenter)
	return frame.Answer(types.FindByUuidResponse{Returnval: first(list)}, err)
}

// FindAllByUuid finds all VMs or hosts with a UUID.
func (m search) FindAllByUuid(_ *simulator.Context, req *types.FindAllByUuid) soap.HasFault {
	list, err := m.byUUID(req.Uuid, req.VmSearch, req.InstanceUuid, req.Datacenter)
	return frame.Answer(types.FindAllByUuidResponse{Returnval: list}, err)
}

func (m search) byDNS(name string, vms bool, in *types.ManagedObjectReference) ([]types.ManagedObjectReference, error) {
	return m.all(vms, in, func(v *world.VM) bool { return v.On && v.Guest.Up && strings.EqualFold(v.Guest.Hostname, name) },
		func(h *world.Host) bool { return strings.EqualFold(h.Name, name) })
}

// FindByDnsName finds a VM by the host name that VMware Tools report, or a host by its name.
func (m search) FindByDnsName(_ *simulator.Context, req *types.FindByDnsName) soap.HasFault {
	list, err := m.byDNS(req.DnsName, req.VmSearch, req.Datacenter)
	return frame.Answer(types.FindByDnsNameResponse{Returnval: first(list)}, err)
}

// FindAllByDnsName finds all VMs or hosts with a DNS name.
func (m search) FindAllByDnsName(_ *simulator.Context, req *types.FindAllByDnsName) soap.HasFault {
	list, err := m.byDNS(req.DnsName, req.VmSearch, req.Datacenter)
	return frame.Answer(types.FindAllByDnsNameResponse{Returnval: list}, err)
}

func (m search) byIP(ip string, vms bool, in *types.ManagedObjectReference) ([]types.ManagedObjectReference, error) {
	return m.all(vms, in, func(v *world.VM) bool {
		for _, n := range v.Guest.NICs {
			for _, a := range n.Addrs {
				if at, _, _ := strings.Cut(a, "/"); at == ip && v.On && v.Guest.Up {
					return true
				}
			}
		}
		return false
	}, func(h *world.Host) bool {
		for _, k := range h.VMKs {
			if k.IP == ip {
				return true
			}
		}
		return false
	})
}

// FindByIp finds a VM by an IP address of its guest, or a host by the IP address of a vmkernel adapter.
func (m search) FindByIp(_ *simulator.Context, req *types.FindByIp) soap.HasFault {
	list, err := m.byIP(req.Ip, req.VmSearch, req.Datacenter)
	return frame.Answer(types.FindByIpResponse{Returnval: first(list)}, err)
}

// FindAllByIp finds all VMs or hosts with an IP address.
func (m search) FindAllByIp(_ *simulator.Context, req *types.FindAllByIp) soap.HasFault {
	list, err := m.byIP(req.Ip, req.VmSearch, req.Datacenter)
	return frame.Answer(types.FindAllByIpResponse{Returnval: list}, err)
}

// FindByDatastorePath finds a VM by the path of its configuration file, "[shared-01] vm-01/vm-01.vmx".
func (m search) FindByDatastorePath(_ *simulator.Context, req *types.FindByDatastorePath) soap.HasFault {
	list, err := m.all(true, &req.Datacenter, func(v *world.VM) bool { return model.ConfigPath(v) == req.Path }, nil)
	return frame.Answer(types.FindByDatastorePathResponse{Returnval: first(list)}, err)
}
