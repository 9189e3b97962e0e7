package vcenter_test

import (
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

func (c *client) ended(task *object.Task, err error) {
	c.t.Helper()
	if err == nil {
		err = task.Wait(c.ctx)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) fetch(ref types.ManagedObjectReference, paths []string, into any) {
	c.t.Helper()
	if err := property.DefaultCollector(c.Client.Client).RetrieveOne(c.ctx, ref, paths, into); err != nil {
		c.t.Fatal(err)
	}
}

// Names that users choose, and folders that users create (vSphere Web Services API, ManagedEntity.name: "Any % (percent)
// character used in this name parameter must be escaped", and / and \ too).
func TestRenameAndMove(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 1, VMs: 2})
	folders, err := c.find.DefaultFolder(c.ctx)
	if err != nil {
		t.Fatal(err)
	}
	f, err := folders.CreateFolder(c.ctx, "prod")
	if err != nil {
		t.Fatal(err)
	}
	_, err = folders.CreateFolder(c.ctx, "prod")
	refused(t, err, "DuplicateName", "The name 'prod' already exists.")
	vm := c.vm("vm-01")
	c.ended(f.MoveInto(c.ctx, []types.ManagedObjectReference{vm.Reference()}))
	var moved mo.VirtualMachine
	if c.fetch(vm.Reference(), []string{"parent"}, &moved); *moved.Parent != f.Reference() {
		t.Errorf("after the move the parent is %v", moved.Parent)
	}
	c.ended(vm.Rename(c.ctx, "db%2f01"))
	c.ended(f.Rename(c.ctx, "prod 2"))
	got, err := c.find.VirtualMachine(c.ctx, "/DC/vm/prod 2/db%2f01")
	if err != nil || got.Reference() != vm.Reference() {
		t.Fatalf("%v, %v", got, err)
	}
	var inside mo.Folder
	c.fetch(f.Reference(), []string{"childEntity", "parent"}, &inside)
	if len(inside.ChildEntity) != 1 || *inside.Parent != folders.Reference() {
		t.Errorf("folder %+v", inside)
	}
	c.ended(got.PowerOff(c.ctx)) // found by its reference, regardless of its name
	task, err := f.MoveInto(c.ctx, []types.ManagedObjectReference{f.Reference()})
	if err == nil {
		err = task.Wait(c.ctx)
	}
	refused(t, err, "InvalidFolder", "A folder cannot be moved into itself.")
	c.ended(folders.MoveInto(c.ctx, []types.ManagedObjectReference{vm.Reference()}))
	cluster, err := c.find.DefaultClusterComputeResource(c.ctx)
	if err != nil {
		t.Fatal(err)
	}
	c.ended(cluster.Rename(c.ctx, "gpu"))
	if _, err := c.find.ClusterComputeResource(c.ctx, "gpu"); err != nil {
		t.Error(err)
	}
}

func TestTemplatesAndSnapshots(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	vm := c.vm("vm-01")
	refused(t, vm.MarkAsTemplate(c.ctx), "InvalidPowerState", "The attempted operation cannot be performed in the current state (Powered on).")
	for _, name := range []string{"one", "two", "three"} {
		c.ended(vm.CreateSnapshot(c.ctx, name, "", false, false))
	}
	consolidate := true
	c.ended(vm.RemoveSnapshot(c.ctx, "two", false, &consolidate))
	for name, there := range map[string]bool{"one": true, "two": false, "three": true} {
		if _, err := vm.FindSnapshot(c.ctx, name); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.ended(vm.RemoveSnapshot(c.ctx, "one", true, &consolidate))
	if _, err := vm.FindSnapshot(c.ctx, "three"); err == nil {
		t.Error("a snapshot is there without the one below")
	}
	c.ended(vm.PowerOff(c.ctx))
	if err := vm.MarkAsTemplate(c.ctx); err != nil {
		t.Fatal(err)
	}
	var v mo.VirtualMachine
	c.fetch(vm.Reference(), []string{"config.template", "summary.config.template"}, &v)
	if !v.Config.Template || !v.Summary.Config.Template {
		t.Error("no template")
	}
	task, err := vm.PowerOn(c.ctx)
	if err == nil {
		err = task.Wait(c.ctx)
	}
	refused(t, err, "NotSupported", "The operation is not supported on the object.")
	pool, err := c.find.DefaultResourcePool(c.ctx)
	if err == nil {
		err = vm.MarkAsVirtualMachine(c.ctx, *pool, c.host("esx-01"))
	}
	if err != nil {
		t.Fatal(err)
	}
	c.ended(vm.PowerOn(c.ctx))
}

// A VM continues to run while its host is disconnected. Operations that need the host are refused.
func TestDisconnectAndReconnect(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	host := c.host("esx-01")
	c.ended(host.Disconnect(c.ctx))
	var h mo.HostSystem
	var v mo.VirtualMachine
	c.fetch(host.Reference(), []string{"runtime.connectionState"}, &h)
	c.fetch(c.vm("vm-01").Reference(), []string{"runtime.connectionState", "runtime.powerState"}, &v)
	if h.Runtime.ConnectionState != "disconnected" || v.Runtime.ConnectionState != "disconnected" || v.Runtime.PowerState != "poweredOn" {
		t.Errorf("host %s, VM %s %s", h.Runtime.ConnectionState, v.Runtime.ConnectionState, v.Runtime.PowerState)
	}
	refused(t, enableRuleset(c, "esx-01", "pvrdma"), "HostNotConnected",
		"Unable to communicate with the remote host, since it is disconnected.")
	c.ended(host.Reconnect(c.ctx, nil, nil))
	if err := enableRuleset(c, "esx-01", "pvrdma"); err != nil {
		t.Error(err)
	}
}

func TestClusterReconfigured(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	cluster, err := c.find.DefaultClusterComputeResource(c.ctx)
	if err != nil {
		t.Fatal(err)
	}
	c.ended(cluster.Reconfigure(c.ctx,
		&types.ClusterConfigSpecEx{DrsConfig: &types.ClusterDrsConfigInfo{Enabled: types.NewBool(false), DefaultVmBehavior: "manual"},
			DasConfig: &types.ClusterDasConfigInfo{Enabled: types.NewBool(true)}}, true))
	got, err := cluster.Configuration(c.ctx)
	if err != nil || *got.DrsConfig.Enabled || got.DrsConfig.DefaultVmBehavior != "manual" || !*got.DasConfig.Enabled {
		t.Errorf("%+v, %v", got, err)
	}
}

// A VM cannot have more vCPUs than the host has logical cores: 48 cores with hyper-threading are 96.
func TestHostLimitsVCPUs(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	vm := c.vm("vm-01")
	c.ended(vm.PowerOff(c.ctx))
	on := func(cpus int32) error {
		c.ended(vm.Reconfigure(c.ctx, types.VirtualMachineConfigSpec{NumCPUs: cpus}))
		task, err := vm.PowerOn(c.ctx)
		if err != nil {
			return err
		}
		return task.Wait(c.ctx)
	}
	refused(t, on(97), "NumVirtualCpusExceedsLimit",
		"The total number of virtual CPUs present or requested in virtual machines' configuration has exceeded the limit on the host: 96.")
	if err := on(96); err != nil {
		t.Error(err)
	}
}

func TestPermissionsAreRemoved(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	set, dc := object.NewAuthorizationManager(c.Client.Client), c.ServiceContent.RootFolder
	if err := set.SetEntityPermissions(c.ctx, dc, []types.Permission{{Principal: vcenter.ReadOnly, RoleId: -2, Propagate: true}}); err != nil {
		t.Fatal(err)
	}
	if err := set.RemoveEntityPermission(c.ctx, dc, vcenter.ReadOnly, false); err != nil {
		t.Fatal(err)
	}
	if list, err := set.RetrieveEntityPermissions(c.ctx, dc, false); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	refused(t, set.RemoveEntityPermission(c.ctx, dc, vcenter.ReadOnly, false), "NotFound",
		"The object or item referred to could not be found.")
}
