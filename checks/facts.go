package checks

import (
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Facts is everything that checks may examine. A nil field was not read and makes its rows unknown.
type Facts struct {
	Answers   *answers.Answers     // the requested state; Mode and the names of the selection are always set
	Inventory *backends.Inventory  // the current state, with the guests that were read
	Lacks     []Lack               // missing privileges
	LacksErr  error                // why privileges could not be read
	Now       time.Time            // the local time when vCenter's clock was read
	Before    bool                 // before a run: what the run itself will change is not a failure
	Pairs     []PairFacts          // nil: no pair was tested
	Baseline  *backends.Inventory  // the state saved as healthy; nil: none
	Changed   map[string]time.Time // by host: when a run last set module parameters or firmware; nil: the journals were not read

	// LinksLost counts how often the link of a pNIC went down since the baseline, by host and pNIC; nil: not read.
	LinksLost map[string]map[string]int

	found *selection // computed once per run
	all   []*Facts   // see Rails
}

// PairFacts are the test results between two guests, from the client to the server. Nil pointers mean not tested.
type PairFacts struct {
	From, To string // VM names
	Rail     string // "": the only one
	Measured []perftest.Measurement

	Loss        *float64 // percent of pings lost in the worse direction
	Payload     int      // largest ping payload in bytes that arrived unfragmented; 0: not tested
	PeerMAC     string   // the server's MAC in the client's neighbour table
	BothWays    *float64 // Gbps, sum of both directions of ib_send_bw -b
	GPU         *float64 // Gbps with GPU memory (--use_cuda)
	GPUErr      string   // why that test failed
	NCCL        string   // transport in NCCL's log: NET/IB/GDRDMA, NET/IB, NET/Socket
	Retries     *int64   // increase of out_of_sequence, packet_seq_err, local_ack_timeout_err in the guest
	CNPs        *int64   // increase of np_cnp_sent
	RDMAPackets *int64   // increase of the RDMA counters of the client's host
}

// A Lack is a privilege that the account lacks on an entity.
type Lack struct{ Entity, Privilege string }

// PVRDMARuleset is the key of PVRDMA's firewall ruleset.
const PVRDMARuleset = "pvrdma"

// VMKNIC returns the vmknic that the answers name, else the one in the host's option.
func (f *Facts) VMKNIC(h *backends.Host) string {
	if k := f.Answers.PVRDMA.VMKNic.Of(h.Name); k != "" {
		return k
	}
	return h.Options[backends.VMKNICOption]
}

// Privileges returns the privileges for applying and rolling back a plan of a mode (VC-PRIV-003); reading needs none of them.
func Privileges(mode answers.Mode) []string {
	all := []string{
		"DVSwitch.Create", "DVSwitch.Modify", "DVSwitch.HostOp", "DVSwitch.ResourceManagement", "DVSwitch.Delete",
		"DVPortgroup.Create", "DVPortgroup.Modify", "DVPortgroup.Delete",
		"Host.Config.AdvancedConfig", "Host.Config.NetService", "Host.Config.Network", "Network.Assign",
		"VirtualMachine.Config.AddRemoveDevice", "VirtualMachine.Config.EditDevice", "VirtualMachine.Config.Memory",
		"VirtualMachine.Config.Resource",
		"VirtualMachine.Config.Settings", "VirtualMachine.Config.UpgradeVirtualHardware", "VirtualMachine.Interact.PowerOn",
		"VirtualMachine.Interact.PowerOff",
	}
	if mode != answers.PVRDMA {
		all = append(all, "Host.Config.PciPassthru", "Host.Config.Maintenance", "Host.Config.Power", "Host.Config.Settings", "Host.Config.Image",
			"VirtualMachine.Config.AdvancedConfig", "Datastore.Browse", "Resource.ColdMigrate", "Resource.HotMigrate")
	}
	return all
}

// Images are the privileges for components in the image of a cluster, needed on vCenter, where Lifecycle Manager runs, and on the
// cluster (vSphere Automation API reference, "Required privileges" of esx/settings: depots, drafts, software apply; vSphere
// Lifecycle Manager 8.0, "vSphere Lifecycle Manager Privileges For Using Images"). Clusters that are managed by baselines need
// none of them.
func Images() []string {
	return []string{"VcIntegrity.lifecycleSettings.Read", "VcIntegrity.lifecycleSettings.Write",
		"VcIntegrity.lifecycleSoftwareSpecification.Read",
		"VcIntegrity.lifecycleSoftwareSpecification.Write", "VcIntegrity.lifecycleSoftwareRemediation.Read",
		"VcIntegrity.lifecycleSoftwareRemediation.Write", "VcIntegrity.lifecycleHealth.Read"}
}

// SharedLock are the additional privileges for run.lock shared: the first on the root of the inventory, the second on the
// clusters (vSphere Security, "Global Privileges"). Without them the lock excludes only runs with the same state directory.
func SharedLock() []string { return []string{"Global.ManageCustomFields", "Global.SetCustomField"} }

// Lockdown is the additional privilege for hosts in lockdown mode: without it their exception users cannot be read
// (QueryLockdownExceptions; vSphere Web Services API reference, HostAccessManager, required privileges).
func Lockdown() []string { return []string{"Global.Settings"} }

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
