package nic

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Ports returns the pNICs whose functions a family's driver has claimed, in the order of its list parameters: ascending
// segment:bus:device.function (Broadcom KB 309346), not by vmnic number.
func Ports(h *backends.Host, f Family) []*backends.NIC {
	var list []*backends.NIC
	for i := range h.NICs {
		if h.NICs[i].Driver == f.Driver() {
			list = append(list, &h.NICs[i])
		}
	}
	slices.SortFunc(list, func(a, b *backends.NIC) int { return cmp.Compare(strings.ToLower(a.PCI), strings.ToLower(b.PCI)) })
	return list
}

// Addresses returns the addresses of the ports, in the same order.
func Addresses(h *backends.Host, f Family) []string {
	var out []string
	for _, n := range Ports(h, f) {
		out = append(out, n.PCI)
	}
	return out
}

// Card returns the ports of the card that a port belongs to, in the same order.
func Card(h *backends.Host, f Family, pci string) []*backends.NIC {
	return slices.DeleteFunc(Ports(h, f), func(n *backends.NIC) bool { return device(n.PCI) != device(pci) })
}

// CardAddress returns the address that identifies a card: that of its function 0.
func CardAddress(pci string) string { return device(pci) + ".0" }

// device returns a PCI address without its function.
func device(pci string) string {
	if i := strings.LastIndexByte(pci, '.'); i >= 0 {
		pci = pci[:i]
	}
	return strings.ToLower(pci)
}

// Others describes the ports that were not chosen and their traffic: "vmnic0 (management)". The driver's parameters for PFC,
// trust and ECN affect them too.
func Others(h *backends.Host, f Family, chosen ...*backends.NIC) []string {
	var out []string
	for _, n := range Ports(h, f) {
		if slices.ContainsFunc(chosen, func(c *backends.NIC) bool { return c.Device == n.Device }) {
			continue
		}
		out = append(out, n.Device+" ("+Carries(n)+")")
	}
	return out
}

// Carries describes the traffic of a port.
func Carries(n *backends.NIC) string {
	switch {
	case len(n.Roles) > 0:
		return strings.Join(n.Roles, ", ")
	case n.Switch != "":
		return "uplink of " + n.Switch
	case n.SpeedMbps == 0:
		return "no link"
	}
	return "nothing"
}

// Pausing returns the other ports whose traffic may rely on global pause, which PFC disables: storage of vSAN and NVMe (Mellanox
// DOC-2581).
func Pausing(h *backends.Host, f Family, chosen ...*backends.NIC) []string {
	var out []string
	for _, n := range Ports(h, f) {
		if slices.ContainsFunc(chosen, func(c *backends.NIC) bool { return c.Device == n.Device }) {
			continue
		}
		for _, role := range n.Roles {
			if r := strings.ToLower(role); strings.HasPrefix(r, "vsan") || strings.HasPrefix(r, "nvme") || strings.Contains(r, "iser") {
				out = append(out, n.Device+" ("+role+")")
				break
			}
		}
	}
	return out
}

// infiniband is the PCI class of a function whose port is set to InfiniBand; the ESXi drivers support Ethernet ports only
// (NVIDIA, native ESXi driver user manual, Introduction and Port Type Management).
const (
	infiniband = "0207"
	speaksIB   = "is a port in InfiniBand mode"
)

// Hidden returns the PCI functions of the families' cards that are not pNICs of a host: ports set to InfiniBand, and functions that
// no driver has claimed. Passed-through devices and functions that lead to NVSwitches are left out. For a host without pNICs it
// returns none, because its pNICs were not read.
func Hidden(h *backends.Host) []backends.NIC {
	var out []backends.NIC
	for _, d := range h.PCI {
		f := OfCard(d.Vendor)
		is := func(n backends.NIC) bool { return strings.EqualFold(n.PCI, d.Address) }
		if f == nil || len(h.NICs) == 0 || d.Enabled || d.Active || !slices.Contains(f.Functions(), d.Device) || h.LeadsToNVSwitch(d.Address) ||
			slices.ContainsFunc(h.NICs, is) {
			continue
		}
		n := backends.NIC{Device: d.Address, PCI: d.Address, Vendor: d.Vendor, PCIDeviceID: d.Device, Model: d.Name, NUMA: d.NUMA,
			Roles: []string{}}
		n.Hidden = "is a PCI function without a driver"
		if d.Class == infiniband { // its driver once it is set to Ethernet
			n.Hidden, n.Driver = speaksIB, f.Driver()
		}
		n.Why = n.Hidden
		out = append(out, n)
	}
	return out
}

// WithHidden returns the host as it will be once the hidden ports of these cards (CardAddress) are set to Ethernet: the driver
// claims them too, and its lists have a number for each.
func WithHidden(h *backends.Host, cards []string) *backends.Host {
	will := *h
	will.NICs = slices.Clone(h.NICs)
	for _, n := range h.Hidden {
		if slices.Contains(cards, CardAddress(n.PCI)) && ToEthernet(&n) != nil {
			will.NICs = append(will.NICs, n)
		}
	}
	return &will
}

// ToEthernet returns the firmware key and value that set a hidden port to Ethernet; nil if it is not set to InfiniBand, or the
// key is unknown.
func ToEthernet(n *backends.NIC) map[string]string {
	r := FirmwareOf(Of(n.Driver))
	if r == nil || r.LinkType == "" || n.Hidden != speaksIB {
		return nil
	}
	return map[string]string{portKey(r, n.PCI): r.Ethernet}
}

// ToEthernet returns that setting as a command for the ESXi shell.
func (Known) ToEthernet(n *backends.NIC) string {
	keys := ToEthernet(n)
	if keys == nil {
		return ""
	}
	return FirmwareCommand(CardAddress(n.PCI), keys)
}

// portKey returns the key for the protocol of a port: function 0 is port 1.
func portKey(r *backends.FirmwareRules, pci string) string {
	at := strings.LastIndexByte(pci, '.')
	return r.LinkType + strconv.Itoa(Number(pci[at+1:])+1)
}

// RDMAOff reports whether a port has no RDMA device because RDMA is not enabled in its driver. It is false if the driver's
// parameters were not read.
func RDMAOff(h *backends.Host, n *backends.NIC) bool {
	f := Of(n.Driver)
	if n.RDMADevice != "" || f == nil || h.System == nil {
		return false
	}
	on, m := f.RoCE().Enable, h.System.Modules[f.Driver()]
	if on == "" || !m.Known() || !slices.Contains(m.Value.Known, on) {
		return false
	}
	list, at := strings.Split(Param(h.System, f.Driver(), on), ","), slices.Index(Addresses(h, f), n.PCI)
	return at >= len(list) || Number(list[at]) != 1
}

// MayBeOff reports whether a host has a port without an RDMA device for which only the driver's parameters show why.
func MayBeOff(h *backends.Host) bool {
	return slices.ContainsFunc(h.NICs, func(n backends.NIC) bool {
		f := Of(n.Driver)
		return n.RDMADevice == "" && f != nil && f.RoCE().Enable != ""
	})
}

// WithRDMA returns the parameters of the ports' driver with RDMA enabled for these ports: one number for each of its ports in PCI
// order. Other ports keep their entry, or if the list has none, their current state.
func WithRDMA(h *backends.Host, on ...*backends.NIC) map[string]string {
	f := Of(on[0].Driver)
	params := h.System.Module(f.Driver()).Params
	now := strings.Split(Param(h.System, f.Driver(), f.RoCE().Enable), ",")
	var list []string
	for i, p := range Ports(h, f) {
		switch {
		case slices.ContainsFunc(on, func(n *backends.NIC) bool { return n.PCI == p.PCI }), p.RDMADevice != "":
			list = append(list, "1")
		case i < len(now) && now[i] != "":
			list = append(list, now[i])
		default:
			list = append(list, "0")
		}
	}
	return with(params, map[string]string{f.RoCE().Enable: strings.Join(list, ",")})
}

// PortTools are the programs that set PFC and DSCP trust in a guest that owns the port: mlnx_qos of MLNX_OFED, or dcb of iproute2
// 5.11 and later.
const PortTools = "mlnx_qos nor dcb"

// PortCommands are the command lines of each of PortTools that configure a port manually, according to mlnx_qos(8), dcb-app(8)
// and dcb-pfc(8).
func PortCommands(q backends.QoSSpec) (ofed string, iproute []string) {
	bits := strings.Split("0,0,0,0,0,0,0,0", ",")
	bits[min(max(q.Priority, 0), len(bits)-1)] = "1"
	return "mlnx_qos -i DEV --trust=dscp --pfc=" + strings.Join(bits, ","),
		[]string{fmt.Sprintf("dcb app replace dev DEV dscp-prio %d:%d", q.DSCP, q.Priority),
			fmt.Sprintf("dcb pfc set dev DEV prio-pfc all:off %d:on", q.Priority)}
}

// BufferCommands give a priority a receive buffer of its own (NVIDIA, Quality of Service (QoS); dcb-buffer(8)). This program does
// not run them: the firmware assigns a buffer to a priority with PFC, unless buffers were configured manually (Linux, mlx5
// en_dcbnl.c, mlx5e_dcbnl_ieee_setpfc).
func BufferCommands(priority int) string {
	to := strings.Split("0,0,0,0,0,0,0,0", ",")
	to[min(max(priority, 0), len(to)-1)] = "1"
	return fmt.Sprintf("mlnx_qos -i DEV --prio2buffer=%s, or dcb buffer set dev DEV prio-buffer %d:1", strings.Join(to, ","), priority)
}
