package entry

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// A Chooser returns the pNIC that answers select on each host, by host name.
type Chooser func(*answers.Answers, *backends.Inventory) map[string]string

// AboutNetwork is the explanation of the network of a rail.
const AboutNetwork = "VMs keep their host number in this network; empty: the next network"

// RailPorts returns the pNICs of each rail, by host name.
func RailPorts(a *answers.Answers, inv *backends.Inventory, choose Chooser) []map[string]string {
	out := make([]map[string]string, len(a.AllRails()))
	for i := range out {
		out[i] = choose(a.ForRail(i), inv)
	}
	return out
}

// UsedSwitch returns the name of the distributed switch: that of the answers, except where no host has a pNIC because all that could
// carry RDMA are uplinks of one other switch, which carries no VM. The name is asked for after the pNICs.
func UsedSwitch(a *answers.Answers, inv *backends.Inventory, choose Chooser) string {
	if a.WholeCard() || len(a.Rails) > 0 || len(choose(a, inv)) > 0 {
		return a.Switch.Name
	}
	var used []string
	for _, s := range inv.Switches {
		try := Copied(a)
		try.Switch.Name = s.Name
		picks := choose(try, inv)
		if !slices.ContainsFunc(a.Hosts.Names, func(host string) bool {
			h := inv.Host(host)
			if h == nil {
				return true
			}
			n := h.NIC(picks[host])
			return n == nil || n.Switch != s.Name || len(n.Use.VMs) > 0
		}) {
			used = append(used, s.Name)
		}
	}
	if len(used) != 1 {
		return a.Switch.Name
	}
	return used[0]
}

// AboutNoHCA describes how VMs communicate on hosts without an RDMA card (pvrdma.allow_no_hca).
const AboutNoHCA = "VMs there use memory on the host and TCP to other hosts, not RDMA"

// WithoutHCA returns the chosen hosts that have no RDMA card and that pvrdma.allow_no_hca could accept.
func WithoutHCA(a *answers.Answers, inv *backends.Inventory) []string {
	wish := sizing.OpenWish(a)
	wish.AllowNoHCA = a.MayLackHCA()
	return slices.DeleteFunc(slices.Clone(a.Hosts.Names), func(name string) bool {
		h := inv.Host(name)
		return h == nil || !backends.NoHCA(h, wish)
	})
}

// Serves returns the rail of a pNIC, "" if it has none.
func Serves(a *answers.Answers, ports []map[string]string, host, device string) string {
	for i, r := range a.AllRails() {
		if ports[i][host] == device {
			return r.Name
		}
	}
	return ""
}

// further returns the pNICs for one more rail: on each host the first suitable one without a rail.
func further(a *answers.Answers, inv *backends.Inventory, ports []map[string]string) (map[string]string, error) {
	picks := map[string]string{}
	for _, name := range a.Hosts.Names {
		for i, r := range a.AllRails() {
			if ports[i][name] == "" {
				return nil, backends.Usagef(name, "choose one first", "it has no pNIC%s yet", a.RailLabel(r.Name))
			}
		}
		if h := inv.Host(name); h != nil {
			for _, v := range backends.ChoosePNIC(h, sizing.OpenWish(a)).Verdicts {
				if free := !slices.ContainsFunc(ports, func(p map[string]string) bool { return p[name] == v.NIC.Device }); picks[name] == "" && free &&
					v.Eligible() {
					picks[name] = v.NIC.Device
				}
			}
		}
		if picks[name] == "" {
			return nil, backends.Usagef(name, "a rail needs a pNIC on each host; in the answers file a rail can be optional",
				"it has no other pNIC that can be used")
		}
	}
	return picks, nil
}

// MoreRails reports whether every host has a pNIC for one more rail.
func MoreRails(a *answers.Answers, inv *backends.Inventory, choose Chooser) bool {
	_, err := further(a, inv, RailPorts(a, inv, choose))
	return err == nil && len(a.AllRails()) < answers.MaxRails
}

// AddRail adds a rail with the next pNIC of each host, and a switch like that of the first. The first rail then gets a name.
func AddRail(a *answers.Answers, inv *backends.Inventory, choose Chooser) error {
	ports := RailPorts(a, inv, choose)
	picks, err := further(a, inv, ports)
	if err != nil {
		return err
	}
	rails := slices.Clone(a.Rails)
	if len(rails) == 0 {
		rails = []answers.Rail{{}}
	}
	rails[0].NIC, rails[0].Switch = a.NIC, a.Switch
	if len(rails) == 1 {
		rails[0].NIC = Described(inv, ports[0])
		rails[0].Name = cmp.Or(rails[0].Name, "rail-1")
		onRail(a, "", rails[0].Name)
	}
	n := len(rails) + 1
	for slices.ContainsFunc(rails, func(r answers.Rail) bool { return r.Name == fmt.Sprintf("rail-%d", n) }) {
		n++
	}
	more := answers.Rail{Name: fmt.Sprintf("rail-%d", n), NIC: Described(inv, picks), Switch: a.Switch}
	more.Switch.Name, more.Switch.PortGroup = fmt.Sprintf("%s-%d", a.Switch.Name, n), fmt.Sprintf("%s-%d", a.Switch.PortGroup, n)
	a.FromRails(append(rails, more))
	return nil
}

// DropRail removes the last of several rails, with the VMs' adapters on it. A single remaining rail is written without rails.
func DropRail(a *answers.Answers) {
	if !a.Several() {
		return
	}
	last := len(a.Rails) - 1
	for i := range a.VMs {
		v := &a.VMs[i]
		v.Adapters = slices.DeleteFunc(slices.Clone(v.Adapters), func(n answers.Adapter) bool { return n.Rail == a.Rails[last].Name })
	}
	a.Rails = a.Rails[:last]
	if last == 1 {
		onRail(a, a.Rails[0].Name, "")
		a.SRIOV.VFs = cmp.Or(a.Rails[0].SRIOV.VFs, a.SRIOV.VFs)
		a.Rails = nil
	}
}

// onRail moves the VMs' adapters from one rail to another; "" is the only one.
func onRail(a *answers.Answers, from, to string) {
	for i := range a.VMs {
		a.VMs[i].Adapters = slices.Clone(a.VMs[i].Adapters)
		for k := range a.VMs[i].Adapters {
			if n := &a.VMs[i].Adapters[k]; n.Rail == from {
				n.Rail = to
			}
		}
	}
}

// Described describes the pNICs of a rail, by host name: by their common PCI address, else by MAC address.
func Described(inv *backends.Inventory, picks map[string]string) answers.NIC {
	out, pci, same := answers.NIC{MACs: map[string]answers.MAC{}}, "", true
	for host, device := range picks {
		n := inv.Host(host).NIC(device)
		out.MACs[host] = answers.MAC(strings.ToLower(n.MAC))
		same = same && n.PCI != "" && (pci == "" || pci == n.PCI)
		pci = n.PCI
	}
	if same {
		return answers.NIC{Device: pci}
	}
	return out
}

// Hidden reports whether one of the chosen ports, by host name, is not a pNIC yet: it has no MAC address to describe it by.
func Hidden(inv *backends.Inventory, picks map[string]string) bool {
	for host, device := range picks {
		if n := inv.Host(host).NIC(device); n != nil && n.Hidden != "" {
			return true
		}
	}
	return false
}

// Describe sets the pNICs of a rail.
func Describe(a *answers.Answers, rail int, n answers.NIC) {
	if rail == 0 {
		a.NIC = n
	}
	if rail < len(a.Rails) {
		a.Rails[rail].NIC = n
	}
}

// FollowFirst changes the switches of further rails like that of the first, if they were like it before.
func FollowFirst(a *answers.Answers, before answers.Switch) {
	for i := 1; i < len(a.Rails); i++ {
		s := &a.Rails[i].Switch
		if rest, like := strings.CutPrefix(s.Name, before.Name+"-"); like {
			s.Name = a.Switch.Name + "-" + rest
		}
		if rest, like := strings.CutPrefix(s.PortGroup, before.PortGroup+"-"); like {
			s.PortGroup = a.Switch.PortGroup + "-" + rest
		}
		if s.MTU == before.MTU {
			s.MTU = a.Switch.MTU
		}
		if s.VLAN == before.VLAN {
			s.VLAN = a.Switch.VLAN
		}
	}
}

// NetworkText returns the network of a rail, "" if it follows from the addresses of the first.
func NetworkText(r answers.Rail) string {
	if !r.Network.IsValid() {
		return ""
	}
	return r.Network.String()
}

// SetNetwork sets the network of a rail from its text.
func SetNetwork(a *answers.Answers, rail int, text string) error {
	n := netip.Prefix{}
	if text = strings.TrimSpace(text); text != "" {
		var err error
		if n, err = netip.ParsePrefix(text); err != nil || !n.Addr().Is4() || n != n.Masked() {
			return fmt.Errorf("expected a network such as 192.168.51.0/24, or nothing")
		}
	}
	a.Rails[rail].Network = n
	return nil
}
