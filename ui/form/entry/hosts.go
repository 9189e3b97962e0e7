package entry

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Fits counts the pNICs that could carry RDMA, including ports set to InfiniBand that mode sriov sets to Ethernet.
func Fits(h backends.Host) int {
	n := 0
	for _, v := range slices.Concat(h.NICs, h.Hidden) {
		if v.Eligible || (nic.Known{}).ToEthernet(&v) != "" {
			n++
		}
	}
	return n
}

// HostRow returns the table row of a host, with whether it can be selected and why.
func HostRow(h backends.Host) live.Row {
	var fit, unfit []string
	for _, n := range slices.Concat(h.NICs, h.Hidden) {
		switch {
		case n.Eligible:
			fit = append(fit, n.Device+" "+backends.Speed(n.SpeedMbps))
		case len(n.Roles) == 0:
			unfit = append(unfit, n.Device+" "+n.Why)
		}
	}
	r := live.Row{ID: h.Name, Group: h.Cluster, Cells: []string{h.Name, h.Cluster, h.Version, h.State, fmt.Sprint(len(fit))},
		Detail: fmt.Sprintf("%s in %s, pNICs for RDMA: %s", h.Name, h.Datacenter, OrNone(fit))}
	if len(fit) == 0 {
		r.Detail = fmt.Sprintf("%s has no pNIC that can be used for RDMA: %s", h.Name, strings.Join(unfit, "; "))
	}
	switch {
	case h.State != "connected":
		r.Disabled = "the host is " + h.State
		r.Detail = h.Name + " cannot be chosen: " + r.Disabled
	case h.InMaintenance:
		r.Cells[3] = "maintenance"
		r.Detail = h.Name + " is in maintenance mode: its VMs are on other hosts"
	}
	return r
}

// Proposed fills in what the answers leave open. The operator selects the VMs, unless the lab is private, because selected VMs
// are powered off.
func Proposed(f live.Fabric, l live.Login, a *answers.Answers, inv *backends.Inventory) *answers.Answers {
	unasked := len(a.VMs) == 0
	a = f.Propose(a, inv)
	if unasked && !f.Private(l) {
		a.VMs = nil
	}
	return a
}

// OneDatacenter returns the datacenter of the hosts.
func OneDatacenter(inv *backends.Inventory, names []string) (string, error) {
	of := map[string]string{}
	for _, h := range inv.Hosts {
		of[h.Name] = h.Datacenter
	}
	for _, n := range names {
		if of[n] != of[names[0]] {
			return "", fmt.Errorf("%s is in datacenter %s, %s in %s: a distributed switch cannot span datacenters", n, of[n], names[0], of[names[0]])
		}
	}
	return of[names[0]], nil
}

// RDMALabel describes the RDMA support of a pNIC.
func RDMALabel(n backends.NIC) string {
	switch {
	case n.RoCEv2:
		return "RoCE v2"
	case n.RoCEv1:
		return "RoCE v1"
	case n.IWARP:
		return "iWARP"
	}
	return "-"
}
