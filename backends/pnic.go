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
	VFParent  Purpose = "vfs"  // VMs get virtual functions of it
	WholeCard Purpose = "card" // one VM gets the card; it is on no switch then
)

// A PNICWish says which pNIC of a host is wanted. A zero field leaves that open. There is one wish for each RDMA switch
// of a host; a further way to pick a pNIC is a further field here and a further case in unwanted.
type PNICWish struct {
	Purpose   Purpose
	Protocol  string // rocev1 or rocev2; "": rocev2
	Switch    string // DVS that the pNIC is for: an uplink of it is free
	MAC       string
	Device    string // vmnic2, or a PCI address
	Driver    string
	SpeedMbps int
	Slot      string   // PCI address of the card, without function
	NUMA      string   // number of the node
	Position  int      // place among those that the fields above describe, by PCI address; 0: any
	VMKs      VMKRange // vmknics that are created for PVRDMA: they take no pNIC away from it
	Drivers   Drivers  // what is known of drivers; nil: nothing, and every driver is taken

	AllowNoHCA bool // a host without an RDMA card takes part too, see NoHCA

	at string // PCI address at Position, worked out by ChoosePNIC
}

// Drivers tells what is known of the drivers of pNICs (nic.Known).
type Drivers interface {
	RoCE(driver string) bool                  // it is known to do RoCE v2
	NoVFs(driver string) (why, remedy string) // why this program sets up no VFs of its ports, as a predicate; "" if it does
	RDMAModules() []string                    // the modules that make RDMA devices
	NoDevice(h *Host, n *NIC) string          // what to do where it has no RDMA device, "" if nothing particular is known
	RDMAOff(h *Host, n *NIC) bool             // it has none because its driver was told so, and a plan can change that
	NoENS(driver string) string               // the source that rules RDMA out on a switch in enhanced data path mode, "" if none does
	IWARP(n *NIC) string                      // likewise where it speaks iWARP
	ToEthernet(n *NIC) string                 // what sets a hidden port to Ethernet, "" if nothing does
}

// A PNICFault is a reason against a pNIC. Faults are ordered: a pNIC whose first fault is a late one is nearer to the wish.
// A port without link comes before one that lacks RDMA: the second port of a card often has no cable, and is not meant.
type PNICFault int

// The faults. Up to WrongSpeed the pNIC is not the one that was requested.
const (
	WrongMAC PNICFault = iota
	WrongDevice
	WrongDriver
	WrongSpeed
	NoLink
	HostAway      // vCenter is not connected to the host: what it remembers is no fact
	NotCapable    // no RDMA device, no VFs, no card that a guest can drive
	WrongProtocol // RDMA, but not the protocol asked for
	OnDPU
	EnhancedPath
	RDMADown
	Slow
	InUse
	SwitchedOff // RDMA is off in its driver, or its port speaks InfiniBand, and a plan changes that
	noFault
)

// A PNICReason is one fault of one pNIC.
type PNICReason struct {
	Fault  PNICFault
	Check  string // id of the check that looks at the same fact
	Why    string // a predicate: "has no link"
	Remedy string
}

// A PNICVerdict is what speaks against a pNIC, every reason at once.
type PNICVerdict struct {
	NIC     *NIC
	Against []PNICReason
	// Unlisted tells that the host reports RoCE, but the driver is none of those that are known to do it: unverified.
	Unlisted bool
	fits     string // why it is eligible
}

// Eligible reports whether nothing speaks against the pNIC.
func (v PNICVerdict) Eligible() bool { return len(v.Against) == 0 }

// Choosable reports whether the pNIC can be chosen: it is eligible, or becomes so by the plan.
func (v PNICVerdict) Choosable() bool { return v.Eligible() || v.pending() }

// Meant reports whether the pNIC is one that the wish describes, able or not.
func (v PNICVerdict) Meant() bool { return v.first() > WrongSpeed }

// down tells that the pNIC is the one that was asked for and would be eligible if it were up.
func (v PNICVerdict) down() bool {
	return !v.Eligible() && !slices.ContainsFunc(v.Against, func(r PNICReason) bool {
		return r.Fault != NoLink && r.Fault != RDMADown && r.Fault != Slow
	})
}

// pending tells that all that the pNIC lacks is a setting that the plan makes.
func (v PNICVerdict) pending() bool { return v.first() == SwitchedOff }

func (v PNICVerdict) first() PNICFault {
	f := noFault
	for _, r := range v.Against {
		f = min(f, r.Fault)
	}
	return f
}

// Main is the first fault; its Check is "" if nothing speaks against the pNIC.
func (v PNICVerdict) Main() PNICReason {
	for _, r := range v.Against {
		if r.Fault == v.first() {
			return r
		}
	}
	return PNICReason{}
}

// Why says in one line why the pNIC is eligible or what speaks against it.
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
	Chosen   *NIC          // nil if no pNIC is eligible or becomes so by the plan, and where several are and the wish does not tell them apart
	Nearest  *PNICVerdict  // Chosen, else the pNIC that comes nearest to the wish; nil on a host without pNICs
}

// Eligible are the pNICs that nothing speaks against.
func (c PNICChoice) Eligible() []*NIC {
	var out []*NIC
	for _, v := range c.Verdicts {
		if v.Eligible() {
			out = append(out, v.NIC)
		}
	}
	return out
}

// ChoosePNIC is the one rule of which pNIC of a host carries RDMA. Discovery, the wizard's pages, plans and checks all ask
// it, so that they agree.
//
// An uplink of the wish's switch was chosen before and stays chosen. That holds when it is down, too: another port does
// not take its place without the operator's word, for the guests' traffic would move to another switch port.
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
	// Where a listed driver fits, one that is not listed is no rival.
	if listed := slices.DeleteFunc(slices.Clone(eligible), func(i int) bool { return c.Verdicts[i].Unlisted }); len(listed) > 0 {
		eligible = listed
	}
	// Of several uplinks of the switch, one that is up comes first.
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

// nearer puts an uplink of the switch before other pNICs of the same description: that is where RDMA would run.
func nearer(w PNICWish, a, b PNICVerdict) bool {
	if a.Meant() && b.Meant() && w.own(a.NIC) != w.own(b.NIC) {
		return w.own(a.NIC)
	}
	return a.first() > b.first()
}

// own reports whether a pNIC is an uplink of the switch that it is wanted for. A card that a VM gets whole is on none.
func (w PNICWish) own(n *NIC) bool {
	return w.Purpose != WholeCard && w.Switch != "" && n.Switch == w.Switch
}
