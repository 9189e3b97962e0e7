package waves

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// A Fate is what happens to a running VM that the answers do not list when its host reboots.
type Fate string

// The fates.
const (
	BystanderService  Fate = "service"  // vCenter or a solution looks after it
	BystanderMoved    Fate = "moved"    // DRS moves it
	BystanderMigrated Fate = "migrated" // it is moved by vMotion
	BystanderShut     Fate = "shut"     // it is shut down and started again
	BystanderRefused  Fate = "refused"  // its host cannot reboot
)

const bystanderRemedy = "Move it to another host, set DRS to fully automated, or set run.bystanders to migrate or shutdown."

// BystanderOf decides what happens to a running VM that the answers do not list on a host that reboots, and why.
func BystanderOf(how answers.Bystanders, inv *backends.Inventory, v *backends.VM, h *backends.Host) (Fate, string) {
	if why := service(v); why != "" {
		return BystanderService, why
	}
	why := Stays(inv, v, h)
	switch {
	case how == answers.BystandersRefuse:
		return BystanderRefused, "run.bystanders is refuse"
	case why == "":
		if bound := bound(inv, v, h); bound != "" && how != answers.BystandersShutdown {
			return BystanderRefused, bound
		} else if bound != "" {
			return BystanderShut, bound
		}
		return BystanderMoved, ""
	case how == answers.BystandersShutdown:
		return BystanderShut, why
	case how == answers.BystandersMigrate && len(v.Passthrough) == 0 && h.Cluster != "" && !strings.HasPrefix(why, "its cluster"):
		if bound := bound(inv, v, h); bound != "" {
			return BystanderRefused, bound
		}
		return BystanderMigrated, why
	}
	return BystanderRefused, why
}

// bound says what binds a VM to its host although DRS or vMotion could move it: a disk that no other host of the cluster
// reaches. It is empty where nothing does, and where the datastores were not read.
func bound(inv *backends.Inventory, v *backends.VM, h *backends.Host) string {
	for _, o := range inv.Hosts {
		if o.Name == h.Name || o.Cluster != h.Cluster || o.State != "connected" {
			continue
		}
		if !slices.ContainsFunc(v.Datastores, func(d string) bool { return !slices.Contains(o.Datastores, d) }) {
			return ""
		}
	}
	if len(v.Datastores) == 0 {
		return ""
	}
	return fmt.Sprintf("it has a local disk: no other host of %s reaches all its datastores", h.Cluster)
}

// service says what a VM is that vCenter itself looks after: vCLS VMs (of EAM before 8.0 U3, known by their
// name; embedded since, Broadcom KB 370222) and agent VMs of ESX Agent Manager power off by themselves when their host enters maintenance mode.
func service(v *backends.VM) string {
	switch {
	case strings.HasPrefix(v.Name, "vCLS-") || strings.HasPrefix(v.Name, "vCLS ("):
		return "it is a vSphere Cluster Services VM"
	case v.ManagedBy == "com.vmware.vim.eam":
		return "it is an agent VM of vSphere ESX Agent Manager"
	}
	return ""
}
