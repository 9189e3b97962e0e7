package recipe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
)

func (b *builder) selectHosts() {
	want := b.Answers.Hosts
	var chosen []*backends.Host
	var away []string
	if len(want.Names) > 0 {
		for _, name := range want.Names {
			if h := b.named(name); h != nil {
				chosen = append(chosen, h)
			}
		}
	} else {
		for i := range b.Inventory.Hosts {
			h := &b.Inventory.Hosts[i]
			switch {
			case !b.inScope(h):
			case h.State != "connected":
				away = append(away, h.Name)
			default:
				chosen = append(chosen, h)
			}
		}
		slices.Sort(away)
		if len(away) > 0 {
			b.Note("skipped, because vCenter is not connected to them: %s", strings.Join(away, ", "))
		}
	}
	if len(chosen) == 0 && len(want.Names) == 0 {
		b.noHost(away)
	}
	slices.SortFunc(chosen, func(x, y *backends.Host) int { return cmp.Compare(x.Name, y.Name) })
	b.all = chosen
	for _, h := range b.limited(chosen) {
		b.ByHost[h.Name] = &draft.Host{Host: h}
		b.Hosts = append(b.Hosts, b.ByHost[h.Name])
	}
	b.Oldest = oldest(b.Hosts)
	b.oneDatacenter()
	for _, h := range b.Hosts {
		b.hostState(h)
	}
}

// tryFirst names a pair of hosts to try, unless a run has already set up one of the hosts.
func (b *builder) tryFirst() {
	changed := map[string]bool{}
	for _, c := range b.Plan.Changes {
		if c.Target.Type == backends.TypeHost {
			changed[c.Target.Name] = true
		}
	}
	if n := len(b.Hosts); n > 2 && len(changed) == n && len(b.Options.Limit) == 0 {
		b.Note("%s%s,%s", plan.TryFirst, b.Hosts[0].Name, b.Hosts[1].Name)
	}
}

// noHost says why nothing can be planned: hosts that vCenter is not connected to, or none that the account can see.
func (b *builder) noHost(away []string) {
	where := backends.Ref{Type: backends.TypeVCenter, Name: scopeName(b.Answers.Hosts.Datacenter, b.Answers.Hosts.Cluster)}
	switch n := len(away); {
	case n > 0:
		const most = 5
		more := ""
		if n > most {
			more, away = fmt.Sprintf(" and %d more", n-most), away[:most]
		}
		for i, name := range away {
			away[i] = name + " (" + b.Inventory.Host(name).State + ")"
		}
		b.Refuse(where, "CL-HOSTS-001", "reconnect the hosts in vCenter", "vCenter is not connected to any of its hosts: %s%s",
			strings.Join(away, ", "), more)
	case b.Inventory.VCenter.NoHosts != "":
		b.Refuse(where, "CL-HOSTS-001", backends.HintNoHosts, "no host was found: %s", b.Inventory.VCenter.NoHosts)
	default:
		b.Refuse(where, "CL-HOSTS-001",
			"check hosts.datacenter and hosts.cluster in the answers, or give the account the role Read-only there, with propagation",
			"there is no host, or the account %s cannot see any", b.Inventory.VCenter.User)
	}
}

func scopeName(datacenter, cluster string) string {
	return cmp.Or(cluster, datacenter, "vCenter")
}

// nearName returns the remedy for an unknown name: the name that was probably meant.
func nearName[T any](name string, all []T, nameOf func(T) string, what string) string {
	if near := answers.Nearest(name, backends.Each(all, nameOf)); near != "" {
		return "did you mean " + near + "? rdma-setup discover lists them all"
	}
	return "write the " + what + " as vCenter shows it; see: rdma-setup discover"
}

func (b *builder) inScope(h *backends.Host) bool {
	return h.In(b.Answers.Hosts.Datacenter, b.Answers.Hosts.Cluster)
}

func (b *builder) wanted(h *backends.Host) bool {
	names := b.Answers.Hosts.Names
	return b.inScope(h) && (len(names) == 0 || slices.Contains(names, h.Name))
}

func (b *builder) named(name string) *backends.Host {
	h, ref := b.Inventory.Host(name), backends.HostRef(name)
	switch {
	case h == nil:
		b.Refuse(ref, "HOST-CONN-001", nearName(name, b.Inventory.Hosts, func(h backends.Host) string { return h.Name }, "name"),
			"no such host in the inventory")
		return nil
	case !b.inScope(h):
		b.Refuse(ref, "", "correct hosts.datacenter or hosts.cluster, or take the host out of hosts.names",
			"is in %s, not in %s", scopeName(h.Datacenter, h.Cluster), scopeName(b.Answers.Hosts.Datacenter, b.Answers.Hosts.Cluster))
		return nil
	case h.State != "connected":
		b.Refuse(ref, "HOST-CONN-001", "reconnect the host, or take it out of hosts.names", "vCenter is not connected to it (%s)", h.State)
		return nil
	}
	return h
}

func (b *builder) limited(hosts []*backends.Host) []*backends.Host {
	if len(b.Options.Limit) == 0 {
		return hosts
	}
	for _, name := range b.Options.Limit {
		if !slices.ContainsFunc(hosts, func(h *backends.Host) bool { return h.Name == name }) {
			b.Refuse(backends.HostRef(name), "", "name a host that the answers include", "--limit names a host that the answers do not include")
		}
	}
	return slices.DeleteFunc(slices.Clone(hosts), func(h *backends.Host) bool { return !slices.Contains(b.Options.Limit, h.Name) })
}

// oneDatacenter checks that the hosts are in one datacenter, because a DVS cannot span several.
func (b *builder) oneDatacenter() {
	var dcs []string
	for _, h := range b.Hosts {
		if !slices.Contains(dcs, h.Datacenter) {
			dcs = append(dcs, h.Datacenter)
		}
	}
	if len(dcs) > 1 {
		b.Refuse(backends.Ref{Type: backends.TypeVCenter, Name: scopeName("", "")}, "VC-DC-005",
			"name one as hosts.datacenter; a distributed switch cannot span datacenters", "the hosts are in several datacenters: %s",
			strings.Join(dcs, ", "))
	}
}

func (b *builder) datacenter() string {
	if len(b.Hosts) > 0 {
		return b.Hosts[0].Datacenter
	}
	return b.Answers.Hosts.Datacenter
}

// hostState refuses or notes conditions under which a host must not be changed at all.
func (b *builder) hostState(h *draft.Host) {
	if h.InMaintenance {
		b.NoteEach(h.Name, "in maintenance mode, and left in it")
	}
	if h.RebootRequired {
		b.NoteEach(h.Name, "[was|were] already waiting for a reboot; its effect is not known yet")
	}
	for _, owner := range h.ManagedBy {
		if owner == backends.ImageManaged { // an image manages only software; see package driver
			continue
		}
		b.NoteEach(h.Name, "managed by %s: add these settings there too, or they are reverted", owner)
	}
	if b.Answers.Mode != answers.PVRDMA && b.Inventory.UnsupportedBaselines(h.Host) {
		b.NoteEach(h.Name, "%s; move [it|them] to an image, which must then hold the drivers and tools that mode %s needs",
			backends.DeadBaselines, b.Answers.Mode)
	}
}
