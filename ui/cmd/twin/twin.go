// Package twin builds the data centre of a lab from a collected site. It imports the lab, which shares no code with the product:
// the collected facts are copied to the lab's own model; missing facts are the lab's defaults, and are listed, so that the reader
// of a rehearsal knows what was assumed.
package twin

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/bundle"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// A Twin is a site in the form of a lab.
type Twin struct {
	Assumed []string // defaults of the lab for what was not collected; sentences for display

	site    *backends.Inventory // one datacenter of it
	away    []backends.Switch   // those of other datacenters
	answers *answers.Answers    // those of the bundle; nil if there are none
	made    time.Time
	notes   assumptions

	lacks    []checks.Lack // privileges that the account lacks on the site
	lacksErr error
}

// Of returns the twin of a bundle. A lab has one datacenter: that of the answers in the bundle, else the only one. A bundle with
// several datacenters and without answers that name one is an error of kind usage.
func Of(b *bundle.Bundle) (*Twin, error) {
	t := &Twin{site: b.Facts.Inventory, answers: b.Answers, made: b.Made, lacks: b.Facts.Lacks, lacksErr: b.Facts.LacksErr}
	if err := t.narrow(); err != nil {
		return nil, err
	}
	if err := t.Found(&world.State{}); err != nil {
		return nil, err
	}
	return t, nil
}

// datacenters returns the datacenters of the hosts that the answers name, or of all; a may be nil.
func datacenters(site *backends.Inventory, a *answers.Answers) []string {
	var all []string
	for _, h := range site.Hosts {
		if a != nil && (a.Hosts.Datacenter != "" && a.Hosts.Datacenter != h.Datacenter || a.Hosts.Cluster != "" && a.Hosts.Cluster != h.Cluster ||
			len(a.Hosts.Names) > 0 && !slices.Contains(a.Hosts.Names, h.Name)) {
			continue
		}
		if !slices.Contains(all, h.Datacenter) {
			all = append(all, h.Datacenter)
		}
	}
	return all
}

// Fits reports whether a twin is possible for the answers: their hosts must be in one datacenter.
func Fits(site *backends.Inventory, a *answers.Answers) bool { return len(datacenters(site, a)) == 1 }

// narrow keeps only the twin's datacenter.
func (t *Twin) narrow() error {
	all := datacenters(t.site, t.answers)
	if len(all) != 1 {
		return console.Usage("collect with -f answers.yaml, and set one datacenter under hosts",
			"a twin has one datacenter, and the bundle has %d", len(all))
	}
	site := *t.site
	site.Hosts, site.VMs, site.Switches = nil, nil, nil
	for _, h := range t.site.Hosts {
		if h.Datacenter == all[0] {
			site.Hosts = append(site.Hosts, h)
		} else {
			t.note(h.Name, "left out, because a twin has one datacenter")
		}
	}
	for _, v := range t.site.VMs {
		if site.Host(v.Host) != nil {
			site.VMs = append(site.VMs, v)
		}
	}
	for _, s := range t.site.Switches {
		if s.Datacenter == all[0] {
			site.Switches = append(site.Switches, s)
		} else {
			t.away = append(t.away, s)
		}
	}
	t.site = &site
	return nil
}

// Found fills a lab's model. It can be called again for another lab.
func (t *Twin) Found(s *world.State) error {
	clusters := t.clusters()
	s.Datacenter, s.Cluster, s.VCenter = t.site.Hosts[0].Datacenter, cmp.Or(clusters[0], "none"), t.site.VCenter.Version
	for _, name := range clusters[1:] {
		s.Clusters = append(s.Clusters, world.Cluster{Name: cmp.Or(name, "none")})
	}
	for i := range t.site.Hosts {
		h := t.host(i, &t.site.Hosts[i])
		h.Cluster = slices.Index(clusters, t.site.Hosts[i].Cluster)
		s.Hosts = append(s.Hosts, h)
		if t.site.Hosts[i].Cluster == "" {
			t.note(h.Name, "is not in a cluster; the lab puts the hosts without one into a cluster with DRS")
		}
	}
	t.switches(s)
	for i := range t.site.VMs {
		if err := t.vm(s, i, &t.site.VMs[i]); err != nil {
			return err
		}
	}
	for n, name := range clusters {
		t.cluster(s, n, name)
	}
	t.installed(s)
	t.depot(s)
	t.always()
	t.Assumed = t.notes.list()
	return nil
}

// clusters returns the names of the clusters, first that of the answers.
func (t *Twin) clusters() []string {
	var names []string
	for _, h := range t.site.Hosts {
		if !slices.Contains(names, h.Cluster) {
			names = append(names, h.Cluster)
		}
	}
	rank := func(name string) int {
		if t.answers != nil && t.answers.Hosts.Cluster == name && name != "" {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return names
}

// cluster copies the automatic functions of a cluster.
func (t *Twin) cluster(s *world.State, n int, name string) {
	v := s.ClusterServices(n)
	for _, h := range t.site.Hosts {
		if h.Cluster != name {
			continue
		}
		if v.Image == nil && h.Imaged() {
			t.image(s, &h, v)
		}
		if f := system(&h).Resync; f.Known() {
			v.Resync = f.Value
		}
		for _, owner := range h.ManagedBy {
			if owner != backends.ImageManaged {
				t.note(h.Name, "is managed by "+owner+", which the twin does not simulate")
			}
		}
	}
	c := t.site.Cluster(name)
	if c == nil {
		t.note("", "DRS fully automated, HA off: the settings of the cluster "+name+" were not read")
		return
	}
	v.NoDRS, v.HA, v.Failover, v.VSAN = !c.DRS, c.HA, c.Failover, c.VSAN
	if c.DRSMode != "fullyAutomated" {
		v.DRS = c.DRSMode
	}
	if c.EVC != nil {
		v.EVC = *c.EVC
	}
	if len(c.DRSOverride) > 0 {
		t.note("", "DRS overrides of single VMs are not simulated")
	}
	for i, r := range c.Rules {
		v.Rules = append(v.Rules, world.Rule{Key: int32(i + 1), Name: r.Name, Apart: r.Kind == backends.RuleApart, Must: r.Mandatory,
			VMs: r.VMs, Hosts: r.Hosts, NotHosts: r.NotHosts})
	}
}

// always adds the assumptions about what no bundle contains.
func (t *Twin) always() {
	t.note("", "advanced options other than "+backends.VMKNICOption+": those of a new ESXi 8.0 U3 are used")
	t.note("", "datastores: one that all hosts share, and a local one on a host if a VM has a disk only there; disks of 40 GiB")
	t.note("", "the physical switches: they trust DSCP, pause what the hosts pause, mark for ECN and pass 9216 bytes")
	t.note("", "durations: those of the lab, unless flags set others")
	t.note("", "passwords and keys: those of the lab")
	if t.lacksErr != nil {
		t.note("", "the account may do everything: which privileges it has on the site could not be read")
	}
	for _, l := range t.lacks {
		t.note("", "the account may do everything: on the site it lacks "+l.Privilege+" on "+l.Entity)
	}
	for _, gap := range t.site.Gaps {
		t.note(gap.Target.Name, "could not be read: "+gap.What)
	}
}

// note adds an assumption about a target, "" if it is about all of the site.
func (t *Twin) note(target, what string) { t.notes.Add(what, target) }

// system returns the System of a host, empty if it was not read.
func system(h *backends.Host) *backends.HostSystem {
	if h.System == nil {
		return &backends.HostSystem{}
	}
	return h.System
}

// id reads a PCI id.
func id(hex string) uint16 {
	n := 0
	_, _ = fmt.Sscanf(hex, "%x", &n)
	return uint16(n)
}

// Answers writes answers for the site as answers for its twin in a lab: the addresses of vCenter, shells and guests are replaced
// by the lab's. It returns false if the bundle has none and a is nil.
func (t *Twin) Answers(w io.Writer, l *lab.Lab, a *answers.Answers) (bool, error) {
	if a == nil {
		a = t.answers
	}
	if a == nil {
		return false, nil
	}
	out := *a
	out.VCenter = answers.VCenter{URL: l.URL().String(), Username: l.User()}
	out.ESXi.User, out.ESXi.Addresses = "root", map[string]string{}
	out.VMs = append([]answers.VM(nil), a.VMs...)
	l.World().View(func(s *world.State) {
		for _, h := range s.Hosts {
			out.ESXi.Addresses[h.Name] = h.ShellAddr
		}
		for i := range out.VMs {
			if v := s.VM(out.VMs[i].Name); v != nil {
				g := &out.VMs[i].Guest
				g.Address, g.Port, g.User = v.Guest.Address, v.Guest.Port, v.Guest.User
			}
		}
	})
	return true, answers.Save(w, &out)
}

// assumptions are those of a twin, with their targets; a target is "" for all of the site.
type assumptions struct{ plain.Gathered[string, string] }

// list returns one sentence per assumption.
func (a assumptions) list() []string {
	out := []string{}
	for what, targets := range a.All() {
		names := slices.DeleteFunc(slices.Compact(slices.SortedFunc(slices.Values(targets), plain.Natural)), func(n string) bool { return n == "" })
		if len(names) > 0 {
			what = plain.Names(names) + ": " + what
		}
		out = append(out, what)
	}
	return out
}
