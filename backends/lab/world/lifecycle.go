package world

import (
	"maps"
	"slices"
	"strconv"
	"time"
)

// A Lifecycle contains the depots of Lifecycle Manager, which all clusters of vCenter share. Source: vSphere Automation API,
// esx/settings/depots.
type Lifecycle struct {
	Depots  []string // locations of the imported depots
	Bundles []Bundle // bundles at all locations, imported or not
}

// An Image is the image with which Lifecycle Manager manages a cluster. Source: vSphere Automation API, esx/settings/clusters.
type Image struct {
	Base       string            // version of the base image
	Components map[string]string // versions, by name, of components added to the base image
	AddOn      string            // vendor add-on, "" for none
	Hardware   string            // name of the hardware support manager that adds firmware to the image, "" for none
	Commits    int
	Drafts     []*Draft
	PowerOff   bool // the apply policy powers off VMs
	QuickBoot  bool // the apply policy requests Quick Boot
	Busy       bool // an apply operation is running
	made       int
}

// A Draft is a working copy of the image.
type Draft struct {
	ID, Owner  string
	Base       string // version of its base image
	Made       time.Time
	Components map[string]string
}

// A Bundle is an offline bundle with one component, at a location from which vCenter can download it.
type Bundle struct {
	Location, Name, Version, Vendor string
	Conflict                        string // reason why an image with this component is invalid, "" if it is valid
	VIBs                            []VIB
}

// NewDraft creates a user's draft from the current image.
func (m *Image) NewDraft(owner string) *Draft {
	m.made++
	d := &Draft{ID: strconv.Itoa(m.made), Owner: owner, Base: m.Base, Made: time.Now(), Components: maps.Clone(m.Components)}
	if d.Components == nil {
		d.Components = map[string]string{}
	}
	m.Drafts = append(m.Drafts, d)
	return d
}

// Draft returns the draft with an ID, or nil if there is none.
func (m *Image) Draft(id string) *Draft {
	return find(m.Drafts, func(d *Draft) bool { return d.ID == id })
}

// Drop deletes a draft.
func (m *Image) Drop(id string) {
	m.Drafts = slices.DeleteFunc(m.Drafts, func(d *Draft) bool { return d.ID == id })
}

// Offered returns a component from the imported depots, or nil if there is none. An empty version matches any version.
func (l *Lifecycle) Offered(name, version string) *Bundle {
	for i, b := range l.Bundles {
		if b.Name == name && (version == "" || b.Version == version) && slices.Contains(l.Depots, b.Location) {
			return &l.Bundles[i]
		}
	}
	return nil
}

// Installed returns the components of a host's booted image: those of which every VIB is installed.
func (l *Lifecycle) Installed(h *Host) map[string]string {
	out := map[string]string{}
	for _, b := range l.Bundles {
		has := func(v VIB) bool { a := h.Active(v.Name); return a != nil && a.Version == v.Version }
		if len(b.VIBs) > 0 && !slices.ContainsFunc(b.VIBs, func(v VIB) bool { return !has(v) }) {
			out[b.Name] = b.Version
		}
	}
	return out
}

// Compliant reports whether a host has exactly the components of its cluster's image, which must exist.
func (s *State) Compliant(h *Host) bool {
	return maps.Equal(s.Lifecycle.Installed(h), s.ClusterServices(h.Cluster).Image.Components)
}

// Remediate stages the image of a host's cluster, which must exist, on the host for the next boot. Components that are not in the
// image are removed (KB 440252).
func (w *World) Remediate(host string) error {
	return w.setHost(host, func(s *State, h *Host) (Event, error) {
		var change ImageChange
		want := s.ClusterServices(h.Cluster).Image.Components
		for _, b := range s.Lifecycle.Bundles {
			in := want[b.Name] == b.Version
			for _, v := range b.VIBs {
				if in {
					if err := h.accepts(v, Install{}); err != nil {
						return Event{}, err
					}
					h.stage(v, Install{}, &change)
				} else if has := h.staged(v.Name); has != nil && has.Version == v.Version && want[b.Name] == "" {
					has.Pending = PendingRemove
				}
			}
		}
		return Event{What: HostImage, Detail: "remediated"}, nil
	})
}
