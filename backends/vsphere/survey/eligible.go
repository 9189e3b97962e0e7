package survey

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// drivers are those of adapters that do RoCE v2 on ESXi: NVIDIA ConnectX-3 and later, Broadcom NetXtreme-E, Marvell
// FastLinQ, Intel E810 (VMware Compatibility Guide, feature RDMA RoCE v2; vSphere 7.0 "PVRDMA Support").
var drivers = []string{"nmlx5_core", "nmlx4_core", "nmlx4_en", "bnxtnet", "qedentv", "icen"}

// A Position is what surrounds a pNIC, as far as it decides whether RDMA may have it.
type Position struct {
	Standard bool     // NIC.Switch is a standard vSwitch, else a DVS
	VMKs     []string // vmknics that live on NIC.Switch on this host
	VMs      []string // VMs whose plain adapters (neither pvrdma nor sriov) live on NIC.Switch
	ENS      bool     // the DVS runs enhanced data path on this host: RDMA is not available then (irdman 1.4.4.0 release notes)
	DPU      bool     // the pNIC belongs to a DPU
	Storage  []string // storage adapters that use its RDMA device or the pNIC itself: vmhba65, ...
}

// Judge says whether RDMA may have a pNIC, and why or why not. The rule: an RDMA device that does RoCE v2, a driver
// known to do it, link up, and free. Free means that nothing depends on it: no vmknic on its switch, no storage
// adapter on its RDMA device, no standard vSwitch, no VM with an ordinary adapter on its DVS. A pNIC that is the
// uplink of a DVS with nothing but RDMA adapters is eligible: it is where a setup that was done before has put it.
// Every reason against is named, so that the operator sees all that stands in the way at once.
func Judge(n backends.NIC, at Position) (bool, string) {
	var against []string
	no := func(format string, args ...any) { against = append(against, fmt.Sprintf(format, args...)) }

	if len(n.Roles) > 0 {
		on := ""
		if len(at.VMKs) > 0 {
			on = " (" + strings.Join(at.VMKs, ", ") + " on " + n.Switch + ")"
		}
		no("carries %s%s", strings.Join(n.Roles, ", "), on)
	}
	if len(at.Storage) > 0 {
		no("storage adapter %s uses it", strings.Join(at.Storage, ", "))
	}
	switch {
	case n.RDMADevice == "":
		no("no RDMA device")
	case n.RoCEv2:
	case n.RoCEv1:
		no("RoCE v1 only")
	case n.IWARP:
		no("iWARP only, not RoCE")
	default:
		no("RDMA device %s does no RoCE", n.RDMADevice)
	}
	if n.SpeedMbps == 0 {
		no("no link")
	} else if n.RDMADevice != "" && (n.RDMAState == "down" || n.RDMAState == "init") {
		no("RDMA device %s is %s", n.RDMADevice, n.RDMAState)
	}
	if n.RDMADevice != "" && !slices.Contains(drivers, n.Driver) {
		no("driver %s is not known to do RoCE v2", n.Driver)
	}
	if at.DPU {
		no("belongs to a DPU")
	}
	if at.ENS {
		no("%s runs enhanced data path, where RDMA is not available", n.Switch)
	}
	if n.Switch != "" && len(at.VMKs) == 0 {
		switch {
		case at.Standard:
			no("uplink of the standard switch %s", n.Switch)
		case len(at.VMs) > 0:
			no("uplink of %s, which carries %s", n.Switch, some(at.VMs, "VM"))
		}
	}
	if len(against) > 0 {
		return false, strings.Join(against, "; ")
	}
	why := fmt.Sprintf("RoCE v2 (%s), %s, link up", n.RDMADevice, speed(n.SpeedMbps))
	if n.Switch == "" {
		return true, why + ", free"
	}
	return true, why + ", uplink of " + n.Switch
}

func speed(mbps int) string {
	if mbps%1000 == 0 {
		return fmt.Sprintf("%d Gbps", mbps/1000)
	}
	return fmt.Sprintf("%d Mbps", mbps)
}

// some names one of a list and counts the rest.
func some(names []string, what string) string {
	if len(names) == 1 {
		return what + " " + names[0]
	}
	return fmt.Sprintf("%s %s and %d more", what, names[0], len(names)-1)
}
