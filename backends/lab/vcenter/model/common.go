package model

import (
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// entityOf returns the properties that every entity has.
func entityOf(self types.ManagedObjectReference, name string, parent *types.ManagedObjectReference) mo.ManagedEntity {
	return mo.ManagedEntity{
		ExtensibleManagedObject: mo.ExtensibleManagedObject{Self: self}, Name: name, Parent: parent,
		OverallStatus: types.ManagedEntityStatusGreen, ConfigStatus: types.ManagedEntityStatusGreen,
		AlarmActionsEnabled: types.NewBool(true), EffectiveRole: []int32{-1},
	}
}

// poolConfig returns the default allocation of a pool: no reservation, no limit, normal shares (vSphere Resource Management,
// "Resource Pool Settings": a normal pool has 4000 CPU shares and 163840 memory shares).
func poolConfig(self types.ManagedObjectReference) types.ResourceConfigSpec {
	share := func(n int32) types.ResourceAllocationInfo {
		return types.ResourceAllocationInfo{Reservation: ptr(int64(0)), Limit: ptr(int64(-1)), ExpandableReservation: types.NewBool(true),
			Shares: &types.SharesInfo{Shares: n, Level: types.SharesLevelNormal}}
	}
	return types.ResourceConfigSpec{Entity: &self, CpuAllocation: share(4000), MemoryAllocation: share(163840)}
}

// fillPool sets the properties that resource pools and vApps have.
func fillPool(p *mo.ResourcePool, mhz, memory int64) {
	usage := func(total int64) types.ResourcePoolResourceUsage {
		return types.ResourcePoolResourceUsage{UnreservedForPool: total, UnreservedForVm: total, MaxUsage: total}
	}
	p.Config = poolConfig(p.Self)
	p.Runtime = types.ResourcePoolRuntimeInfo{OverallStatus: types.ManagedEntityStatusGreen, Cpu: usage(mhz), Memory: usage(memory)}
	summary := p.Summary.GetResourcePoolSummary()
	summary.Config, summary.Runtime, summary.QuickStats = p.Config, p.Runtime, &types.ResourcePoolQuickStats{}
	summary.ConfiguredMemoryMB = int32(min(memory>>20, 1<<31-1))
}

// haDefaults sets the defaults of a cluster (vSphere Availability, "vSphere HA Settings"): host monitoring is enabled, VMs are
// restarted with medium priority, and VM monitoring is disabled.
func haDefaults(das *types.ClusterDasConfigInfo) {
	das.HostMonitoring, das.VmMonitoring = "enabled", "vmMonitoringDisabled"
	das.VmComponentProtecting, das.HBDatastoreCandidatePolicy = "enabled", "allFeasibleDsWithUserPreference"
	das.DefaultVmSettings = &types.ClusterDasVmSettings{RestartPriority: "medium", IsolationResponse: "none",
		VmToolsMonitoringSettings: &types.ClusterVmToolsMonitoringSettings{Enabled: types.NewBool(false), VmMonitoring: "vmMonitoringDisabled",
			ClusterSettings: types.NewBool(true), FailureInterval: 30, MinUpTime: 120, MaxFailures: 3, MaxFailureWindow: 3600}}
}

// vmCapability returns the capabilities of a VM with virtual hardware 13 or later.
func vmCapability() types.VirtualMachineCapability {
	return types.VirtualMachineCapability{SnapshotOperationsSupported: true, MultipleSnapshotsSupported: true, SnapshotConfigSupported: true,
		PoweredOffSnapshotsSupported: true, MemorySnapshotsSupported: true, RevertToSnapshotSupported: true, QuiescedSnapshotsSupported: true,
		BootOptionsSupported: true, BootRetryOptionsSupported: true, CpuFeatureMaskSupported: true, ToolsAutoUpdateSupported: true,
		VirtualMmuUsageSupported: true, PerVmEvcSupported: types.NewBool(true), SecureBootSupported: types.NewBool(true)}
}

// vmFlags returns the default flags of a VM, powerOps its default power operations (vSphere Web Services API, Data Object -
// VirtualMachineFlagInfo and VirtualMachineDefaultPowerOpInfo).
func vmFlags() types.VirtualMachineFlagInfo {
	no := func() *bool { return types.NewBool(false) }
	return types.VirtualMachineFlagInfo{EnableLogging: types.NewBool(true), UseToe: no(), RunWithDebugInfo: no(), SnapshotDisabled: no(), SnapshotLocked: no(),
		MonitorType: "release", HtSharing: "any", DiskUuidEnabled: no(), VirtualMmuUsage: "automatic", VirtualExecUsage: "hvAuto", SnapshotPowerOffBehavior: "powerOff",
		RecordReplayEnabled: no(), FaultToleranceType: "unset", CbrcCacheEnabled: no(), VvtdEnabled: no(), VbsEnabled: no()}
}

func powerOps() types.VirtualMachineDefaultPowerOpInfo {
	return types.VirtualMachineDefaultPowerOpInfo{PowerOffType: "soft", SuspendType: "hard", ResetType: "soft", DefaultPowerOffType: "soft",
		DefaultSuspendType: "hard", DefaultResetType: "soft", StandbyAction: "checkpoint"}
}
