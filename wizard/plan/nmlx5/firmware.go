package nmlx5

import (
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// Proven reports whether the running host shows that firmware and BIOS give a port so many VFs: it has them, or its PCI
// function offers them (maxVirtualFunctionSupported is what the firmware was booted with).
func Proven(n *backends.NIC, vfs int) bool {
	return n.SRIOV != nil && n.SRIOV.Capable && max(n.SRIOV.Max, n.SRIOV.VFs) >= vfs
}

// AdvancedPCI is the key that shows or hides the tuned PCI values of a card's firmware; off, they go back to their defaults.
const AdvancedPCI = "ADVANCED_PCI_SETTINGS"

// The keys that make VFs.
const (
	SRIOVOn = "SRIOV_EN"
	NumVFs  = "NUM_OF_VFS"
)

// ATS is the key that lets a card ask the IOMMU for addresses itself.
const ATS = "ATS_ENABLED"

// FirmwareKeys returns what mlxconfig shall say of a card whose ports are to have so many VFs, in port order: SR-IOV on,
// NUM_OF_VFS the sum and one (never lowered when it is set), ports speaking Ethernet. Keys that a card does not have are
// left out when they are set: Ethernet-only cards know no LINK_TYPE, single-port cards none of port 2.
func FirmwareKeys(vfs []int) (map[string]string, error) {
	n, err := sizing.NumOfVFs(0, vfs)
	if err != nil {
		return nil, err
	}
	keys := map[string]string{SRIOVOn: "1", NumVFs: strconv.Itoa(n)}
	for i := range vfs {
		keys["LINK_TYPE_P"+strconv.Itoa(i+1)] = "2"
	}
	return keys, nil
}

// OEM reports whether a PSID is that of a card sold by a server vendor: its firmware comes from the vendor alone.
func OEM(psid string) bool { return psid != "" && !strings.HasPrefix(psid, "MT_") }

// BIOSHelp says how SR-IOV is switched on in the BIOS of a vendor's servers.
func BIOSHelp(vendor string) string {
	v := strings.ToLower(vendor)
	switch {
	case strings.Contains(v, "dell"):
		return "switch SR-IOV Global on: racadm set BIOS.IntegratedDevices.SriovGlobalEnable Enabled; racadm jobqueue create BIOS.Setup.1-1; racadm serveraction powercycle"
	case strings.Contains(v, "hp"):
		return "switch SR-IOV and Intel VT-d (AMD IOMMU) on: ilorest set Sriov=Enabled --selector=Bios. and ilorest commit, then power-cycle; or RBSU > Virtualization Options"
	case strings.Contains(v, "supermicro"):
		return "switch SR-IOV Support on under Advanced > PCIe/PCI/PnP Configuration, VT-d under Chipset > IIO; then power-cycle"
	}
	return "switch SR-IOV and VT-d (AMD: IOMMU) on in the BIOS (Dell: racadm set BIOS.IntegratedDevices.SriovGlobalEnable Enabled; HPE: ilorest set Sriov=Enabled; Supermicro: PCIe/PCI/PnP > SR-IOV Support), then power-cycle"
}
