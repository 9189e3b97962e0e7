package twin

import (
	"maps"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/image"
)

// image copies the image that manages the cluster of a host, the depots of vCenter, and the offline bundles that the answers name.
func (t *Twin) image(s *world.State, h *backends.Host, of *world.Services) {
	m := &world.Image{Base: h.Version, Components: map[string]string{}, Commits: 1}
	of.Image = m
	l := &s.Lifecycle
	offer := func(at, name, version string) {
		if !slices.ContainsFunc(l.Bundles, func(b world.Bundle) bool { return b.Location == at }) {
			l.Bundles = append(l.Bundles, world.Bundle{Location: at, Name: name, Version: version, VIBs: t.vibs(name, version)})
		}
	}
	c := t.site.Cluster(h.Cluster)
	if c == nil || c.Image == nil || c.Image.Error != "" {
		t.note("", "the image of the cluster "+h.Cluster+" was not read: a base image of "+h.Version+
			" without components, and no depots beyond those of other images")
	} else {
		img := c.Image
		m.Base, m.AddOn, m.Hardware, m.QuickBoot = img.Base, img.AddOn, strings.Join(img.Hardware, ", "), img.QuickBoot
		m.PowerOff = img.Power != image.KeepPower
		for _, d := range img.Drafts {
			if !d.Ours {
				m.NewDraft(d.Owner)
			}
		}
		offered := maps.Clone(img.Offered)
		for name, version := range img.Components {
			m.Components[name] = version
			if !slices.Contains(offered[name], version) {
				offered[name] = append(slices.Clone(offered[name]), version)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(offered)) {
			for _, version := range offered[name] {
				at := "depot of vCenter: " + name + " " + version
				offer(at, name, version)
				if !slices.Contains(l.Depots, at) {
					l.Depots = append(l.Depots, at)
				}
			}
		}
	}
	if t.answers != nil {
		for _, at := range t.answers.HostPackages() {
			if b, ok := nic.Bundle(at); ok {
				offer(at, b.Name, b.Version)
			}
		}
	}
}

// vibs returns the VIBs that the lab has for a component: those of firmware tools and drivers, in the version on a host that has
// the component; otherwise one VIB with the name of the component.
func (t *Twin) vibs(component, version string) []world.VIB {
	var list []world.VIB
	for _, f := range nic.Families() {
		rules := nic.FirmwareOf(f)
		if rules == nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(rules.Components)) {
			if rules.Components[name] == component {
				list = append(list, world.VIB{Name: name, Version: version, Vendor: "MEL", Acceptance: "PartnerSupported"})
			}
		}
	}
	if len(list) == 0 {
		list = []world.VIB{{Name: strings.ToLower(component), Version: version, Vendor: "VMware", Acceptance: "VMwareCertified"}}
	}
	for _, h := range t.site.Hosts {
		sys := system(&h)
		for i, v := range list {
			if has := sys.VIBs.Value[v.Name].Version; has != "" && sys.Components.Value[component] == version {
				list[i].Version = has
			}
		}
	}
	return list
}

// installed adds to hosts the VIBs of those components of their cluster's image that they have.
func (t *Twin) installed(s *world.State) {
	for i := range t.site.Hosts {
		w := s.Hosts[i]
		m := s.ClusterServices(w.Cluster).Image
		if m == nil {
			continue
		}
		for _, b := range s.Lifecycle.Bundles {
			if v := m.Components[b.Name]; v != b.Version || system(&t.site.Hosts[i]).Components.Value[b.Name] != v {
				continue
			}
			for _, v := range b.VIBs {
				if w.Active(v.Name) == nil {
					w.VIBs = append(w.VIBs, v)
				}
			}
		}
	}
}
