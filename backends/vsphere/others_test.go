package vsphere_test

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/vim25/mo"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
)

// While a task creates a switch, the switch counts as being created for every session but the one that started the task, also for
// those of another account. When the task has ended, the switch is found at once.
func TestTasksThatMayStillCreateASwitch(t *testing.T) {
	const ada = "ada@vsphere.local"
	for _, user := range []string{vcenter.Admin, ada} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			l, c := startLab(t, lab.Options{Hosts: 1, VMs: 1, Accounts: []vcenter.Account{{Name: ada, Password: vcenter.Password}},
				Faults: []string{"method=CreateDVS_Task,do=task-hold"}})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			starter, observer := dialLab(t, l, user, vcenter.Password), dialLab(t, l, user, vcenter.Password)
			set := make(chan error, 1)
			go func() { set <- starter.Setters()[dvs.Kind].Set(ctx, dvs, backends.ValueOf(dvs1), nil) }()
			creating := func(from *vsphere.Client) []vsphere.Activity {
				t.Helper()
				found, err := from.Creating(ctx, []backends.Ref{dvs.Target, group.Target, backends.HostRef("esx-01")})
				if err != nil {
					t.Fatal(err)
				}
				return found
			}
			for len(creating(observer)) == 0 { // until the task has begun
			}
			if got := creating(starter); len(got) > 0 {
				t.Errorf("the session that started it: %v", got)
			}
			got := creating(c)
			if len(got) != 1 || got[0].Target != dvs.Target ||
				!strings.HasPrefix(got[0].String(), "task Folder.createDistributedVirtualSwitch by ") || got[0].Disrupts() ||
				c.Ours(got[0]) != (user == vcenter.Admin) {
				t.Errorf("it finds %v", got)
			}
			l.World().Faults.Clear()
			for len(creating(observer)) > 0 { // until the task has ended
			}
			if got := read(t, observer.Setters(), dvs); got.IsAbsent() {
				t.Error("the switch is not found after its task has ended")
			}
			if err := <-set; err != nil {
				t.Error(err)
			}
		})
	}
}

// A task of the same account that does not create a switch does not count, although it runs on the network folder.
func TestOtherTasksOnANetworkFolderCreateNothing(t *testing.T) {
	l, c := startLab(t, lab.Options{Hosts: 1, VMs: 1, Faults: []string{"method=Rename_Task,do=task-hold"}})
	where := *l.URL()
	where.User = url.UserPassword(vcenter.Admin, vcenter.Password)
	admin, err := govmomi.NewClient(t.Context(), &where, true)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := find.NewFinder(admin.Client).Folder(t.Context(), "/*/network")
	if err != nil {
		t.Fatal(err)
	}
	task, err := folder.Rename(t.Context(), "networks")
	if err != nil {
		t.Fatal(err)
	}
	var o mo.Folder
	if err := folder.Properties(t.Context(), folder.Reference(), []string{"recentTask"}, &o); err != nil ||
		!slices.Contains(o.RecentTask, task.Reference()) {
		t.Fatalf("recent tasks of the folder: %v, %v", o.RecentTask, err)
	}
	if got, err := c.Creating(t.Context(), []backends.Ref{dvs.Target}); err != nil || len(got) > 0 {
		t.Errorf("%v, %v", got, err)
	}
	l.World().Faults.Clear()
}
