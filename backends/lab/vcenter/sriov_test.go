package vcenter_test

import (
	"testing"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

const pf = "0000:3b:00.0"

func (c *client) passthru(host string, config types.BaseHostPciPassthruConfig) error {
	m := c.hostMO(host, "configManager.pciPassthruSystem")
	_, err := methods.UpdatePassthruConfig(c.ctx, c.Client.Client, &types.UpdatePassthruConfig{
		This: *m.ConfigManager.PciPassthruSystem, Config: []types.BaseHostPciPassthruConfig{config}})
	return err
}

func vfConfig(id string, on bool, vfs int32) *types.HostSriovConfig {
	return &types.HostSriovConfig{HostPciPassthruConfig: types.HostPciPassthruConfig{Id: id}, SriovEnabled: on, NumVirtualFunction: vfs}
}

func (c *client) sriovInfo(host, id string) *types.HostSriovInfo {
	for _, d := range c.hostMO(host, "config.pciPassthruInfo").Config.PciPassthruInfo {
		if s, ok := d.(*types.HostSriovInfo); ok && s.Id == id {
			return s
		}
	}
	return nil
}

// reboot restarts a host without evacuating it, because its VMs are off.
func (c *client) reboot(host string) {
	c.t.Helper()
	if err := c.world.LoseHost(host); err != nil {
		c.t.Fatal(err)
	}
	if err := c.world.RestoreHost(host); err != nil {
		c.t.Fatal(err)
	}
}

func vfCard(backing types.BaseVirtualDeviceBackingInfo, id string) *types.VirtualSriovEthernetCard {
	d := &types.VirtualSriovEthernetCard{AllowGuestOSMtuChange: types.NewBool(true)}
	d.Key, d.Backing = -1, backing
	if id != "" {
		d.SriovBacking = &types.VirtualSriovEthernetCardSriovBackingInfo{PhysicalFunctionBacking: &types.VirtualPCIPassthroughDeviceBackingInfo{
			Id: id, DeviceId: "0", SystemId: "BYPASS"}}
	}
	return d
}

// The states of a VF: requested, pending, existing after the reboot, offered, assigned to a VM, and unavailable once all are in
// use.
func TestVFLifecycle(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 3, VMs: 4})
	if err := c.passthru("esx-01", vfConfig(pf, true, 1)); err != nil {
		t.Fatal(err)
	}
	if s := c.sriovInfo("esx-01", pf); s.SriovEnabled || s.NumVirtualFunctionRequested != 0 {
		t.Errorf("vCenter shows the change before it has read the host again: %+v", s)
	}
	system := *c.hostMO("esx-01", "configManager.pciPassthruSystem").ConfigManager.PciPassthruSystem
	if _, err := methods.Refresh(c.ctx, c.Client.Client, &types.Refresh{This: system}); err != nil {
		t.Fatal(err)
	}
	if s := c.sriovInfo("esx-01", pf); !s.SriovEnabled || s.SriovActive || s.NumVirtualFunction != 0 || s.NumVirtualFunctionRequested != 1 ||
		s.MaxVirtualFunctionSupported != 16 {
		t.Errorf("before the reboot: %+v", s)
	}
	if !c.hostMO("esx-01", "summary.rebootRequired").Summary.RebootRequired {
		t.Error("no reboot is required")
	}
	c.powerOff("vm-01")
	c.powerOff("vm-04")
	c.reboot("esx-01")
	if s := c.sriovInfo("esx-01", pf); !s.SriovActive || s.NumVirtualFunction != 1 {
		t.Errorf("after the reboot: %+v", s)
	}
	if c.hostMO("esx-01", "summary.rebootRequired").Summary.RebootRequired {
		t.Error("a reboot is still required")
	}

	browser := c.vmMO("vm-01", "environmentBrowser").EnvironmentBrowser
	host := c.host("esx-01").Reference()
	answer, err := methods.QueryConfigTarget(c.ctx, c.Client.Client, &types.QueryConfigTarget{This: browser, Host: &host})
	if err != nil {
		t.Fatal(err)
	}
	target := answer.Returnval.Sriov
	if len(target) != 2 || target[0].PciDevice.Id != pf || target[0].Pnic != "vmnic2" || target[0].VirtualFunction ||
		!target[1].VirtualFunction ||
		uint16(target[1].PciDevice.DeviceId) != 0x1018 || len(answer.Returnval.PciPassthrough) != 1 {
		t.Errorf("target %+v", target)
	}

	_, group := c.rdmaDVS()
	for _, vm := range []string{"vm-01", "vm-04"} {
		if err := c.addDevice(vm, vfCard(c.backing(group), pf)); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, c.done(c.vm("vm-01").PowerOn(c.ctx)), "GenericVmConfigFault",
		"Invalid memory setting: memory reservation (sched.mem.min) should be equal to memsize(8192). ")
	for _, vm := range []string{"vm-01", "vm-04"} {
		if err := c.reconfigure(vm, types.VirtualMachineConfigSpec{MemoryReservationLockedToMax: types.NewBool(true)}); err != nil {
			t.Fatal(err)
		}
	}
	c.must(c.vm("vm-01").PowerOn(c.ctx))
	refused(t, c.done(c.vm("vm-04").PowerOn(c.ctx)), "GenericVmConfigFault",
		"No SR-IOV virtual function (VF) is available for given physical function (PF). Module 'DevicePowerOn' power on failed. Failed to "+
			"start the virtual machine.")
	refused(t, c.addDevice("vm-01", vfCard(c.backing(group), pf)), "GenericVmConfigFault", "The hot-plug operation failed. ")
	refused(t, c.passthru("esx-01", vfConfig(pf, true, 2)), "HostConfigFault",
		"An error occurred during host configuration: a virtual function of 0000:3b:00.0 is in use by vm-01")
	c.powerOff("vm-01")
	c.must(c.vm("vm-04").PowerOn(c.ctx))
	for _, d := range c.vmMO("vm-04", "config.hardware.device").Config.Hardware.Device {
		if v, ok := d.(*types.VirtualSriovEthernetCard); ok &&
			(*v.UnitNumber != 65 || v.Key != 13031 || !*v.AllowGuestOSMtuChange || v.SriovBacking.PhysicalFunctionBacking.Id != pf) {
			t.Errorf("device %+v", v)
		}
	}
}

func TestVFsOfTheSwitch(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 3, VMs: 3})
	if err := c.world.SetModule("esx-01", world.Nmlx5, "max_vfs=0,0,2"); err != nil {
		t.Fatal(err)
	}
	c.powerOff("vm-01")
	c.reboot("esx-01")
	_, group := c.rdmaDVS()
	if err := c.addDevice("vm-01", vfCard(c.backing(group), "")); err != nil {
		t.Fatal(err)
	}
	if err := c.reconfigure("vm-01", types.VirtualMachineConfigSpec{MemoryReservationLockedToMax: types.NewBool(true)}); err != nil {
		t.Fatal(err)
	}
	c.must(c.vm("vm-01").PowerOn(c.ctx))
	c.world.View(func(s *world.State) {
		if a := s.VM("vm-01").Adapters[1]; a.VF != "0000:3b:00.2" {
			t.Errorf("adapter without a PF has VF %q", a.VF)
		}
	})
	card := func(want string) *types.VirtualSriovEthernetCard {
		t.Helper()
		for _, d := range c.vmMO("vm-01", "config.hardware.device").Config.Hardware.Device {
			if v, ok := d.(*types.VirtualSriovEthernetCard); ok {
				if got := v.SriovBacking.PhysicalFunctionBacking.Id; got != want {
					t.Errorf("physical function %s, not %s", got, want)
				}
				return v
			}
		}
		return nil
	}
	edit := func(b *types.VirtualSriovEthernetCardSriovBackingInfo) error {
		d := card("Automatic-0000:00:00.0")
		d.SriovBacking = b
		return c.reconfigure("vm-01", types.VirtualMachineConfigSpec{DeviceChange: []types.BaseVirtualDeviceConfigSpec{
			&types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationEdit, Device: d}}})
	}
	card("Automatic-" + pf)
	c.powerOff("vm-01")
	refused(t, edit(&types.VirtualSriovEthernetCardSriovBackingInfo{}), "InvalidDeviceBacking",
		"Incompatible device backing specified for device '0'.")
	if err := edit(vfCard(nil, pf).SriovBacking); err != nil {
		t.Fatal(err)
	}
	// An edit without a backing does not change the backing.
	d := card(pf)
	d.SriovBacking = nil
	if err := c.reconfigure("vm-01", types.VirtualMachineConfigSpec{DeviceChange: []types.BaseVirtualDeviceConfigSpec{
		&types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationEdit, Device: d}}}); err != nil {
		t.Fatal(err)
	}
	card(pf)
}

func TestPassthruRefused(t *testing.T) {
	for _, row := range []struct {
		name    string
		prepare func(*world.Host)
		config  types.BaseHostPciPassthruConfig
		text    string
	}{
		{"more VFs than the firmware has", nil, vfConfig(pf, true, 17), "17 virtual functions on 0000:3b:00.0, which supports 16: invalid value"},
		{"no VFs at all", nil, vfConfig(pf, true, 0), "0 virtual functions on 0000:3b:00.0, which supports 16: invalid value"},
		{"SR-IOV off in the firmware", func(h *world.Host) { h.Card(pf).Setting("SRIOV_EN").Next = 0 }, vfConfig(pf, true, 1),
			"1 virtual functions on 0000:3b:00.0, which supports 0: invalid value"},
		{"SR-IOV off in the BIOS", func(h *world.Host) { h.BIOSSRIOV = false }, vfConfig(pf, true, 1),
			"1 virtual functions on 0000:3b:00.0, which supports 0: invalid value"},
		{"no such device", nil, vfConfig("0000:99:00.0", true, 1), "PCI device 0000:99:00.0: not found"},
		{"passthrough of an uplink", nil, &types.HostPciPassthruConfig{Id: "0000:1a:00.0", PassthruEnabled: true}, "vmnic0 is in use"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := start(t, scenario.Spec{Hosts: 1, VMs: 1})
			if row.prepare != nil {
				c.world.View(func(s *world.State) { row.prepare(s.Hosts[0]) })
				c.reboot("esx-01")
			}
			refused(t, c.passthru("esx-01", row.config), "HostConfigFault", "An error occurred during host configuration: "+row.text)
		})
	}
}

func TestGPUPassthrough(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	gpu := func(enabled bool, now *bool) *types.HostPciPassthruConfig {
		return &types.HostPciPassthruConfig{Id: "0000:3c:00.0", PassthruEnabled: enabled, ApplyNow: now}
	}
	active := func() bool {
		for _, d := range c.hostMO("esx-01", "config.pciPassthruInfo").Config.PciPassthruInfo {
			if i := d.GetHostPciPassthruInfo(); i.Id == "0000:3c:00.0" {
				return i.PassthruActive
			}
		}
		return false
	}
	if err := c.passthru("esx-01", gpu(true, types.NewBool(false))); err != nil || active() {
		t.Errorf("applyNow=false: %v, active %t", err, active())
	}
	if err := c.passthru("esx-01", gpu(true, nil)); err != nil || !active() {
		t.Errorf("applyNow unset on a host that can rebind: %v, active %t", err, active())
	}
}

func TestPowerPolicy(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	system := *c.hostMO("esx-01", "configManager.powerSystem").ConfigManager.PowerSystem
	set := func(key int32) error {
		_, err := methods.ConfigurePowerPolicy(c.ctx, c.Client.Client, &types.ConfigurePowerPolicy{This: system, Key: key})
		return err
	}
	if err := set(1); err != nil {
		t.Fatal(err)
	}
	if p := c.hostMO("esx-01", "config.powerSystemInfo").Config.PowerSystemInfo.CurrentPolicy.ShortName; p != "static" {
		t.Errorf("policy %s", p)
	}
	refused(t, set(9), "InvalidArgument", "A specified parameter was not correct: key")
}

func TestImage(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	image := *c.hostMO("esx-01", "configManager.imageConfigManager").ConfigManager.ImageConfigManager
	level, err := methods.HostImageConfigGetAcceptance(c.ctx, c.Client.Client, &types.HostImageConfigGetAcceptance{This: image})
	if err != nil || level.Returnval != "partner" {
		t.Fatalf("acceptance %+v, %v", level, err)
	}
	vibs, err := methods.FetchSoftwarePackages(c.ctx, c.Client.Client, &types.FetchSoftwarePackages{This: image})
	if err != nil {
		t.Fatal(err)
	}
	if len(vibs.Returnval) < 4 || vibs.Returnval[0].Name != "nmlx5-core" {
		t.Errorf("packages %+v", vibs)
	}
	set := func(to string) error {
		_, err := methods.UpdateHostImageAcceptanceLevel(c.ctx, c.Client.Client,
			&types.UpdateHostImageAcceptanceLevel{This: image, NewAcceptanceLevel: to})
		return err
	}
	if err := set("community"); err != nil {
		t.Fatal(err)
	}
	refused(t, set("vmware_certified"), "HostConfigFault",
		"An error occurred during host configuration: VIB MEL_bootbank_mft_4.28.0.92-0 of level PartnerSupported is in use")
	res, err := c.esxcli("esx-01", "software", "vib", "remove", "-n", "mft", "-n", "nmst")
	if err != nil || len(res.Values) != 1 || len(res.Values[0]["VIBsRemoved"]) != 2 || res.Values[0].Value("RebootRequired") != "true" {
		t.Errorf("remove through the API: %+v, %v", res, err)
	}
}

func TestHardwarePrivileges(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	power := *c.hostMO("esx-01", "configManager.powerSystem").ConfigManager.PowerSystem
	c.login(vcenter.ReadOnly, vcenter.Password)
	refused(t, c.passthru("esx-01", vfConfig(pf, true, 1)), "NoPermission", "Permission to perform this operation was denied.")
	_, err := methods.ConfigurePowerPolicy(c.ctx, c.Client.Client, &types.ConfigurePowerPolicy{This: power, Key: 1})
	refused(t, err, "NoPermission", "Permission to perform this operation was denied.")
}

func sensitive() types.VirtualMachineConfigSpec {
	return types.VirtualMachineConfigSpec{LatencySensitivity: &types.LatencySensitivity{Level: "high"},
		MemoryReservationLockedToMax: types.NewBool(true)}
}

// High latency sensitivity requires full reservations of CPU and memory. Hosts of 7.0 and later check this when the VM is
// edited, older hosts at power-on.
func TestLatencySensitivity(t *testing.T) {
	mhz, none := int64(9600), int64(0)
	c := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	c.powerOff("vm-01")
	refused(t, c.reconfigure("vm-01", sensitive()), "InvalidArgument",
		"A specified parameter was not correct: spec.cpuAllocation. The latency-sensitive virtual machine "+
			"must have the CPU reservation set to at least 9600 MHz (the number of low latency virtual CPUs multiplied by the measured physical "+
			"CPU speed).")
	both := sensitive()
	both.CpuAllocation = &types.ResourceAllocationInfo{Reservation: &mhz}
	if err := c.reconfigure("vm-01", both); err != nil {
		t.Fatal(err)
	}
	less := types.VirtualMachineConfigSpec{CpuAllocation: &types.ResourceAllocationInfo{Reservation: &none}}
	if err := c.reconfigure("vm-01", less); err == nil {
		t.Error("the reservation of a latency-sensitive VM was taken away")
	}
	c.must(c.vm("vm-01").PowerOn(c.ctx))
}

func TestLatencySensitivityOnAnOldHost(t *testing.T) {
	old, mhz := start(t, scenario.Spec{Hosts: 1, VMs: 1}), int64(9600)
	if err := old.world.Update(func(s *world.State) ([]world.Event, error) {
		s.Hosts[0].Version = "6.7.0"
		s.VMs[0].Hardware = 14
		return nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	old.powerOff("vm-01")
	if err := old.reconfigure("vm-01", sensitive()); err != nil {
		t.Fatal(err)
	}
	refused(t, old.done(old.vm("vm-01").PowerOn(old.ctx)), "GenericVmConfigFault",
		"Invalid CPU reservation for the latency-sensitive VM, (sched.cpu.min) should be at least 9600 MHz. ")
	if err := old.reconfigure("vm-01",
		types.VirtualMachineConfigSpec{CpuAllocation: &types.ResourceAllocationInfo{Reservation: &mhz}}); err != nil {
		t.Fatal(err)
	}
	old.must(old.vm("vm-01").PowerOn(old.ctx))
}

// A host cannot reserve more CPU than it has.
func TestCPUReservationFits(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 1, VMs: 2})
	for _, vm := range []string{"vm-01", "vm-02"} {
		c.powerOff(vm)
		mhz := int64(24 * 2400)
		if err := c.reconfigure(vm,
			types.VirtualMachineConfigSpec{NumCPUs: 24, CpuAllocation: &types.ResourceAllocationInfo{Reservation: &mhz}}); err != nil {
			t.Fatal(err)
		}
	}
	c.must(c.vm("vm-01").PowerOn(c.ctx))
	refused(t, c.done(c.vm("vm-02").PowerOn(c.ctx)), "InsufficientCpuResourcesFault",
		"The available CPU resources in the parent resource pool are insufficient for the operation.")
}

func TestDatastoreFiles(t *testing.T) {
	c := start(t, scenario.Spec{Scenario: "bare", Hosts: 1, VMs: 1})
	store, err := c.find.Datastore(c.ctx, "shared-01")
	if err != nil {
		t.Fatal(err)
	}
	browser, err := store.Browser(c.ctx)
	if err != nil {
		t.Fatal(err)
	}
	search := func(folder, pattern string) ([]types.BaseFileInfo, error) {
		task, err := browser.SearchDatastore(c.ctx, folder, &types.HostDatastoreBrowserSearchSpec{MatchPattern: []string{pattern}})
		if err != nil {
			return nil, err
		}
		info, err := task.WaitForResult(c.ctx, nil)
		if err != nil {
			return nil, err
		}
		return info.Result.(types.HostDatastoreBrowserSearchResults).File, nil
	}
	found, err := search("[shared-01] rdma", "mft-*.vib")
	if err != nil || len(found) != 1 {
		t.Errorf("found %v, %v", found, err)
	}
	_, err = search("[shared-01] nosuch", "*")
	refused(t, err, "FileNotFound", "File [shared-01] nosuch was not found")
	_, err = search("[other] rdma", "*")
	refused(t, err, "InvalidDatastorePath", "Invalid datastore path '[other] rdma'.")
}

func TestImageCluster(t *testing.T) {
	c := start(t, scenario.Spec{Scenario: "sriov-image", Hosts: 1, VMs: 1})
	cluster, err := c.find.ClusterComputeResource(c.ctx, "Cluster-01")
	if err != nil {
		t.Fatal(err)
	}
	var m mo.ClusterComputeResource
	c.read(cluster.Reference(), &m, "lifecycleManaged")
	if m.LifecycleManaged == nil || !*m.LifecycleManaged {
		t.Error("the cluster is not managed by an image")
	}
}
