package checks

import "github.com/rdma-setup/rdma-setup/backends"

// PVRDMARuleset is the key of PVRDMA's firewall ruleset.
const PVRDMARuleset = "pvrdma"

// VMKNIC returns the vmknic that the answers name, else the one in the host's option.
func (f *Facts) VMKNIC(h *backends.Host) string {
	if k := f.Answers.PVRDMA.VMKNic.Of(h.Name); k != "" {
		return k
	}
	return h.Options[backends.VMKNICOption]
}
