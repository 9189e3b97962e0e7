package survey

import (
	"reflect"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// option is the one advanced setting that PVRDMA needs (PVRDMA and vSphere Bitfusion (VMware, 2021), section 4). Reading it by
// key avoids reading the thousand others of every host.
const option = "Net.PVRDMAVmknic"

// Property paths of the overview. Never summary.runtime, which includes the sensors, nor config as a whole.
var (
	hostPaths = []string{
		"name", "parent",
		"runtime.connectionState", "runtime.inMaintenanceMode", "runtime.bootTime", "summary.rebootRequired",
		"summary.config.product.version", "summary.config.product.build",
		"summary.hardware.vendor", "summary.hardware.model", "summary.hardware.cpuModel", "summary.hardware.numCpuPkgs",
		"summary.hardware.numCpuCores", "summary.hardware.cpuMhz", "summary.hardware.memorySize", "summary.quickStats.overallMemoryUsage",
		"config.network.pnic", "config.network.rdmaDevice", "config.network.vnic", "config.network.vswitch",
		"config.network.portgroup", "config.network.proxySwitch", "config.network.opaqueSwitch", "config.virtualNicManagerInfo.netConfig",
		"config.storageDevice.hostBusAdapter", "config.pciPassthruInfo", "config.graphicsInfo",
		"config.graphicsConfig.hostDefaultGraphicsType", "config.graphicsConfig.deviceType", "config.sharedPassthruGpuTypes",
		"configManager.firewallSystem", "configManager.serviceSystem",
		"hardware.pciDevice", "hardware.numaInfo.numaNode", "config.hyperThread.active", "config.lockdownMode", "datastore",
	}
	vmPaths = []string{
		"name", "parent", "parentVApp", "runtime.host", "runtime.powerState", "runtime.connectionState", "runtime.faultToleranceState",
		"config.template", "config.version", "config.firmware", "config.guestId", "config.guestFullName",
		"config.hardware.numCPU", "config.hardware.memoryMB", "config.hardware.device",
		"config.memoryAllocation.reservation", "config.cpuAllocation.reservation", "config.memoryReservationLockedToMax",
		"config.cpuHotAddEnabled",
		"config.memoryHotAddEnabled", "config.nestedHVEnabled", "config.latencySensitivity.level",
		"guest.toolsRunningStatus", "guest.ipAddress", "snapshot.rootSnapshotList", "summary.config.product.name",
		"config.managedBy",
	}
	computePaths = []string{"name", "parent", "lifecycleManaged"}
	// The paths of any compute resource are repeated here: it is not documented which specification applies to an object of a
	// derived type. The EVC mode requires the whole summary: the property is declared as ComputeResourceSummary, which has no
	// currentEVCModeKey, and vCenter refuses paths by declared type (vmware/pyvmomi issue 681).
	clusterPaths = []string{"name", "parent", "lifecycleManaged", "configurationEx", "summary"}
	placePaths   = []string{"name", "parent"}
	vAppPaths    = []string{"name", "parent", "parentFolder", "parentVApp"}
	switchPaths  = []string{"name", "parent", "uuid", "config", "capability.featuresSupported", "runtime.hostMemberRuntime"}
	groupPaths   = []string{"name", "parent", "key", "config"}
)

// Property paths of the details.
var (
	hostDetailPaths = []string{
		`config.option["` + option + `"]`, "config.firewall.ruleset", "config.dateTimeInfo.ntpConfig", "config.service.service",
		"config.powerSystemInfo.currentPolicy.shortName", "config.powerSystemCapability.availablePolicy",
		"capability.deviceRebindWithoutRebootSupported",
		"config.fileSystemVolume.mountInfo", "complianceCheckState.state", "config.deploymentInfo.bootedFromStatelessCache",
	}
	vmDetailPaths = []string{"config.extraConfig", "guest.net", "environmentBrowser"}
)

func overview(view place.Ref) types.PropertyFilterSpec {
	return place.Through(view, []types.PropertySpec{
		{Type: "Datacenter", PathSet: placePaths},
		{Type: "Folder", PathSet: placePaths},
		{Type: "ComputeResource", PathSet: computePaths},
		{Type: "ClusterComputeResource", PathSet: clusterPaths},
		{Type: "HostSystem", PathSet: hostPaths},
		{Type: "VirtualMachine", PathSet: vmPaths},
		{Type: "VirtualApp", PathSet: vAppPaths},
		{Type: "DistributedVirtualSwitch", PathSet: switchPaths},
		{Type: "DistributedVirtualPortgroup", PathSet: groupPaths},
	})
}

// names are the properties that identify hosts and show which of them can be chosen.
func names(view place.Ref) types.PropertyFilterSpec {
	return place.Through(view, []types.PropertySpec{
		{Type: "Datacenter", PathSet: placePaths},
		{Type: "Folder", PathSet: placePaths},
		{Type: "ComputeResource", PathSet: placePaths},
		{Type: "ClusterComputeResource", PathSet: placePaths},
		{Type: "HostSystem", PathSet: []string{"name", "parent", "runtime.connectionState", "runtime.inMaintenanceMode",
			"summary.config.product.version"}},
	})
}

var overviewTypes = []string{
	"Datacenter", "Folder", "ComputeResource", "HostSystem", "VirtualMachine", "VirtualApp", "DistributedVirtualSwitch",
	"DistributedVirtualPortgroup",
}

// text returns a string property; vCenter's enumerations have string types of their own.
func text(o wire.Object, path string) string {
	v := reflect.ValueOf(o.Props[path])
	if v.Kind() == reflect.String {
		return v.String()
	}
	return ""
}

// number returns an integer property of any width.
func number(o wire.Object, path string) int64 {
	v := reflect.ValueOf(o.Props[path])
	switch {
	case !v.IsValid():
		return 0
	case v.CanInt():
		return v.Int()
	case v.CanUint():
		return int64(v.Uint())
	}
	return 0
}

func flag(o wire.Object, path string) bool { return wire.Value[bool](o, path) }

func moment(o wire.Object, path string) time.Time { return wire.Value[time.Time](o, path) }

func yes(b *bool) bool { return b != nil && *b }
