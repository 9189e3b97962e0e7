package report

import (
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// Fixes reports whether a change fixes a finding.
func Fixes(c plan.Change, f checks.Finding) bool {
	return slices.Contains(fixKinds[f.ID], c.Kind) && sameTarget(c.Target, f.Target)
}

// fixKinds maps a row to the settings that fix its findings, on the target of the finding or, for guests, on their VM. Rows with
// an automatic fix that are missing here have no step in any plan yet.
var fixKinds = func() map[string][]backends.Kind {
	adapter, address := []backends.Kind{backends.KindAdapter}, []backends.Kind{backends.KindAddress}
	extra, dvs, group := []backends.Kind{backends.KindExtra}, []backends.Kind{backends.KindSwitch}, []backends.Kind{backends.KindPortGroup}
	return map[string][]backends.Kind{
		"CL-POWER-010": {backends.KindPower}, "HOST-POWER-009": {backends.KindPower},
		"HOST-VMKNIC-SET-001": {backends.KindOption}, "HOST-FW-PVRDMA-007": {backends.KindFirewall},
		"HOST-PNIC-ONLYUPLINK-013": {backends.KindMember}, "DVS-MEMBER-003": {backends.KindMember},
		"HOST-PNIC-PAUSE-014": {backends.KindPause},
		"HOST-PT-ACTIVE-013":  {backends.KindPassthrough, backends.KindActivePassthrough},

		"HOST-SRIOVEN-009": {backends.KindFirmware}, "HOST-NUMVFS-008": {backends.KindFirmware}, "HOST-SRIOVBIOS-006": {backends.KindFirmware},
		"HOST-PNIC-LINKTYPE-009": {backends.KindFirmware},
		"HOST-MAXVFS-LEN-005":    {backends.KindModuleParams}, "HOST-MAXVFS-ORDER-006": {backends.KindModuleParams},
		"HOST-VF-COUNT-010": {backends.KindVFs, backends.KindActiveVFs, backends.KindModuleParams}, "HOST-VF-FREE-011": {backends.KindVFs, backends.KindActiveVFs},

		"DVS-EXIST-001": dvs, "DVS-NIOC-005": dvs, "DVS-MTU-006": dvs,
		"DVS-UPLINKS-004": group, "DVS-PG-007": group, "DVS-PG-VLAN-008": group,

		"VM-HWVER-002": {backends.KindHardware}, "VM-HWVER-DDIO-003": {backends.KindHardware}, "VM-MEMRES-007": {backends.KindMemory},
		"VM-LATSENS-011": {backends.KindLatency}, "VM-CPURES-012": {backends.KindCPU},
		"VM-NIC-PROTO-017": adapter, "VM-NIC-CONNECT-018": adapter, "VM-NIC-DVS-019": adapter, "VM-SRIOV-MTU-020": adapter, "VM-SRIOV-PF-021": adapter,
		"VM-PCIADDR-050": {backends.KindDevice, backends.KindAdapter}, "VM-MMIO-ON-023": extra, "VM-MMIO-SIZE-024": extra, "VM-P2P-025": extra,

		"GST-LSPCI-003": adapter, "GST-LSPCI-VF-004": adapter, "GST-PVLSPCI-050": adapter,
		"GST-PKG-005": {backends.KindPackages}, "GST-PERFTEST-023": {backends.KindPackages}, "GST-OFED-024": {backends.KindOFED},
		"GST-MOD-007": {backends.KindModules}, "GST-MOD-S-008": {backends.KindModules}, "GST-PERSIST-009": {backends.KindPersist},
		"GST-PORT-010": {backends.KindPort}, "GST-MEMLOCK-020": {backends.KindMemlock}, "GST-TCLASS-025": {backends.KindTrafficClass,
			backends.KindEnvironment}, "GST-QOS-035": {backends.KindPortQoS}, "GST-CONTAINER-030": {backends.KindImage},
		"GST-PERSIST-039": {backends.KindGPUPersist},
		"GST-POLICY-036":  {backends.KindARP, backends.KindAddress},
		"GST-MTU-012":     address, "GST-IBMTU-013": address, "GST-IP-014": address, "GST-IPPERSIST-018": address, "GST-GID-019": address,
	}
}()

// FixChanges returns the changes of a plan that fix findings, with everything that has to be done before them, in the plan's
// order. left are the findings with an automatic fix for which the plan has no change.
func FixChanges(p *plan.Plan, found []checks.Finding) (ids []string, left []checks.Finding) {
	wanted := map[string]bool{}
	for _, f := range found {
		if !AutomaticFix(f) {
			continue
		}
		any := false
		for _, c := range p.Changes {
			if slices.Contains(fixKinds[f.ID], c.Kind) && sameTarget(c.Target, f.Target) {
				any = true
				withRequired(p, c.ID(), wanted)
			}
		}
		if !any {
			left = append(left, f)
		}
	}
	for _, c := range p.Changes {
		if wanted[c.ID()] {
			ids = append(ids, c.ID())
		}
	}
	return ids, left
}

// AutomaticFix reports whether this program can fix a finding by itself, after consent.
func AutomaticFix(f checks.Finding) bool {
	return f.Fix == string(checks.Automatic) && !f.Quiet && (f.Status == checks.Fail || f.Status == checks.Warn)
}

func sameTarget(c, found backends.Ref) bool {
	return c == found || found.Type == backends.TypeGuest && c.Type == backends.TypeVM && c.Name == found.Name
}

// withRequired adds a change and what has to be done before it.
func withRequired(p *plan.Plan, id string, wanted map[string]bool) {
	c := p.Change(id)
	if c == nil || wanted[id] {
		return
	}
	wanted[id] = true
	for _, before := range c.After {
		withRequired(p, before, wanted)
	}
}
