package vcenter_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/vmware/govmomi/event"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

func kinds(events []types.BaseEvent) string {
	var out []string
	for _, e := range events {
		out = append(out, strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", e), "*types."), "Event"))
	}
	return strings.Join(out, " ")
}

// EventFilterSpec and TaskFilterSpec (vSphere Web Services API Reference): events and tasks are found by entity with its
// recursion option, by type including derived types, by user, category and chain.
func TestEventAndTaskFilters(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 2, VMs: 2})
	c.powerOff("vm-01")
	if err := c.done(c.vm("vm-01").PowerOn(c.ctx)); err != nil {
		t.Fatal(err)
	}
	c.must(c.host("esx-02").EnterMaintenanceMode(c.ctx, 30, false, nil))
	c.must(c.host("esx-02").ExitMaintenanceMode(c.ctx, 0))
	c.must(c.vm("vm-02").Rename(c.ctx, "db"))
	if err := c.vm("db").ShutdownGuest(c.ctx); err != nil {
		t.Fatal(err)
	}
	m := event.NewManager(c.Client.Client)
	vm, host := c.vm("vm-01").Reference(), c.host("esx-02").Reference()
	dc, err := c.find.DefaultDatacenter(c.ctx)
	if err != nil {
		t.Fatal(err)
	}
	by := func(ref types.ManagedObjectReference, r types.EventFilterSpecRecursionOption) *types.EventFilterSpecByEntity {
		return &types.EventFilterSpecByEntity{Entity: ref, Recursion: r}
	}
	ask := func(filter types.EventFilterSpec) []types.BaseEvent {
		out, err := m.QueryEvents(c.ctx, filter)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	const power = "Task VmStopping VmPoweredOff Task VmStarting VmPoweredOn"
	for _, x := range []struct {
		name   string
		filter types.EventFilterSpec
		want   string
	}{
		{"a VM", types.EventFilterSpec{Entity: by(vm, types.EventFilterSpecRecursionOptionSelf)}, power},
		{"nothing is below a VM", types.EventFilterSpec{Entity: by(vm, types.EventFilterSpecRecursionOptionChildren)}, ""},
		{"types, with and without their module", types.EventFilterSpec{EventTypeId: []string{"vim.event.VmPoweredOnEvent", "VmRenamedEvent"}},
			"VmPoweredOn VmRenamed"},
		{"a base type", types.EventFilterSpec{EventTypeId: []string{"HostEvent"}},
			"EnteringMaintenanceMode EnteredMaintenanceMode ExitMaintenanceMode"},
		{"moved while its host was emptied", types.EventFilterSpec{EventTypeId: []string{"VmMigratedEvent"}}, "DrsVmMigrated"},
		{"the newest alone", types.EventFilterSpec{MaxCount: 1, EventTypeId: []string{"HostEvent"}}, "ExitMaintenanceMode"},
		{"nobody's", types.EventFilterSpec{UserName: &types.EventFilterSpecByUsername{UserList: []string{"nobody"}}}, ""},
		{"a guest is asked to shut down", types.EventFilterSpec{EventTypeId: []string{"VmGuestShutdownEvent"}}, "VmGuestShutdown"},
		{"log-ins", types.EventFilterSpec{EventTypeId: []string{"SessionEvent"}, Category: []string{"info"}}, "UserLoginSession"},
		{"below the datacenter", types.EventFilterSpec{Entity: by(dc.Reference(), types.EventFilterSpecRecursionOptionChildren),
			EventTypeId: []string{"VmStartingEvent"}},
			"VmStarting"},
	} {
		if got := kinds(ask(x.filter)); got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
	on := ask(types.EventFilterSpec{EventTypeId: []string{"VmPoweredOnEvent"}})[0].GetEvent()
	if on.UserName != vcenter.Admin || on.Vm.Vm != vm || on.Host == nil || on.ComputeResource == nil || on.Datacenter.Name != "DC" {
		t.Errorf("%+v", on)
	}
	if got := kinds(ask(types.EventFilterSpec{EventChainId: on.ChainId})); got != "Task VmStarting VmPoweredOn" {
		t.Errorf("its chain: %s", got)
	}
	renamed := ask(types.EventFilterSpec{EventTypeId: []string{"VmRenamedEvent"}})[0].(*types.VmRenamedEvent)
	if renamed.OldName != "vm-02" || renamed.NewName != "db" {
		t.Errorf("%+v", renamed)
	}

	create := types.CreateCollectorForTasks{This: *c.ServiceContent.TaskManager, Filter: types.TaskFilterSpec{
		Entity: &types.TaskFilterSpecByEntity{Entity: host, Recursion: types.TaskFilterSpecRecursionOptionSelf},
		State:  []types.TaskInfoState{types.TaskInfoStateSuccess}}}
	made, err := methods.CreateCollectorForTasks(c.ctx, c.Client.Client, &create)
	if err != nil {
		t.Fatal(err)
	}
	read, err := methods.ReadNextTasks(c.ctx, c.Client.Client, &types.ReadNextTasks{This: made.Returnval, MaxCount: 100})
	if err != nil || len(read.Returnval) != 2 || read.Returnval[0].Name != "EnterMaintenanceMode_Task" || read.Returnval[1].EventChainId == 0 {
		t.Errorf("tasks of a host: %+v, %v", read, err)
	}
	var tasks mo.TaskManager
	c.read(*c.ServiceContent.TaskManager, &tasks, "recentTask")
	if len(tasks.RecentTask) != 5 {
		t.Fatalf("%d recent tasks", len(tasks.RecentTask))
	}
	var last mo.Task
	c.read(tasks.RecentTask[4], &last, "info")
	if last.Info.CompleteTime == nil || renamed.CreatedTime.After(*last.Info.CompleteTime) {
		t.Errorf("what a task did was posted at %s, after its client was told that it had ended: %v", renamed.CreatedTime, last.Info.CompleteTime)
	}
}

// When a host is evacuated, each VM has an event of its own that names its old and its new host. Source: vSphere Web Services API,
// DrsVmMigratedEvent and VmMigratedEvent; Get-MotionHistory by Luc Dekens lists the migrations of a cluster from these events.
func TestEachEvacuatedVMHasAnEvent(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 3, VMs: 9})
	want := map[string]string{}
	c.world.View(func(s *world.State) {
		for _, v := range s.VMs {
			if v.Host == "esx-01" {
				want[v.Name] = ""
			}
		}
	})
	if len(want) != 3 {
		t.Fatalf("VMs on esx-01: %v", want)
	}
	c.must(c.host("esx-01").EnterMaintenanceMode(c.ctx, 30, false, nil))
	c.world.View(func(s *world.State) {
		for name := range want {
			want[name] = "esx-01 to " + s.VM(name).Host
		}
	})
	events, err := event.NewManager(c.Client.Client).QueryEvents(c.ctx, types.EventFilterSpec{EventTypeId: []string{"VmMigratedEvent"}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range events {
		x := e.(*types.DrsVmMigratedEvent)
		got[x.Vm.Name] += x.SourceHost.Name + " to " + x.Host.Name
	}
	if !maps.Equal(got, want) {
		t.Errorf("migrations %v, want %v", got, want)
	}
}

// HistoryCollector: the position starts before the oldest item. A collector belongs to its session and ends with it.
func TestCollectorPages(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	m := event.NewManager(c.Client.Client)
	vm := c.vm("vm-01")
	for i := range 7 {
		c.must(vm.Rename(c.ctx, fmt.Sprint(i)))
	}
	h, err := m.CreateCollectorForEvents(c.ctx, types.EventFilterSpec{EventTypeId: []string{"VmRenamedEvent"}})
	if err != nil {
		t.Fatal(err)
	}
	names := func(events []types.BaseEvent, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, e := range events {
			out = append(out, e.(*types.VmRenamedEvent).NewName)
		}
		return strings.Join(out, "")
	}
	next := func(n int32) string { return names(h.ReadNextEvents(c.ctx, n)) }
	page := func() string {
		events, err := h.LatestPage(c.ctx)
		slices.SortFunc(events, func(a, b types.BaseEvent) int { return int(a.GetEvent().Key - b.GetEvent().Key) })
		return names(events, err)
	}
	if got := next(3) + " " + next(9) + next(9) + " " + page(); got != "012 3456 0123456" {
		t.Errorf("read: %s", got)
	}
	if err := h.SetPageSize(c.ctx, 4); err != nil {
		t.Fatal(err)
	}
	c.must(vm.Rename(c.ctx, "x"))
	if got := next(2) + " " + page(); got != "x 456x" {
		t.Errorf("after one more: %s", got)
	}
	for _, n := range []int32{0, -1, 1001} {
		_, err := h.ReadNextEvents(c.ctx, n)
		refused(t, err, "InvalidArgument", "A specified parameter was not correct: maxCount")
	}
	other, err := c.dial(vcenter.ReadOnly, vcenter.Password)
	if err != nil {
		t.Fatal(err)
	}
	_, err = methods.ReadNextEvents(c.ctx, other.Client, &types.ReadNextEvents{This: h.Reference(), MaxCount: 1})
	if f, _ := fault(err); err == nil || fmt.Sprintf("%T", f) != "*types.ManagedObjectNotFound" {
		t.Errorf("somebody else's collector: %v", err)
	}
	for range 31 {
		if _, err := m.CreateCollectorForEvents(c.ctx, types.EventFilterSpec{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err = m.CreateCollectorForEvents(c.ctx, types.EventFilterSpec{}); err == nil {
		t.Error("33 collectors")
	}
	if err := h.Destroy(c.ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := h.ReadNextEvents(c.ctx, 1); err == nil {
		t.Error("a collector that is gone was read")
	}
}
