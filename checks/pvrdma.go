package checks

import "github.com/rdma-setup/rdma-setup/backends"

// PVRDMARuleset is the key of PVRDMA's firewall ruleset.
const PVRDMARuleset = "pvrdma"

// VMKNIC is the vmknic that the answers name; where they name none the one that the host has.
func (f *Facts) VMKNIC(h *backends.Host) string {
	if k := f.Answers.PVRDMA.VMKNic.Of(h.Name); k != "" {
		return k
	}
	return h.Options[backends.VMKNICOption]
}
