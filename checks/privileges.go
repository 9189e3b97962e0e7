package checks

import "github.com/rdma-setup/rdma-setup/wizard/answers"

// Privileges are what the account needs to carry out a plan of a mode (VC-PRIV-003); reading needs none of them.
func Privileges(mode answers.Mode) []string {
	all := []string{
		"DVSwitch.Create", "DVSwitch.Modify", "DVSwitch.HostOp", "DVSwitch.ResourceManagement", "DVPortgroup.Create", "DVPortgroup.Modify",
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
