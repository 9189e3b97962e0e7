package cmd

import (
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/fault"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/plain"
)

const faultHelp = "see: rdma-setup lab --fault help"

// faultRules parses fault rules, and refuses methods and faults that vSphere does not have: such a rule would never apply.
func faultRules(texts []string) ([]fault.Rule, error) {
	rules, err := fault.Parse(texts)
	if err != nil {
		return nil, console.Usage(faultHelp, "%v", err)
	}
	for _, r := range rules.All() {
		if strings.HasPrefix(r.Method, "lifecycle.") {
			continue // the API of images: its operations are no methods, and its errors are texts
		}
		if r.Method != "" && r.Method != "*" && !lab.IsMethod(r.Method) {
			return nil,
				console.Usage(console.Meant(r.Method, methodsThatChange, "%s?",
					"use a method of the vSphere Web Services API, such as RebootHost_Task"),
					"fault rule %q: vCenter has no method %s", r.Rule, r.Method)
		}
		name := r.Arg
		switch r.Do {
		case fault.DoFault:
			name, _, _ = strings.Cut(name, ":")
		case fault.DoTaskFault:
		default:
			continue
		}
		if !lab.IsFault(name) {
			return nil,
				console.Usage(console.Meant(name, usualFaults, "%s?",
					"use a fault of the vSphere Web Services API, such as NoPermission; do=task-error:TEXT fails a task with any text"),
					"fault rule %q: vSphere has no fault %s", r.Rule, name)
		}
	}
	return rules.All(), nil
}

// knownTargets refuses rules about hosts and VMs that do not exist.
func knownTargets(rules []fault.Rule, hosts, vms []string) error {
	for _, r := range rules {
		kind, name := r.Stranger(hosts, vms)
		if kind == "" {
			continue
		}
		names, label := hosts, "host"
		if kind == "vm" {
			names, label = vms, "VM"
		}
		names = slices.SortedFunc(slices.Values(names), plain.Natural)
		others := "there is: " + plain.Names(names)
		if len(names) == 0 {
			others = "leave the rule out: there is no " + label
		}
		return console.Usage(console.Meant(name, names, "%s?", others), "fault rule %q: there is no %s %s", r.Rule, label, name)
	}
	return nil
}

// methodsThatChange are the methods that a run calls to change something, for hints.
var methodsThatChange = []string{
	"AddDVPortgroup_Task", "AddVirtualNic", "CheckMigrate_Task", "ConfigurePowerPolicy", "CreateDVS_Task", "Destroy_Task", "DisableRuleset",
	"EnableNetworkResourceManagement", "EnableRuleset", "EnterMaintenanceMode_Task", "ExitMaintenanceMode_Task", "PowerOffVM_Task",
	"PowerOnVM_Task", "RebootHost_Task", "ReconfigVM_Task", "ReconfigureDVPortgroup_Task", "ReconfigureDvs_Task", "RelocateVM_Task",
	"RemoveVirtualNic", "ShutdownGuest", "StartService", "StopService", "UpdateOptions", "UpdatePassthruConfig", "UpgradeVM_Task",
}

// usualFaults are common faults, for hints.
var usualFaults = []string{
	"ConcurrentAccess", "CpuIncompatible", "GenericVmConfigFault", "HostCommunication", "HostConfigFault", "HostNotConnected",
	"HostNotReachable", "InsufficientMemoryResourcesFault", "InvalidArgument", "InvalidPowerState", "InvalidState", "NoPermission", "NotFound",
	"NotSupported", "RequestCanceled", "ResourceInUse", "SystemError", "TaskInProgress", "Timedout", "ToolsUnavailable",
}
