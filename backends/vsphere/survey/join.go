package survey

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
)

// A reading is the result of one pass before names are joined: pages arrive in any order.
type reading struct {
	index    *place.Index
	managed  map[place.Ref]bool // compute resources managed by a vLCM image
	hosts    []*hostRow
	vms      []*vmRow
	switches []*switchRow
	groups   []*groupRow
	clusters []*clusterRow
	hidden   map[place.Ref][]string // property paths that the account may not see

	plain map[string][]string          // by DVS: VMs with an ordinary adapter on it
	users map[string]map[string]string // by host and PCI address: the VM that has the device
}

// join fills in names and computes what depends on more than one object.
func (rd *reading) join(vcenter string) *backends.Inventory {
	inv := &backends.Inventory{Hosts: []backends.Host{}, VMs: []backends.VM{}, Clusters: []backends.Cluster{}}
	x := rd.index
	byUUID, byRef := map[string]*switchRow{}, map[place.Ref]*switchRow{}
	for _, s := range rd.switches {
		s.dvs.Name, s.dvs.Path, s.dvs.Datacenter = x.Name(s.ref), x.Path(s.ref), x.Datacenter(s.ref)
		byUUID[s.dvs.UUID], byRef[s.ref] = s, s
		for host, m := range s.members {
			s.dvs.Members[x.Name(host)] = m
		}
		for _, m := range s.mismatches {
			s.dvs.Health.Mismatch = append(s.dvs.Health.Mismatch, x.Name(m.host)+" "+m.what)
		}
	}
	byKey := map[string]*groupRow{}
	for _, g := range rd.groups {
		g.group.Name, g.group.Path = x.Name(g.ref), x.Path(g.ref)
		byKey[g.group.Key] = g
		g.group.Free = g.group.Ports
		if s := byRef[g.dvs]; s != nil {
			g.group.Switch = s.dvs.Name
			if !g.group.Uplink {
				s.dvs.PortGroups = append(s.dvs.PortGroups, g.group.Name)
			}
		}
	}
	for _, v := range rd.vms {
		rd.joinVM(v, byKey, byRef, vcenter)
	}
	rd.countUse()
	for _, h := range rd.hosts {
		rd.joinHost(h, byKey, byUUID)
	}
	for _, h := range rd.hosts {
		rd.judge(h, byUUID)
		inv.Hosts = append(inv.Hosts, h.host)
	}
	for _, v := range rd.vms {
		inv.VMs = append(inv.VMs, v.vm)
	}
	for _, s := range rd.switches {
		slices.Sort(s.dvs.PortGroups)
		slices.Sort(s.dvs.VMKs)
		slices.Sort(s.dvs.VMs)
		inv.Switches = append(inv.Switches, s.dvs)
	}
	for _, g := range rd.groups {
		g.group.Free = max(0, g.group.Free)
		inv.PortGroups = append(inv.PortGroups, g.group)
	}
	for _, c := range rd.clusters {
		inv.Clusters = append(inv.Clusters, c.join(x))
	}
	slices.SortFunc(inv.Clusters, func(a, b backends.Cluster) int { return natural(a.Name, b.Name) })
	slices.SortFunc(inv.Hosts, func(a, b backends.Host) int { return natural(a.Name, b.Name) })
	slices.SortFunc(inv.VMs, func(a, b backends.VM) int { return natural(a.Name, b.Name) })
	slices.SortFunc(inv.Switches, func(a, b backends.Switch) int { return natural(a.Name, b.Name) })
	slices.SortFunc(inv.PortGroups, func(a, b backends.PortGroup) int { return natural(a.Name, b.Name) })
	return inv
}

func (rd *reading) joinVM(v *vmRow, byKey map[string]*groupRow, byRef map[place.Ref]*switchRow, vcenter string) {
	x := rd.index
	v.vm.Name, v.vm.Path, v.vm.Datacenter = x.Name(v.ref), x.Path(v.ref), cmp.Or(x.Datacenter(v.ref), x.Datacenter(v.host))
	v.vm.VApp = x.Name(v.vApp)
	v.vm.Host, v.vm.Cluster = x.Name(v.host), x.Cluster(v.host)
	v.vm.VCenterVM = v.vm.VCenterVM || vcenter != "" && slices.Contains(v.vm.IPs, vcenter)
	for i, key := range v.groups {
		g := byKey[key]
		if key == "" || g == nil {
			continue
		}
		v.vm.Adapters[i].PortGroup, v.vm.Adapters[i].Switch = g.group.Name, g.group.Switch
		g.group.Free--
		if s := byRef[g.dvs]; s != nil && !slices.Contains(s.dvs.VMs, v.vm.Name) {
			s.dvs.VMs = append(s.dvs.VMs, v.vm.Name)
		}
	}
}

func (rd *reading) joinHost(h *hostRow, byKey map[string]*groupRow, byUUID map[string]*switchRow) {
	x := rd.index
	h.host.Name, h.host.Path, h.host.Datacenter, h.host.Cluster = x.Name(h.ref), x.Path(h.ref), x.Datacenter(h.ref), x.Cluster(h.ref)
	if rd.managed[h.parent] {
		h.host.ManagedBy = append(h.host.ManagedBy, backends.ImageManaged)
	}
	for i := range h.switches {
		if s := byUUID[h.switches[i].uuid]; s != nil && h.switches[i].uuid != "" {
			h.switches[i].name = s.dvs.Name
		}
	}
	for i, at := range h.vmks {
		k := &h.host.VMKs[i]
		if at.uuid == "" {
			continue
		}
		if g := byKey[at.group]; g != nil {
			k.PortGroup = g.group.Name
			g.group.Free--
		}
		if s := byUUID[at.uuid]; s != nil {
			k.Switch = s.dvs.Name
			s.dvs.VMKs = append(s.dvs.VMKs, h.host.Name+"/"+k.Device)
		}
	}
}

// leaves reports whether the teaming policy allows a vmknic to send through a pNIC of its switch. A policy that names none of the
// host's uplinks, such as one with a LAG, allows all of them.
func (rd *reading) leaves(h *hostRow, at vmk, pnic string, s *switchRow) bool {
	order := at.order
	if s != nil && at.uuid != "" {
		i := slices.IndexFunc(rd.groups, func(g *groupRow) bool { return g.group.Key == at.group })
		if i < 0 {
			return true
		}
		names := slices.Concat(rd.groups[i].group.Active, rd.groups[i].group.Standby)
		for n, p := range s.dvs.Members[h.host.Name].PNICs {
			if n < len(s.dvs.Uplinks) && slices.Contains(names, s.dvs.Uplinks[n]) {
				order = append(order, p)
			}
		}
	}
	return len(order) == 0 || slices.Contains(order, pnic)
}

// judge computes switch, roles and eligibility of a host's pNICs. A vmknic may send through any uplink of its switch, so each of
// them has its roles.
func (rd *reading) judge(h *hostRow, byUUID map[string]*switchRow) {
	for i := range h.host.NICs {
		n := &h.host.NICs[i]
		for _, u := range h.switches {
			if !slices.ContainsFunc(u.pnics, func(key string) bool { return h.nicByKey(key) == i }) {
				continue
			}
			n.Switch, n.Use.Standard, n.Use.ENS, n.Use.Opaque = u.name, u.uuid == "" && !u.opaque, u.ens, u.opaque
			for j, k := range h.host.VMKs {
				if u.carries(h.vmks[j]) {
					n.Use.VMKs = append(n.Use.VMKs, k.Device)
					if rd.leaves(h, h.vmks[j], n.Device, byUUID[u.uuid]) {
						h.host.VMKs[j].PNICs = append(h.host.VMKs[j].PNICs, n.Device)
					}
					if s := byUUID[u.uuid]; len(k.Roles) == 0 && (u.uuid == "" || s == nil || !s.dvs.Ours()) {
						n.Roles = append(n.Roles, backends.RoleVMKernel) // no service is enabled, but it may carry routed traffic
					}
					n.Roles = append(n.Roles, k.Roles...)
				}
			}
			if s := byUUID[u.uuid]; s != nil && u.uuid != "" {
				n.Use.VMs = rd.plain[s.dvs.Name]
			}
		}
		for _, a := range h.hbas {
			if a.rdma != "" && a.rdma == n.RDMADevice || a.pnic != "" && a.pnic == n.Device {
				n.Use.Storage = append(n.Use.Storage, a.name)
				n.Roles = append(n.Roles, "storage")
			}
		}
		slices.Sort(n.Roles)
		n.Roles = slices.Compact(n.Roles)
	}
	h.host.Hidden = nic.Hidden(&h.host)
	for _, v := range backends.ChoosePNIC(&h.host, backends.PNICWish{Drivers: nic.Known{}}).Verdicts {
		v.NIC.Eligible, v.NIC.Why = v.Eligible(), v.Why()
	}
	for i := range h.host.GPUs {
		g := &h.host.GPUs[i]
		g.UsedBy, g.Pairs = rd.users[h.host.Name][g.PCI], h.host.Pair(g)
		for _, v := range h.shared[g.PCI] {
			g.SharedBy = append(g.SharedBy, rd.index.Name(v))
		}
	}
}

// countUse computes which VMs use which devices: a running VM has priority over one that is off.
func (rd *reading) countUse() {
	rd.plain, rd.users = map[string][]string{}, map[string]map[string]string{}
	for _, v := range rd.vms {
		for _, a := range v.vm.Adapters {
			if a.Switch == "" || a.Type == "pvrdma" || a.Type == "sriov" || slices.Contains(rd.plain[a.Switch], v.vm.Name) {
				continue
			}
			rd.plain[a.Switch] = append(rd.plain[a.Switch], v.vm.Name)
		}
		for _, address := range v.vm.Passthrough {
			on := rd.users[v.vm.Host]
			if on == nil {
				on = map[string]string{}
				rd.users[v.vm.Host] = on
			}
			if on[address] == "" || v.vm.Power == "poweredOn" {
				on[address] = v.vm.Name
			}
		}
	}
	for _, names := range rd.plain {
		slices.Sort(names)
	}
}

// natural compares names so that esx-2 comes before esx-10.
func natural(a, b string) int {
	for a != "" && b != "" {
		da, db := digits(a), digits(b)
		if da > 0 && db > 0 {
			x, y := strings.TrimLeft(a[:da], "0"), strings.TrimLeft(b[:db], "0")
			if c := len(x) - len(y); c != 0 {
				return c
			}
			if c := strings.Compare(x, y); c != 0 {
				return c
			}
			a, b = a[da:], b[db:]
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// inSubnet reports whether an address lies in the subnet of another.
func inSubnet(ip string, prefix int, other string) bool {
	a, err1 := netip.ParseAddr(ip)
	b, err2 := netip.ParseAddr(other)
	if err1 != nil || err2 != nil || prefix == 0 {
		return false
	}
	p, err := a.Prefix(prefix)
	return err == nil && p.Contains(b)
}
