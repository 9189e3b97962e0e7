package checks

import (
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Privileges returns the privileges for applying and rolling back a plan of a mode (VC-PRIV-003); reading needs none of them.
func Privileges(mode answers.Mode) []string {
	all := []string{
		"DVSwitch.Create", "DVSwitch.Modify", "DVSwitch.HostOp", "DVSwitch.ResourceManagement", "DVSwitch.Delete",
		"DVPortgroup.Create", "DVPortgroup.Modify", "DVPortgroup.Delete",
		"Host.Config.AdvancedConfig", "Host.Config.NetService", "Host.Config.Network", "Network.Assign",
		"VirtualMachine.Config.AddRemoveDevice", "VirtualMachine.Config.EditDevice", "VirtualMachine.Config.Memory", "VirtualMachine.Config.Resource",
		"VirtualMachine.Config.Settings", "VirtualMachine.Config.UpgradeVirtualHardware", "VirtualMachine.Interact.PowerOn", "VirtualMachine.Interact.PowerOff",
	}
	if mode != answers.PVRDMA {
		all = append(all, "Host.Config.PciPassthru", "Host.Config.Maintenance", "Host.Config.Power", "Host.Config.Settings", "Host.Config.Image",
			"VirtualMachine.Config.AdvancedConfig", "Datastore.Browse", "Resource.ColdMigrate", "Resource.HotMigrate")
	}
	return all
}

// Backup are the privileges for the backups that a run saves before its first change (HostFirmwareSystem in the vSphere Web
// Services API reference). Without them the run reports what it could not save, and continues.
func Backup() []string { return []string{"Host.Config.Firmware"} }

// Images are the privileges for components in the image of a cluster, needed on vCenter, where Lifecycle Manager runs, and on the
// cluster (vSphere Automation API reference, "Required privileges" of esx/settings: depots, drafts, software apply; vSphere
// Lifecycle Manager 8.0, "vSphere Lifecycle Manager Privileges For Using Images"). Clusters that are managed by baselines need
// none of them.
func Images() []string {
	return []string{"VcIntegrity.lifecycleSettings.Read", "VcIntegrity.lifecycleSettings.Write", "VcIntegrity.lifecycleSoftwareSpecification.Read",
		"VcIntegrity.lifecycleSoftwareSpecification.Write", "VcIntegrity.lifecycleSoftwareRemediation.Read", "VcIntegrity.lifecycleSoftwareRemediation.Write", "VcIntegrity.lifecycleHealth.Read"}
}

// SharedLock are the additional privileges for run.lock shared: the first on the root of the inventory, the second on the
// clusters (vSphere Security, "Global Privileges"). Without them the lock excludes only runs with the same state directory.
func SharedLock() []string { return []string{"Global.ManageCustomFields", "Global.SetCustomField"} }

// Needed returns the privileges that answers require: those of their mode, and those of their tuning.
func Needed(a *answers.Answers) []string {
	const advanced = "VirtualMachine.Config.AdvancedConfig" // numa.nodeAffinity is an extraConfig key
	all := Privileges(a.Mode)
	if a.GPUs() { // also with PVRDMA adapters
		all = Privileges(answers.GPUDirect)
	}
	if a.Tuning.NUMA == "nic" && !slices.Contains(all, advanced) {
		all = append(all, advanced)
	}
	return all
}

// HeldOn returns the type of target on which a privilege is needed: hosts, VMs, and for switches, port groups, datastores and
// migration the datacenter, from which they inherit it.
func HeldOn(privilege string) backends.TargetType {
	switch {
	case strings.HasPrefix(privilege, "Host."):
		return backends.TypeHost
	case strings.HasPrefix(privilege, "VirtualMachine."):
		return backends.TypeVM
	}
	return backends.TypeDatacenter
}
