package checks

import (
	"cmp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

func (f *Facts) choose(h *backends.Host) *backends.NIC {
	var best *backends.NIC
	for i := range h.NICs {
		n := &h.NICs[i]
		if id, _ := f.against(h, n); id == "" && (best == nil || rank(f, n) > rank(f, best)) {
			best = n
		}
	}
	return best
}

// against tells which row a pNIC breaks that is not what the answers describe, and how near it came.
func (f *Facts) against(h *backends.Host, n *backends.NIC) (id string, depth int) {
	want := f.Answers.NIC
	if mac, given := want.MACs[h.Name]; given && !strings.EqualFold(string(mac), n.MAC) {
		return "HOST-PNIC-MAC-005", 0
	}
	if want.Device != "" && want.Device != n.Device && !strings.EqualFold(want.Device, n.PCI) {
		return f.absent(), 1
	}
	if want.Driver != "" && want.Driver != n.Driver {
		return "HOST-PNIC-DRIVER-006", 2
	}
	// The uplink that runs below its speed is still the one that is meant: it is not some other card.
	slow := n.SpeedMbps == 0 || n.Switch != "" && n.Switch == f.Answers.Switch.Name
	if speed := want.Speed.Mbps(); speed != 0 && n.SpeedMbps != speed && (!slow || n.MaxSpeedMbps != speed) {
		return "HOST-PNIC-SPEED-004", 3
	}
	return "", 4
}

// absent is the row that says that there is no such pNIC at all.
func (f *Facts) absent() string {
	if f.Answers.Mode == answers.PVRDMA {
		return "HOST-PNIC-RDMA-001"
	}
	return "HOST-PNIC-STATE-003"
}

// Blame is the one row that names a host without a fitting pNIC: that of the pNIC which came nearest. The other rows
// then say nothing of the host, so that one cause is told once.
func (f *Facts) Blame(h *backends.Host) string {
	worst, best := f.absent(), -1
	for i := range h.NICs {
		if id, depth := f.against(h, &h.NICs[i]); depth > best {
			worst, best = id, depth
		}
	}
	return worst
}

// PassedOn tells whether the host's RDMA card is passed through to VMs as a whole: then it is no pNIC any more.
func (f *Facts) PassedOn(h *backends.Host) bool {
	return f.Answers.WholeCard() && len(f.cards(h)) > 0
}

func rank(f *Facts, n *backends.NIC) int {
	r := 0
	if n.Switch != "" && n.Switch == f.Answers.Switch.Name {
		r += 8
	}
	if n.Eligible {
		r += 4
	}
	if n.RDMADevice != "" {
		r += 2
	}
	if n.SpeedMbps > 0 {
		r++
	}
	return r
}

// VCenterRef is the target of what is true of the whole vCenter.
func (f *Facts) VCenterRef() backends.Ref {
	return backends.Ref{Type: backends.TypeVCenter, Name: f.Inventory.VCenter.URL}
}

// ClusterRef is the target of what is true of the hosts together.
func (f *Facts) ClusterRef() backends.Ref {
	return backends.Ref{Type: backends.TypeCluster, Name: cmp.Or(f.Answers.Hosts.Cluster, "none")}
}
