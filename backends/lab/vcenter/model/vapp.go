package model

import (
	"slices"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// VAppRef returns the reference of a vApp.
func VAppRef(name string) types.ManagedObjectReference { return ref("VirtualApp", "resgroup-v-"+name) }

// places contains the locations of VMs. A VM of a vApp is neither in the folder nor in the pool; the vApp is in both. Its
// property parent is not set, but parentVApp is (bhoriuchi/vsphere-connect issue 16; ansible-collections/community.vmware issue
// 777).
type places struct {
	folder, apps []types.ManagedObjectReference
	pools        map[int][]types.ManagedObjectReference // by cluster
	inside       map[string][]types.ManagedObjectReference
	below        map[string][]types.ManagedObjectReference // children of the folders below vm, by folder id
}

func placed(s *world.State) places {
	p := places{folder: []types.ManagedObjectReference{}, pools: map[int][]types.ManagedObjectReference{}, inside: map[string][]types.ManagedObjectReference{},
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
		if v.Folder != "" {
			p.below[v.Folder] = append(p.below[v.Folder], VMRef(v))
			continue
		}
		p.folder = append(p.folder, VMRef(v))
	}
	for _, f := range s.Folders {
		if f.Parent == "" {
			p.folder = append(p.folder, ref("Folder", f.ID))
			continue
		}
		p.below[f.Parent] = append(p.below[f.Parent], ref("Folder", f.ID))
	}
	p.folder = append(p.folder, p.apps...)
	return p
}
