package vsphere

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/bracket"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// An Activity is what another user does to a target: a task that this session has not started, or a VM that was recently shut
// down.
type Activity struct {
	Target backends.Ref
	What   string
	User   string
	Since  time.Time
	Shut   bool // the VM was shut down; otherwise a task is running
}

// Disrupts reports whether the activity takes its target out of service or changes it; a snapshot or a new option does not.
func (a Activity) Disrupts() bool {
	return a.Shut || slices.ContainsFunc([]string{"powerOff", "reset", "shutdown", "standby", "suspend", "reconfigure", "relocate", "migrate",
		"MaintenanceMode", "reboot", "destroy", "remove", "upgrade"},
		func(verb string) bool { return strings.Contains(strings.ToLower(a.What), strings.ToLower(verb)) })
}

func (a Activity) String() string {
	return fmt.Sprintf("%s by %s since %s", a.What, a.User, a.Since.UTC().Format("2006-01-02 15:04:05 MST"))
}

// Others returns what other users do to targets: their tasks that are queued or running (ManagedEntity.recentTask,
// TaskInfo.reason in the vSphere Web Services API), and VMs that are off because a user shut their guest down within the last
// minutes (VmGuestShutdownEvent). Tasks started by vCenter or a schedule, and subtasks, are not counted.
func (c *Client) Others(ctx context.Context, targets []backends.Ref) ([]Activity, error) {
	const what = "read the tasks of other users"
	targets = slices.Clone(targets)
	for i, t := range targets {
		if t.Type == backends.TypeGuest {
			targets[i] = backends.VMRef(t.Name)
		}
	}
	at, specs, err := c.specs(ctx, targets, what, func(kind string) []string {
		if kind == "VirtualMachine" {
			return []string{"recentTask", "runtime.powerState"}
		}
		return []string{"recentTask"}
	})
	if err != nil || len(specs) == 0 {
		return nil, err
	}
	var tasks []place.Ref
	off := map[place.Ref]bool{}
	if _, err := c.conn.Retrieve(ctx, specs, func(o wire.Object) {
		for _, task := range wire.Value[types.ArrayOfManagedObjectReference](o, "recentTask").ManagedObjectReference {
			if !c.conn.Started(task) {
				tasks = append(tasks, task)
			}
		}
		off[o.Ref] = wire.Value[types.VirtualMachinePowerState](o, "runtime.powerState") == types.VirtualMachinePowerStatePoweredOff
	}); err != nil {
		return nil, wire.Explain(err, "vCenter", what)
	}
	out, err := c.foreign(ctx, tasks, at)
	if err != nil {
		return nil, wire.Explain(err, "vCenter", what)
	}
	for vm, is := range off {
		if !is {
			continue
		}
		shut, err := c.shutDown(ctx, vm, at[vm])
		if err != nil {
			return nil, wire.Explain(err, at[vm].Name, what)
		}
		out = append(out, shut...)
	}
	return out, nil
}

// taskPaths are the properties of a task that unfinished reads.
var taskPaths = []string{"info.state", "info.entity", "info.descriptionId", "info.reason", "info.queueTime", "info.parentTaskKey"}

// foreign reads the unfinished tasks of users. A task that no longer exists has ended.
func (c *Client) foreign(ctx context.Context, tasks []place.Ref, at map[place.Ref]backends.Ref) ([]Activity, error) {
	if len(tasks) == 0 {
		return nil, nil
	}
	var out []Activity
	_, err := c.conn.Retrieve(ctx, []types.PropertyFilterSpec{wire.Of("Task", tasks, taskPaths...)}, func(o wire.Object) {
		if a, is := unfinished(o); is {
			a.Target = at[wire.Value[place.Ref](o, "info.entity")]
			out = append(out, a)
		}
	})
	return out, err
}

// unfinished returns the activity of a task, without its target; false if the task has ended, is a subtask, or was not started by a
// user.
func unfinished(task wire.Object) (Activity, bool) {
	state, user := wire.Value[types.TaskInfoState](task, "info.state"), wire.TaskUser(task)
	if state != types.TaskInfoStateRunning && state != types.TaskInfoStateQueued || wire.Value[string](task, "info.parentTaskKey") != "" ||
		user == "" {
		return Activity{}, false
	}
	return Activity{User: user, What: "task " + wire.Value[string](task, "info.descriptionId"),
		Since: wire.Value[time.Time](task, "info.queueTime")}, true
}

// createsSwitch is the descriptionId of the tasks of Folder.CreateDVS_Task, as listed in the TaskManager.description of a vCenter that
// govmomi has recorded (simulator/vpx/task_manager.go).
const createsSwitch = "Folder.createDistributedVirtualSwitch"

// Creating returns the tasks, started by other sessions, that may still create those of the targets that do not exist: an earlier
// attempt may have run under another account. A task that creates a switch runs on the network folder of its datacenter and does not
// name the switch (vSphere Web Services API, Folder.CreateDVS_Task and TaskInfo.entity), so it counts for each missing switch. Other
// tasks on the folder do not count: the task is known by its descriptionId. A port group is created by a task on its switch, which
// Others returns. If there is no such task, the next look at a missing target is a new one: its task may have just ended.
func (c *Client) Creating(ctx context.Context, targets []backends.Ref) ([]Activity, error) {
	const what = "read the tasks on network folders"
	var missing []backends.Ref // switches
	kinds := map[backends.TargetType]bool{}
	for _, t := range targets {
		if t.Type != backends.TypeSwitch && t.Type != backends.TypePortGroup {
			continue
		}
		switch _, there, err := c.places.Look(ctx, t); {
		case err != nil:
			return nil, wire.Explain(err, t.Name, what)
		case there:
			continue
		}
		kinds[t.Type] = true
		if t.Type == backends.TypeSwitch {
			missing = append(missing, t)
		}
	}
	var out []Activity
	if datacenters := c.places.Datacenters(); len(missing) > 0 && len(datacenters) > 0 {
		if _, err := c.conn.Retrieve(ctx, []types.PropertyFilterSpec{onNetworkFolders(datacenters)}, func(o wire.Object) {
			a, is := unfinished(o)
			if !is || wire.Value[string](o, "info.descriptionId") != createsSwitch || c.conn.Started(o.Ref) {
				return
			}
			for _, a.Target = range missing {
				out = append(out, a)
			}
		}); err != nil {
			return nil, wire.Explain(err, "vCenter", what)
		}
	}
	if len(out) == 0 {
		for kind := range kinds {
			c.places.Expire(kind)
		}
	}
	return out, nil
}

// onNetworkFolders returns the spec that reads the recent tasks on the network folders of datacenters.
func onNetworkFolders(datacenters []place.Ref) types.PropertyFilterSpec {
	spec := types.PropertyFilterSpec{
		PropSet: []types.PropertySpec{{Type: "Task", PathSet: taskPaths}}, ReportMissingObjectsInResults: types.NewBool(true),
	}
	for _, dc := range datacenters {
		spec.ObjectSet = append(spec.ObjectSet, types.ObjectSpec{Obj: dc, Skip: types.NewBool(true), SelectSet: []types.BaseSelectionSpec{
			&types.TraversalSpec{Type: "Datacenter", Path: "networkFolder", Skip: types.NewBool(true), SelectSet: []types.BaseSelectionSpec{
				&types.TraversalSpec{Type: "Folder", Path: "recentTask"},
			}},
		}})
	}
	return spec
}

// shutDown returns who shut a VM down, like bracket.ShutDown.
func (c *Client) shutDown(ctx context.Context, vm place.Ref, t backends.Ref) ([]Activity, error) {
	last, err := bracket.ShutDown(ctx, c.conn, vm)
	if last == nil || err != nil {
		return nil, err
	}
	return []Activity{{Target: t, What: "shut down", User: last.UserName, Since: last.CreatedTime, Shut: true}}, nil
}

// GoingOff reports whether a shutdown of a running VM's guest was requested after a time (VmGuestShutdownEvent, which vCenter
// posts when it forwards the request): it will soon be off, and answers until then.
func (c *Client) GoingOff(ctx context.Context, vm string, after time.Time) (bool, error) {
	t := backends.VMRef(vm)
	ref, there, err := c.places.Look(ctx, t)
	if err != nil || !there {
		return false, err
	}
	o, err := c.conn.One(ctx, ref, "runtime.powerState")
	if err != nil || wire.Value[types.VirtualMachinePowerState](o, "runtime.powerState") != types.VirtualMachinePowerStatePoweredOn {
		return false, wire.Explain(err, vm, "read the power state")
	}
	asked, err := c.shutDown(ctx, ref, t)
	if err != nil {
		return false, wire.Explain(err, vm, "read its events")
	}
	return len(asked) > 0 && asked[0].Since.After(after), nil
}

// User returns the name of this session's account, in the form that tasks and events use.
func (c *Client) User() string { return c.conn.User() }

// Ours reports whether an activity may come from an earlier process of this account.
func (c *Client) Ours(a Activity) bool { return c.conn.Mine(a.User) }

// Event types for pNICs whose link goes down, and for those that ESXi disables because of a flapping link (vSphere: ESXi
// observation events, esx.problem.net.*).
const (
	linkDown     = "esx.problem.net.vmnic.linkstate.down"
	linkFlapping = "esx.problem.net.vmnic.linkstate.flapping"
)

// LinksLost counts how often the link of each pNIC went down since a time of vCenter's clock, by host and device name. It costs
// one call and is limited by vCenter's event retention.
func (c *Client) LinksLost(ctx context.Context, since time.Time) (map[string]map[string]int, error) {
	vim := c.conn.VIM()
	out := map[string]map[string]int{}
	if vim.ServiceContent.EventManager == nil {
		return out, nil
	}
	res, err := methods.QueryEvents(ctx, vim, &types.QueryEvents{This: *vim.ServiceContent.EventManager, Filter: types.EventFilterSpec{
		EventTypeId: []string{linkDown, linkFlapping}, Time: &types.EventFilterSpecByTime{BeginTime: &since},
	}})
	if err != nil {
		return nil, wire.Explain(err, "vCenter", "ask for events of links")
	}
	for _, e := range res.Returnval {
		x, ok := e.(*types.EventEx)
		if !ok || x.Host == nil || len(x.Arguments) == 0 {
			continue
		}
		if x.EventTypeId != linkDown && x.EventTypeId != linkFlapping {
			continue // the server does not support the filter
		}
		device := fmt.Sprint(x.Arguments[0].Value)
		if out[x.Host.Name] == nil {
			out[x.Host.Name] = map[string]int{}
		}
		out[x.Host.Name][device]++
	}
	return out, nil
}

// A Lack is a privilege that the account lacks on an entity.
type Lack struct {
	Entity    string // name of the entity
	Privilege string // Host.Config.NetService
}

// Missing returns which privileges the account lacks on which of the targets; a target of type vcenter is the root of the
// inventory. It costs one call for each type of target, whatever their number.
func (c *Client) Missing(ctx context.Context, want map[backends.Ref][]string) ([]Lack, error) {
	byType := map[backends.TargetType][]backends.Ref{}
	for t := range want {
		byType[t.Type] = append(byType[t.Type], t)
	}
	var out []Lack
	for _, kind := range slices.Sorted(maps.Keys(byType)) {
		targets := byType[kind]
		slices.SortFunc(targets, func(x, y backends.Ref) int { return cmp.Compare(x.Name, y.Name) })
		lacks, err := c.missing(ctx, targets, want)
		if err != nil {
			return nil, err
		}
		out = append(out, lacks...)
	}
	return out, nil
}

func (c *Client) missing(ctx context.Context, targets []backends.Ref, want map[backends.Ref][]string) ([]Lack, error) {
	const what = "ask for the account's privileges"
	vim := c.conn.VIM()
	manager := vim.ServiceContent.AuthorizationManager
	if manager == nil {
		return nil, backends.Permanentf("vCenter", "", "%s: this vCenter does not report them", what)
	}
	refs := make([]types.ManagedObjectReference, len(targets))
	var privileges []string
	for i, t := range targets {
		refs[i] = vim.ServiceContent.RootFolder
		if t.Type != backends.TypeVCenter {
			var err error
			if refs[i], err = c.places.Find(ctx, t); err != nil {
				return nil, err
			}
		}
		privileges = append(privileges, want[t]...)
	}
	slices.Sort(privileges)
	res, err := methods.HasPrivilegeOnEntities(ctx, vim, &types.HasPrivilegeOnEntities{
		This: *manager, Entity: refs, SessionId: c.conn.Session(), PrivId: slices.Compact(privileges),
	})
	if err != nil {
		return nil, wire.Explain(err, "vCenter", what)
	}
	granted := map[types.ManagedObjectReference][]string{}
	for _, e := range res.Returnval {
		for _, p := range e.PrivAvailability {
			if p.IsGranted {
				granted[e.Entity] = append(granted[e.Entity], p.PrivId)
			}
		}
	}
	var out []Lack
	for i, t := range targets {
		for _, p := range want[t] {
			if !slices.Contains(granted[refs[i]], p) {
				out = append(out, Lack{Entity: t.Name, Privilege: p})
			}
		}
	}
	return out, nil
}
