package nic

import (
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// VFs is the table of "esxcli network sriovnic vf list -n vmnicN".
type VFs struct {
	scan.Envelope
	VFs         []VF    `json:"vfs"`
	ActiveCount int     `json:"active_count"`
	PCINotation *string `json:"pci_notation"` // "hex" or "decimal", nil without rows
}

// VF is a virtual function. The owner is the world id of the VM, on newer releases its cartel id.
type VF struct {
	ID           int64   `json:"id"`
	Active       *bool   `json:"active"`
	PCIAddress   *string `json:"pci_address"`
	OwnerWorldID *int64  `json:"owner_world_id"`
}

// CodeNotSRIOV is the error of VFList for a NIC without virtual functions.
const CodeNotSRIOV = "not_sriov_nic"

var vfStart = regexp.MustCompile(`\b[0-9]+\s+(?:true|false)\s`)

var vfRow = regexp.MustCompile(`(?i)^([0-9]+)\s+(true|false|yes|no|enabled|disabled|n/a|-)?\s*((?:[0-9a-f]{4,8}:)?[0-9a-f]{2,3}:[0-9a-f]{2}[.:][0-9])(?:\s+(\S+))?`)

// VFList reads "esxcli network sriovnic vf list". Older releases print the parts of the PCI address in decimal, newer
// ones in hexadecimal. The width of the bus number decides: 00000:059:00.1 is 0000:3b:00.1, as in the VMX keys
// pciPassthruN.id (github.com/VirtQE-S1/ESX-LISA, setupscripts/tcutils.ps1).
func VFList(text string) VFs {
	r := VFs{VFs: []VF{}}
	r.Envelope, text = scan.Begin("esxcli_network_sriovnic_vf_list", text)
	text = scan.Unfold(text, vfStart)
	heading := false
	for line := range scan.Lines(text) {
		line = strings.TrimLeft(line, " \t")
		m := vfRow.FindStringSubmatch(line)
		if m == nil {
			lower := strings.ToLower(line)
			switch {
			case strings.HasPrefix(lower, "vf id"):
				heading = true
			case strings.Contains(lower, "no sriov nic") || strings.Contains(lower, "no sr-iov nic"):
				r.Fail(CodeNotSRIOV, line, nil)
			}
			continue
		}
		id := scan.Int(m[1])
		if id == nil {
			continue
		}
		notation := "hex"
		vf := VF{ID: *id, Active: scan.Bool(m[2]), PCIAddress: scan.PCI(m[3]), OwnerWorldID: scan.Int(m[4])}
		if bus := strings.Split(m[3], ":"); len(bus[max(len(bus)-2, 0)]) == 3 {
			notation, vf.PCIAddress = "decimal", scan.DecimalPCI(m[3])
		}
		if r.PCINotation == nil {
			r.PCINotation = &notation
		}
		if vf.Active != nil && *vf.Active {
			r.ActiveCount++
		}
		r.VFs = append(r.VFs, vf)
	}
	r.NotUnderstood(heading || len(r.VFs) > 0, text)
	return r
}
