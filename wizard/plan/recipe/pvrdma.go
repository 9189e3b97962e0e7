package recipe

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
	"github.com/rdma-setup/rdma-setup/wizard/plan/driver"
)

// pvrdma plans the hosts' part of mode pvrdma: the tagged vmknic, the firewall, and PFC if it is requested (PVRDMA and vSphere
// Bitfusion, VMware, 2021; RDG: RoCE accelerated ML and HPC on Kubernetes with vGPU and PVRDMA, NVIDIA/Mellanox, 2019; VMware,
// "PVRDMA Support").
func (b *builder) pvrdma() {
	b.control = b.controls()
	b.vmkAddresses()
	b.createVMKNics()
	for _, host := range slices.Sorted(maps.Keys(b.Answers.PVRDMA.VMKNic.Names)) {
		if b.Inventory.Host(host) == nil && !slices.Contains(b.Answers.Hosts.Names, host) {
			b.Note("pvrdma.vmknic.names has %s for %s, and there is no such host", b.Answers.PVRDMA.VMKNic.Names[host], host)
		}
	}
	for _, h := range b.Hosts {
		b.vmknic(h)
		b.firewall(h)
		driver.RDMA(b.Draft, h)
		if l := b.Answers.QoS.Lossless; l != answers.LosslessNone && l != "" && h.Chosen != nil {
			driver.Plan(b.Draft, h)
		}
		if b.Answers.GPUs() {
			b.assign(h)
			b.passThrough(h)
		}
	}
}

// vmknic plans the option that names the vmknic for PVRDMA's control traffic.
func (b *builder) vmknic(h *draft.Host) {
	ref, want := backends.HostRef(h.Name), b.Answers.PVRDMA.VMKNic.Of(h.Name)
	s := backends.Setting{Target: ref, Kind: backends.KindOption, Name: backends.VMKNICOption}
	k := b.control[h.Name].VMKernelNIC
	if k != nil {
		want = k.Device
	}
	creates := k == nil && b.Answers.PVRDMA.VMKNic.Creates(h.Name)
	switch {
	case creates:
	case k == nil:
		vmks := backends.Each(h.VMKs, func(k backends.VMKernelNIC) string { return k.Device })
		b.Refuse(ref, "HOST-VMKNIC-EXIST-002", "create it, or choose one of: "+strings.Join(vmks, ", "), "has no vmknic %s", want)
		return
	case k.IP == "":
		b.Refuse(ref, "HOST-VMKNIC-EXIST-002", "give it an address, or choose another", "its vmknic %s has no IP address", want)
		return
	case k.NetStack != "" && k.NetStack != "defaultTcpipStack":
		b.Refuse(ref, "HOST-VMKNIC-EXIST-002", "choose a vmknic on the default TCP/IP stack", "its vmknic %s is on the TCP/IP stack %s", want,
			k.NetStack)
		return
	case k.DHCP:
		b.NoteEach(h.Name, "%s gets its address from DHCP; if the address changes, peers lose the connection", want)
	}
	if _, ok := h.Options[backends.VMKNICOption]; !ok {
		b.Refuse(ref, "HOST-VMKNIC-SET-001", b.gapRemedy(ref, "option "), "the option %s could not be read", backends.VMKNICOption)
		return
	}
	from := b.Now(s)
	if creates { // the host chooses the name
		id := vmknicSetting(h.Name, b.control[h.Name].ip).ID()
		b.Add(plan.Change{Setting: s, From: from, To: backends.Unknown(id), After: []string{id},
			Why: "PVRDMA uses the vmknic that is created for its connections between hosts"})
		return
	}
	why := "PVRDMA uses this vmknic for its connections between hosts"
	if old := h.Options[backends.VMKNICOption]; old != "" && old != want {
		why += "; " + old + " was set"
	}
	b.Add(plan.Change{Setting: s, From: from, To: backends.ValueOf(want), Why: why})
}

// gapRemedy returns the inventory's reason why something could not be read, for gaps with the prefix what.
func (b *builder) gapRemedy(t backends.Ref, what string) string {
	for _, g := range b.Inventory.Gaps {
		if g.Target == t && strings.HasPrefix(g.What, what) {
			return "see why: " + g.What + ": " + g.Why
		}
	}
	return "check that the account may read the host's settings"
}

// firewall plans the ruleset on a host (PVRDMA and vSphere Bitfusion, VMware, 2021: "critical"). That PVRDMA falls back to TCP
// without it is unverified [U].
func (b *builder) firewall(h *draft.Host) {
	ref := backends.HostRef(h.Name)
	s := backends.Setting{Target: ref, Kind: backends.KindFirewall, Name: plan.FirewallRuleset}
	r, ok := h.Firewall[plan.FirewallRuleset]
	if !ok {
		b.Refuse(ref, "HOST-FW-PVRDMA-007", b.gapRemedy(ref, "firewall"), "the firewall ruleset %s could not be read", plan.FirewallRuleset)
		return
	}
	if h.Stale != "" {
		b.Note("%s: firewall and services come from vCenter's copy, which may be minutes old: %s", h.Name, h.Stale)
	}
	if !r.AllIP {
		if shut := b.shutOut(h, r.Networks); len(shut) > 0 {
			b.Object(ref, "HOST-FW-ALLOW-008", "add these addresses to the ruleset's list, or allow all addresses",
				"its ruleset %s allows %s only; not allowed: %s", plan.FirewallRuleset, cmp.Or(strings.Join(r.Networks, ", "), "nobody"),
				strings.Join(shut, ", "))
		}
	}
	b.Add(plan.Change{Setting: s, From: b.Now(s), To: backends.ValueOf(true),
		Why: "hosts talk to each other on TCP 28250 to 28761, the ports of the ruleset; if they are closed, PVRDMA may fall back to TCP [U]"})
}

// shutOut returns the peers' vmknic addresses that a ruleset's list does not allow.
func (b *builder) shutOut(h *draft.Host, networks []string) []string {
	var shut []string
	for _, peer := range b.Hosts {
		ip, err := netip.ParseAddr(b.control[peer.Name].ip)
		if peer != h && err == nil && !slices.ContainsFunc(networks, func(n string) bool { return covers(n, ip) }) {
			shut = append(shut, ip.String())
		}
	}
	return shut
}

func covers(network string, ip netip.Addr) bool {
	if p, err := netip.ParsePrefix(network); err == nil {
		return p.Contains(ip)
	}
	a, err := netip.ParseAddr(network)
	return err == nil && a == ip
}

// vmkAddresses checks that the tagged vmknics have unique addresses in one subnet.
func (b *builder) vmkAddresses() {
	owner := map[string]string{}
	var subnet netip.Prefix
	for _, h := range b.Hosts {
		k := b.control[h.Name].VMKernelNIC
		if k == nil || k.IP == "" {
			continue
		}
		if other, twice := owner[k.IP]; twice {
			b.Object(backends.HostRef(h.Name), "HOST-VMKNIC-DUP-004", "give each vmknic its own address", "its %s has the address %s of %s too",
				k.Device, k.IP, other)
		}
		owner[k.IP] = h.Name
		ip, err := netip.ParseAddr(k.IP)
		if err != nil || k.PrefixLen <= 0 {
			continue
		}
		p, err := ip.Prefix(k.PrefixLen)
		switch {
		case err != nil:
		case !subnet.IsValid():
			subnet = p
		case p != subnet:
			b.Note("the vmknics of %s and %s are in different subnets (%s, %s): they must route to each other", b.Hosts[0].Name, h.Name, subnet, p)
		}
	}
}

// wait delays the power cycle of a VM until its network is ready, unless the network changes need the VM off.
func (b *builder) wait() {
	needed := map[string]bool{}
	for _, c := range b.Plan.Changes {
		switch c.Kind {
		case backends.KindSwitch, backends.KindPortGroup, backends.KindMember:
			for _, id := range c.Within {
				needed[id] = true
			}
		}
	}
	for _, v := range b.VMs {
		if id, there := b.Powered(v.VM); there && !needed[id] {
			br := b.Brackets[id]
			for _, n := range b.NetworkIDs(v.Host) {
				if h := b.Part(v.Host); h == nil || !slices.Contains(h.Ready, n) {
					br.After = append(br.After, n)
				}
			}
		}
	}
}

// costs notes what the operator should know before confirming the plan (vSphere Virtual Machine Administration, SR-IOV
// and PVRDMA: features that become unavailable).
func (b *builder) costs() {
	if len(b.Plan.Changes) == 0 {
		return
	}
	cycles := 0
	for _, br := range b.Brackets {
		if br.Effect == plan.VMPowerCycle {
			cycles++
		}
	}
	switch {
	case cycles == 1:
		b.Note("1 running VM is shut down by its guest and powered on again")
	case cycles > 1:
		b.Note("%d running VMs are shut down by their guests and powered on again", cycles)
	}
	if len(b.VMs) == 0 {
		b.Note("the answers list no VM: hosts and switch are set up, but no guest gets an RDMA adapter")
	}
	if slices.ContainsFunc(b.Plan.Changes, func(c plan.Change) bool { return c.Kind == backends.KindMemory }) {
		b.Note("all memory of these VMs is reserved, which reduces the failover capacity of their hosts and cluster")
	}
	devices := slices.ContainsFunc(b.Plan.Changes, func(c plan.Change) bool { return c.Kind == backends.KindAdapter })
	if devices && b.Virtual() {
		b.Note("a VM with a VF cannot be moved by vMotion or DRS, suspended or restarted by HA, and does not support snapshots or image backups")
	} else if devices && !b.Answers.GPUs() {
		b.Note(
			"PVRDMA keeps vMotion and snapshots; with native endpoints (hardware version 18 and later, bare-metal peers) vMotion is not available " +
				"while they are in use (unverified)")
	}
}

// otherCosts notes what holds for each part of the plan.
func (b *builder) otherCosts() {
	if len(b.Plan.Changes) == 0 {
		return
	}
	if b.Answers.GPUs() {
		b.gpuCosts()
	}
	for _, key := range b.Answers.Unused {
		b.Note("%s is not used in mode %s", key, b.Answers.Mode)
	}
	mtu := 0
	for _, r := range b.Rails {
		mtu = max(mtu, r.Switch.MTU)
	}
	if mtu > 1500 {
		b.Note("the physical switch must already accept frames of %d bytes, preferably 9216; rdma-setup cannot set that", mtu)
	}
	b.apart()
	b.clusterReach()
}

// clusterReach notes hosts to which DRS or HA could move a VM and on which it would fall back to TCP.
func (b *builder) clusterReach() {
	for i := range b.Inventory.Hosts {
		h := &b.Inventory.Hosts[i]
		if h.Cluster == "" || b.Part(h.Name) != nil {
			continue
		}
		if slices.ContainsFunc(b.VMs, func(v *draft.VM) bool {
			p := b.Part(v.Host)
			return p != nil && p.Cluster == h.Cluster
		}) {
			b.NoteEach(h.Name, "in cluster %s, but not in the answers: a VM that DRS or HA moves there has no RDMA", h.Cluster)
		}
	}
}
