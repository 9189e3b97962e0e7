// Package e810 describes Intel's Ethernet 800 Series (E810) with its native ESXi drivers, icen and irdman.
package e810

import "github.com/rdma-setup/rdma-setup/backends"

// A Family is the E810 family. Its cards support RoCE v2 and iWARP, but not RoCE v1 (irdman 1.4.4.0 release notes).
type Family struct{}

func (Family) Vendor() string { return "8086" }

func (Family) Name() string { return "icen" }

func (Family) Cards() string { return "E810" }

func (Family) Driver() string { return "icen" }

func (Family) RDMA() string { return "irdman" }

func (Family) VIBs() []string { return []string{"icen", "irdman"} }

// Functions returns the device ids of E810-C and E810-XXV cards (kernel, drivers/net/ethernet/intel/ice, ice_devids.h).
func (Family) Functions() []string { return []string{"1591", "1592", "1593", "1599", "159a", "159b"} }

// RoCE v2 is irdman's default protocol; a parameter selects iWARP. icen must be 1.4.0.20 or later and have RDMA enabled (irdman
// 1.4.4.0 release notes, Overview and Important Notes; the list with one number per port is written as in spyroot's public script
// configure_icen.sh).
func (Family) RoCE() backends.RoCERules {
	return backends.RoCERules{Least: "1.4.0.20", Enable: "RDMA", Mode: "irdman", Source: notes, NoENS: notes}
}

const notes = "Intel, irdman 1.4.4.0 release notes"

// VFs are requested by max_vfs (vSphere Networking, Enabling SR-IOV by Using an ESXCLI Command), but offer guests no RDMA:
// Linux's irdma supports functions of ice, i40e and idpf (id tables in drivers/infiniband/hw/irdma), and VFs of E810 use iavf.
func (Family) VFs() backends.VFRules {
	return backends.VFRules{
		Param: "max_vfs",
		Refused: "has driver icen, and VFs of E810 cards have no RDMA in guests: Linux's irdma works with ice, i40e and idpf, not with the " +
			"VFs' driver iavf (kernel, drivers/infiniband/hw/irdma)",
		Remedy: "choose mode pvrdma, or a port of a card whose VFs have RDMA (ConnectX)",
	}
}

// Lossless returns nil: the switch configures PFC through DCBX.
func (Family) Lossless() *backends.LosslessParams { return nil }

// Firmware returns nil: Intel's NVM tools set nothing that RDMA needs.
func (Family) Firmware() *backends.FirmwareRules { return nil }

// Tools returns nil: the family has no firmware tools.
func (Family) Tools(backends.HostShell) backends.FirmwareTools { return nil }

// Advisories returns nil: Intel's are not embedded.
func (Family) Advisories() []backends.Advisory { return nil }

// LeastFirmware returns "": Intel documents none per card.
func (Family) LeastFirmware(string) (driver, firmware string) { return "", "" }
