package model

import (
	"slices"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// VAppRef returns the reference of a vApp.
func VAppRef(name string) types.ManagedObjectReference { return ref("VirtualApp", "resgroup-v-"+name) }

// places contains the locations of VMs. A VM of a vApp is neither in the folder nor in the pool; the vApp is in both, in the first
// datacenter. Its property parent is not set, but parentVApp is (bhoriuchi/vsphere-connect issue 16;
// ansible-collections/community.vmware issue 777).
type places struct {
	apps   []types.ManagedObjectReference
	pools  map[int][]types.ManagedObjectReference // by cluster
	inside map[string][]types.ManagedObjectReference
	below  map[string][]types.ManagedObjectReference // children of the folders vm and of those below them, by folder id
}

// root returns the children of the folder vm of a datacenter.
func (p places) root(datacenter int) []types.ManagedObjectReference {
	return append([]types.ManagedObjectReference{}, p.below[world.RootFolder("v", datacenter)]...)
}

func placed(s *world.State) places {
	p := places{pools: map[int][]types.ManagedObjectReference{}, inside: map[string][]types.ManagedObjectReference{},
		below: map[string][]types.ManagedObjectReference{}}
	for _, v := range s.VMs {
		if v.VApp != "" {
			p.inside[v.VApp] = append(p.inside[v.VApp], VMRef(v))
			if app := VAppRef(v.VApp); !slices.Contains(p.apps, app) {
				p.apps = append(p.apps, app)
			}
			continue
		}
		n := clusterOf(s, v)
		p.pools[n] = append(p.pools[n], VMRef(v))
		p.below[v.Folder] = append(p.below[v.Folder], VMRef(v))
	}
	for _, f := range s.Folders {
		p.below[f.Parent] = append(p.below[f.Parent], ref("Folder", f.ID))
	}
	p.below[""] = append(p.below[""], p.apps...)
	return p
}
