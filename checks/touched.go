package checks

import (
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Untouched reports whether nothing that RDMA needs is configured: no VM of the answers (of the site, if they name none) has an
// RDMA adapter or a device in passthrough, and no selected host is a member of their switches, has a vmknic
// or an open firewall for PVRDMA, or VFs of an RDMA card. It is false if that was not read of a host that is connected.
func Untouched(a *answers.Answers, inv *backends.Inventory) bool {
	named := map[string]bool{}
	for _, v := range a.VMs {
		named[v.Name] = true
	}
	for _, v := range inv.VMs {
		if (len(named) == 0 || named[v.Name] || named[v.Path]) && (len(v.Passthrough) > 0 || slices.ContainsFunc(v.Adapters, carriesRDMA)) {
			return false
		}
	}
	for _, h := range inv.Hosts {
		if !chosen(a, h) {
			continue
		}
		if h.State == "connected" && len(h.Firewall) == 0 { // not read: every host has rulesets
			return false
		}
		if h.Options[backends.VMKNICOption] != "" || h.Firewall[PVRDMARuleset].Enabled || slices.ContainsFunc(h.NICs, hasVFs) ||
			slices.ContainsFunc(a.AllRails(), func(r answers.Rail) bool {
				sw := inv.Switch(r.Switch.Name)
				return sw != nil && len(sw.Members[h.Name].PNICs) > 0
			}) {
			return false
		}
	}
	return true
}

func hasVFs(n backends.NIC) bool {
	return n.SRIOV != nil && n.SRIOV.Active && n.SRIOV.VFs > 0 && n.RDMADevice != ""
}

func carriesRDMA(a backends.Adapter) bool { return a.Type == "pvrdma" || a.Type == "sriov" }

func chosen(a *answers.Answers, h backends.Host) bool {
	return h.In(a.Hosts.Datacenter, a.Hosts.Cluster) && (len(a.Hosts.Names) == 0 || slices.Contains(a.Hosts.Names, h.Name))
}

// An Uplink is a pNIC that carries RDMA, with the growth of its counters between two readings.
type Uplink struct {
	Host   string `json:"host"`
	Device string `json:"device"`
	backends.PortStats
}

// PortsOf returns the counters of the pNICs that carry RDMA: the uplinks of the switches of the answers, and pNICs with VFs.
func PortsOf(a *answers.Answers, inv *backends.Inventory) []Uplink {
	var out []Uplink
	for _, h := range inv.Hosts {
		if h.System == nil || !chosen(a, h) {
			continue
		}
		for _, n := range h.NICs {
			used := hasVFs(n) || slices.ContainsFunc(a.AllRails(), func(r answers.Rail) bool { return n.Switch != "" && n.Switch == r.Switch.Name })
			if s := h.System.Stats[n.Device]; used && s.Known() && s.Value.Over > 0 {
				out = append(out, Uplink{h.Name, n.Device, s.Value})
			}
		}
	}
	return out
}
