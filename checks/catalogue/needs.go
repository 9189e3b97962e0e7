package catalogue

import (
	"slices"

	"github.com/rdma-setup/rdma-setup/checks"
)

// rests lists, for a row, the rows it depends on: if one of these fails on the same target, on the host of a VM or on an end of a
// pair, the row is a consequence. The edges follow the remedies and criteria of the rows; dependencies of whole scopes are in
// needs.
var rests = map[string][]string{
	"HOST-PNIC-RDMA-001":   {"HOST-PNIC-LINKTYPE-009", "HOST-PNIC-DRIVER-006"},
	"HOST-PNIC-ROCEV2-002": {"HOST-PNIC-RDMA-001"},
	"HOST-SRIOVBIOS-006":   {"HOST-SRIOVEN-009"}, // without SRIOV_EN a PF has no SR-IOV capability, whatever the BIOS setting
	"HOST-VF-COUNT-010": {"HOST-IOMMU-005", "HOST-SRIOVEN-009", "HOST-NUMVFS-008", "HOST-SRIOVBIOS-006", "HOST-MAXVFS-LEN-005",
		"HOST-MAXVFS-ORDER-006", "HOST-REBOOT-003"},
	"HOST-VF-FREE-011":         {"HOST-VF-COUNT-010"},
	"HOST-PT-ACTIVE-013":       {"HOST-IOMMU-005"},
	"HOST-VMKNIC-PING-005":     {"HOST-VMKNIC-EXIST-002", "HOST-VMKNIC-SUBNET-003", "HOST-VMKNIC-DUP-004"},
	"HOST-PNIC-ONLYUPLINK-013": {"DVS-EXIST-001", "DVS-MEMBER-003"},

	"DVS-VERSION-002":    {"DVS-EXIST-001"},
	"DVS-MEMBER-003":     {"DVS-EXIST-001", "DVS-VERSION-002"},
	"DVS-UPLINKS-004":    {"DVS-EXIST-001", "HOST-PNIC-ONLYUPLINK-013"},
	"DVS-NIOC-005":       {"DVS-EXIST-001"},
	"DVS-MTU-006":        {"DVS-EXIST-001"},
	"DVS-PG-007":         {"DVS-EXIST-001"},
	"DVS-PG-VLAN-008":    {"DVS-PG-007"},
	"DVS-PG-SEC-009":     {"DVS-PG-007"},
	"VM-NIC-DVS-019":     {"DVS-PG-007", "DVS-MEMBER-003"},
	"VM-NIC-CONNECT-018": {"VM-NIC-DVS-019"},
	"VM-NIC-PROTO-017":   {"VM-NIC-DVS-019", "VM-HWVER-002"},
	"VM-SRIOV-PF-021":    {"HOST-VF-COUNT-010", "VM-NIC-DVS-019"},
	"VM-SRIOV-MTU-020":   {"VM-NIC-DVS-019"},
	"VM-PCIADDR-050":     {"HOST-PT-ACTIVE-013"},
	"VM-MMIO-SIZE-024":   {"VM-FIRMWARE-022", "VM-MMIO-ON-023"},

	"GST-OS-001":        {"VM-POWER-001"},
	"GST-LSPCI-003":     {"VM-NIC-DVS-019", "VM-NIC-CONNECT-018"},
	"GST-PVLSPCI-050":   {"VM-NIC-DVS-019", "VM-NIC-CONNECT-018"},
	"GST-LSPCI-VF-004":  {"VM-NIC-DVS-019", "VM-SRIOV-PF-021"},
	"GST-PERSIST-009":   {"GST-SUDO-002"},
	"GST-IPPERSIST-018": {"GST-SUDO-002"},
	"GST-NETFILES-044":  {"GST-SUDO-002"},
	"GST-POLICY-036":    {"GST-IP-014", "GST-IPPERSIST-018"},
	"GST-DMESG-051":     {"GST-SUDO-002"},
	"GST-MOD-007":       {"GST-PKG-005"},
	"GST-MOD-S-008":     {"GST-PKG-005"},
	"GST-PERFTEST-023":  {"GST-PKG-005"},
	"GST-PORT-010":      {"GST-LSPCI-003", "GST-LSPCI-VF-004", "GST-MOD-007", "GST-MOD-S-008", "GST-PERSIST-009"},
	"GST-LINK-011":      {"GST-PORT-010"},
	"GST-MTU-012":       {"DVS-MTU-006", "VM-SRIOV-MTU-020"},
	"GST-IBMTU-013":     {"GST-MTU-012"},
	"GST-IP-014":        {"GST-LSPCI-003", "GST-LSPCI-VF-004"},
	"GST-GID-019":       {"GST-IP-014", "GST-PORT-010", "VM-NIC-PROTO-017"},
	"GST-NVSMI-027":     {"VM-PCIADDR-050", "VM-MMIO-SIZE-024", "GST-VGPUDRV-041"},
	"GST-PEERMEM-028":   {"GST-NVSMI-027"},
	"GST-VGPUDRV-041":   {"HOST-VGPUMGR-019"},

	"PAIR-PING-001":     {"GST-IP-014", "GST-LINK-011", "GST-DUPIP-016", "GST-SUBNET-015", "GST-POLICY-036", "DVS-PG-VLAN-008"},
	"PAIR-ARP-004":      {"PAIR-PING-001"},
	"PAIR-MTU-002":      {"PAIR-PING-001", "GST-MTU-012"},
	"PAIR-MTU-HOST-003": {"HOST-VMKNIC-PING-005", "HOST-VMKNIC-MTU-006"},
	"PAIR-FALLBACK-010": {"HOST-FW-PVRDMA-007", "HOST-VMKNIC-SET-001", "HOST-VMKNIC-EXIST-002", "HOST-VMKNIC-PING-005", "GST-PORT-010"},
	"PAIR-LOSS-011":     {"PAIR-PING-001"},
	"PAIR-BW-006": {"PAIR-PING-001", "PAIR-MTU-002", "PAIR-FALLBACK-010", "PAIR-LOSS-011", "GST-GID-019", "GST-IBMTU-013", "GST-PERFTEST-023",
		"HOST-PNIC-STATE-003", "HOST-PNIC-SPEED-004", "HOST-PNIC-PCIE-010"},
	"PAIR-BW-BIDIR-007": {"PAIR-BW-006"},
	"PAIR-SYM-014":      {"PAIR-BW-006"},
	"PAIR-MATRIX-015":   {"PAIR-BW-006"},
	"PAIR-LAT-008":      {"PAIR-PING-001", "PAIR-FALLBACK-010", "GST-GID-019", "GST-PERFTEST-023"},
	"PAIR-LAT-TAIL-009": {"PAIR-LAT-008"},
	"PAIR-GDR-012":      {"VM-P2P-025", "HOST-GPU-ROOT-016", "GST-PEERMEM-028", "PAIR-BW-006"},
	"PAIR-NCCL-013":     {"PAIR-GDR-012"},
}

// needs returns the direct dependencies of a row: its own, and those of its scope. If a host does not answer or a guest login
// fails, none of their rows have facts.
func needs(c checks.Check) []string {
	own := rests[c.ID]
	switch {
	case c.Scope == checks.Host && c.ID != "HOST-CONN-001":
		return append([]string{"HOST-CONN-001"}, own...)
	case c.Scope == checks.VM:
		return append([]string{"HOST-CONN-001"}, own...)
	case c.Scope == checks.Guest && c.ID != "GST-OS-001", c.Scope == checks.Pair:
		return append([]string{"GST-OS-001"}, own...)
	}
	return own
}

// RestsOn returns the rows that a row directly depends on, and those that directly depend on it.
func RestsOn(id string) (on, under []string) {
	for _, c := range Checks() {
		switch all := needs(c); {
		case c.ID == id:
			on = all
		case slices.Contains(all, id):
			under = append(under, c.ID)
		}
	}
	return on, under
}
