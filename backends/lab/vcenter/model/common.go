package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
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
	return types.VirtualMachineFlagInfo{EnableLogging: types.NewBool(true), UseToe: no(), RunWithDebugInfo: no(), SnapshotDisabled: no(),
		SnapshotLocked: no(),
		MonitorType:    "release", HtSharing: "any", DiskUuidEnabled: no(), VirtualMmuUsage: "automatic", VirtualExecUsage: "hvAuto",
		SnapshotPowerOffBehavior: "powerOff",
		RecordReplayEnabled:      no(), FaultToleranceType: "unset", CbrcCacheEnabled: no(), VvtdEnabled: no(), VbsEnabled: no()}
}

func powerOps() types.VirtualMachineDefaultPowerOpInfo {
	return types.VirtualMachineDefaultPowerOpInfo{PowerOffType: "soft", SuspendType: "hard", ResetType: "soft", DefaultPowerOffType: "soft",
		DefaultSuspendType: "hard", DefaultResetType: "soft", StandbyAction: "checkpoint"}
}

// VAppRef returns the reference of a vApp.
func VAppRef(name string) types.ManagedObjectReference { return ref("VirtualApp", "resgroup-v-"+name) }

// places contains the locations of VMs. A VM of a vApp is neither in the folder nor in the pool; the vApp is in both, in the first
// datacenter. Its property parent is not set, but parentVApp is (bhoriuchi/vsphere-connect issue 16;
// ansible-collections/community.vmware issue 777).
type places struct {
	apps   []types.ManagedObjectReference
	pools  map[int][]types.ManagedObjectReference // by cluster
	inside map[string][]types.ManagedObjectReference
	below  map[string][]types.ManagedObjectReference // children of the folders vm and of those below them, by folder id
}

// root returns the children of the folder vm of a datacenter.
func (p places) root(datacenter int) []types.ManagedObjectReference {
	return append([]types.ManagedObjectReference{}, p.below[world.RootFolder("v", datacenter)]...)
}

func placed(s *world.State) places {
	p := places{pools: map[int][]types.ManagedObjectReference{}, inside: map[string][]types.ManagedObjectReference{},
		below: map[string][]types.ManagedObjectReference{}}
	for _, v := range s.VMs {
		if v.VApp != "" {
			p.inside[v.VApp] = append(p.inside[v.VApp], VMRef(v))
			if app := VAppRef(v.VApp); !slices.Contains(p.apps, app) {
				p.apps = append(p.apps, app)
			}
			continue
		}
		n := clusterOf(s, v)
		p.pools[n] = append(p.pools[n], VMRef(v))
		p.below[v.Folder] = append(p.below[v.Folder], VMRef(v))
	}
	for _, f := range s.Folders {
		p.below[f.Parent] = append(p.below[f.Parent], ref("Folder", f.ID))
	}
	p.below[""] = append(p.below[""], p.apps...)
	return p
}

// VMFiles returns the names of the files in a VM's folder on the datastore that users read: the configuration and the logs. The
// latest log has no number; older logs are numbered in ascending order.
func VMFiles(v *world.VM) []string {
	names := []string{v.Stem() + ".vmx", v.Stem() + ".nvram", v.Stem() + ".vmdk"}
	for n := len(v.Logs); n > 1; n-- {
		names = append(names, fmt.Sprintf("vmware-%d.log", len(v.Logs)-n+1))
	}
	if len(v.Logs) > 0 {
		names = append(names, "vmware.log")
	}
	return names
}

// VMFile returns the text of a file in a VM's folder, or "" if it is not a text file.
func VMFile(v *world.VM, name string) string {
	number := 0
	switch n, _ := fmt.Sscanf(name, "vmware-%d.log", &number); {
	case name == "vmware.log":
		text, _ := v.Log(0)
		return text
	case n == 1:
		text, _ := v.Log(len(v.Logs) - number)
		return text
	case name == v.Stem()+".vmx":
		return vmx(v)
	}
	return ""
}

// vmx returns the part of the configuration file that clients of the lab need.
func vmx(v *world.VM) string {
	var b strings.Builder
	line := func(key, value string) { fmt.Fprintf(&b, "%s = %q\n", key, value) }
	line(".encoding", "UTF-8")
	line("virtualHW.version", fmt.Sprint(v.Hardware))
	line("displayName", v.Name)
	line("firmware", v.Firmware)
	line("memSize", fmt.Sprint(v.MemoryMB))
	line("numvcpus", fmt.Sprint(v.CPUs))
	if v.Reserved > 0 {
		line("sched.mem.min", fmt.Sprint(v.Reserved))
	}
	for _, o := range extraConfig(v) {
		line(o.GetOptionValue().Key, fmt.Sprint(o.GetOptionValue().Value))
	}
	return b.String()
}

func number(r types.ManagedObjectReference, first int) int {
	_, digits, ok := strings.Cut(r.Value, "-")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return -1
	}
	return n - first
}

// HostOf returns the host of a reference, or of a reference to one of its sub-objects. It returns nil if there is none.
func HostOf(s *world.State, r types.ManagedObjectReference) *world.Host {
	if n := number(r, 1001); n >= 0 && n < len(s.Hosts) && r.Type != "VirtualMachine" {
		return s.Hosts[n]
	}
	return nil
}

// VMOf returns the VM of a reference, or nil if there is none.
func VMOf(s *world.State, r types.ManagedObjectReference) *world.VM {
	n := number(r, 10001)
	switch {
	case n < 0 || r.Type != "VirtualMachine":
		return nil
	case n < len(s.VMs) && s.VMs[n].Index == n:
		return s.VMs[n]
	}
	for _, v := range s.VMs { // after a VM was removed, the others are at lower positions
		if v.Index == n {
			return v
		}
	}
	return nil
}

// SwitchOf returns the DVS of a reference, or nil if there is none.
func SwitchOf(s *world.State, r types.ManagedObjectReference) *world.DVS {
	for _, d := range s.Switches {
		if SwitchRef(d) == r {
			return d
		}
	}
	return nil
}

// SwitchByUUID returns the DVS with a UUID, or nil if there is none.
func SwitchByUUID(s *world.State, uuid string) *world.DVS {
	for _, d := range s.Switches {
		if d.UUID == uuid {
			return d
		}
	}
	return nil
}

// PortGroupByKey returns a distributed port group and its DVS, or nil if there is none.
func PortGroupByKey(s *world.State, key string) (*world.DVS, *world.PortGroup) {
	for _, d := range s.Switches {
		for _, p := range d.PortGroups {
			if p.Key == key {
				return d, p
			}
		}
	}
	return nil, nil
}
