// Package bnxt describes Broadcom's NetXtreme-E with its native ESXi drivers, bnxtnet and bnxtroce.
package bnxt

import "github.com/rdma-setup/rdma-setup/backends"

// A Family is the NetXtreme-E family.
type Family struct{}

// Vendor returns Broadcom's PCI vendor id. NetXtreme cards without RDMA have it too; Functions tells them apart.
func (Family) Vendor() string { return "14e4" }

func (Family) Name() string { return "bnxtnet" }

func (Family) Cards() string { return "NetXtreme-E" }

func (Family) Driver() string { return "bnxtnet" }

func (Family) RDMA() string { return "bnxtroce" }

// VIBs returns the packages of both modules, named as in vib lists of ESXi 6.7 to 9.0.
func (Family) VIBs() []string { return []string{"bnxtnet", "bnxtroce"} }

// Functions returns the device ids of BCM57412 to BCM57417, BCM57452, BCM57454, BCM57502, BCM57504 and BCM57508 (rdma-core,
// providers/bnxt_re/main.c, cna_table; partitions, VFs, NetXtreme-C and later cards are left out).
func (Family) Functions() []string {
	return []string{"16d6", "16d7", "16d8", "16d9", "16e2", "16e3", "16f1", "1614", "1750", "1751", "1752"}
}

// RoCE has no parameter that is documented for ESXi, neither to enable it nor to select a protocol. It can be disabled for each port
// in the card's NVRAM (kernel, bnxt_devlink.c: enable_roce is NVM_OFF_SUPPORT_RDMA): such a port has no RDMA device. That UEFI setup
// and niccli change this option is unverified.
func (Family) RoCE() backends.RoCERules {
	return backends.RoCERules{NoDevice: "load module bnxtroce, and enable RDMA for the port in the card's NVRAM, which esxcli does not show " +
		"(Linux, bnxt_devlink.c, enable_roce): in the server's UEFI setup or with Broadcom's niccli (unverified)"}
}

// VFs are enabled and counted in the card's NVRAM (NetXtreme-E User's Manual, Broadcom, UG100, SR-IOV; kernel, bnxt_devlink.c:
// enable_sriov is NVM_OFF_ENABLE_SRIOV). The list parameter of bnxtnet is not documented in public.
func (Family) VFs() backends.VFRules {
	return backends.VFRules{
		Refused: "has driver bnxtnet, and VFs of NetXtreme-E cards are configured in the card's NVRAM, which esxcli neither reads nor sets " +
			"(NetXtreme-E User's Manual, Broadcom, UG100, SR-IOV); whether they have RDMA in guests of ESXi is unverified",
		Remedy: "choose mode pvrdma, or a port of a ConnectX card",
	}
}

// Lossless returns nil: no parameters for PFC are documented for ESXi. A driver with DCBX takes PFC from the switch (vSphere
// Storage, Configure Lossless Ethernet for NVMe over RDMA).
func (Family) Lossless() *backends.LosslessParams { return nil }

// Firmware returns nil: Broadcom's tools for the NVRAM, bnxtnvm and niccli, are not in ESXi, and their commands for ESXi are not
// documented in public.
func (Family) Firmware() *backends.FirmwareRules { return nil }

// Tools returns nil: the family has no firmware tools.
func (Family) Tools(backends.HostShell) backends.FirmwareTools { return nil }

// Advisories returns nil: Broadcom's are not embedded.
func (Family) Advisories() []backends.Advisory { return nil }

// LeastFirmware returns "": Broadcom documents none per card in public.
func (Family) LeastFirmware(string) (driver, firmware string) { return "", "" }
