package vcenter_test

import (
	"io"
	"strings"
	"testing"

	"github.com/vmware/govmomi/event"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

// log downloads a file from a VM's folder as govmomi does.
func (c *client) log(vm, name string) string {
	c.t.Helper()
	ds, err := c.find.Datastore(c.ctx, "shared-01")
	if err != nil {
		c.t.Fatal(err)
	}
	r, _, err := ds.Download(c.ctx, vm+"/"+name, &soap.DefaultDownload)
	if err != nil {
		c.t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

// A VM with a GPU does not start if a requirement is not met: the user gets an error, and vmware.log contains the details.
func TestVMWithGPUDoesNotStart(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*world.State, *world.VM)
		text   string
		log    string
	}{
		"memory is not reserved": {func(_ *world.State, v *world.VM) { v.Locked, v.Reserved = false, 0 },
			"memory reservation (sched.mem.min) should be equal to memsize(131072)", "Invalid memory setting"},
		"Dell KB 000199172: no window above 4 GB": {func(_ *world.State, v *world.VM) { delete(v.Extra, "pciPassthru.use64bitMMIO") },
			"Module 'DevicePowerOn' power on failed.", "total number of pages needed (33574916) exceeds limit (917504), failing"},
		"quotes are no part of TRUE": {func(_ *world.State, v *world.VM) { v.Extra["pciPassthru.use64bitMMIO"] = `"TRUE"` },
			"Module 'DevicePowerOn' power on failed.", "exceeds limit (917504), failing"},
		"BIOS firmware": {func(_ *world.State, v *world.VM) { v.Firmware, v.Guest.BIOS = "bios", true },
			"Module 'DevicePowerOn' power on failed.", "exceeds limit (917504), failing"},
		"not passed through": {func(s *world.State, v *world.VM) { s.Host(v.Host).PCIDevice("0000:3c:00.0").PassthruActive = false },
			"Device 60:0.0 is not a passthrough device.", "Device 60:0.0 is not a passthrough device."},
		"another VM has it": {func(s *world.State, v *world.VM) {
			other := s.VM("vm-01")
			other.Host, other.Devices = v.Host, v.Devices[1:]
		}, "Failed to register the device pciPassthru1 for 60:0.0 due to unavailable hardware or software support.",
			"Failed to register device 0000:3c:00.0 error = 0xbad0004"},
		"it was added on another host": {func(s *world.State, v *world.VM) { v.Devices[1].System = s.Host("esx-01").UUID },
			"The systemId does not match the current system", "device ids do not match"},
		"another device is there now": {func(s *world.State, v *world.VM) { s.Host(v.Host).PCIDevice("0000:3c:00.0").Device = 0x2331 },
			"the vendorId does not match the device currently at 60:0.0", "device ids do not match"},
		"KB 437651: nested virtualization": {func(_ *world.State, v *world.VM) { v.Nested = true },
			"Nested Hardware-Assisted Virtualization is not supported", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, scenario.Spec{Hosts: 2, VMs: 2, Scenario: "gpudirect-done"})
			c.powerOff("vm-02")
			c.world.View(func(s *world.State) { tc.change(s, s.VM("vm-02")) })
			err := c.done(c.vm("vm-02").PowerOn(c.ctx))
			if err == nil || !strings.Contains(err.Error(), tc.text) {
				t.Fatalf("%v does not say %q", err, tc.text)
			}
			if tc.log != "" {
				if got := c.log("vm-02", "vmware.log"); !strings.Contains(got, tc.log) {
					t.Errorf("%q is not in\n%s", tc.log, got)
				}
			}
		})
	}
}

// If the MMIO window above 4 GB is too small, the firmware detects it and the VM powers off again (KB 323402).
func TestWindowTooSmallForTheFirmware(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 1, VMs: 1, Scenario: "gpudirect-done", Timing: world.Timing{VMBoot: 1}})
	c.powerOff("vm-01")
	if err := c.reconfigure("vm-01", types.VirtualMachineConfigSpec{ExtraConfig: []types.BaseOptionValue{
		&types.OptionValue{Key: "pciPassthru.64bitMMIOSizeGB", Value: "128"}}}); err != nil {
		t.Fatal(err)
	}
	if err := c.done(c.vm("vm-01").PowerOn(c.ctx)); err != nil {
		t.Fatal(err)
	}
	const want = "The firmware could not allocate 134283264 KB of PCI MMIO. Increase the size of PCI MMIO and try again."
	for c.vmMO("vm-01", "runtime.powerState").Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn {
		if c.ctx.Err() != nil {
			t.Fatal("it stays on")
		}
	}
	if got := c.log("vm-01", "vmware.log"); !strings.Contains(got, want) ||
		!strings.Contains(got, "barIndex 1 type 3 realaddr 0x392000000000 size 137438953472 flags 12") {
		t.Errorf("%q is not in\n%s", want, got)
	}
	events, err := event.NewManager(c.Client.Client).QueryEvents(c.ctx, types.EventFilterSpec{EventTypeId: []string{"VmMessageErrorEvent"}})
	if err != nil || len(events) != 1 || !strings.Contains(events[0].GetEvent().FullFormattedMessage, want) {
		t.Errorf("%v, %v", events, err)
	}
}

// Only users with the privilege to browse the datastore can read its files.
func TestFolderRequiresSession(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 1, VMs: 1, Scenario: "gpudirect-done"})
	reader, err := c.dial(vcenter.ReadOnly, vcenter.Password)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := methods.GetCurrentTime(c.ctx, reader.Client); err != nil {
		t.Fatal(err)
	}
	u := *c.server.URL
	u.Path, u.RawQuery = "/folder/vm-01/vmware.log", "dcPath=DC&dsName=shared-01"
	if _, _, err := reader.Client.Client.Download(c.ctx, &u, &soap.DefaultDownload); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("read only: %v", err)
	}
	if err := c.Logout(c.ctx); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Client.Client.Download(c.ctx, &u, &soap.DefaultDownload); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("logged out: %v", err)
	}
}

// Operations that VMs with a passthrough device do not support (vSphere Networking, DirectPath I/O; messages msg.pciPassthru.*).
func TestVMWithGPUCannotMove(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 2, VMs: 3, Scenario: "gpudirect-done"})
	host, err := c.find.HostSystem(c.ctx, "esx-02")
	if err != nil {
		t.Fatal(err)
	}
	to := host.Reference()
	move := types.VirtualMachineRelocateSpec{Host: &to}
	for what, do := range map[string]func(vm string) error{
		"moved": func(vm string) error {
			return c.done(c.vm(vm).Relocate(c.ctx, move, types.VirtualMachineMovePriorityDefaultPriority))
		},
		"suspended": func(vm string) error { return c.done(c.vm(vm).Suspend(c.ctx)) },
		"kept":      func(vm string) error { return c.done(c.vm(vm).CreateSnapshot(c.ctx, "s", "", false, false)) },
	} {
		if err := do("vm-01"); err == nil || !strings.Contains(err.Error(), "PCI DirectPath I/O device") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := c.done(c.vm("vm-03").Relocate(c.ctx, move, types.VirtualMachineMovePriorityDefaultPriority)); err != nil {
		t.Errorf("a VM without a device: %v", err)
	}
	c.powerOff("vm-01")
	if err := c.done(c.vm("vm-01").Relocate(c.ctx, move, types.VirtualMachineMovePriorityDefaultPriority)); err != nil {
		t.Errorf("a VM that is off: %v", err)
	}
	if err := c.done(c.vm("vm-01").PowerOn(c.ctx)); err == nil || !strings.Contains(err.Error(), "systemId does not match") {
		t.Errorf("on another host: %v", err)
	}
	if err := c.reconfigure("vm-01", types.VirtualMachineConfigSpec{NestedHVEnabled: types.NewBool(true)}); err == nil ||
		!strings.Contains(err.Error(), "Nested Hardware-Assisted") {
		t.Errorf("nested virtualization: %v", err)
	}
}

// A vendor device group is added or removed with all its devices in one request, never in part (vSphere Web Services API,
// VirtualMachineVirtualDeviceGroups).
func TestDeviceGroupIsOneUnit(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 1, VMs: 1, Scenario: "hgx-h100"})
	c.powerOff("vm-01")
	const name, profile = "Nvidia:2@grid_h100xm-80c%NVLink", "grid_h100xm-80c"
	group := func(key int32) *types.VirtualMachineVirtualDeviceGroups {
		g := &types.VirtualMachineVirtualDeviceGroupsVendorDeviceGroup{DeviceGroupName: name}
		g.GroupInstanceKey = key
		return &types.VirtualMachineVirtualDeviceGroups{DeviceGroup: []types.BaseVirtualMachineVirtualDeviceGroupsDeviceGroup{g}}
	}
	none := &types.VirtualMachineVirtualDeviceGroups{}
	changes := func(op types.VirtualDeviceConfigSpecOperation, devices ...types.BaseVirtualDevice) (out []types.BaseVirtualDeviceConfigSpec) {
		for _, d := range devices {
			out = append(out, &types.VirtualDeviceConfigSpec{Operation: op, Device: d})
		}
		return out
	}
	member := func(key, group, sequence int32) types.BaseVirtualDevice {
		return &types.VirtualPCIPassthrough{VirtualDevice: types.VirtualDevice{Key: key,
			Backing:         &types.VirtualPCIPassthroughVmiopBackingInfo{Vgpu: profile},
			DeviceGroupInfo: &types.VirtualDeviceDeviceGroupInfo{GroupInstanceKey: group, SequenceId: sequence}}}
	}
	const add, remove = types.VirtualDeviceConfigSpecOperationAdd, types.VirtualDeviceConfigSpecOperationRemove
	refused := func(what string, groups *types.VirtualMachineVirtualDeviceGroups, list []types.BaseVirtualDeviceConfigSpec) {
		t.Helper()
		if err := c.reconfigure("vm-01", types.VirtualMachineConfigSpec{DeviceGroups: groups, DeviceChange: list}); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	refused("a group without devices", group(-1), nil)
	refused("one of two devices", group(-1), changes(add, member(-100, -1, 1)))
	refused("a sequence twice", group(-1), changes(add, member(-100, -1, 1), member(-101, -1, 1)))
	refused("devices of no group", nil, changes(add, member(-100, -1, 1), member(-101, -1, 2)))
	if err := c.reconfigure("vm-01", types.VirtualMachineConfigSpec{DeviceGroups: group(-1),
		DeviceChange: changes(add, member(-100, -1, 1), member(-101, -1, 2))}); err != nil {
		t.Fatal(err)
	}
	vm := c.vmMO("vm-01", "config.deviceGroups", "config.hardware.device")
	var has []types.BaseVirtualDevice
	for _, d := range vm.Config.Hardware.Device {
		if in := d.GetVirtualDevice().DeviceGroupInfo; in != nil && in.GroupInstanceKey == 0 && in.SequenceId == int32(len(has)+1) {
			has = append(has, d)
		}
	}
	if len(has) != 2 || len(vm.Config.DeviceGroups.DeviceGroup) != 1 {
		t.Fatalf("%d devices in %+v", len(has), vm.Config.DeviceGroups)
	}
	refused("one device less", nil, changes(remove, has[0]))
	refused("the group without its devices", none, nil)
	refused("the devices without the group", nil, changes(remove, has...))
	refused("a third device", nil, changes(add, member(-100, 0, 3)))
	if err := c.reconfigure("vm-01", types.VirtualMachineConfigSpec{DeviceGroups: none, DeviceChange: changes(remove, has...)}); err != nil {
		t.Error(err)
	}
}
