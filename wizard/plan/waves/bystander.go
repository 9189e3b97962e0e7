package waves

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// A BystanderOutcome is what happens to a running VM that the answers do not list when its host reboots.
type BystanderOutcome string

// The fates.
const (
	BystanderService  BystanderOutcome = "service"  // vCenter or a solution manages it
	BystanderMoved    BystanderOutcome = "moved"    // DRS moves it
	BystanderMigrated BystanderOutcome = "migrated" // it is moved by vMotion
	BystanderShut     BystanderOutcome = "shut"     // it is shut down and started again
	BystanderRefused  BystanderOutcome = "refused"  // its host cannot reboot
)

const bystanderRemedy = "Move it to another host, set DRS to fully automated, or set run.bystanders to migrate or shutdown."

// BystanderOf returns what happens to a running VM that the answers do not list on a host that reboots, and why. Free is the
// memory that other hosts have for VMs that are moved by vMotion, in MB by host; a VM's memory is deducted. nil: not counted.
func BystanderOf(how answers.Bystanders, inv *backends.Inventory, v *backends.VM, h *backends.Host,
	free map[string]int64) (BystanderOutcome, string) {
	if why := service(v); why != "" {
		return BystanderService, why
	}
	why := Stays(inv, v, h)
	switch {
	case how == answers.BystandersRefuse:
		return BystanderRefused, "run.bystanders is refuse"
	case why == "":
		if bound := bound(inv, v, h, nil); bound != "" && how != answers.BystandersShutdown {
			return BystanderRefused, bound
		} else if bound != "" {
			return BystanderShut, bound
		}
		return BystanderMoved, ""
	case how == answers.BystandersShutdown:
		return BystanderShut, why
	case how == answers.BystandersMigrate && len(v.Passthrough) == 0 && h.Cluster != "" && !strings.HasPrefix(why, "its cluster"):
		if bound := bound(inv, v, h, free); bound != "" {
			return BystanderRefused, bound
		}
		take(inv, v, h, free)
		return BystanderMigrated, why
	}
	return BystanderRefused, why
}

// bound returns what binds a VM to its host although DRS or vMotion could move it: a shared SCSI bus, or that no other host of
// the cluster can run it. It is empty if nothing does, or if the facts were not read. Free is the available memory of the other
// hosts, in MB by host; nil: DRS balances it.
func bound(inv *backends.Inventory, v *backends.VM, h *backends.Host, free map[string]int64) string {
	if v.BusSharing != "" {
		return "it shares a SCSI bus with other VMs (" + v.BusSharing + ")"
	}
	var whys []string
	local := true
	for i := range inv.Hosts {
		o := &inv.Hosts[i]
		if o.Name == h.Name || o.Cluster != h.Cluster || o.State != "connected" {
			continue
		}
		why := unfit(inv, v, h, o, free)
		if why == "" {
			return ""
		}
		whys, local = append(whys, o.Name+" "+why), local && why == noDatastore
	}
	switch {
	case len(whys) == 0 && len(v.Datastores) == 0:
		return ""
	case local:
		return fmt.Sprintf("it has a local disk: no other host of %s reaches all its datastores", h.Cluster)
	}
	text := strings.Join(whys[:min(3, len(whys))], ", ")
	if more := len(whys) - 3; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return fmt.Sprintf("no other host of %s can run it: %s", h.Cluster, text)
}

// take assigns a VM to the host with the most free memory and deducts it.
func take(inv *backends.Inventory, v *backends.VM, h *backends.Host, free map[string]int64) {
	best := ""
	for i := range inv.Hosts {
		o := &inv.Hosts[i]
		if left, counted := free[o.Name]; counted && (best == "" || left > free[best]) && unfit(inv, v, h, o, free) == "" {
			best = o.Name
		}
	}
	if best != "" {
		free[best] -= v.MemoryMB
	}
}

// room returns the free memory of the other hosts in the cluster of a host, in MB by host; hosts whose memory was not read have
// no entry.
func room(inv *backends.Inventory, h *backends.Host) map[string]int64 {
	free := map[string]int64{}
	for _, o := range inv.Hosts {
		if o.Name != h.Name && o.Cluster == h.Cluster && o.State == "connected" && !o.InMaintenance && o.MemoryMB > 0 {
			free[o.Name] = o.MemoryMB - o.MemoryUsedMB
		}
	}
	return free
}

const noDatastore = "does not reach all its datastores"

// unfit returns why a VM of one host cannot run on another of its cluster, "" if it can. The rules of DRS bind DRS and this
// program; a person can override all except the mandatory ones.
func unfit(inv *backends.Inventory, v *backends.VM, from, to *backends.Host, free map[string]int64) string {
	if slices.ContainsFunc(v.Datastores, func(d string) bool { return !slices.Contains(to.Datastores, d) }) {
		return noDatastore
	}
	for _, a := range v.Adapters {
		dvs := inv.Switch(a.Switch)
		if dvs != nil && dvs.Members != nil && a.Connected {
			if _, member := dvs.Members[to.Name]; !member {
				return "is not on " + dvs.Name
			}
		}
		if dvs == nil && a.Connected && slices.Contains(from.Networks, a.PortGroup) && !slices.Contains(to.Networks, a.PortGroup) {
			return "has no network " + a.PortGroup
		}
	}
	if cl := inv.Cluster(from.Cluster); cl != nil {
		for _, r := range cl.Rules {
			if slices.Contains(r.VMs, v.Name) && breaks(inv, r, v, from.Name, to.Name) {
				return "is excluded by the DRS rule " + r.Name
			}
		}
	}
	if left, counted := free[to.Name]; counted && left < v.MemoryMB {
		return fmt.Sprintf("has %d MB of free memory, %d are needed", max(0, left), v.MemoryMB)
	}
	return ""
}

// breaks reports whether a VM would violate a rule on a host. VMs that leave the same host are assumed to follow.
func breaks(inv *backends.Inventory, r backends.DRSRule, v *backends.VM, from, to string) bool {
	if r.Kind == backends.RuleHosts {
		return r.Mandatory && (slices.Contains(r.NotHosts, to) || len(r.Hosts) > 0 && !slices.Contains(r.Hosts, to))
	}
	for _, name := range r.VMs {
		o := inv.VM(name)
		if o == nil || o.Name == v.Name || o.Power != "poweredOn" || o.Host == from {
			continue
		}
		if (o.Host == to) == (r.Kind == backends.RuleApart) {
			return true
		}
	}
	return false
}

// service describes a VM that vCenter itself manages: vCLS VMs (of EAM before 8.0 U3, known by their name; embedded since,
// Broadcom KB 370222) and agent VMs of ESX Agent Manager power off by themselves when their host enters maintenance mode.
func service(v *backends.VM) string {
	switch {
	case strings.HasPrefix(v.Name, "vCLS-") || strings.HasPrefix(v.Name, "vCLS ("):
		return "it is a vSphere Cluster Services VM"
	case v.ManagedBy == "com.vmware.vim.eam":
		return "it is an agent VM of vSphere ESX Agent Manager"
	}
	return ""
}
