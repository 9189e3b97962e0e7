package model

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

func vmObject(s *world.State, v *world.VM) *mo.VirtualMachine {
	obj := &mo.VirtualMachine{}
	obj.ManagedEntity = entityOf(VMRef(v), Shown(v), ptr(folderRef(VMFolder, v.Folder)))
	obj.Capability = vmCapability()
	obj.EnvironmentBrowser, obj.ResourcePool = Browser, ptr(PoolRef(clusterOf(s, v)))
	if v.VApp != "" {
		app := VAppRef(v.VApp)
		obj.Parent, obj.ParentVApp, obj.ResourcePool = nil, &app, &app
	}
	obj.Datastore = []types.ManagedObjectReference{DatastoreRef(s.VMDatacenter(v))}
	if v.Local {
		obj.Datastore = append(obj.Datastore, localStore(s.Host(v.Host)))
	}
	obj.GuestHeartbeatStatus = heartbeat(v)
	obj.Config = vmConfig(s, v)
	obj.ResourceConfig = &types.ResourceConfigSpec{CpuAllocation: *obj.Config.CpuAllocation, MemoryAllocation: *obj.Config.MemoryAllocation}
	obj.Runtime = vmRuntime(s, v)
	obj.Guest = vmGuest(s, v)
	obj.Summary = vmSummary(v, obj)
	obj.Network = vmNetworks(s, v)
	obj.Snapshot = snapshots(v)
	return obj
}

// guestIDs contains the vSphere guest ids of the guest systems.
var guestIDs = map[string][2]string{
	"ubuntu":   {"ubuntu64Guest", "Ubuntu Linux (64-bit)"},
	"rhel-8":   {"rhel8_64Guest", "Red Hat Enterprise Linux 8 (64-bit)"},
	"rhel-9":   {"rhel9_64Guest", "Red Hat Enterprise Linux 9 (64-bit)"},
	"centos-8": {"centos8_64Guest", "CentOS 8 (64-bit)"},
	"centos-9": {"centos9_64Guest", "CentOS 9 (64-bit)"},
}

func guestID(v *world.VM) (id, name string) {
	if v.GuestID != "" {
		return v.GuestID, v.GuestName
	}
	os := v.Guest.OS
	if strings.HasPrefix(os, "ubuntu") {
		os = "ubuntu"
	}
	if g, ok := guestIDs[os]; ok {
		return g[0], g[1]
	}
	return "otherLinux64Guest", "Other Linux (64-bit)"
}

func vmConfig(s *world.State, v *world.VM) *types.VirtualMachineConfigInfo {
	id, name := guestID(v)
	c := &types.VirtualMachineConfigInfo{
		ChangeVersion: ChangeVersion(v), Modified: time.Date(2025, time.March, 4, 10, 0, v.Changes, 0, time.UTC), Name: Shown(v),
		GuestId: id, GuestFullName: name, Version: fmt.Sprintf("vmx-%02d", v.Hardware), Uuid: v.UUID, InstanceUuid: InstanceUUID(v),
		Firmware: v.Firmware, Files: types.VirtualMachineFileInfo{VmPathName: ConfigPath(v)},
		Tools:        &types.ToolsConfigInfo{ToolsVersion: 12389, LastInstallInfo: &types.ToolsConfigInfoToolsLastInstallInfo{}},
		DatastoreUrl: []types.VirtualMachineConfigInfoDatastoreUrlPair{{Name: "shared-01", Url: "/vmfs/volumes/shared-01"}},
		BootOptions:  &types.VirtualMachineBootOptions{EfiSecureBootEnabled: types.NewBool(false)},
		Hardware: types.VirtualHardware{NumCPU: int32(v.CPUs), NumCoresPerSocket: ptr(int32(v.CPUs)),
			MemoryMB: int32(v.MemoryMB), Device: Devices(s, v)},
		CpuAllocation:                allocation(v.CPUMHz, 4),
		MemoryAllocation:             allocation(v.Reserved, int32(v.MemoryMB/100)),
		MemoryReservationLockedToMax: types.NewBool(v.Locked),
		MemoryHotAddEnabled:          types.NewBool(false), CpuHotAddEnabled: types.NewBool(false), NestedHVEnabled: types.NewBool(v.Nested),
		LatencySensitivity: &types.LatencySensitivity{Level: latency(v)},
		ExtraConfig:        extraConfig(v),
		DeviceGroups:       deviceGroups(v),
		Template:           v.Template, Annotation: v.Note, Flags: vmFlags(), DefaultPowerOps: powerOps(),
		CpuHotRemoveEnabled: types.NewBool(false),
		CreateDate:          ptr(time.Date(2025, time.March, 4, 9, 0, 0, 0, time.UTC)), SwapPlacement: "inherit",
	}
	if v.Manager != "" {
		c.ManagedBy = &types.ManagedByInfo{ExtensionKey: v.Manager, Type: "cluster-agent"}
	}
	c.Files.SnapshotDirectory, c.Files.SuspendDirectory, c.Files.LogDirectory = directory(v), directory(v), directory(v)
	return c
}

// InstanceUUID returns the UUID by which vCenter identifies a VM. It differs from the BIOS UUID.
func InstanceUUID(v *world.VM) string { return "50" + v.UUID[2:] }

func directory(v *world.VM) string { return fmt.Sprintf("[shared-01] %s/", v.Stem()) }

// Shown returns the display name of a VM. A renamed VM keeps its folder on the datastore.
func Shown(v *world.VM) string {
	if v.Title != "" {
		return world.Escaped(v.Title)
	}
	return world.Escaped(v.Name)
}

// ConfigPath returns the datastore path of the configuration file.
func ConfigPath(v *world.VM) string { return fmt.Sprintf("[shared-01] %[1]s/%[1]s.vmx", v.Stem()) }

// ChangeVersion returns the identifier of the current configuration of a VM.
func ChangeVersion(v *world.VM) string { return fmt.Sprintf("2025-03-04T10:00:00.%06dZ", v.Changes) }

func latency(v *world.VM) types.LatencySensitivitySensitivityLevel {
	if v.Latency == "" {
		return types.LatencySensitivitySensitivityLevelNormal
	}
	return types.LatencySensitivitySensitivityLevel(v.Latency)
}

func allocation(mb int64, shares int32) *types.ResourceAllocationInfo {
	return &types.ResourceAllocationInfo{Reservation: ptr(mb), Limit: ptr(int64(-1)), ExpandableReservation: types.NewBool(false),
		Shares: &types.SharesInfo{Shares: shares * 1000, Level: types.SharesLevelNormal}}
}

func extraConfig(v *world.VM) []types.BaseOptionValue {
	all := map[string]string{"nvram": v.Stem() + ".nvram", "svga.present": "TRUE"}
	for key, value := range v.Extra {
		all[key] = value
	}
	for n, a := range v.Adapters {
		all[fmt.Sprintf("ethernet%d.pciSlotNumber", n)] = fmt.Sprint(a.Slot)
		if key := fmt.Sprintf("pciPassthru%d.", a.Key-FirstPassthru); a.Type == world.SRIOV {
			all[key+"generatedMACAddress"] = a.MAC
			if a.PF != "" {
				all[key+"pfId"] = world.DecimalPCI(a.PF)
			}
			if a.VF != "" {
				all[key+"id"] = world.DecimalPCI(a.VF)
			}
		}
	}
	for _, d := range v.Devices {
		all[fmt.Sprintf("pciPassthru%d.pciSlotNumber", d.Key-FirstPassthru)] = fmt.Sprint(d.Slot)
		if at := d.PCI + d.Assigned; at != "" {
			all[fmt.Sprintf("pciPassthru%d.id", d.Key-FirstPassthru)] = world.DecimalPCI(at)
		}
	}
	var keys []string
	for key := range all {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	var list []types.BaseOptionValue
	for _, key := range keys {
		list = append(list, &types.OptionValue{Key: key, Value: all[key]})
	}
	return list
}

func vmRuntime(s *world.State, v *world.VM) types.VirtualMachineRuntimeInfo {
	r := types.VirtualMachineRuntimeInfo{
		ConnectionState: types.VirtualMachineConnectionStateConnected, PowerState: types.VirtualMachinePowerStatePoweredOff,
		MaxCpuUsage: int32(v.CPUs * cpuHz / 1_000_000), MaxMemoryUsage: int32(v.MemoryMB), FaultToleranceState: "notConfigured",
		ConsolidationNeeded: false, RecordReplayState: types.VirtualMachineRecordReplayStateInactive,
		SuspendInterval: 0, CleanPowerOff: types.NewBool(!v.On), OnlineStandby: false, ToolsInstallerMounted: false,
	}
	if h := s.Host(v.Host); h != nil {
		r.Host = ptr(HostRef(h))
		if !h.Managed() {
			r.ConnectionState = types.VirtualMachineConnectionStateDisconnected
		}
	}
	if v.On {
		r.PowerState = types.VirtualMachinePowerStatePoweredOn
		if on := cmp.Or(v.BootTime, v.Guest.Booted); !on.IsZero() {
			r.BootTime = ptr(on)
		}
	}
	return r
}

func vmGuest(s *world.State, v *world.VM) *types.GuestInfo {
	id, name := guestID(v)
	g := &types.GuestInfo{
		ToolsStatus: types.VirtualMachineToolsStatusToolsNotRunning, ToolsVersionStatus: "guestToolsUnmanaged",
		ToolsVersionStatus2: "guestToolsUnmanaged",
		ToolsRunningStatus:  "guestToolsNotRunning", ToolsVersion: "12389", GuestState: "notRunning",
		GuestOperationsReady: types.NewBool(false), GuestStateChangeSupported: types.NewBool(false),
	}
	if !v.On || !v.Guest.Up {
		return g
	}
	g.ToolsStatus, g.ToolsRunningStatus, g.GuestState = types.VirtualMachineToolsStatusToolsOk, "guestToolsRunning", "running"
	g.GuestId, g.GuestFullName, g.GuestFamily, g.HostName = id, name, "linuxGuest", v.Guest.Hostname
	g.GuestOperationsReady, g.GuestStateChangeSupported = types.NewBool(true), types.NewBool(true)
	for _, n := range append(slices.Clone(v.Guest.Others), v.Guest.NICs...) {
		nic := types.GuestNicInfo{MacAddress: n.MAC, Connected: true, DeviceConfigId: -1, IpConfig: &types.NetIpConfigInfo{}}
		if a := v.Adapter(n.MAC); a != nil {
			nic.Network, nic.Connected, nic.DeviceConfigId = a.PortGroup, a.Connected, a.Key
		}
		for _, addr := range n.Addrs {
			p, err := netip.ParsePrefix(addr)
			if err != nil {
				continue
			}
			nic.IpAddress = append(nic.IpAddress, p.Addr().String())
			nic.IpConfig.IpAddress = append(nic.IpConfig.IpAddress, types.NetIpConfigInfoIpAddress{IpAddress: p.Addr().String(),
				PrefixLength: int32(p.Bits()), State: "preferred"})
			if g.IpAddress == "" {
				g.IpAddress = p.Addr().String()
			}
		}
		g.Net = append(g.Net, nic)
	}
	return g
}

// SnapshotRef returns the reference of a VM's snapshot.
func SnapshotRef(v *world.VM, shot world.Snapshot) types.ManagedObjectReference {
	return ref("VirtualMachineSnapshot", fmt.Sprintf("snapshot-%d-%d", v.Index+1, shot.ID))
}

// snapshots returns the snapshot chain of a VM, or nil if it has none.
func snapshots(v *world.VM) *types.VirtualMachineSnapshotInfo {
	if len(v.Snaps) == 0 {
		return nil
	}
	var below []types.VirtualMachineSnapshotTree
	for _, shot := range slices.Backward(v.Snaps) {
		below = []types.VirtualMachineSnapshotTree{{Snapshot: SnapshotRef(v, shot), Vm: VMRef(v), Name: world.Escaped(shot.Name),
			Description: shot.Note, Id: int32(shot.ID),
			CreateTime: time.Date(2025, time.March, 4, 9, shot.ID, 0, 0, time.UTC), State: types.VirtualMachinePowerStatePoweredOff,
			ChildSnapshotList: below}}
	}
	return &types.VirtualMachineSnapshotInfo{CurrentSnapshot: ptr(SnapshotRef(v, v.Snaps[len(v.Snaps)-1])), RootSnapshotList: below}
}

// snapshotObjects returns the managed objects of a VM's snapshots.
func snapshotObjects(v *world.VM, vm *mo.VirtualMachine) []mo.Reference {
	var list []mo.Reference
	for _, shot := range v.Snaps {
		obj := &mo.VirtualMachineSnapshot{Vm: vm.Self, Config: *vm.Config}
		obj.Self = SnapshotRef(v, shot)
		list = append(list, obj)
	}
	return list
}

func vmSummary(v *world.VM, obj *mo.VirtualMachine) types.VirtualMachineSummary {
	self := obj.Self
	return types.VirtualMachineSummary{
		Vm: &self, Runtime: obj.Runtime, OverallStatus: types.ManagedEntityStatusGreen,
		Config: types.VirtualMachineConfigSummary{Name: Shown(v), Template: v.Template, VmPathName: obj.Config.Files.VmPathName,
			MemorySizeMB:      int32(v.MemoryMB),
			MemoryReservation: int32(v.Reserved), NumCpu: int32(v.CPUs), NumEthernetCards: int32(len(v.Adapters)), NumVirtualDisks: 1,
			Uuid: v.UUID, InstanceUuid: obj.Config.InstanceUuid, GuestId: obj.Config.GuestId, GuestFullName: obj.Config.GuestFullName,
			HwVersion: obj.Config.Version, Product: appliance(v)},
		QuickStats: types.VirtualMachineQuickStats{GuestHeartbeatStatus: heartbeat(v)},
		Storage: &types.VirtualMachineStorageSummary{Committed: 8 << 30,
			Uncommitted: 32 << 30, Timestamp: time.Date(2025, time.March, 4, 9, 0, 0, 0, time.UTC)},
		Guest: &types.VirtualMachineGuestSummary{GuestId: obj.Guest.GuestId, GuestFullName: obj.Guest.GuestFullName,
			ToolsStatus: obj.Guest.ToolsStatus, ToolsRunningStatus: obj.Guest.ToolsRunningStatus, HostName: obj.Guest.HostName,
			ToolsVersionStatus2: obj.Guest.ToolsVersionStatus2, IpAddress: obj.Guest.IpAddress},
	}
}

// heartbeat returns the heartbeat status of VMware Tools. It is gray if they are not running (vSphere Web Services API,
// VirtualMachine.guestHeartbeatStatus).
func heartbeat(v *world.VM) types.ManagedEntityStatus {
	if v.On && v.Guest.Up {
		return types.ManagedEntityStatusGreen
	}
	return types.ManagedEntityStatusGray
}

// appliance returns the vendor's product information from the template of a VM, or nil for VMs that have none.
func appliance(v *world.VM) *types.VAppProductInfo {
	if v.Product == "" {
		return nil
	}
	return &types.VAppProductInfo{Name: v.Product, Vendor: "VMware, Inc."}
}

func vmNetworks(s *world.State, v *world.VM) []types.ManagedObjectReference {
	var list []types.ManagedObjectReference
	seen := map[types.ManagedObjectReference]bool{}
	for _, a := range v.Adapters {
		r := NetworkRef(s.VMDatacenter(v))
		if d := s.Switch(a.DVS); d != nil && d.PortGroup(a.PortGroup) != nil {
			r = PortGroupRef(d.PortGroup(a.PortGroup))
		}
		if !seen[r] {
			seen[r] = true
			list = append(list, r)
		}
	}
	return list
}
