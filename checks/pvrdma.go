package checks

import "github.com/rdma-setup/rdma-setup/backends"

// VMKNICOption is the advanced option that names the vmknic of PVRDMA's control plane.
const VMKNICOption = "Net.PVRDMAVmknic"

// PVRDMARuleset is the key of PVRDMA's firewall ruleset.
const PVRDMARuleset = "pvrdma"

// VMKNIC is the vmknic that the answers name; where they name none the one that the host has.
func (f *Facts) VMKNIC(h *backends.Host) string {
	if f.Answers.PVRDMA.VMKNic != "" {
		return f.Answers.PVRDMA.VMKNic
	}
	return h.Options[VMKNICOption]
}
