package hosts

import (
	"path"
	"slices"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

type files struct{ base }

// SearchDatastoreTask lists the files in a folder ("[shared-01] rdma") that match one of the patterns. If the folder does not
// exist, it fails with FileNotFound.
func (m files) SearchDatastoreTask(ctx *simulator.Context, req *types.SearchDatastore_Task) soap.HasFault {
	task := m.f.Start(ctx, "SearchDatastore_Task", "HostDatastoreBrowser.search", m.f.Owner(req.This), frame.TaskOptions{Cancelable: true}, func() (any, error) {
		return m.search(m.f.Owner(req.This), req.DatastorePath, req.SearchSpec)
	})
	return frame.Answer(types.SearchDatastore_TaskResponse{Returnval: task}, nil)
}

// datastoreRoot is the mount point of the datastore on a host.
const datastoreRoot = "/vmfs/volumes/shared-01"

func (m files) search(store types.ManagedObjectReference, folder string, spec *types.HostDatastoreBrowserSearchSpec) (any, error) {
	name, ok := strings.CutPrefix(folder, "[shared-01]")
	if !ok {
		return nil, frame.Refuse(&types.InvalidDatastorePath{DatastorePath: folder}, "Invalid datastore path '"+folder+"'.")
	}
	dir := path.Join(datastoreRoot, strings.TrimSpace(name))
	result := types.HostDatastoreBrowserSearchResults{Datastore: &store, FolderPath: folder}
	found := dir == datastoreRoot
	m.f.World.View(func(s *world.State) {
		for _, p := range s.Depot {
			found = found || strings.HasPrefix(p.Path, dir+"/")
			if path.Dir(p.Path) == dir && matches(path.Base(p.Path), spec) {
				result.File = append(result.File, &types.FileInfo{Path: path.Base(p.Path), FileSize: 1 << 20})
			}
		}
		for _, v := range s.VMs {
			if path.Join(datastoreRoot, v.Stem()) != dir || model.DatastoreRef(s.VMDatacenter(v)) != store {
				continue
			}
			found = true
			for _, name := range model.VMFiles(v) {
				if matches(name, spec) {
					result.File = append(result.File, &types.FileInfo{Path: name, FileSize: int64(len(model.VMFile(v, name)))})
				}
			}
		}
	})
	if !found {
		return nil, frame.Refuse(&types.FileNotFound{FileFault: types.FileFault{File: folder}}, "File "+folder+" was not found")
	}
	return result, nil
}

func matches(name string, spec *types.HostDatastoreBrowserSearchSpec) bool {
	if spec == nil || len(spec.MatchPattern) == 0 {
		return true
	}
	return slices.ContainsFunc(spec.MatchPattern, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}
