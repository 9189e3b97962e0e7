// Package e810 describes Intel's Ethernet 800 Series (E810) under its native drivers of ESXi, icen and irdman.
package e810

import "github.com/rdma-setup/rdma-setup/backends"

// A Family is that of E810 cards. They speak RoCE v2 or iWARP, never RoCE v1 (irdman 1.4.4.0 release notes).
type Family struct{}

// Vendor is Intel's at PCI-SIG.
func (Family) Vendor() string { return "8086" }

// Name is the driver's.
func (Family) Name() string { return "icen" }

// Cards is what Intel calls them.
func (Family) Cards() string { return "E810" }

// Driver is the Ethernet module.
func (Family) Driver() string { return "icen" }

// RDMA is the RDMA module.
func (Family) RDMA() string { return "irdman" }

// VIBs are those of both modules.
func (Family) VIBs() []string { return []string{"icen", "irdman"} }

// Functions are those of E810-C and E810-XXV cards (kernel, drivers/net/ethernet/intel/ice, ice_devids.h).
func (Family) Functions() []string { return []string{"1591", "1592", "1593", "1599", "159a", "159b"} }

// RoCE v2 is the protocol that irdman starts with; iWARP is a parameter's doing. icen has to be 1.4.0.20 or later and to
// have RDMA on (irdman 1.4.4.0 release notes, Overview and Important Notes; the list with a number for each port is as
// spyroot's public script configure_icen.sh writes it).
func (Family) RoCE() backends.RoCERules {
	return backends.RoCERules{Least: "1.4.0.20", Enable: "RDMA", Mode: "irdman", Source: notes, NoENS: notes}
}

const notes = "Intel, irdman 1.4.4.0 release notes"

// VFs are asked for by max_vfs (vSphere Networking, Enabling SR-IOV by Using an ESXCLI Command), but offer guests no RDMA:
// Linux's irdma drives functions of ice, i40e and idpf (id tables in drivers/infiniband/hw/irdma), and VFs of E810 have iavf.
func (Family) VFs() backends.VFRules {
	return backends.VFRules{
		Param:   "max_vfs",
		Refused: "has driver icen, and VFs of E810 cards have no RDMA in guests: Linux's irdma works with ice, i40e and idpf, not with the VFs' driver iavf (kernel, drivers/infiniband/hw/irdma)",
		Remedy:  "choose mode pvrdma, or a port of a card whose VFs have RDMA (ConnectX)",
	}
}

// Lossless is nil: PFC comes by DCBX from the switch.
func (Family) Lossless() *backends.LosslessParams { return nil }

// Firmware is nil: Intel's NVM tools set nothing that RDMA needs.
func (Family) Firmware() *backends.FirmwareRules { return nil }

// Tools are none.
func (Family) Tools(backends.HostShell) backends.FirmwareTools { return nil }

// Advisories of Intel are not embedded.
func (Family) Advisories() []backends.Advisory { return nil }

// LeastFirmware is not documented by card.
func (Family) LeastFirmware(string) (driver, firmware string) { return "", "" }
