package checks

import "github.com/rdma-setup/rdma-setup/backends"

// vmknicOption is the advanced option that names the vmknic of PVRDMA's control plane.
const vmknicOption = "Net.PVRDMAVmknic"

// pvrdmaRuleset is the key of PVRDMA's firewall ruleset.
const pvrdmaRuleset = "pvrdma"

// vmknic is the vmknic that the answers name; where they name none the one that the host has.
func (f *Facts) vmknic(h *backends.Host) string {
	if f.Answers.PVRDMA.VMKNic != "" {
		return f.Answers.PVRDMA.VMKNic
	}
	return h.Options[vmknicOption]
}
