// Package twin builds the data centre of a lab from a collected site. It imports the lab, which shares no code with the product:
// the collected facts are copied to the lab's own model; missing facts are the lab's defaults, and are listed, so that the reader
// of a rehearsal knows what was assumed.
package twin

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
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

	site    *backends.Inventory
	places  []place          // of the twin's clusters, by the number that the lab's hosts have
	centers []string         // datacenters of the site, by the number that the lab's clusters have
	answers *answers.Answers // those of the bundle; nil if there are none
	made    time.Time
	notes   assumptions

	lacks    []checks.Lack // privileges that the account lacks on the site
	lacksErr error
}

// A place is where hosts of the site are: their datacenter and cluster, "" for the hosts of a datacenter that are in none.
type place struct{ datacenter, cluster string }

func placeOf(h *backends.Host) place { return place{h.Datacenter, h.Cluster} }

// Of returns the twin of a bundle. A bundle without hosts is an error of kind usage.
func Of(b *bundle.Bundle) (*Twin, error) {
	t := &Twin{site: b.Facts.Inventory, answers: b.Answers, made: b.Made, lacks: b.Facts.Lacks, lacksErr: b.Facts.LacksErr}
	if len(t.site.Hosts) == 0 {
		return nil, console.Usage("collect with an account that sees the hosts", "the bundle has no host")
	}
	t.arrange()
	if err := t.Found(&world.State{}); err != nil {
		return nil, err
	}
	return t, nil
}

// arrange numbers the clusters and datacenters: first those of the answers, then in the order of the hosts.
func (t *Twin) arrange() {
	for i := range t.site.Hosts {
		if p := placeOf(&t.site.Hosts[i]); !slices.Contains(t.places, p) {
			t.places = append(t.places, p)
		}
	}
	wanted := func(p place) bool {
		return slices.ContainsFunc(t.site.Hosts, func(h backends.Host) bool {
			a := t.answers
			return placeOf(&h) == p && a != nil && h.In(a.Hosts.Datacenter, a.Hosts.Cluster) &&
				(len(a.Hosts.Names) == 0 || slices.Contains(a.Hosts.Names, h.Name))
		})
	}
	rank := func(p place) int {
		if wanted(p) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(t.places, func(a, b place) int { return cmp.Compare(rank(a), rank(b)) })
	add := func(datacenter string) {
		if datacenter != "" && !slices.Contains(t.centers, datacenter) {
			t.centers = append(t.centers, datacenter)
		}
	}
	for _, p := range t.places {
		add(p.datacenter)
	}
	for _, s := range t.site.Switches {
		add(s.Datacenter)
	}
}

// center returns the number of a datacenter of the site; that of the answers if it is not known.
func (t *Twin) center(datacenter string) int { return max(0, slices.Index(t.centers, datacenter)) }

// under returns the path of the folder of an object relative to a root folder of its datacenter, "" for the root folder itself. Ok is
// false if the object's inventory path does not lead through that folder.
func under(objectPath, root string) (folder string, ok bool) {
	_, rest, ok := strings.Cut(strings.TrimPrefix(objectPath, "/"), "/"+root+"/") // a datacenter may have the name of the folder
	if !ok {
		return "", false
	}
	return strings.TrimSuffix("/"+rest, "/"+path.Base(rest)), true
}

// Found fills a lab's model. It can be called again for another lab.
func (t *Twin) Found(s *world.State) error {
	s.VCenter = t.site.VCenter.Version
	for n, datacenter := range t.centers {
		name := backends.BaseName(datacenter)
		if i := slices.IndexFunc(t.site.Hosts, func(h backends.Host) bool { return h.Datacenter == datacenter }); i >= 0 &&
			!strings.HasPrefix(cmp.Or(t.site.Hosts[i].Path, "/"+world.Escaped(name)+"/"), "/"+world.Escaped(name)+"/") {
			t.note(name, "is in a folder of datacenters, which the twin does not have")
		}
		if slices.Contains(append(s.Others, s.Datacenter), name) { // in another folder of datacenters, which the lab does not have
			t.note(datacenter, "has the name of another datacenter: its path is its name in the twin")
			name = datacenter
		}
		if n == 0 {
			s.Datacenter = name
		} else {
			s.Others = append(s.Others, name)
		}
	}
	for n, p := range t.places {
		name := cmp.Or(backends.BaseName(p.cluster), "none")
		if n == 0 {
			s.Cluster = name
			continue
		}
		s.Clusters = append(s.Clusters, world.Cluster{Name: name, Datacenter: t.center(p.datacenter)})
	}
	for i := range t.site.Hosts {
		h := t.host(i, &t.site.Hosts[i])
		h.Cluster = slices.Index(t.places, placeOf(&t.site.Hosts[i]))
		s.Hosts = append(s.Hosts, h)
		if t.site.Hosts[i].Cluster == "" {
			t.note(h.Name, "is not in a cluster; the lab puts the hosts without one into a cluster with DRS")
		}
	}
	t.switches(s)
	for i := range t.site.VMs {
		if v := &t.site.VMs[i]; t.site.Host(v.Host) == nil {
			t.note(v.Name, "left out: the account does not see its host")
			continue
		}
		if err := t.vm(s, i, &t.site.VMs[i]); err != nil {
			return err
		}
	}
	for n, p := range t.places {
		t.cluster(s, n, p)
	}
	t.installed(s)
	t.depot(s)
	t.always()
	t.Assumed = t.notes.list()
	return nil
}

func (t *Twin) cluster(s *world.State, n int, at place) {
	v := s.ClusterServices(n)
	for _, h := range t.site.Hosts {
		if placeOf(&h) != at {
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
	c := t.site.Cluster(at.cluster)
	if c == nil && at.cluster == "" {
		return // its hosts are noted
	}
	if c == nil {
		t.note("", "DRS fully automated, HA off: the settings of the cluster "+at.cluster+" were not read")
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

func system(h *backends.Host) *backends.HostSystem {
	if h.System == nil {
		return &backends.HostSystem{}
	}
	return h.System
}

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
		t.rename(s, &out)
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

// rename replaces the inventory paths in answers by those of the twin, which has no folders above datacenters and clusters.
func (t *Twin) rename(s *world.State, a *answers.Answers) {
	path := func(name string) bool { return strings.HasPrefix(name, "/") }
	for i := range t.site.Hosts {
		h := &t.site.Hosts[i]
		if !h.In(a.Hosts.Datacenter, a.Hosts.Cluster) {
			continue
		}
		datacenter := s.DatacenterName(t.center(h.Datacenter))
		if path(a.Hosts.Cluster) {
			a.Hosts.Cluster = "/" + world.Escaped(datacenter) + "/host/" + world.Escaped(backends.BaseName(a.Hosts.Cluster))
		}
		if path(a.Hosts.Datacenter) {
			a.Hosts.Datacenter = datacenter
		}
		break
	}
	gpus := maps.Clone(a.GPUDirect.GPUs)
	for i := range a.VMs {
		from := a.VMs[i].Name
		v := t.site.VM(from)
		if v == nil || !path(from) {
			continue
		}
		if w := s.VM(v.Name); w != nil && w.Path != from {
			a.VMs[i].Name = w.Path
			if g, has := gpus[from]; has {
				delete(gpus, from)
				gpus[w.Path] = g
			}
		}
	}
	a.GPUDirect.GPUs = gpus
}

// assumptions are those of a twin, with their targets; a target is "" for all of the site.
type assumptions struct{ plain.Gathered[string, string] }

func (a assumptions) list() []string {
	out := []string{}
	for what, targets := range a.All() {
		names := slices.DeleteFunc(slices.Compact(slices.SortedFunc(slices.Values(targets), plain.Natural)),
			func(n string) bool { return n == "" })
		if len(names) > 0 {
			what = plain.Names(names) + ": " + what
		}
		out = append(out, what)
	}
	return out
}
