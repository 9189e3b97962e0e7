package model

import (
	"slices"

	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// follow updates the properties that are affected by an event of the world.
func (t *Tree) follow(e world.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.f.World.View(func(s *world.State) {
		switch e.What {
		case world.VMGuest:
			if v := s.VM(e.VM); v != nil {
				t.putVM(s, v)
			}
		case world.VMPower, world.VMDevices:
			if v := s.VM(e.VM); v != nil {
				t.putVM(s, v)
				t.syncHost(s, s.Host(v.Host)) // the memory in use, and the VMs that use its GPUs
			}
		case world.Inventory:
			t.syncVMs(s)
			t.syncCluster(s)
			for _, h := range s.Hosts { // HA
				t.syncHost(s, h)
			}
		case world.VMAdded, world.VMRemoved:
			t.syncVMs(s)
			t.syncHost(s, s.Host(e.Host))
		case world.SwitchChanged:
			t.syncSwitch(s, e.Switch)
		case world.HostDown, world.HostUp:
			h := s.Host(e.Host)
			t.syncHost(s, h)
			for _, v := range s.VMs {
				if v.Host == h.Name { // a VM has the connection state of its host
					t.putVM(s, v)
				}
			}
			for _, d := range s.Switches {
				if d.Member(h.Name) != nil {
					t.syncSwitch(s, d.Name)
				}
			}
		default:
			if h := s.Host(e.Host); h != nil {
				t.syncHost(s, h)
			}
		}
	})
}

// syncVMs updates the lists of VMs in the folder, pool, datastore and standard network. It adds objects for new VMs and removes
// those of removed VMs.
func (t *Tree) syncVMs(s *world.State) {
	keep := map[types.ManagedObjectReference]bool{}
	for _, v := range s.VMs {
		ref := VMRef(v)
		keep[ref] = true
		if t.f.Reg.Get(ref) == nil {
			t.putVM(s, v)
		}
	}
	var old []types.ManagedObjectReference
	for n := range datacenters(s) {
		t.f.Read(DatastoreRef(n), func(obj mo.Reference) { old = append(old, obj.(*mo.Datastore).Vm...) })
	}
	for _, r := range old {
		if !keep[r] {
			t.f.Remove(r)
		}
	}
	at := placed(s)
	t.syncFolders(s, at)
	for n := range datacenters(s) {
		t.f.Update(VMFolderRef(n), frame.Set("childEntity", at.root(n)))
		for _, r := range []types.ManagedObjectReference{DatastoreRef(n), NetworkRef(n)} {
			t.f.Update(r, frame.Set("vm", vmsOf(s, n)))
		}
	}
	for n := range clusterNames(s) {
		t.f.Update(PoolRef(n), frame.Set("vm", append([]types.ManagedObjectReference{}, at.pools[n]...)))
	}
	for name, inside := range at.inside {
		t.f.Update(VAppRef(name), frame.Set("vm", inside))
	}
}

// putVM updates a VM and its snapshots.
func (t *Tree) putVM(s *world.State, v *world.VM) {
	obj := vmObject(s, v)
	for _, shot := range snapshotObjects(v, obj) {
		t.put(shot)
	}
	t.put(obj)
}

// syncFolders updates the folders below the folders vm.
func (t *Tree) syncFolders(s *world.State, at places) {
	for _, f := range s.Folders {
		parent := folderRef(VMFolder, f.Parent)
		t.put(&mo.Folder{ManagedEntity: entityOf(ref("Folder", f.ID), world.Escaped(f.Name), &parent),
			ChildType: []string{"Folder", "VirtualMachine", "VirtualApp"}, ChildEntity: at.below[f.ID]})
	}
}

// syncCluster updates the configuration of the clusters.
func (t *Tree) syncCluster(s *world.State) {
	for n, name := range clusterNames(s) {
		var networks []types.ManagedObjectReference
		t.f.Read(ClusterRef(n), func(obj mo.Reference) {
			c := obj.(*mo.ClusterComputeResource)
			networks, name = c.Network, c.Name
		})
		t.f.Become(clusterObject(s, n, name, networks))
	}
}

// syncNetworks updates the lists of networks of the network folders, datacenters, clusters, and of hosts whose DVS membership
// changed. It removes the objects of removed switches and port groups.
func (t *Tree) syncNetworks(s *world.State) {
	in := netChildren(s)
	var folders []types.ManagedObjectReference
	for n := range datacenters(s) {
		folders = append(folders, NetFolderRef(n))
	}
	for _, f := range s.NetFolders {
		folders = append(folders, folderRef(NetFolder, f.ID))
	}
	for _, folder := range folders {
		var old []types.ManagedObjectReference
		t.f.Read(folder, func(obj mo.Reference) { old = append(old, obj.(*mo.Folder).ChildEntity...) })
		for _, r := range old {
			if !slices.Contains(in[folder], r) {
				t.f.Remove(r)
			}
		}
		t.f.Update(folder, frame.Set("childEntity", in[folder]))
	}
	for n := range datacenters(s) {
		t.f.Update(DatacenterRef(n), frame.Set("network", networksOf(s, n)))
	}
	for n := range clusterNames(s) {
		t.f.Update(ClusterRef(n), frame.Set("network", networksOf(s, s.ClusterDatacenter(n))))
	}
}
