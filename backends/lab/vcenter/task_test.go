package vcenter_test

import (
	"slices"
	"testing"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/simulator/vpx"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

func TestTaskMoves(t *testing.T) {
	c := start(t, scenario.Spec{})
	task, err := c.vm("vm-01").Reconfigure(c.ctx,
		types.VirtualMachineConfigSpec{ExtraConfig: []types.BaseOptionValue{&types.OptionValue{Key: "a", Value: "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	var seen []int32
	err = property.Wait(c.ctx, property.DefaultCollector(c.Client.Client), task.Reference(), []string{"info.progress", "info.state"},
		func(changes []types.PropertyChange) bool {
			done := false
			for _, change := range changes {
				switch v := change.Val.(type) {
				case int32:
					seen = append(seen, v)
				case types.TaskInfoState:
					done = v == types.TaskInfoStateSuccess
				}
			}
			return done
		})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(seen) {
		t.Errorf("progress goes back: %v", seen)
	}
	var mt mo.Task
	c.read(task.Reference(), &mt, "info")
	if mt.Info.EntityName != "vm-01" || mt.Info.Name != "ReconfigVM_Task" || mt.Info.Progress == 0 || mt.Info.CompleteTime == nil ||
		mt.Info.Reason.(*types.TaskReasonUser).UserName != "administrator@vsphere.local" {
		t.Errorf("info %+v", mt.Info)
	}
}

// The task that creates a switch runs on the network folder, because the switch does not exist yet. The folder also lists it when it
// has ended, as TaskManager.recentTask does. Source: vSphere Web Services API, Folder.CreateDVS_Task, TaskInfo.entity and
// ManagedEntity.recentTask; the name of the task is one that a vCenter describes (TaskManager.description, which govmomi's simulator has
// recorded).
func TestTaskOfANewSwitchRunsOnItsFolder(t *testing.T) {
	c := start(t, scenario.Spec{Faults: []string{"method=CreateDVS_Task,do=task-hold"}})
	folder, err := c.find.Folder(c.ctx, "/DC/network")
	if err != nil {
		t.Fatal(err)
	}
	task, err := folder.CreateDVS(c.ctx,
		types.DVSCreateSpec{ConfigSpec: &types.VMwareDVSConfigSpec{DVSConfigSpec: types.DVSConfigSpec{Name: "rdma"}}})
	if err != nil {
		t.Fatal(err)
	}
	recent := func() []types.ManagedObjectReference {
		var f mo.Folder
		c.read(folder.Reference(), &f, "recentTask")
		return f.RecentTask
	}
	listed := func() {
		t.Helper()
		if got := recent(); !slices.Equal(got, []types.ManagedObjectReference{task.Reference()}) {
			t.Errorf("recent tasks of the folder %v, want %v", got, task.Reference())
		}
	}
	listed()
	var mt mo.Task
	c.read(task.Reference(), &mt, "info")
	known := slices.ContainsFunc(vpx.Description.MethodInfo, func(d types.BaseElementDescription) bool {
		return d.GetElementDescription().Key == mt.Info.DescriptionId
	})
	if *mt.Info.Entity != folder.Reference() || !known || mt.Info.State != types.TaskInfoStateRunning {
		t.Errorf("info %+v", mt.Info)
	}
	if _, err := c.find.Network(c.ctx, "rdma"); err == nil {
		t.Error("the switch exists before its task has ended")
	}
	c.world.Faults.Clear()
	if err := c.done(task, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.find.Network(c.ctx, "rdma"); err != nil {
		t.Error(err)
	}
	listed()
}

func TestCancelStopsTheTask(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	// There is no other host for the only VM, so the task waits.
	task, err := c.host("esx-01").EnterMaintenanceMode(c.ctx, 0, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := task.Cancel(c.ctx); err != nil {
		t.Fatal(err)
	}
	_, err = task.WaitForResult(c.ctx, nil)
	refused(t, err, "RequestCanceled", "The task was canceled by a user.")
	c.powerOff("vm-01")
	if c.hostMO("esx-01", "runtime.inMaintenanceMode").Runtime.InMaintenanceMode {
		t.Error("the host went into maintenance mode after the task was cancelled")
	}
	refused(t, task.Cancel(c.ctx), "InvalidState", "The operation is not allowed in the current state.")
}

func TestMaintenanceMode(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 2, VMs: 2})
	c.must(c.host("esx-01").EnterMaintenanceMode(c.ctx, 30, false, nil))
	h := c.hostMO("esx-01", "runtime.inMaintenanceMode", "vm")
	if !h.Runtime.InMaintenanceMode || len(h.Vm) != 0 {
		t.Errorf("maintenance %t, VMs %v", h.Runtime.InMaintenanceMode, h.Vm)
	}
	if vm := c.vmMO("vm-01", "runtime"); *vm.Runtime.Host != c.host("esx-02").Reference() ||
		vm.Runtime.PowerState != types.VirtualMachinePowerStatePoweredOn {
		t.Errorf("vm-01 did not move: %+v", vm.Runtime.Host)
	}
	_, err := c.host("esx-01").EnterMaintenanceMode(c.ctx, 30, false, nil)
	refused(t, err, "InvalidState", "The operation is not allowed in the current state.")
	// There is no other host for the VMs of the second host, so the task waits and times out.
	task, err := c.host("esx-02").EnterMaintenanceMode(c.ctx, 1, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = task.WaitForResult(c.ctx, nil)
	refused(t, err, "Timedout", "Operation timed out.")
	c.must(c.host("esx-01").ExitMaintenanceMode(c.ctx, 0))
}

func reboot(c *client, host string, force bool) error {
	res, err := methods.RebootHost_Task(c.ctx, c.Client, &types.RebootHost_Task{This: c.host(host).Reference(), Force: force})
	if err != nil {
		return err
	}
	return c.done(object.NewTask(c.Client.Client, res.Returnval), nil)
}

func TestReboot(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 2, VMs: 2, Timing: world.Timing{HostReboot: 5 * time.Second}})
	refused(t, reboot(c, "esx-01", false), "InvalidState", "The operation is not allowed in the current state.")
	before := *c.hostMO("esx-01", "runtime").Runtime.BootTime
	if err := c.world.SetModule("esx-01", "nmlx5_core", "pfctx=8 pfcrx=8"); err != nil {
		t.Fatal(err)
	}
	c.must(c.host("esx-01").EnterMaintenanceMode(c.ctx, 30, false, nil))
	states := make(chan types.HostSystemConnectionState, 10)
	waited := make(chan error, 1)
	go func() {
		down := false
		waited <- property.Wait(c.ctx, property.DefaultCollector(c.Client.Client), c.host("esx-01").Reference(),
			[]string{"runtime.connectionState"},
			func(changes []types.PropertyChange) bool {
				for _, change := range changes {
					state := change.Val.(types.HostSystemConnectionState)
					states <- state
					if down && state == types.HostSystemConnectionStateConnected {
						return true
					}
					down = down || state == types.HostSystemConnectionStateNotResponding
				}
				return false
			})
	}()
	if first := <-states; first != types.HostSystemConnectionStateConnected {
		t.Errorf("first state %s", first)
	}
	if err := reboot(c, "esx-01", false); err != nil {
		t.Fatal(err)
	}
	refused(t, enableRuleset(c, "esx-01", "pvrdma"), "HostNotConnected",
		"Unable to communicate with the remote host, since it is disconnected.")
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
	r := c.hostMO("esx-01", "runtime").Runtime
	if !r.BootTime.After(before) || !r.InMaintenanceMode {
		t.Errorf("boot time %v, maintenance %t", r.BootTime, r.InMaintenanceMode)
	}
	c.world.View(func(s *world.State) {
		if p := s.Host("esx-01").Module("nmlx5_core").Parameter("pfctx"); p.Active != "8" {
			t.Errorf("pfctx is %q after the reboot", p.Active)
		}
	})
	out := c.world.Log.Outages()
	if len(out) != 1 || out[0].Host != "esx-01" || out[0].To.Sub(out[0].From) < 5*time.Second || c.world.Log.MaxDown() != 1 {
		t.Errorf("outages %+v", out)
	}
}

func TestOptions(t *testing.T) {
	c := start(t, scenario.Spec{})
	m, err := c.host("esx-01").ConfigManager().OptionManager(c.ctx)
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Query(c.ctx, "Net.PVRDMAVmknic")
	if err != nil || len(got) != 1 || got[0].GetOptionValue().Value != "" {
		t.Fatalf("default %v, %v", got, err)
	}
	option := func(key string, value any) []types.BaseOptionValue {
		return []types.BaseOptionValue{&types.OptionValue{Key: key, Value: value}}
	}
	refused(t, m.Update(c.ctx, option("Net.PVRDMAVmknicc", "vmk0")), "InvalidName", "The name 'Net.PVRDMAVmknicc' is invalid.")
	refused(t, m.Update(c.ctx, option("Net.PVRDMAVmknic", int64(0))), "InvalidArgument",
		"A specified parameter was not correct: Net.PVRDMAVmknic")
	_, err = m.Query(c.ctx, "Net.NoSuch")
	refused(t, err, "InvalidName", "The name 'Net.NoSuch' is invalid.")
	if err := m.Update(c.ctx, option("Net.PVRDMAVmknic", "vmk0")); err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{"esx-01": "vmk0", "esx-02": ""} {
		h := c.hostMO(host, "config.option")
		i := slices.IndexFunc(h.Config.Option, func(o types.BaseOptionValue) bool { return o.GetOptionValue().Key == "Net.PVRDMAVmknic" })
		if i < 0 || h.Config.Option[i].GetOptionValue().Value != want {
			t.Errorf("%s: option is not %q", host, want)
		}
	}
	// vCenter also shows values that a shell sets.
	if err := c.world.SetOption("esx-02", "Net.PVRDMAVmknic", "vmk1"); err != nil {
		t.Fatal(err)
	}
	var om mo.OptionManager
	c.read(*c.hostMO("esx-02", "configManager.advancedOption").ConfigManager.AdvancedOption, &om, "setting")
	if !slices.ContainsFunc(om.Setting, func(o types.BaseOptionValue) bool { return o.GetOptionValue().Value == "vmk1" }) {
		t.Error("the option manager does not show what the shell set")
	}
}

func TestNetworkFacts(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 2})
	macs := map[string]bool{}
	for _, name := range []string{"esx-01", "esx-02"} {
		net := c.hostMO(name, "config.network").Config.Network
		for _, p := range net.Pnic {
			if macs[p.Mac] {
				t.Errorf("MAC %s twice", p.Mac)
			}
			macs[p.Mac] = true
			if up := p.LinkSpeed != nil; up == (p.Device == "vmnic3") {
				t.Errorf("%s %s: link up is %t", name, p.Device, up)
			}
		}
		if len(net.RdmaDevice) != 2 {
			t.Fatalf("%d RDMA devices", len(net.RdmaDevice))
		}
		r := net.RdmaDevice[0]
		if r.Backing.(*types.HostRdmaDevicePnicBacking).PairedUplink != "key-vim.host.PhysicalNic-vmnic2" || r.ConnectionInfo.State != "active" ||
			!r.Capability.RoceV2Capable {
			t.Errorf("RDMA device %+v", r)
		}
	}
	hw := c.hostMO("esx-01", "hardware").Hardware
	i := slices.IndexFunc(hw.PciDevice, func(d types.HostPciDevice) bool { return d.Id == "0000:3b:00.0" })
	if uint16(hw.PciDevice[i].VendorId) != 0x15b3 || uint16(hw.PciDevice[i].DeviceId) != 0x1017 {
		t.Errorf("PCI device %+v", hw.PciDevice[i])
	}
	if !slices.Contains(hw.NumaInfo.NumaNode[0].PciId, "0000:3b:00.0") || !slices.Contains(hw.NumaInfo.NumaNode[1].PciId, "0000:af:00.0") {
		t.Errorf("NUMA nodes %+v", hw.NumaInfo.NumaNode)
	}
	if hw.SystemInfo.Uuid == c.hostMO("esx-02", "hardware").Hardware.SystemInfo.Uuid {
		t.Error("two hosts have one UUID")
	}
}
