package backends

import (
	"cmp"
	"slices"
	"strings"
)

// A Purpose is how VMs use a pNIC.
type Purpose string

// The purposes.
const (
	SharedNIC Purpose = ""     // PVRDMA adapters of many VMs share its RDMA device
	VFParent  Purpose = "vfs"  // VMs get its virtual functions
	WholeCard Purpose = "card" // one VM gets the entire card, which is then on no switch
)

// A PNICWish describes the wanted pNIC of a host. A zero field means any. There is one wish for each RDMA switch of a host. A new
// criterion needs a new field here and a new case in unwanted.
type PNICWish struct {
	Purpose   Purpose
	Protocol  string // rocev1 or rocev2; "": rocev2
	Switch    string // DVS that the pNIC is for: its uplinks count as free
	MAC       string
	Device    string // vmnic2, or a PCI address
	Driver    string
	SpeedMbps int
	Slot      string   // PCI address of the card, without function
	NUMA      string   // number of the node
	Position  int      // position among those that match the fields above, by PCI address; 0: any
	VMKs      VMKRange // vmknics that are created for PVRDMA: they do not make a pNIC occupied
	Drivers   Drivers  // what is known about drivers; nil: nothing, and every driver is accepted

	AllowNoHCA bool // a host without an RDMA card is accepted too, see NoHCA

	at string // PCI address at Position, computed by ChoosePNIC
}

// Drivers is what is known about the drivers of pNICs (nic.Known).
type Drivers interface {
	RoCE(driver string) bool                  // the driver is known to support RoCE v2
	NoVFs(driver string) (why, remedy string) // why this program does not set up VFs on its ports, as a predicate; "" if it does
	RDMAModules() []string                    // the modules that create RDMA devices
	NoDevice(h *Host, n *NIC) string          // what to do if it has no RDMA device, "" if no remedy is known
	RDMAOff(h *Host, n *NIC) bool             // it has none because RDMA is disabled in its driver, and a plan can change that
	NoENS(driver string) string               // the source that excludes RDMA on a switch in enhanced data path mode, "" if there is none
	IWARP(n *NIC) string                      // what to do if it uses iWARP, "" if no remedy is known
	ToEthernet(n *NIC) string                 // what sets a hidden port to Ethernet, "" if nothing does
}

// A PNICFault is a reason to reject a pNIC. Faults are ordered: the later its first fault, the closer a pNIC is to the wish. A
// missing link comes before missing RDMA: the second port of a card often has no cable and is not the one wanted.
type PNICFault int

// The faults. Up to WrongSpeed, the pNIC is not the requested one.
const (
	WrongMAC PNICFault = iota
	WrongDevice
	WrongDriver
	WrongSpeed
	NoLink
	HostAway      // vCenter is not connected to the host: its cached data is not reliable
	NotCapable    // no RDMA device, no VFs, no card that a guest can drive
	WrongProtocol // RDMA, but not the requested protocol
	OnDPU
	EnhancedPath
	RDMADown
	Slow
	InUse
	SwitchedOff // RDMA is disabled in its driver, or its port is set to InfiniBand, and a plan changes that
	noFault
)

// A PNICReason is one fault of one pNIC.
type PNICReason struct {
	Fault  PNICFault
	Check  string // id of the check for the same fact
	Why    string // a predicate: "has no link"
	Remedy string
}

// A PNICVerdict is the list of all reasons to reject a pNIC.
type PNICVerdict struct {
	NIC     *NIC
	Against []PNICReason
	// Unlisted means that the host reports RoCE, but the driver is not among those known to support it: unverified.
	Unlisted bool
	fits     string // why it is eligible
}

// Eligible reports whether there is no reason to reject the pNIC.
func (v PNICVerdict) Eligible() bool { return len(v.Against) == 0 }

// Choosable reports whether the pNIC can be chosen: it is eligible, or the plan makes it eligible.
func (v PNICVerdict) Choosable() bool { return v.Eligible() || v.pending() }

// Meant reports whether the pNIC matches the wish, usable or not.
func (v PNICVerdict) Meant() bool { return v.first() > WrongSpeed }

// down reports whether the pNIC is the requested one and would be eligible if it were up.
func (v PNICVerdict) down() bool {
	return !v.Eligible() && !slices.ContainsFunc(v.Against, func(r PNICReason) bool {
		return r.Fault != NoLink && r.Fault != RDMADown && r.Fault != Slow
	})
}

// pending reports whether the pNIC lacks only a setting that the plan makes.
func (v PNICVerdict) pending() bool { return v.first() == SwitchedOff }

func (v PNICVerdict) first() PNICFault {
	f := noFault
	for _, r := range v.Against {
		f = min(f, r.Fault)
	}
	return f
}

// Main returns the first fault; its Check is "" if there is none.
func (v PNICVerdict) Main() PNICReason {
	for _, r := range v.Against {
		if r.Fault == v.first() {
			return r
		}
	}
	return PNICReason{}
}

// Why explains in one line why the pNIC is eligible or why it is rejected.
func (v PNICVerdict) Why() string {
	if v.Eligible() {
		return v.fits
	}
	all := make([]string, len(v.Against))
	for i, r := range v.Against {
		all[i] = r.Why
	}
	return strings.Join(all, "; ")
}

// A PNICChoice is the verdict on every pNIC of a host.
type PNICChoice struct {
	Verdicts []PNICVerdict // in the order of Host.NICs, then of Host.Hidden
	Chosen   *NIC          // nil if no pNIC is eligible or becomes so by the plan, and if several are and the wish does not distinguish them
	Nearest  *PNICVerdict  // Chosen, else the pNIC that is closest to the wish; nil on a host without pNICs
}

// Eligible returns the pNICs that have no fault.
func (c PNICChoice) Eligible() []*NIC {
	var out []*NIC
	for _, v := range c.Verdicts {
		if v.Eligible() {
			out = append(out, v.NIC)
		}
	}
	return out
}

// ChoosePNIC decides which pNIC of a host carries RDMA. Discovery, the wizard's pages, plans and checks all use it, so that they
// agree.
//
// An uplink of the wish's switch was chosen before and stays chosen, even while it is down: another port does not replace it
// unless the operator says so, because the guests' traffic would move to another switch port.
func ChoosePNIC(h *Host, w PNICWish) PNICChoice {
	var c PNICChoice
	w.at = w.place(h)
	for i := range h.NICs {
		c.Verdicts = append(c.Verdicts, judge(h, &h.NICs[i], w))
	}
	for i := range h.Hidden {
		c.Verdicts = append(c.Verdicts, judge(h, &h.Hidden[i], w))
	}
	var eligible, kept, pending []int
	for i, v := range c.Verdicts {
		own := w.own(v.NIC)
		if v.Eligible() {
			eligible = append(eligible, i)
		}
		if v.pending() {
			pending = append(pending, i)
		}
		if own && (v.Eligible() || v.down() || v.pending()) {
			kept = append(kept, i)
		}
	}
	// If a pNIC with a listed driver matches, those with unlisted drivers are ignored.
	if listed := slices.DeleteFunc(slices.Clone(eligible), func(i int) bool { return c.Verdicts[i].Unlisted }); len(listed) > 0 {
		eligible = listed
	}
	// Of several uplinks of the switch, one that is up is preferred.
	slices.SortStableFunc(kept, func(i, j int) int { return cmp.Compare(c.Verdicts[j].first(), c.Verdicts[i].first()) })
	switch {
	case len(kept) > 0:
		c.Nearest = &c.Verdicts[kept[0]]
	case len(eligible) == 1:
		c.Nearest = &c.Verdicts[eligible[0]]
	case len(eligible) == 0 && len(pending) == 1:
		c.Nearest = &c.Verdicts[pending[0]]
	}
	if c.Nearest != nil {
		if c.Nearest.Choosable() {
			c.Chosen = c.Nearest.NIC
		}
		return c
	}
	for i := range c.Verdicts {
		if v := &c.Verdicts[i]; c.Nearest == nil || nearer(w, *v, *c.Nearest) {
			c.Nearest = v
		}
	}
	return c
}

// nearer prefers an uplink of the switch to other matching pNICs, because RDMA would run there.
func nearer(w PNICWish, a, b PNICVerdict) bool {
	if a.Meant() && b.Meant() && w.own(a.NIC) != w.own(b.NIC) {
		return w.own(a.NIC)
	}
	return a.first() > b.first()
}

// own reports whether a pNIC is an uplink of the switch it is wanted for. A card that is passed through is on no switch.
func (w PNICWish) own(n *NIC) bool {
	return w.Purpose != WholeCard && w.Switch != "" && n.Switch == w.Switch
}

// NoHCA reports whether a host has no RDMA card that matches the wish, and the wish allows that: no pNIC has an RDMA device or a
// driver that is known to support RoCE, and no port is hidden. Cards that the host itself uses do not count. A card that should
// support RDMA but does not is a fault, never a host without an HCA. VMware allows such hosts: "For virtual machines on the same
// ESXi hosts or virtual machines using the TCP-based fallback, the HCA is not required" (vSphere Networking 7.0, PVRDMA Support).
func NoHCA(h *Host, w PNICWish) bool {
	if !w.AllowNoHCA || w.Purpose != SharedNIC || len(h.Hidden) > 0 {
		return false
	}
	return !slices.ContainsFunc(h.NICs, func(n NIC) bool {
		rdma := n.RDMADevice != "" || w.Drivers != nil && (w.Drivers.RoCE(n.Driver) || w.Drivers.RDMAOff(h, &n))
		return rdma && n.Usage(w) == ""
	})
}

// PlainUplinks returns the ordinary pNICs that a host without an HCA could use as uplink of the wish's switch: its current
// uplink, else the pNIC that the wish names, else all free pNICs with link.
func PlainUplinks(h *Host, w PNICWish) []*NIC {
	var out []*NIC
	for i := range h.NICs {
		n := &h.NICs[i]
		switch {
		case w.own(n):
			return []*NIC{n}
		case n.SpeedMbps == 0, n.DPU != "", n.Usage(w) != "", w.MAC != "" && !strings.EqualFold(n.MAC, w.MAC):
		default:
			out = append(out, n)
		}
	}
	if i := slices.IndexFunc(out, func(n *NIC) bool { return w.Device != "" && n.Device == w.Device }); i >= 0 {
		return out[i : i+1]
	}
	return out
}
