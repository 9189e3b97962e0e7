package frame

import "github.com/vmware/govmomi/vim25/types"

// privileges maps methods to the privileges that they require on their object. Privileges that depend on the arguments are
// checked by the methods. Source: the "Required Privileges" of the vSphere Web Services API reference.
var privileges = map[string]string{
	"AddAuthorizationRole":            "Authorization.ModifyRoles",
	"AddCustomFieldDef":               "Global.ManageCustomFields",
	"AddDVPortgroup_Task":             "DVPortgroup.Create",
	"CancelTask":                      "Global.CancelTask",
	"ConfigurePowerPolicy":            "Host.Config.Power",
	"CreateSnapshot_Task":             "VirtualMachine.State.CreateSnapshot",
	"RelocateVM_Task":                 "Resource.ColdMigrate",
	"SuspendVM_Task":                  "VirtualMachine.Interact.Suspend",
	"CreateDVS_Task":                  "DVSwitch.Create",
	"DisableRuleset":                  "Host.Config.NetService",
	"DisconnectHost_Task":             "Host.Config.Connection",
	"EnableNetworkResourceManagement": "DVSwitch.ResourceManagement",
	"EnableRuleset":                   "Host.Config.NetService",
	"EnterMaintenanceMode_Task":       "Host.Config.Maintenance",
	"ExitMaintenanceMode_Task":        "Host.Config.Maintenance",
	"PowerOffVM_Task":                 "VirtualMachine.Interact.PowerOff",
	"PowerOnVM_Task":                  "VirtualMachine.Interact.PowerOn",
	"RebootGuest":                     "VirtualMachine.Interact.Reset",
	"RebootHost_Task":                 "Host.Config.Maintenance",
	"ReconfigureDVPortgroup_Task":     "DVPortgroup.Modify",
	"ReconfigureDvs_Task":             "DVSwitch.Modify",
	"ReconnectHost_Task":              "Host.Config.Connection",
	"Refresh":                         "Host.Config.Settings",
	"RefreshFirewall":                 "Host.Config.NetService",
	"RefreshServices":                 "Host.Config.NetService",
	"RemoveEntityPermission":          "Authorization.ModifyPermissions",
	"RemoveAuthorizationRole":         "Authorization.ModifyRoles",
	"QueryLockdownExceptions":         "Global.Settings",
	"RemoveCustomFieldDef":            "Global.ManageCustomFields",
	"SearchDatastore_Task":            "Datastore.Browse",
	"SetEntityPermissions":            "Authorization.ModifyPermissions",
	"ShutdownGuest":                   "VirtualMachine.Interact.PowerOff",
	"StartService":                    "Host.Config.NetService",
	"StopService":                     "Host.Config.NetService",
	"UpdateAuthorizationRole":         "Authorization.ModifyRoles",
	"UpdateGraphicsConfig":            "Host.Config.Settings",
	"UpdateHostImageAcceptanceLevel":  "Host.Config.Image",
	"UpdatePassthruConfig":            "Host.Config.PciPassthru",
	"AddVirtualNic":                   "Host.Config.Network",
	"RemoveVirtualNic":                "Host.Config.Network",
	"UpgradeVM_Task":                  "VirtualMachine.Config.UpgradeVirtualHardware",
}

// byType contains the methods whose privilege depends on the type of the object.
var byType = map[string]string{
	"Destroy_Task VirtualMachine":                 "VirtualMachine.Inventory.Delete",
	"Destroy_Task VmwareDistributedVirtualSwitch": "DVSwitch.Delete",
	"Destroy_Task DistributedVirtualPortgroup":    "DVPortgroup.Delete",
	"Rename_Task VmwareDistributedVirtualSwitch":  "DVSwitch.Modify",
	"Rename_Task DistributedVirtualPortgroup":     "DVPortgroup.Modify",
}

// Privilege returns the privilege that a method requires on an object, or "" if every logged-in user may call it.
func Privilege(method string, this types.ManagedObjectReference) string {
	if id, ok := privileges[method]; ok {
		return id
	}
	switch {
	case method == "UpdateOptions" && this.Value == "VpxSettings":
		return "Global.Settings"
	case method == "UpdateOptions":
		return "Host.Config.AdvancedConfig"
	}
	return byType[method+" "+this.Type]
}
