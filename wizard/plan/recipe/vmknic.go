package recipe

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
)

// A control is the vmknic of a host for PVRDMA's control traffic: an existing one, or one that the plan creates.
type control struct {
	*backends.VMKernelNIC        // nil if the plan creates it, or if there is none
	ip                    string // also of a vmknic to be created
}

// controls determines the vmknic of each host. One that an earlier run has created is reused; the others get the next free
// addresses, by the names of all hosts in the answers, so that --limit does not change them.
func (b *builder) controls() map[string]control {
	out, taken := map[string]control{}, b.taken()
	within, create := b.Answers.PVRDMA.VMKNic.Range(), b.Answers.PVRDMA.VMKNic.Create
	var without []string
	for _, h := range b.all {
		if !b.Answers.PVRDMA.VMKNic.Creates(h.Name) {
			if k := h.VMK(b.Answers.PVRDMA.VMKNic.Of(h.Name)); k != nil {
				out[h.Name] = control{k, k.IP}
			}
			continue
		}
		if i := slices.IndexFunc(h.VMKs, func(k backends.VMKernelNIC) bool { return within.Holds(&k) }); i >= 0 {
			out[h.Name] = control{&h.VMKs[i], h.VMKs[i].IP}
			continue
		}
		without = append(without, h.Name)
	}
	next := within.Start
	for _, name := range without {
		for taken[next] && create.Network.Contains(next) {
			next = next.Next()
		}
		if last := !create.Network.Contains(next.Next()); last || !create.Network.Contains(next) { // its last address is the broadcast address
			b.Refuse(backends.HostRef(name), "HOST-VMKNIC-EXIST-002", "choose a larger pvrdma.vmknic.create.network, or an earlier start",
				"no address of %s is left from %s on", create.Network, create.Start)
			break
		}
		out[name] = control{ip: next.String()}
		next = next.Next()
	}
	return out
}

// taken returns the addresses that vCenter knows, and those that the answers assign to guests.
func (b *builder) taken() map[netip.Addr]bool {
	taken := map[netip.Addr]bool{}
	note := func(s string) {
		if ip, err := netip.ParseAddr(s); err == nil {
			taken[ip] = true
		}
	}
	for _, h := range b.Inventory.Hosts {
		for _, k := range h.VMKs {
			note(k.IP)
		}
	}
	for _, v := range b.Inventory.VMs {
		for _, ip := range v.IPs {
			note(ip)
		}
	}
	for _, v := range b.Answers.VMs {
		for _, n := range b.Answers.Networks(v) {
			taken[n.IP.Addr()] = true
		}
	}
	return taken
}

// createVMKNics plans the port group and the vmknics that the answers request (VMware, "PVRDMA Support": a VMkernel adapter for
// PVRDMA is tagged on each host).
func (b *builder) createVMKNics() {
	create := b.Answers.PVRDMA.VMKNic.Create
	if create == nil {
		return
	}
	group, mtu, ok := b.controlGroup()
	if !ok {
		return
	}
	for _, h := range b.Hosts {
		c, known := b.control[h.Name]
		if !b.Answers.PVRDMA.VMKNic.Creates(h.Name) || !known || c.VMKernelNIC != nil {
			continue
		}
		b.sameSubnet(h, c.ip)
		after := []string{backends.Setting{Target: backends.PortGroupRef(create.PortGroup), Kind: backends.KindPortGroup}.ID()}
		if member := draft.MemberSetting(h.Name, group); b.Now(member).IsAbsent() {
			if !slices.ContainsFunc(b.Plan.Changes, func(c plan.Change) bool { return c.Setting == member }) {
				b.Refuse(backends.HostRef(h.Name), "HOST-VMKNIC-EXIST-002",
					"add the host to "+group+", or choose another pvrdma.vmknic.create.portgroup",
					"is not a member of %s, the switch of the port group %s", group, create.PortGroup)
				continue
			}
			after = append(after, member.ID())
		}
		b.Add(plan.Change{
			Setting: vmknicSetting(h.Name, c.ip), From: backends.Absent, After: after,
			To:  backends.ValueOf(backends.VMKSpec{PortGroup: create.PortGroup, PrefixLen: create.Network.Bits(), MTU: mtu}),
			Why: "carries the connections of PVRDMA between hosts, and no other service",
		})
	}
}

func vmknicSetting(host, ip string) backends.Setting {
	return backends.Setting{Target: backends.HostRef(host), Kind: backends.KindVMKNic, Name: ip}
}

// sameSubnet objects to a second vmknic in one subnet: a host sends to it through only one of them (Broadcom KB 313510).
func (b *builder) sameSubnet(h *draft.Host, ip string) {
	network := b.Answers.PVRDMA.VMKNic.Create.Network
	for _, k := range h.VMKs {
		if have, err := netip.ParseAddr(k.IP); err == nil && network.Contains(have) {
			b.Object(backends.HostRef(h.Name), "HOST-VMKNIC-SUBNET-003", "choose another pvrdma.vmknic.create.network, or name "+k.Device+
				" as pvrdma.vmknic",
				"its %s (%s) is in %s already; a host sends to one subnet by one vmknic only, so that of %s might not be used", k.Device, k.IP, network,
				ip)
		}
	}
}

// controlGroup returns or plans the port group of the vmknics, with the name and the MTU of its switch.
func (b *builder) controlGroup() (dvs string, mtu int, ok bool) {
	create := b.Answers.PVRDMA.VMKNic.Create
	ref := backends.PortGroupRef(create.PortGroup)
	if pg := b.Inventory.PortGroup(create.PortGroup); pg != nil {
		sw := b.Inventory.Switch(pg.Switch)
		switch {
		case pg.Uplink || sw == nil:
			b.Refuse(ref, "DVS-PG-007", "choose another pvrdma.vmknic.create.portgroup", "is an uplink port group")
		case pg.VLAN != fmt.Sprint(create.VLAN):
			b.Refuse(ref, "DVS-PG-VLAN-008", "correct pvrdma.vmknic.create.vlan, or choose another port group", "has VLAN %s, not %d", pg.VLAN,
				create.VLAN)
		default:
			return sw.Name, sw.MTU, true
		}
		return "", 0, false
	}
	for i := range b.Rails {
		r := b.rail(i)
		if !slices.Contains(r.view.PortGroups(), create.PortGroup) {
			continue
		}
		if r.want.Switch.VLAN != create.VLAN {
			b.Refuse(ref, "DVS-PG-VLAN-008", "correct pvrdma.vmknic.create.vlan, or choose another port group", "gets VLAN %d, not %d",
				r.want.Switch.VLAN, create.VLAN)
			return "", 0, false
		}
		return r.want.Switch.Name, r.mtu(), true
	}
	if who := b.standard(create.PortGroup); who != "" {
		b.Refuse(ref, "DVS-PG-007", "choose another pvrdma.vmknic.create.portgroup: vmknics are created on distributed switches",
			"a network of this name exists already: %s is on it", who)
		return "", 0, false
	}
	r := b.rail(0)
	want := backends.PortGroupSpec{Switch: r.want.Switch.Name, VLAN: create.VLAN, Binding: "earlyBinding",
		Active: []string{backends.UplinkName(1)}}
	if sw := b.Inventory.Switch(want.Switch); sw != nil && len(sw.Uplinks) > 0 {
		want.Active = sw.Uplinks[:1]
	}
	b.Add(plan.Change{
		Setting: backends.Setting{Target: ref, Kind: backends.KindPortGroup}, From: backends.Absent, To: backends.ValueOf(want),
		After: []string{draft.SwitchID(want.Switch)}, Why: "the vmknics for PVRDMA connect to it",
	})
	return want.Switch, r.mtu(), true
}

func (r *rail) mtu() int {
	if sw := r.Inventory.Switch(r.want.Switch.Name); sw != nil {
		return max(sw.MTU, r.want.Switch.MTU)
	}
	return r.want.Switch.MTU
}
