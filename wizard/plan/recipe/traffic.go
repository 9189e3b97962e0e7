package recipe

import (
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
)

// otherTraffic examines the vmknics on ports that the plan affects: a firmware setting affects the complete card (NVIDIA, "firmware
// tools": the configuration of a device), a number of VFs its port, a driver parameter all ports of the driver ("ESXCLI Reference":
// esxcli system module parameters). After a change of firmware or VFs a card may fail: each vmknic on it must have another card
// with link, or the plan is refused. Driver parameters are only noted: if all pNICs of a host have one driver no other card could
// carry the traffic, and the host is in maintenance mode while it boots with them.
func (b *builder) otherTraffic() {
	for _, h := range b.Hosts {
		ports, drivers := b.touchedPorts(h)
		for i := range h.VMKs {
			k := &h.VMKs[i]
			if slices.ContainsFunc(k.PNICs, func(p string) bool { return ports[p] }) {
				b.redundant(h, k, ports)
			} else if n := firstOf(h, k, drivers); n != nil {
				b.NoteEach(h.Name, "parameters of %s apply to all its ports, also to %s, which %s %s", n.Driver, strings.Join(k.PNICs, " and "),
					map[bool]string{true: "carries", false: "carry"}[len(k.PNICs) == 1], trafficOf(k))
			}
		}
	}
}

// touchedPorts returns the pNICs whose card or VFs a plan changes, and the families of drivers whose parameters it changes.
func (b *builder) touchedPorts(h *draft.Host) (ports, drivers map[string]bool) {
	ports, drivers = map[string]bool{}, map[string]bool{}
	for _, c := range b.Plan.Changes {
		if c.Target != backends.HostRef(h.Name) {
			continue
		}
		for _, n := range h.NICs {
			if (c.Kind == backends.KindFirmware || c.Kind == backends.KindFirmwareImage) && cardOf(n.PCI) == cardOf(c.Name) ||
				c.Kind == backends.KindVFs && strings.EqualFold(n.PCI, c.Name) {
				ports[n.Device] = true
			}
		}
		if c.Kind == backends.KindModuleParams {
			drivers[family(c.Name)] = true
		}
	}
	return ports, drivers
}

// redundant refuses if a vmknic on an affected port has no other card with link.
func (b *builder) redundant(h *draft.Host, k *backends.VMKernelNIC, ports map[string]bool) {
	cards := map[string]bool{}
	for p := range ports {
		cards[cardOf(h.NIC(p).PCI)] = true
	}
	var on, others []string
	linked := false
	for _, p := range k.PNICs {
		n := h.NIC(p)
		switch {
		case n == nil:
		case cards[cardOf(n.PCI)]:
			on = append(on, p)
			linked = linked || n.SpeedMbps > 0
		case n.SpeedMbps > 0:
			others = append(others, p)
		}
	}
	slices.Sort(on)
	switch {
	case len(others) > 0:
		b.NoteEach(h.Name, "%s uses %s of the card whose firmware or VFs change; %s on another card has link and takes over", trafficOf(k),
			strings.Join(on, " and "), strings.Join(others, " and "))
	case !linked:
		b.NoteEach(h.Name, "%s uses %s of the card whose firmware or VFs change; it has no link today", trafficOf(k), strings.Join(on, " and "))
	default:
		b.Object(backends.HostRef(h.Name), "host/"+h.Name+"/other-traffic",
			"add an uplink of another card with link as active or standby to "+k.Switch+", or move "+k.Device+"; --skip host/"+h.Name+
				"/other-traffic accepts the risk",
			"%s leaves only through %s of the card whose firmware or VFs change, and no other card with link could take over", trafficOf(k),
			strings.Join(on, " and "))
	}
}

// firstOf returns the first pNIC of a vmknic that has one of the drivers.
func firstOf(h *draft.Host, k *backends.VMKernelNIC, drivers map[string]bool) *backends.NIC {
	for _, p := range k.PNICs {
		if n := h.NIC(p); n != nil && drivers[family(n.Driver)] {
			return n
		}
	}
	return nil
}

// trafficOf describes a vmknic with its traffic: "vmk1 (vmotion, vsan)". One without a service may be a tunnel end point of NSX.
func trafficOf(k *backends.VMKernelNIC) string {
	switch {
	case len(k.Roles) > 0:
		return k.Device + " (" + strings.Join(k.Roles, ", ") + ")"
	case k.NetStack == "vxlan" || k.NetStack == "hyperbus":
		return k.Device + " (NSX)"
	}
	return k.Device
}

func cardOf(pci string) string {
	card, _, _ := strings.Cut(strings.ToLower(pci), ".")
	return card
}

// family returns the common part of the names of a driver's modules: up to the underscore.
func family(module string) string {
	name, _, _ := strings.Cut(module, "_")
	return name
}
