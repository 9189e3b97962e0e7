// Package mlx5 describes NVIDIA's ConnectX-4 and later with their native ESXi driver, nmlx5.
package mlx5

import "github.com/rdma-setup/rdma-setup/backends"

// A Family is the ConnectX family.
type Family struct{}

func (Family) Vendor() string { return "15b3" }

func (Family) Name() string { return "nmlx5" }

func (Family) Cards() string { return "ConnectX" }

func (Family) Driver() string { return "nmlx5_core" }

func (Family) RDMA() string { return "nmlx5_rdma" }

func (Family) VIBs() []string { return []string{"nmlx5-core", "nmlx5-rdma"} }

// Functions returns the device ids of ConnectX-4 to ConnectX-8 and BlueField 1 to 3 (kernel,
// drivers/net/ethernet/mellanox/mlx5/core/main.c, mlx5_core_pci_table; VFs and later cards are left out).
func (Family) Functions() []string {
	return []string{"1013", "1015", "1017", "1019", "101b", "101d", "101f", "1021", "1023", "a2d2", "a2d6", "a2dc"}
}

// RoCE returns no rules: RoCE is enabled whenever both modules are loaded.
func (Family) RoCE() backends.RoCERules { return backends.RoCERules{} }

// VFs are requested by max_vfs; the firmware provides at most 127 per port (MFT documentation).
func (Family) VFs() backends.VFRules {
	return backends.VFRules{Param: "max_vfs", Most: 127,
		ENS: "NVIDIA's manual of driver 4.17.15.16 (Enhanced Network Stack) says that no VFs are created in it; " +
			"whether later drivers create them is unverified"}
}

// Lossless returns the parameters of nmlx5_core and, for the DSCP, of nmlx5_rdma (VMware, lossless network for NVMe over RDMA;
// Mellanox DOC-2581).
func (Family) Lossless() *backends.LosslessParams {
	return &backends.LosslessParams{PFCTx: "pfctx", PFCRx: "pfcrx", Trust: "trust_state", ByPCP: 1, ByDSCP: 2, ECN: "ecn", DSCP: "dscp_force"}
}

// Firmware is set by mlxconfig of MFT, which accesses the cards through the module NMST (MFT documentation). The components are
// named like the offline bundles of NVIDIA's downloads for ESXi: Mellanox-MFT-Tools_VERSION_BUILD.zip. VMware's tools name
// bundles after their components; for each release of NVIDIA's bundles this is unverified.
func (Family) Firmware() *backends.FirmwareRules {
	return &backends.FirmwareRules{
		Tools: []string{"mft", "nmst"}, Module: "nmst", Command: "/opt/mellanox/bin/mlxconfig -d %s -y set %s", Query: "mlxconfig -d %s query %s",
		Undo: "mlxconfig -d %s set %s",
		Keys: []string{"SRIOV_EN", "NUM_OF_VFS", "LINK_TYPE_P1", "LINK_TYPE_P2", "ADVANCED_PCI_SETTINGS", "ATS_ENABLED", "INTERNAL_CPU_MODEL",
			"INTERNAL_CPU_OFFLOAD_ENGINE"},
		SRIOV: "SRIOV_EN", VFs: "NUM_OF_VFS", LinkType: "LINK_TYPE_P", Ethernet: "2", ATS: "ATS_ENABLED", Advanced: "ADVANCED_PCI_SETTINGS",
		Components: map[string]string{"mft": "Mellanox-MFT-Tools", "nmst": "Mellanox-NATIVE-NMST", "nmlx5-core": "Mellanox-nmlx5",
			"nmlx5-rdma": "Mellanox-nmlx5"},
		NoATS: "ConnectX-6 and later have it (NVIDIA, ATS)", OwnIDs: "MT_",
		// BlueField (DOCA, BlueField Modes of Operation; nic-configuration-operator, pull request 97): 1 is NIC mode, in which it
		// works like a ConnectX; 0 is DPU mode, in which its Arm cores own the ports and a reboot of the host activates none of
		// its settings (sriov-network-operator, issue 662). "mlxconfig reset" restores its default, which is DPU mode on DPUs.
		CPUCards: []string{"a2d2", "a2d6", "a2dc"}, // as in Functions
		Mode:     "INTERNAL_CPU_OFFLOAD_ENGINE", NICMode: "1", CPU: "INTERNAL_CPU_MODEL",
		NoNICMode: "set NIC mode as NVIDIA's \"BlueField Modes of Operation\" says (mlxconfig -d %s set INTERNAL_CPU_OFFLOAD_ENGINE=1; " +
			"BlueField-2 has more keys), " +
			"power-cycle the server, then run rdma-setup again (resume where a run has begun)",
		Loaded: "/opt/mellanox/bin/flint -d %s query", Burn: "/opt/mellanox/bin/flint -d %s -i %s burn", ImageVersion: imageVersion,
	}
}

// LeastFirmware is taken from RoCE SR-IOV Setup and Performance Study on vSphere 7.x (VMware, 2022), Fig. 9: driver 4.21.71.101
// for ESXi 7.0 U2. That later drivers require no less is unverified, and messages that depend on it say so.
func (Family) LeastFirmware(pciDevice string) (driver, firmware string) {
	least := map[string]string{
		"1013": "12.28.2006",                       // ConnectX-4
		"1015": "14.29.1016",                       // ConnectX-4 Lx
		"1017": "16.29.1016", "1019": "16.29.1016", // ConnectX-5, ConnectX-5 Ex
		"101b": "20.29.1016", // ConnectX-6
		"101d": "22.29.1016", // ConnectX-6 Dx
		"101f": "26.29.1016", // ConnectX-6 Lx
	}
	return "4.21.71.101", least[pciDevice]
}

// Advisories returns NVIDIA's published firmware vulnerabilities that a user of a VF can exploit: security bulletins 5699 of
// 2026-06-30 and 5847 of 2026-09-29 (github.com/NVIDIA/product-security, 2026/5699 and 2026/5847). ConnectX-6 DE is left out: its
// PCI device id is not known for certain. Bulletin 5699 names only ConnectX-4, ConnectX-5 and ConnectX-6 for CVE-2025-23351.
func (Family) Advisories() []backends.Advisory {
	type fixed = map[int]int
	all := fixed{35: 8002, 39: 8002, 43: 8002, 46: 3008}
	both := map[string]map[int]int{
		"101d": all, "101f": all, "1021": all, "1023": {46: 3008}, "a2d6": all, "a2dc": {39: 8002, 43: 8002, 46: 3008},
	}
	first := map[string]map[int]int{
		"1013": {28: 4702}, "1015": {32: 1908}, "1017": {35: 8002}, "1019": {35: 8002}, "101b": {35: 8002, 39: 8002, 43: 8002},
	}
	for id, f := range both {
		first[id] = f
	}
	later := fixed{39: 5124, 43: 4100, 47: 1020}
	const june, september = "NVIDIA security bulletin 5699", "NVIDIA security bulletin 5847"
	return []backends.Advisory{
		{Bulletin: june, Date: "2026-06-30", CVE: "CVE-2025-23351", Score: 9.0, Impact: "code execution on the card", Fixed: first},
		{Bulletin: june, Date: "2026-06-30", CVE: "CVE-2025-23350", Score: 9.0, Impact: "code execution on the card", Fixed: both},
		{Bulletin: september, Date: "2026-09-29", CVE: "CVE-2025-33207", Score: 6.8, Impact: "denial of service", Fixed: map[string]map[int]int{
			"1017": {35: 8008}, "1019": {35: 8008}, "101b": {39: 5124, 43: 4100}, "101d": later, "101f": later, "a2d6": later,
		}},
	}
}
