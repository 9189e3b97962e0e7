package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// Of each datacenter: its reference, and those of its root folders, of the datastore that its hosts share, of the browser of that
// datastore, and of the network of its standard switches. Datacenters have numbers; 0 is the first.

// DatacenterRef returns the reference of a datacenter.
func DatacenterRef(n int) types.ManagedObjectReference { return numbered(Datacenter, n) }

// VMFolderRef returns the reference of the folder vm of a datacenter.
func VMFolderRef(n int) types.ManagedObjectReference {
	return folderRef(VMFolder, world.RootFolder("v", n))
}

// HostFolderRef returns the reference of the folder host of a datacenter.
func HostFolderRef(n int) types.ManagedObjectReference { return numbered(HostFolder, n) }

// NetFolderRef returns the reference of the folder network of a datacenter.
func NetFolderRef(n int) types.ManagedObjectReference {
	return folderRef(NetFolder, world.RootFolder("n", n))
}

// DatastoreRef returns the reference of the datastore that all hosts of a datacenter share.
func DatastoreRef(n int) types.ManagedObjectReference { return numbered(Datastore, n) }

// FilesRef returns the reference of the browser of that datastore.
func FilesRef(n int) types.ManagedObjectReference { return numbered(Files, n) }

// NetworkRef returns the reference of the network of the standard switches of a datacenter.
func NetworkRef(n int) types.ManagedObjectReference { return numbered(VMNetwork, n) }

// numbered returns the reference of the object of another datacenter that is first in the first one.
func numbered(first types.ManagedObjectReference, n int) types.ManagedObjectReference {
	if n == 0 {
		return first
	}
	kind, _, _ := strings.Cut(strings.TrimRight(first.Value, "0123456789"), "-datastore")
	return ref(first.Type, fmt.Sprintf("%s%d", kind, 6000+n))
}

// folderRef returns the reference of a folder by its id, "" for the first datacenter's root folder.
func folderRef(root types.ManagedObjectReference, id string) types.ManagedObjectReference {
	if id == "" {
		return root
	}
	return ref(root.Type, id)
}

// datacenters returns the names of all datacenters, by number.
func datacenters(s *world.State) []string { return append([]string{s.Datacenter}, s.Others...) }

// datacenter adds a datacenter with its root folders, datastores and network. vms are the children of its folder vm.
func (t *Tree) datacenter(s *world.State, n int, vms []types.ManagedObjectReference) {
	self, hostFolder, storeFolder := DatacenterRef(n), HostFolderRef(n), numbered(StoreFolder, n)
	vmFolder, netFolder, store, files, network := VMFolderRef(n), NetFolderRef(n), DatastoreRef(n), FilesRef(n), NetworkRef(n)
	folder := func(ref types.ManagedObjectReference, name string, kinds []string, children ...types.ManagedObjectReference) {
		t.f.Reg.Put(&mo.Folder{ManagedEntity: entityOf(ref, name, &self), ChildType: kinds, ChildEntity: children})
	}
	var clusters, hosts, local []types.ManagedObjectReference
	for c := range clusterNames(s) {
		if s.ClusterDatacenter(c) == n {
			clusters = append(clusters, ClusterRef(c))
		}
	}
	for _, h := range s.Hosts {
		if s.ClusterDatacenter(h.Cluster) == n {
			hosts, local = append(hosts, HostRef(h)), append(local, localStores(s, h)...)
		}
	}
	folder(vmFolder, "vm", []string{"Folder", "VirtualMachine", "VirtualApp"}, vms...)
	folder(hostFolder, "host", []string{"Folder", "ComputeResource"}, clusters...)
	folder(storeFolder, "datastore", []string{"Folder", "Datastore", "StoragePod"}, append(slices.Clone(local), store)...)
	folder(netFolder, "network", []string{"Folder", "Network", "DistributedVirtualSwitch"}, netChildren(s)[netFolder]...)
	t.f.Reg.Put(&mo.Datacenter{
		ManagedEntity: entityOf(self, world.Escaped(datacenters(s)[n]), &Root),
		VmFolder:      vmFolder, HostFolder: hostFolder, DatastoreFolder: storeFolder, NetworkFolder: netFolder,
		Datastore: []types.ManagedObjectReference{store}, Network: networksOf(s, n),
	})
	for _, ref := range local {
		name := "local-" + ref.Value
		t.f.Reg.Put(&mo.Datastore{
			Browser: files, ManagedEntity: entityOf(ref, name, &storeFolder),
			Info: &types.VmfsDatastoreInfo{DatastoreInfo: types.DatastoreInfo{Name: name, Url: "ds:///vmfs/volumes/" + name + "/",
				FreeSpace: 1 << 40}},
			Summary: types.DatastoreSummary{Datastore: &ref, Name: name, Url: "ds:///vmfs/volumes/" + name + "/", Capacity: 1 << 40,
				FreeSpace:  1 << 40,
				Accessible: true, MultipleHostAccess: types.NewBool(false), Type: "VMFS"},
		})
	}
	var mounts []types.DatastoreHostMount
	for _, h := range hosts {
		mounts = append(mounts, types.DatastoreHostMount{Key: h, MountInfo: types.HostMountInfo{
			Path: "/vmfs/volumes/shared-01", AccessMode: "readWrite", Mounted: types.NewBool(true), Accessible: types.NewBool(true)}})
	}
	all := vmsOf(s, n)
	info := types.VmfsDatastoreInfo{DatastoreInfo: types.DatastoreInfo{Name: "shared-01", Url: "ds:///vmfs/volumes/shared-01/",
		FreeSpace: storeFree}}
	t.f.Reg.Put(&mo.HostDatastoreBrowser{Self: files, Datastore: []types.ManagedObjectReference{store}})
	t.f.Own(files, store)
	t.f.Reg.Put(&mo.Datastore{
		Browser:       files,
		ManagedEntity: entityOf(store, "shared-01", &storeFolder), Info: &info, Host: mounts, Vm: all,
		Summary: types.DatastoreSummary{Datastore: &store, Name: "shared-01", Url: info.Url, Capacity: storeCapacity, FreeSpace: storeFree,
			Accessible: true, MultipleHostAccess: types.NewBool(len(hosts) > 1), Type: "VMFS"},
	})
	t.f.Reg.Put(&mo.Network{
		ManagedEntity: entityOf(network, "VM Network", &netFolder), Name: "VM Network", Host: hosts, Vm: all,
		Summary: &types.NetworkSummary{Network: &network, Name: "VM Network", Accessible: true},
	})
}

// vmsOf returns the VMs of a datacenter.
func vmsOf(s *world.State, datacenter int) []types.ManagedObjectReference {
	vms := []types.ManagedObjectReference{}
	for _, v := range s.VMs {
		if s.VMDatacenter(v) == datacenter {
			vms = append(vms, VMRef(v))
		}
	}
	return vms
}
