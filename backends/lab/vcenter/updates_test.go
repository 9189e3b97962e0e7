package vcenter_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

// A watcher reads the updates of a property collector, page by page.
type watcher struct {
	c       *client
	version string
}

func (w *watcher) next(wait int32) *types.UpdateSet {
	w.c.t.Helper()
	res, err := methods.WaitForUpdatesEx(w.c.ctx, w.c.Client, &types.WaitForUpdatesEx{This: w.c.ServiceContent.PropertyCollector,
		Version: w.version,
		Options: &types.WaitOptions{MaxWaitSeconds: &wait}})
	if err != nil {
		w.c.t.Fatal(err)
	}
	if res.Returnval != nil {
		w.version = res.Returnval.Version
	}
	return res.Returnval
}

func (c *client) watch(kind string, paths ...string) *watcher {
	c.t.Helper()
	v, err := view.NewManager(c.Client.Client).CreateContainerView(c.ctx, c.ServiceContent.RootFolder, []string{kind}, true)
	if err != nil {
		c.t.Fatal(err)
	}
	_, err = methods.CreateFilter(c.ctx, c.Client, &types.CreateFilter{This: c.ServiceContent.PropertyCollector,
		Spec: types.PropertyFilterSpec{
			PropSet: []types.PropertySpec{{Type: kind, PathSet: paths}},
			ObjectSet: []types.ObjectSpec{{Obj: v.Reference(), Skip: types.NewBool(true),
				SelectSet: []types.BaseSelectionSpec{&types.TraversalSpec{Type: "ContainerView", Path: "view"}}}},
		}})
	if err != nil {
		c.t.Fatal(err)
	}
	return &watcher{c: c}
}

func TestUpdatesComeInPages(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 4, VMs: 250})
	w := c.watch("VirtualMachine", "name", "runtime.powerState")
	seen := map[types.ManagedObjectReference]bool{}
	for page := 1; ; page++ {
		set := w.next(5)
		if set == nil {
			t.Fatalf("page %d is empty", page)
		}
		n := 0
		for _, f := range set.FilterSet {
			for _, o := range f.ObjectSet {
				if o.Kind != types.ObjectUpdateKindEnter || len(o.ChangeSet) != 2 {
					t.Errorf("update %+v", o)
				}
				seen[o.Obj] = true
				n++
			}
		}
		if n > 100 {
			t.Errorf("%d objects on page %d", n, page)
		}
		if set.Truncated == nil || !*set.Truncated {
			break
		}
	}
	if len(seen) != 250 {
		t.Errorf("%d VMs", len(seen))
	}
	if set := w.next(0); set != nil {
		t.Errorf("nothing changed, yet %+v", set)
	}
	if err := c.world.PowerOff("vm-07"); err != nil {
		t.Fatal(err)
	}
	set := w.next(10)
	if set == nil || len(set.FilterSet) != 1 || len(set.FilterSet[0].ObjectSet) != 1 {
		t.Fatalf("update %+v", set)
	}
	o := set.FilterSet[0].ObjectSet[0]
	if o.Kind != types.ObjectUpdateKindModify || len(o.ChangeSet) != 1 || o.ChangeSet[0].Val != types.VirtualMachinePowerStatePoweredOff {
		t.Errorf("update %+v", o)
	}
}

func TestObjectsAddedAndRemoved(t *testing.T) {
	c := start(t, scenario.Spec{})
	w := c.watch("VmwareDistributedVirtualSwitch", "name", "config")
	if set := w.next(0); set != nil {
		t.Fatalf("there is a switch already: %+v", set)
	}
	dvs, err := c.createDVS(newSwitch{name: "late"})
	if err != nil {
		t.Fatal(err)
	}
	kinds := func() (list []types.ObjectUpdateKind) {
		set := w.next(10)
		if set == nil {
			t.Fatal("no update")
		}
		for _, o := range set.FilterSet[0].ObjectSet {
			list = append(list, o.Kind)
		}
		return list
	}
	if k := kinds(); len(k) != 1 || k[0] != types.ObjectUpdateKindEnter {
		t.Errorf("updates %v", k)
	}
	c.must(object.NewCommon(c.Client.Client, dvs.Reference()).Destroy(c.ctx))
	for k := kinds(); k[0] != types.ObjectUpdateKindLeave; k = kinds() {
		if k[0] != types.ObjectUpdateKindModify {
			t.Fatalf("updates %v", k)
		}
	}
}

func TestFilterNeedsAnObject(t *testing.T) {
	c := start(t, scenario.Spec{})
	_, err := methods.CreateFilter(c.ctx, c.Client, &types.CreateFilter{This: c.ServiceContent.PropertyCollector,
		Spec: types.PropertyFilterSpec{
			PropSet:   []types.PropertySpec{{Type: "Task", PathSet: []string{"info"}}},
			ObjectSet: []types.ObjectSpec{{Obj: types.ManagedObjectReference{Type: "Task", Value: "task-999"}}},
		}})
	refused(t, err, "ManagedObjectNotFound", "The object 'vim.Task:task-999' has already been deleted or has not been completely created")
}

// A folder's tasks are read through its datacenter, and views come and go, while others start: with the race detector, nothing is read while it is written.
func TestTraversalWhileTasksStart(t *testing.T) {
	c := start(t, scenario.Spec{})
	var made sync.WaitGroup
	var over atomic.Bool
	made.Go(func() {
		for i := 0; i < 10 || !over.Load(); i++ {
			if _, err := c.createDVS(newSwitch{name: fmt.Sprint("DVS-", i)}); err != nil {
				t.Error(err)
			}
		}
	})
	dc, err := c.find.Datacenter(c.ctx, "/DC")
	if err != nil {
		t.Fatal(err)
	}
	spec := types.PropertyFilterSpec{
		PropSet: []types.PropertySpec{{Type: "Task", PathSet: []string{"info.state"}}}, ReportMissingObjectsInResults: types.NewBool(true),
		ObjectSet: []types.ObjectSpec{{Obj: dc.Reference(), Skip: types.NewBool(true), SelectSet: []types.BaseSelectionSpec{
			&types.TraversalSpec{Type: "Datacenter", Path: "networkFolder", Skip: types.NewBool(true), SelectSet: []types.BaseSelectionSpec{
				&types.TraversalSpec{Type: "Folder", Path: "recentTask"},
			}},
		}}},
	}
	most, views := 0, view.NewManager(c.Client.Client)
	for range 300 {
		res, err := methods.RetrieveProperties(c.ctx, c.Client, &types.RetrieveProperties{This: c.ServiceContent.PropertyCollector,
			SpecSet: []types.PropertyFilterSpec{spec}})
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, len(res.Returnval))
		if v, err := views.CreateContainerView(c.ctx, c.ServiceContent.RootFolder, nil, true); err != nil || v.Destroy(c.ctx) != nil {
			t.Error(err, v)
		}
	}
	over.Store(true)
	if made.Wait(); most == 0 {
		t.Error("no task was read")
	}
}
