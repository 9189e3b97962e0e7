package model

import (
	"fmt"
	"net/netip"
	"sort"
	"strings"

	"github.com/vmware/govmomi/simulator/esx"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// SubRef returns the reference of a host's sub-object ("firewallSystem"). It is different for every host.
func SubRef(kind, prefix string, h *world.Host) types.ManagedObjectReference {
	return ref(kind, fmt.Sprintf("%s-%d", prefix, 1001+h.Index))
}

func (t *Tree) putHost(s *world.State, h *world.Host) {
	obj := hostObject(s, h)
	for _, o := range subObjects(s, h, obj) {
		t.f.Own(t.f.Reg.Put(o).Reference(), obj.Self)
	}
	t.f.Reg.Put(obj)
}

func hostObject(s *world.State, h *world.Host) *mo.HostSystem {
	self := HostRef(h)
	obj := &mo.HostSystem{
		ManagedEntity: entityOf(self, h.Name, ptr(ClusterRef(h.Cluster))), DatastoreBrowser: FilesRef(s.ClusterDatacenter(h.Cluster)),
		Runtime:    runtime(s, h),
		Capability: hostCapability(h),
		Hardware:   hardware(h),
		Datastore:  append(localStores(s, h), DatastoreRef(s.ClusterDatacenter(h.Cluster))),
		Network:    hostNetworks(s, h),
		Vm:         hostVMs(s, h),
		Config: &types.HostConfigInfo{
			Host:                   self,
			Product:                product(h),
			HyperThread:            &types.HostHyperThreadScheduleInfo{Available: true, Active: !h.NoThreads, Config: true},
			Network:                network(s, h),
			VirtualNicManagerInfo:  &types.HostVirtualNicManagerInfo{NetConfig: netConfig(s, h)},
			Firewall:               firewall(h),
			Option:                 options(h),
			Service:                services(h),
			DateTimeInfo:           clock(h),
			PowerSystemCapability:  powerPolicies(h),
			PowerSystemInfo:        powerPolicy(h),
			LockdownMode:           types.HostLockdownMode(h.Lockdown),
			PciPassthruInfo:        passthru(h),
			GraphicsInfo:           graphics(s, h),
			GraphicsConfig:         graphicsConfig(h),
			SharedPassthruGpuTypes: h.VGPUs,
			SharedGpuCapabilities:  shares(h),
		},
	}
	ills(obj, h)
	prod := obj.Config.Product
	obj.Summary = types.HostListSummary{
		Host: &self, Hardware: hardwareSummary(h), Runtime: &obj.Runtime, OverallStatus: types.ManagedEntityStatusGreen,
		RebootRequired:     h.RebootPending(),
		Config:             types.HostConfigSummary{Name: h.Name, Port: 443, Product: &prod},
		QuickStats:         types.HostListSummaryQuickStats{OverallMemoryUsage: int32(memoryUsed(s, h)), OverallCpuUsage: cpuUsed},
		ManagementServerIp: "127.0.0.1",
	}
	obj.ConfigManager = types.HostConfigManager{
		FirewallSystem:            ptr(SubRef("HostFirewallSystem", "firewallSystem", h)),
		AdvancedOption:            ptr(SubRef("OptionManager", "EsxHostAdvSettings", h)),
		ServiceSystem:             ptr(SubRef("HostServiceSystem", "serviceSystem", h)),
		NetworkSystem:             ptr(SubRef("HostNetworkSystem", "networkSystem", h)),
		VirtualNicManager:         ptr(SubRef("HostVirtualNicManager", "virtualNicManager", h)),
		DateTimeSystem:            ptr(SubRef("HostDateTimeSystem", "dateTimeSystem", h)),
		PciPassthruSystem:         ptr(SubRef("HostPciPassthruSystem", "pciPassthruSystem", h)),
		PowerSystem:               ptr(SubRef("HostPowerSystem", "powerSystem", h)),
		AssignableHardwareManager: ptr(SubRef("HostAssignableHardwareManager", "assignableHardwareManager", h)),
		GraphicsManager:           ptr(SubRef("HostGraphicsManager", "graphicsManager", h)),
		ImageConfigManager:        ptr(SubRef("HostImageConfigManager", "imageConfigManager", h)),
		AutoStartManager:          ptr(SubRef("HostAutoStartManager", "autoStartManager", h)),
		HostAccessManager:         ptr(SubRef("HostAccessManager", "hostAccessManager", h)),
		StorageSystem:             ptr(SubRef("HostStorageSystem", "storageSystem", h)),
	}
	return obj
}

// hostAlarm is the alarm definition for hosts.
var hostAlarm = ref("Alarm", "alarm-21")

// ills sets the properties that show problems of a host: HostMultipathStateInfo and ManagedEntity.triggeredAlarmState (vSphere
// Web Services API).
func ills(obj *mo.HostSystem, h *world.Host) {
	if h.HasProblem(world.DeadPath) {
		obj.Config.MultipathState = &types.HostMultipathStateInfo{Path: []types.HostMultipathStateInfoPath{
			{Name: "vmhba64:C0:T0:L1", PathState: string(types.MultipathStateActive)},
			{Name: "vmhba64:C0:T1:L1", PathState: string(types.MultipathStateDead)}}}
	}
	if h.HasProblem(world.RedAlarm) {
		obj.TriggeredAlarmState = []types.AlarmState{{Key: hostAlarm.Value + "." + obj.Self.Value, Entity: obj.Self, Alarm: hostAlarm,
			OverallStatus: types.ManagedEntityStatusRed, Time: h.BootTime}}
	}
}

// subObjects returns the objects in configManager, and two objects that no property refers to.
func subObjects(s *world.State, h *world.Host, host *mo.HostSystem) []mo.Reference {
	cm := host.ConfigManager
	self := func(r *types.ManagedObjectReference) mo.ExtensibleManagedObject {
		return mo.ExtensibleManagedObject{Self: *r}
	}
	return []mo.Reference{
		&mo.HostFirewallSystem{ExtensibleManagedObject: self(cm.FirewallSystem), FirewallInfo: firewall(h)},
		&mo.OptionManager{Self: *cm.AdvancedOption, Setting: options(h), SupportedOption: optionDefs(h)},
		&mo.HostAutoStartManager{Self: *cm.AutoStartManager, Config: types.HostAutoStartManagerConfig{Defaults: &types.AutoStartDefaults{
			Enabled: types.NewBool(false), StartDelay: 120, StopDelay: 120, WaitForHeartbeat: types.NewBool(false), StopAction: "powerOff"}}},
		&mo.HostServiceSystem{ExtensibleManagedObject: self(cm.ServiceSystem), ServiceInfo: *services(h)},
		&mo.HostNetworkSystem{ExtensibleManagedObject: self(cm.NetworkSystem), NetworkInfo: network(s, h),
			NetworkConfig: networkConfig(network(s, h))},
		&mo.HostVirtualNicManager{ExtensibleManagedObject: self(cm.VirtualNicManager),
			Info: types.HostVirtualNicManagerInfo{NetConfig: netConfig(s, h)}},
		&mo.HostDateTimeSystem{Self: *cm.DateTimeSystem, DateTimeInfo: *clock(h)},
		&mo.HostPciPassthruSystem{ExtensibleManagedObject: self(cm.PciPassthruSystem), PciPassthruInfo: passthru(h)},
		&mo.HostGraphicsManager{ExtensibleManagedObject: self(cm.GraphicsManager), GraphicsInfo: graphics(s, h),
			GraphicsConfig:         graphicsConfig(h),
			SharedPassthruGpuTypes: h.VGPUs, SharedGpuCapabilities: shares(h)},
		&mo.HostAssignableHardwareManager{Self: *cm.AssignableHardwareManager},
		&mo.HostPowerSystem{Self: *cm.PowerSystem, Capability: *powerPolicies(h), Info: *powerPolicy(h)},
		&mo.HostImageConfigManager{Self: *cm.ImageConfigManager},
		&mo.HostAccessManager{Self: *cm.HostAccessManager, LockdownMode: types.HostLockdownMode(h.Lockdown)},
		&mo.HostStorageSystem{ExtensibleManagedObject: self(cm.StorageSystem),
			FileSystemVolumeInfo: types.HostFileSystemVolumeInfo{VolumeTypeList: []string{"VMFS", "NFS", "NFS41", "vsan", "VVOL", "VFFS", "OTHER",
				"PMEM"}}},
		&plain{managed{Self: SubRef("ManagedMethodExecuter", "managedMethodExecuter", h)}},
		&plain{managed{Self: SubRef("DynamicTypeManager", "dynamicTypeManager", h)}},
	}
}

// plain is a managed object without properties.
type plain struct{ managed }

type managed = mo.EnvironmentBrowser

func product(h *world.Host) types.AboutInfo {
	major, _, _ := strings.Cut(h.Version, ".")
	return types.AboutInfo{
		Name: "VMware ESXi", FullName: fmt.Sprintf("VMware ESXi %s build-%s", h.Version, h.Build), Vendor: "VMware, Inc.",
		Version: h.Version, Build: h.Build, LocaleVersion: "INTL", LocaleBuild: "000", OsType: "vmnix-x86",
		ProductLineId: "embeddedEsx", ApiType: "HostAgent", ApiVersion: h.Version + ".0",
		LicenseProductName: "VMware ESX Server", LicenseProductVersion: major + ".0",
	}
}

func runtime(s *world.State, h *world.Host) types.HostRuntimeInfo {
	boot := h.BootTime
	r := types.HostRuntimeInfo{
		ConnectionState: types.HostSystemConnectionStateConnected, PowerState: types.HostSystemPowerStatePoweredOn,
		StandbyMode: "none", InMaintenanceMode: h.Maintenance, BootTime: &boot,
		InQuarantineMode: types.NewBool(false),
	}
	switch {
	case h.State == world.Up && h.Disconnected:
		r.ConnectionState = types.HostSystemConnectionStateDisconnected
	case h.State != world.Up:
		r.ConnectionState, r.PowerState = types.HostSystemConnectionStateNotResponding, types.HostSystemPowerStateUnknown
	}
	// It is unset if HA is disabled, the host is in maintenance mode or there is no connection (HostRuntimeInfo.dasHostState,
	// vSphere Web Services API).
	if s.ClusterServices(h.Cluster).HA && h.State == world.Up && !h.Disconnected && !h.Maintenance {
		state := types.ClusterDasFdmAvailabilityStateConnectedToMaster
		if h.Index == 0 {
			state = types.ClusterDasFdmAvailabilityStateMaster
		}
		if h.HAAgent != "" {
			state = types.ClusterDasFdmAvailabilityState(h.HAAgent)
		}
		r.DasHostState = &types.ClusterDasFdmHostState{State: string(state)}
	}
	return r
}

func options(h *world.Host) []types.BaseOptionValue {
	var keys []string
	for key := range h.Options {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	var list []types.BaseOptionValue
	for _, key := range keys {
		list = append(list, &types.OptionValue{Key: key, Value: h.Options[key]})
	}
	return list
}

// optionDefs returns the type of each option.
func optionDefs(h *world.Host) []types.OptionDef {
	var list []types.OptionDef
	for _, o := range options(h) {
		v := o.GetOptionValue()
		def := types.OptionDef{ElementDescription: types.ElementDescription{Description: types.Description{Label: v.Key, Summary: v.Key},
			Key: v.Key}}
		switch value := v.Value.(type) {
		case string:
			def.OptionType = &types.StringOption{OptionType: types.OptionType{ValueIsReadonly: types.NewBool(false)}, DefaultValue: value}
		case int64:
			def.OptionType = &types.LongOption{OptionType: types.OptionType{ValueIsReadonly: types.NewBool(false)}, Max: 1<<63 - 1,
				DefaultValue: value}
		case bool:
			def.OptionType = &types.BoolOption{OptionType: types.OptionType{ValueIsReadonly: types.NewBool(false)}, Supported: true,
				DefaultValue: value}
		}
		list = append(list, def)
	}
	return list
}

// firewall returns the rulesets recorded from an ESXi 8 host, with the state of this host.
func firewall(h *world.Host) *types.HostFirewallInfo {
	info := &types.HostFirewallInfo{DefaultPolicy: esx.HostFirewallInfo.DefaultPolicy}
	known := map[string]types.HostFirewallRuleset{}
	for _, r := range esx.HostFirewallInfo.Ruleset {
		known[r.Key] = r
	}
	rulesets, _ := h.Shown()
	for _, r := range rulesets {
		set, ok := known[r.Key]
		if !ok {
			set = types.HostFirewallRuleset{Key: r.Key, Label: r.Key}
		}
		set.Enabled = r.Enabled
		allowed := &types.HostFirewallRulesetIpList{AllIp: r.AllIP}
		for _, n := range r.Networks {
			if p, err := netip.ParsePrefix(n); err == nil {
				allowed.IpNetwork = append(allowed.IpNetwork, types.HostFirewallRulesetIpNetwork{Network: p.Addr().String(),
					PrefixLength: int32(p.Bits())})
				continue
			}
			allowed.IpAddress = append(allowed.IpAddress, n)
		}
		set.AllowedHosts = allowed
		info.Ruleset = append(info.Ruleset, set)
	}
	return info
}

func services(h *world.Host) *types.HostServiceInfo {
	info := &types.HostServiceInfo{}
	_, shown := h.Shown()
	for _, s := range shown {
		info.Service = append(info.Service, types.HostService{Key: s.Key, Label: s.Label, Running: s.Running, Policy: s.Policy})
	}
	return info
}

func clock(h *world.Host) *types.HostDateTimeInfo {
	return &types.HostDateTimeInfo{
		TimeZone:            types.HostDateTimeSystemTimeZone{Key: "UTC", Name: "UTC", Description: "UTC"},
		SystemClockProtocol: "ntp", NtpConfig: &types.HostNtpConfig{Server: h.NTP},
	}
}

var policies = []types.HostPowerPolicy{
	{Key: 1, Name: "PowerPolicy.static.name", ShortName: "static", Description: "PowerPolicy.static.description"},
	{Key: 2, Name: "PowerPolicy.dynamic.name", ShortName: "dynamic", Description: "PowerPolicy.dynamic.description"},
	{Key: 3, Name: "PowerPolicy.low.name", ShortName: "low", Description: "PowerPolicy.low.description"},
	{Key: 4, Name: "PowerPolicy.custom.name", ShortName: "custom", Description: "PowerPolicy.custom.description"},
}

func powerPolicies(h *world.Host) *types.PowerSystemCapability {
	if h.OwnPower {
		return &types.PowerSystemCapability{}
	}
	return &types.PowerSystemCapability{AvailablePolicy: policies}
}

// PowerPolicy returns the short name of the policy with a key.
func PowerPolicy(key int32) (string, bool) {
	for _, p := range policies {
		if p.Key == key {
			return p.ShortName, true
		}
	}
	return "", false
}

func powerPolicy(h *world.Host) *types.PowerSystemInfo {
	for _, p := range policies {
		if p.ShortName == h.PowerPolicy {
			return &types.PowerSystemInfo{CurrentPolicy: p}
		}
	}
	return &types.PowerSystemInfo{CurrentPolicy: policies[1]}
}

func hostVMs(s *world.State, h *world.Host) []types.ManagedObjectReference {
	var list []types.ManagedObjectReference
	for _, v := range s.VMs {
		if v.Host == h.Name {
			list = append(list, VMRef(v))
		}
	}
	return list
}

func hostNetworks(s *world.State, h *world.Host) []types.ManagedObjectReference {
	list := []types.ManagedObjectReference{NetworkRef(s.ClusterDatacenter(h.Cluster))}
	for _, d := range s.Switches {
		if d.Member(h.Name) != nil {
			for _, p := range d.PortGroups {
				list = append(list, PortGroupRef(p))
			}
		}
	}
	return list
}

// Usage returns the resources of a cluster that are present and in use. Hosts that vCenter cannot use do not count.
func Usage(s *world.State, cluster types.ManagedObjectReference) types.ClusterResourceUsageSummary {
	sum := types.ClusterResourceUsageSummary{StorageCapacityMB: storeCapacity >> 20, StorageUsedMB: (storeCapacity - storeFree) >> 20}
	for _, h := range s.Hosts {
		if !h.Managed() || h.Maintenance || ClusterRef(h.Cluster) != cluster {
			continue
		}
		sum.CpuCapacityMHz += int32(h.Cores * server(h).MHz)
		sum.MemCapacityMB += int32(h.MemoryMB)
		sum.CpuUsedMHz += cpuUsed
		sum.MemUsedMB += int32(memoryUsed(s, h))
	}
	return sum
}

// cpuUsed is the CPU load of a host in MHz.
const cpuUsed = 2400

func memoryUsed(s *world.State, h *world.Host) int64 {
	used := int64(4096)
	for _, v := range s.VMs {
		if v.Host == h.Name && v.On {
			used += v.MemoryMB
		}
	}
	return used
}

// syncHost updates a host and its sub-objects.
func (t *Tree) syncHost(s *world.State, h *world.Host) {
	obj := hostObject(s, h)
	t.f.Become(obj)
	alarms := 0 // Become does not change the properties of ManagedEntity
	t.f.Read(obj.Self, func(old mo.Reference) { alarms = len(old.(*mo.HostSystem).TriggeredAlarmState) })
	if alarms != len(obj.TriggeredAlarmState) {
		t.f.Update(obj.Self, frame.Set("triggeredAlarmState", obj.TriggeredAlarmState))
	}
	for _, o := range subObjects(s, h, obj) {
		t.f.Become(o)
	}
}
