package vcenter_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

// After any change in the world, the properties equal those of a vCenter that starts with the changed world.
func TestPropertiesFollowTheWorld(t *testing.T) {
	c := start(t, scenario.Spec{Scenario: "done", Hosts: 2, VMs: 2})
	err := c.world.Update(func(s *world.State) ([]world.Event, error) {
		h, v, d := s.Host("esx-01"), s.VM("vm-01"), s.Switches[0]
		h.NTP, h.Maintenance, h.Lockdown, h.PowerPolicy = nil, true, "lockdownNormal", "static"
		h.BootTime = h.BootTime.Add(time.Hour)
		h.PNICs[2].RDMA, h.PNICs[2].LinkUp = nil, false
		h.VMKs = append(h.VMKs, &world.VMK{Device: "vmk1", MAC: "00:50:56:60:00:01", IP: "10.30.0.1", Prefix: 24, MTU: 9000, DVS: d.Name,
			PortGroup: "RDMA-PG", Roles: []string{"vmotion"}})
		h.Options["Net.PVRDMAVmknic"] = "vmk1"
		h.Firewall[0].AllIP, h.Firewall[0].Networks = false, []string{"10.0.0.0/8", "192.168.1.1"}
		h.Services[1].Running = true
		h.PCI[9].PassthruEnabled = true
		v.On, v.Locked, v.Reserved, v.Latency, v.Hardware = false, false, 0, "high", 20
		v.Extra = map[string]string{"pciPassthru.use64bitMMIO": "TRUE"}
		v.Guest.Up, v.Guest.NICs = false, nil
		v.Adapters = v.Adapters[:1]
		d.MTU, d.NIOC, d.Discovery, d.Note, d.Changes = 1600, true, "none", "a note", 7
		d.Members = d.Members[:1]
		g := d.PortGroup("RDMA-PG")
		g.Trunk, g.Active, g.Standby, g.Ports, g.Note = "0-4094", []string{}, []string{scenario.DefaultUplink}, 4, "a note"
		return []world.Event{
			{What: world.SwitchChanged, Switch: d.Name}, {What: world.HostNetwork, Host: h.Name}, {What: world.HostNetwork, Host: "esx-02"},
			{What: world.VMDevices, VM: v.Name},
		}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range c.world.Log.Events() {
		if e.What == world.FaultApplied {
			t.Errorf("a property could not be written: %s", e.Detail)
		}
	}
	h := c.hostMO("esx-01")
	for name, pair := range map[string][2]any{
		"runtime.inMaintenanceMode": {h.Runtime.InMaintenanceMode, true},
		"config.lockdownMode":       {h.Config.LockdownMode, types.HostLockdownMode("lockdownNormal")},
		"config.dateTimeInfo":       {len(h.Config.DateTimeInfo.NtpConfig.Server), 0},
		"powerSystemInfo":           {h.Config.PowerSystemInfo.CurrentPolicy.ShortName, "static"},
		"rdmaDevice":                {len(h.Config.Network.RdmaDevice), 1},
		"pnic without link":         {h.Config.Network.Pnic[2].LinkSpeed == nil, true},
		"vnic":                      {len(h.Config.Network.Vnic), 2},
		"proxySwitch.mtu":           {h.Config.Network.ProxySwitch[0].Mtu, int32(1600)},
		"service":                   {h.Config.Service.Service[1].Running, true},
		"allowedHosts":              {h.Config.Firewall.Ruleset[0].AllowedHosts.IpAddress, []string{"192.168.1.1"}},
		"summary.runtime":           {h.Summary.Runtime.InMaintenanceMode, true},
		"esx-02 left":               {len(c.hostMO("esx-02", "config.network").Config.Network.ProxySwitch), 0},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s is %v, want %v", name, pair[0], pair[1])
		}
	}
	v := c.vmMO("vm-01")
	for name, pair := range map[string][2]any{
		"powerState":  {v.Runtime.PowerState, types.VirtualMachinePowerStatePoweredOff},
		"tools":       {v.Guest.ToolsRunningStatus, "guestToolsNotRunning"},
		"guest.net":   {len(v.Guest.Net), 0},
		"version":     {v.Config.Version, "vmx-20"},
		"latency":     {v.Config.LatencySensitivity.Level, types.LatencySensitivitySensitivityLevelHigh},
		"reservation": {*v.Config.MemoryAllocation.Reservation, int64(0)},
		"network":     {len(v.Network), 1},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s is %v, want %v", name, pair[0], pair[1])
		}
	}
	var g mo.DistributedVirtualPortgroup
	c.read(c.network("RDMA-PG"), &g, "config", "vm", "host")
	set := g.Config.DefaultPortConfig.(*types.VMwareDVSPortSetting)
	if _, trunk := set.Vlan.(*types.VmwareDistributedVirtualSwitchTrunkVlanSpec); !trunk ||
		len(set.UplinkTeamingPolicy.UplinkPortOrder.ActiveUplinkPort) != 0 ||
		len(g.Vm) != 1 || len(g.Host) != 1 {
		t.Errorf("port group %+v, VMs %v, hosts %v", set, g.Vm, g.Host)
	}
}

// A host shows the memory that its running VMs use, and the state of HA, without any event of the host itself.
func TestHostsFollowTheirVMsAndCluster(t *testing.T) {
	c := start(t, scenario.Spec{Scenario: "done", Hosts: 2, VMs: 2})
	var vm world.VM
	c.world.View(func(s *world.State) { vm = *s.VM("vm-01") })
	used := func() int64 {
		t.Helper()
		return int64(c.hostMO(vm.Host).Summary.QuickStats.OverallMemoryUsage)
	}
	before := used()
	if err := c.world.PowerOff(vm.Name); err != nil {
		t.Fatal(err)
	}
	if got := used(); got != before-vm.MemoryMB {
		t.Errorf("%d MB in use after a power-off, want %d", got, before-vm.MemoryMB)
	}
	if err := c.world.PowerOn(vm.Name); err != nil {
		t.Fatal(err)
	}
	if got := used(); got != before {
		t.Errorf("%d MB in use after a power-on, want %d", got, before)
	}
	for _, on := range []bool{true, false} {
		if err := c.world.Update(func(s *world.State) ([]world.Event, error) {
			s.Services.HA = on
			return []world.Event{{What: world.Inventory, Detail: "cluster"}}, nil
		}); err != nil {
			t.Fatal(err)
		}
		if got := c.hostMO(vm.Host).Runtime.DasHostState != nil; got != on {
			t.Errorf("HA enabled %t, the host has a state in it %t", on, got)
		}
	}
}

// A refresh that finds an outdated copy changes the host, once; another one, or one that finds none, is no event.
func TestRefreshPublishesOnlyWhatWasOutdated(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	c.world.View(func(s *world.State) {
		h := s.Hosts[0]
		h.Copied = &world.Copied{Firewall: slices.Clone(h.Firewall), Services: slices.Clone(h.Services)}
		h.PNICs[2].Shown = new(world.SRIOVRequest)
	})
	for name, refresh := range map[string]func(string) error{
		"firewall": c.world.RefreshFirewall, "services": c.world.RefreshServices, "devices": c.world.RefreshPassthru,
	} {
		for _, want := range []int{1, 0} {
			before := len(c.world.Log.Events())
			if err := refresh("esx-01"); err != nil {
				t.Fatal(err)
			}
			if got := len(c.world.Log.Events()) - before; got != want {
				t.Errorf("%s: %d events, want %d", name, got, want)
			}
		}
		if err := refresh("no such host"); err == nil {
			t.Errorf("%s of a host that does not exist", name)
		}
	}
}
