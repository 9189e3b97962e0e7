package vcenter_test

import (
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

func (c *client) backing(group types.ManagedObjectReference) *types.VirtualEthernetCardDistributedVirtualPortBackingInfo {
	c.t.Helper()
	var g mo.DistributedVirtualPortgroup
	c.read(group, &g, "key", "config")
	var d mo.DistributedVirtualSwitch
	c.read(*g.Config.DistributedVirtualSwitch, &d, "uuid")
	return &types.VirtualEthernetCardDistributedVirtualPortBackingInfo{Port: types.DistributedVirtualSwitchPortConnection{SwitchUuid: d.Uuid,
		PortgroupKey: g.Key}}
}

func pvrdma(backing types.BaseVirtualDeviceBackingInfo, protocol string) *types.VirtualVmxnet3Vrdma {
	d := &types.VirtualVmxnet3Vrdma{DeviceProtocol: protocol}
	d.Key, d.Backing = -1, backing
	d.Connectable = &types.VirtualDeviceConnectInfo{StartConnected: true, Connected: true}
	return d
}

func (c *client) reconfigure(vm string, spec types.VirtualMachineConfigSpec) error {
	return c.done(c.vm(vm).Reconfigure(c.ctx, spec))
}

func (c *client) addDevice(vm string, d types.BaseVirtualDevice) error {
	return c.reconfigure(vm, types.VirtualMachineConfigSpec{DeviceChange: []types.BaseVirtualDeviceConfigSpec{
		&types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationAdd, Device: d}}})
}

func (c *client) powerOff(vm string) { c.t.Helper(); c.must(c.vm(vm).PowerOff(c.ctx)) }

func TestPVRDMAAdapterRefused(t *testing.T) {
	for _, row := range []struct {
		name       string
		prepare    func(*client)
		device     func(*client, types.BaseVirtualDeviceBackingInfo) types.BaseVirtualDevice
		kind, text string
	}{
		{"on a standard network (rule 14)", nil, func(c *client, _ types.BaseVirtualDeviceBackingInfo) types.BaseVirtualDevice {
			return pvrdma(&types.VirtualEthernetCardNetworkBackingInfo{VirtualDeviceDeviceBackingInfo: types.VirtualDeviceDeviceBackingInfo{
				DeviceName: "VM Network"}}, "rocev2")
		}, "InvalidDeviceBacking", "Incompatible device backing specified for device '0'."},
		{"unknown protocol", nil, func(_ *client, b types.BaseVirtualDeviceBackingInfo) types.BaseVirtualDevice {
			return pvrdma(b, "rocev9")
		},
			"InvalidArgument", "A specified parameter was not correct: configSpec.deviceChange[0].device.deviceProtocol"},
		{"hardware 11 (KB 328676)", func(c *client) { c.world.View(func(s *world.State) { s.VM("vm-01").Hardware = 11 }) },
			func(_ *client, b types.BaseVirtualDeviceBackingInfo) types.BaseVirtualDevice {
				return pvrdma(b, "rocev1")
			},
			"DeviceUnsupportedForVmVersion", "A PVRDMA network adapter is not supported for virtual machine version vmx-11: it needs vmx-13."},
		{"unknown port group", nil, func(_ *client, b types.BaseVirtualDeviceBackingInfo) types.BaseVirtualDevice {
			b.(*types.VirtualEthernetCardDistributedVirtualPortBackingInfo).Port.PortgroupKey = "dvportgroup-999"
			return pvrdma(b, "rocev2")
		}, "InvalidArgument", "A specified parameter was not correct: spec.deviceChange.device.port.portgroupKey"},
		{"unknown switch", nil, func(_ *client, b types.BaseVirtualDeviceBackingInfo) types.BaseVirtualDevice {
			b.(*types.VirtualEthernetCardDistributedVirtualPortBackingInfo).Port.SwitchUuid = "no"
			return pvrdma(b, "rocev2")
		}, "InvalidArgument", "A specified parameter was not correct: spec.deviceChange.device.port.switchUuid"},
		{"host that is no member", func(c *client) {
			c.world.View(func(s *world.State) { s.Switches[0].Members = s.Switches[0].Members[1:] })
		}, func(_ *client, b types.BaseVirtualDeviceBackingInfo) types.BaseVirtualDevice {
			return pvrdma(b, "rocev2")
		},
			"InvalidArgument", "A specified parameter was not correct: spec.deviceChange.device.port.switchUuid"},
		{"VF without a VF on the host", nil, func(_ *client, b types.BaseVirtualDeviceBackingInfo) types.BaseVirtualDevice {
			d := &types.VirtualSriovEthernetCard{SriovBacking: &types.VirtualSriovEthernetCardSriovBackingInfo{
				PhysicalFunctionBacking: &types.VirtualPCIPassthroughDeviceBackingInfo{Id: "0000:3b:00.0"}}}
			d.Backing = b
			return d
		}, "InvalidDeviceBacking", "Incompatible device backing specified for device '0'."},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := start(t, scenario.Spec{})
			_, group := c.rdmaDVS()
			backing := c.backing(group)
			c.powerOff("vm-01")
			if row.prepare != nil {
				row.prepare(c)
			}
			refused(t, c.addDevice("vm-01", row.device(c, backing)), row.kind, row.text)
		})
	}
}

func TestPVRDMAAdapter(t *testing.T) {
	c := start(t, scenario.Spec{})
	_, group := c.rdmaDVS()
	c.powerOff("vm-01")
	if err := c.addDevice("vm-01", pvrdma(c.backing(group), "rocev2")); err != nil {
		t.Fatal(err)
	}
	var found *types.VirtualVmxnet3Vrdma
	for _, d := range c.vmMO("vm-01", "config.hardware.device").Config.Hardware.Device {
		if v, ok := d.(*types.VirtualVmxnet3Vrdma); ok {
			found = v
		}
	}
	if found == nil || found.DeviceProtocol != "rocev2" || found.Key != 4001 || *found.UnitNumber != 8 || found.MacAddress == "" ||
		!found.Connectable.StartConnected {
		t.Fatalf("adapter %+v", found)
	}
	var g mo.DistributedVirtualPortgroup
	c.read(group, &g, "vm")
	if len(g.Vm) != 1 || g.Vm[0] != c.vm("vm-01").Reference() {
		t.Errorf("port group shows VMs %v", g.Vm)
	}
	// A PVRDMA adapter alone does not need a reservation.
	c.must(c.vm("vm-01").PowerOn(c.ctx))
	// A second adapter is allowed from 7.0 U2 on, and the API does not refuse hot add.
	if err := c.addDevice("vm-01", pvrdma(c.backing(group), "rocev2")); err != nil {
		t.Errorf("second adapter: %v", err)
	}
	c.world.View(func(s *world.State) {
		if a := s.VM("vm-01").RDMA(); len(a) != 2 || a[0].MAC == a[1].MAC || a[0].PortKey == a[1].PortKey || a[0].Slot == a[1].Slot {
			t.Errorf("adapters %+v", a)
		}
	})
}

func TestMemoryReservation(t *testing.T) {
	c := start(t, scenario.Spec{})
	reserve := func(mb int64) types.VirtualMachineConfigSpec {
		return types.VirtualMachineConfigSpec{MemoryAllocation: &types.ResourceAllocationInfo{Reservation: &mb}}
	}
	lock := func(on bool) types.VirtualMachineConfigSpec {
		return types.VirtualMachineConfigSpec{MemoryReservationLockedToMax: &on}
	}
	f := refused(t, c.reconfigure("vm-01", lock(true)), "InvalidPowerState",
		"The attempted operation cannot be performed in the current state (Powered on).")
	if f.(*types.InvalidPowerState).ExistingState != types.VirtualMachinePowerStatePoweredOn {
		t.Errorf("fault %+v", f)
	}
	c.powerOff("vm-01")
	wrong := lock(true)
	wrong.MemoryAllocation = reserve(4096).MemoryAllocation
	refused(t, c.reconfigure("vm-01", wrong), "InvalidArgument", "A specified parameter was not correct: spec.memoryAllocation.reservation")
	if err := c.reconfigure("vm-01", lock(true)); err != nil {
		t.Fatal(err)
	}
	refused(t, c.reconfigure("vm-01", reserve(0)), "InvalidArgument",
		"A specified parameter was not correct: spec.memoryAllocation.reservation")
	check := func(locked bool, mb int64) {
		t.Helper()
		config := c.vmMO("vm-01", "config").Config
		if *config.MemoryReservationLockedToMax != locked || *config.MemoryAllocation.Reservation != mb {
			t.Errorf("locked %t, reserved %d; want %t, %d", *config.MemoryReservationLockedToMax, *config.MemoryAllocation.Reservation, locked, mb)
		}
	}
	check(true, 8192)
	// Removing the lock keeps the reservation, so an undo has to set both.
	if err := c.reconfigure("vm-01", lock(false)); err != nil {
		t.Fatal(err)
	}
	check(false, 8192)
	if err := c.reconfigure("vm-01", reserve(0)); err != nil {
		t.Fatal(err)
	}
	check(false, 0)
}

func TestChangeVersion(t *testing.T) {
	c := start(t, scenario.Spec{})
	version := c.vmMO("vm-01", "config").Config.ChangeVersion
	spec := types.VirtualMachineConfigSpec{ChangeVersion: version,
		ExtraConfig: []types.BaseOptionValue{&types.OptionValue{Key: "a.b", Value: "c"}}}
	if err := c.reconfigure("vm-01", spec); err != nil {
		t.Fatal(err)
	}
	refused(t, c.reconfigure("vm-01", spec), "ConcurrentAccess",
		"Cannot complete operation due to concurrent modification by another operation.")
}

func TestUpgradeHardware(t *testing.T) {
	c := start(t, scenario.Spec{})
	upgrade := func(version string) error { return c.done(c.vm("vm-01").UpgradeVM(c.ctx, version)) }
	refused(t, upgrade("vmx-21"), "InvalidPowerState", "The attempted operation cannot be performed in the current state (Powered on).")
	c.powerOff("vm-01")
	refused(t, upgrade("vmx-99"), "VirtualHardwareVersionNotSupported",
		"The virtual machine version is not compatible with the version of the host 'esx-01'.")
	if err := upgrade("vmx-21"); err != nil {
		t.Fatal(err)
	}
	refused(t, upgrade("vmx-21"), "AlreadyUpgraded", "The virtual machine hardware is already at the requested version.")
	if v := c.vmMO("vm-01", "config").Config.Version; v != "vmx-21" {
		t.Errorf("version %s", v)
	}
}

func TestPassthroughNeedsFullReservation(t *testing.T) {
	c := start(t, scenario.Spec{})
	c.powerOff("vm-01")
	c.world.View(func(s *world.State) {
		s.VM("vm-01").Adapters = append(s.VM("vm-01").Adapters, &world.Adapter{Type: world.SRIOV, Key: 13031, PortGroup: "VM Network"})
	})
	refused(t, c.done(c.vm("vm-01").PowerOn(c.ctx)), "GenericVmConfigFault",
		"Invalid memory setting: memory reservation (sched.mem.min) should be equal to memsize(8192). ")
}

func TestNotEnoughMemory(t *testing.T) {
	c := start(t, scenario.Spec{})
	c.powerOff("vm-01")
	c.world.View(func(s *world.State) {
		v := s.VM("vm-01")
		v.MemoryMB, v.Reserved = 1<<20, 1<<20
	})
	refused(t, c.done(c.vm("vm-01").PowerOn(c.ctx)), "InsufficientMemoryResourcesFault",
		"The available Memory resources in the parent resource pool are insufficient for the operation.")
}

func TestGuestPower(t *testing.T) {
	c := start(t, scenario.Spec{})
	v := c.vm("vm-01")
	if err := v.ShutdownGuest(c.ctx); err != nil {
		t.Fatal(err)
	}
	if err := v.WaitForPowerState(c.ctx, types.VirtualMachinePowerStatePoweredOff); err != nil {
		t.Fatal(err)
	}
	refused(t, v.ShutdownGuest(c.ctx), "InvalidPowerState", "The attempted operation cannot be performed in the current state (Powered off).")
	refused(t, c.done(v.PowerOff(c.ctx)), "InvalidPowerState",
		"The attempted operation cannot be performed in the current state (Powered off).")
	c.must(v.PowerOn(c.ctx))
	refused(t, v.RebootGuest(c.ctx), "ToolsUnavailable",
		"Cannot complete operation because VMware Tools is not running in this virtual machine.")
	ip, err := v.WaitForIP(c.ctx, true)
	if err != nil || ip != "10.20.0.11" {
		t.Errorf("address %s, %v", ip, err)
	}
	g := c.vmMO("vm-01", "guest").Guest
	if g.ToolsRunningStatus != "guestToolsRunning" || len(g.Net) != 1 || g.Net[0].MacAddress == "" {
		t.Errorf("guest %+v", g)
	}
	refused(t, c.done(v.PowerOn(c.ctx)), "InvalidPowerState", "The attempted operation cannot be performed in the current state (Powered on).")
}

// A raw device mapping names its LUN (vSphere Web Services API, VirtualDiskRawDiskMappingVer1BackingInfo).
func TestRawDeviceMapping(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	const id = "020005010060002ac0000000000000000200023d7a565620202020"
	if err := c.world.Update(func(s *world.State) ([]world.Event, error) {
		s.VMs[0].RawDisks = []world.RawDisk{{LUN: id, KB: 64 << 20}}
		return []world.Event{{What: world.VMDevices, VM: "vm-01"}, {What: world.HostNetwork, Host: "esx-01"}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	var vm mo.VirtualMachine
	c.read(c.vm("vm-01").Reference(), &vm, "config.hardware.device")
	disks := object.VirtualDeviceList(vm.Config.Hardware.Device).SelectByType((*types.VirtualDisk)(nil))
	if len(disks) != 2 {
		t.Fatalf("%d disks", len(disks))
	}
	raw, ok := disks[1].GetVirtualDevice().Backing.(*types.VirtualDiskRawDiskMappingVer1BackingInfo)
	if !ok || raw.LunUuid != id || raw.DeviceName != "vml."+id || raw.CompatibilityMode != "physicalMode" || raw.DiskMode != "" {
		t.Errorf("backing %+v", disks[1].GetVirtualDevice().Backing)
	}
}
