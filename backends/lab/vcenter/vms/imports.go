package vms

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

type pool struct {
	base
	leases *leases
}

// ImportVApp creates the VM in a spec without its disks, and returns a lease for uploading them. If the lease is aborted or
// expires, the VM is removed.
func (p pool) ImportVApp(ctx *simulator.Context, req *types.ImportVApp) soap.HasFault {
	spec, ok := req.Spec.(*types.VirtualMachineImportSpec)
	if !ok {
		return frame.Answer(nil, frame.BadArgument("spec"))
	}
	// Source: ResourcePool.ImportVApp in the vSphere Web Services API reference. The privileges for networks are checked below.
	store := model.Datastore
	p.f.World.View(func(s *world.State) { store = model.DatastoreRef(datacenterOf(s, req.This)) })
	for _, need := range []struct {
		privilege string
		on        types.ManagedObjectReference
	}{{"VApp.Import", req.This}, {"Datastore.AllocateSpace", store}} {
		if err := p.f.Need(ctx, need.privilege, need.on); err != nil {
			return frame.Answer(nil, err)
		}
	}
	if err := (machine{p.base}).mayReconfigure(ctx,
		&types.ReconfigVM_Task{This: model.VMFolder, Spec: networksOf(spec.ConfigSpec)}); err != nil {
		return frame.Answer(nil, err)
	}
	ref, err := p.make(spec.ConfigSpec, req.This, req.Host)
	if err != nil {
		return frame.Answer(nil, err)
	}
	return frame.Answer(types.ImportVAppResponse{Returnval: ref}, nil)
}

// datacenterOf returns the number of the datacenter of a resource pool.
func datacenterOf(s *world.State, pool types.ManagedObjectReference) int {
	for n := range s.Clusters {
		if model.PoolRef(n+1) == pool {
			return s.ClusterDatacenter(n + 1)
		}
	}
	return 0
}

// networksOf returns the part of a spec that requires separate privileges: the assigned networks.
func networksOf(spec types.VirtualMachineConfigSpec) types.VirtualMachineConfigSpec {
	return types.VirtualMachineConfigSpec{DeviceChange: spec.DeviceChange}
}

// diskKey returns the key of a disk in the lease. The client uses it to find the file to upload.
func diskKey(vm string, n int) string { return fmt.Sprintf("/%s/VirtualSCSIController0:%d", vm, n) }

// parted splits the devices of a spec into adapters and disks.
func parted(spec types.VirtualMachineConfigSpec) (adapters []types.BaseVirtualDeviceConfigSpec, disks []string) {
	for _, change := range spec.DeviceChange {
		if _, ok := change.GetVirtualDeviceConfigSpec().Device.(*types.VirtualDisk); ok {
			disks = append(disks, diskKey(spec.Name, len(disks)))
			continue
		}
		adapters = append(adapters, change)
	}
	return adapters, disks
}

func (p pool) make(spec types.VirtualMachineConfigSpec, pool types.ManagedObjectReference,
	host *types.ManagedObjectReference) (types.ManagedObjectReference, error) {
	var entity types.ManagedObjectReference
	adapters, disks := parted(spec)
	err := p.f.World.Update(func(s *world.State) ([]world.Event, error) {
		if s.VM(spec.Name) != nil {
			return nil, frame.Refuse(&types.DuplicateName{Name: spec.Name, Object: model.VMRef(s.VM(spec.Name))})
		}
		v := s.NewVM(spec.Name)
		for _, h := range s.Hosts {
			if model.PoolRef(h.Cluster) == pool && h.Managed() && !h.Maintenance && (host == nil || *host == model.HostRef(h)) {
				v.Host = h.Name
				break
			}
		}
		if v.Host == "" {
			return nil, frame.Refuse(&types.InvalidState{}, "No host of the cluster can take the virtual machine now.")
		}
		n := s.VMDatacenter(v)
		v.Folder, v.Path = world.RootFolder("v", n), "/"+world.Escaped(s.DatacenterName(n))+"/vm/"+world.Escaped(spec.Name)
		v.CPUs, v.MemoryMB = int(spec.NumCPUs), spec.MemoryMB
		if n, err := strconv.Atoi(strings.TrimPrefix(spec.Version, "vmx-")); err == nil {
			v.Hardware = n
		}
		if v.Hardware > maxHardware(s.Host(v.Host)) {
			return nil, frame.Refuse(&types.VirtualHardwareVersionNotSupported{HostName: v.Host},
				"The host '"+v.Host+"' does not support the hardware version "+spec.Version+".")
		}
		v.Extra = map[string]string{}
		if c, ok := spec.VAppConfig.(*types.VAppConfigSpec); ok {
			for _, prop := range c.Property {
				if prop.Info != nil && prop.Info.Value != "" {
					v.Properties = append(v.Properties, world.Property{Key: prop.Info.Id, Value: prop.Info.Value})
				}
			}
		}
		s.VMs = append(s.VMs, v)
		for i, change := range adapters {
			if err := device(s, v, i, change.GetVirtualDeviceConfigSpec()); err != nil {
				s.VMs = slices.DeleteFunc(s.VMs, func(other *world.VM) bool { return other == v })
				return nil, err
			}
		}
		entity = model.VMRef(v)
		events := []world.Event{{What: world.VMAdded, VM: v.Name, Host: v.Host}}
		for _, name := range slices.Sorted(maps.Keys(connections(v))) {
			events = append(events, world.Event{What: world.SwitchChanged, Switch: name})
		}
		return events, nil
	})
	if err != nil {
		return types.ManagedObjectReference{}, err
	}
	return p.leases.begin(spec.Name, entity, disks)
}
