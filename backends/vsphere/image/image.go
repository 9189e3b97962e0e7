// Package image reads and changes, through vSphere Lifecycle Manager, the image that manages a cluster, and remediates hosts.
// Source: vSphere Automation API reference, esx/settings and esx/hosts.
package image

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/vmware/govmomi/vapi/esx/settings/clusters"
	"github.com/vmware/govmomi/vapi/esx/settings/depots"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// KeepPower is the apply policy with which remediation never changes the power state of a VM.
const KeepPower = "DO_NOT_CHANGE_VMS_POWER_STATE"

// Images gives access to the images of one vCenter. It is safe for concurrent use.
type Images struct {
	conn   *wire.Conn
	places *place.Places

	mu        sync.Mutex
	locations []string
	turns     map[place.Ref]chan struct{} // Lifecycle Manager runs one operation at a time on a cluster
}

// New returns the images of a vCenter.
func New(conn *wire.Conn, places *place.Places) *Images {
	return &Images{conn: conn, places: places, turns: map[place.Ref]chan struct{}{}}
}

// Depots sets the URLs of offline bundles for components that vCenter does not have.
func (m *Images) Depots(locations []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.locations = slices.Clone(locations)
}

// Setters returns the setter of components. A wait above zero bounds the remediation of a host, which includes its reboot: it is for a
// simulation, where that takes a moment.
func (m *Images) Setters(wait time.Duration) map[backends.Kind]backends.Setter {
	limit := RemediationLimit
	if wait > 0 {
		limit = min(limit, wait)
	}
	return map[backends.Kind]backends.Setter{backends.KindImageComponent: setter{m, limit}}
}

func software(cluster place.Ref) string {
	return clusters.BasePath + "/" + cluster.Value + "/software"
}

// policy is the relevant part of an apply policy (Esx.Settings.Clusters.Policies.Apply.Effective).
type policy struct {
	Power     string `json:"pre_remediation_power_action"`
	QuickBoot bool   `json:"enable_quick_boot"`
}

// Read reads the images that manage the clusters of these hosts into the inventory, and the components of the hosts into the hosts.
// If a read fails, its error is stored instead.
func (m *Images) Read(ctx context.Context, inv *backends.Inventory, hosts []*backends.Host) {
	seen := map[string]bool{}
	for _, h := range hosts {
		if !h.Imaged() {
			continue
		}
		if h.System == nil {
			h.System = &backends.HostSystem{}
		}
		h.System.Components = backends.ReadFact(m.installed(ctx, backends.HostRef(h.Name)))
		c := inv.Cluster(h.Cluster)
		if c == nil || seen[c.Name] {
			continue
		}
		seen[c.Name] = true
		img, err := m.read(ctx, backends.ClusterRef(c.Name))
		if err != nil {
			img = &backends.ClusterImage{Error: wire.Explain(err, "", "read the image of "+c.Name).Error()}
		}
		c.Image = img
	}
}

func (m *Images) read(ctx context.Context, t backends.Ref) (*backends.ClusterImage, error) {
	cluster, err := m.places.Find(ctx, t)
	if err != nil {
		return nil, err
	}
	img := &backends.ClusterImage{Offered: map[string][]string{}}
	var is clusters.SettingsSoftwareInfo
	if err := m.conn.REST(ctx, "GET", software(cluster), nil, &is); err != nil {
		return nil, err
	}
	img.Base, img.AddOn, img.Hardware = is.BaseImage.Version, is.AddOn.Name, slices.Sorted(maps.Keys(is.HardwareSupport.Packages))
	now, err := m.document(ctx, software(cluster))
	if err != nil {
		return nil, err
	}
	img.Components = now.components
	if img.Drafts, _, err = m.drafts(ctx, cluster, now); err != nil {
		return nil, err
	}
	var apply policy
	if err := m.conn.REST(ctx, "GET", clusters.BasePath+"/"+cluster.Value+"/policies/apply/effective", nil, &apply); err != nil {
		return nil, err
	}
	img.Power, img.QuickBoot = apply.Power, apply.QuickBoot
	img.Offered, err = m.offered(ctx)
	return img, err
}

// offered returns the versions of the components in vCenter's depots, by name.
func (m *Images) offered(ctx context.Context) (map[string][]string, error) {
	var list []struct {
		Name     string                    `json:"name"`
		Versions []depots.ComponentVersion `json:"versions"`
	}
	err := m.conn.REST(ctx, "GET", "/api/esx/settings/depot-content/components", nil, &list)
	out := map[string][]string{}
	for _, c := range list {
		for _, v := range c.Versions {
			out[c.Name] = append(out[c.Name], v.Version)
		}
	}
	return out, err
}

// drafts returns the drafts of an image with their ids (Esx.Settings.Clusters.Software.Drafts.Summary); those of the account in
// use with their contents and whether they change more than components.
func (m *Images) drafts(ctx context.Context, cluster place.Ref, now document) (out []backends.ImageDraft, ids []string, err error) {
	var list map[string]struct {
		Metadata clusters.SettingsClustersSoftwareDraftsMetadata `json:"metadata"`
	}
	if err := m.conn.REST(ctx, "GET", software(cluster)+"/drafts", nil, &list); err != nil {
		return nil, nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(list)) {
		d := backends.ImageDraft{Owner: list[id].Metadata.Owner}
		if d.Ours = m.conn.Mine(d.Owner); d.Ours {
			var doc document
			doc, err = m.document(ctx, software(cluster)+"/drafts/"+id)
			if wire.IsREST(err, "NOT_FOUND") { // it was committed or deleted in the meantime
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			d.Components, d.Other = doc.components, !reflect.DeepEqual(doc.rest, now.rest)
		}
		out, ids = append(out, d), append(ids, id)
	}
	return out, ids, nil
}

// installed returns the components of the running image of a host, version by name.
func (m *Images) installed(ctx context.Context, t backends.Ref) (map[string]string, error) {
	host, err := m.places.Find(ctx, t)
	if err != nil {
		return nil, err
	}
	var list map[string]struct {
		Version string `json:"version"`
	}
	if err := m.conn.REST(ctx, "GET", "/api/esx/hosts/"+host.Value+"/software/installed-components", nil, &list); err != nil {
		return nil, wire.Explain(err, t.Name, "list the components of the host")
	}
	out := make(map[string]string, len(list))
	for name, c := range list {
		out[name] = c.Version
	}
	return out, nil
}

// turn waits until this program runs no other operation on a cluster; the caller calls done.
func (m *Images) turn(ctx context.Context, cluster place.Ref) (done func(), err error) {
	m.mu.Lock()
	turn := m.turns[cluster]
	if turn == nil {
		turn = make(chan struct{}, 1)
		m.turns[cluster] = turn
	}
	m.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for another operation on the image: %w", context.Cause(ctx))
	}
}

// RemediationLimit is the limit of a remediation, which includes a reboot and the start of a server with much memory. No other part of
// the program sets it.
const RemediationLimit = 90 * time.Minute

// editLimit is the limit of any other operation on an image.
const editLimit = 15 * time.Minute

// serve offers one file of this computer by HTTP until stop is called, at the address by which this computer reaches vCenter and
// under a path that nobody can guess. vCenter has an address for uploads too, but its documentation does not say how to use it
// (vSphere Automation API, Settings Depots Offline SourceType: PUSH); what it fetches (PULL) may be http, https or file. The packages
// in a bundle are signed.
func (m *Images) serve(ctx context.Context, file string) (location string, stop func(), err error) {
	f, err := os.Open(file)
	if err != nil {
		return "", nil, backends.Refusedf("", "name a file of this computer under sriov.components",
			"read the offline bundle: %w", err)
	}
	info, err := f.Stat()
	var here net.IP
	if err == nil {
		here, err = m.here(ctx)
	}
	var l net.Listener
	if err == nil {
		l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(here.String(), "0"))
	}
	if err != nil {
		_ = f.Close() // it was only read
		return "", nil, backends.Refusedf("", "import the file: Lifecycle Manager, Actions, Import Updates; then run "+
			"rdma-setup resume",
			"serve %s to vCenter: %w", file, err)
	}
	at := &url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/" + rand.Text() + "/" + filepath.Base(file)}
	srv := &http.Server{ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != at.Path {
				http.NotFound(w, r)
				return
			}
			http.ServeContent(w, r, filepath.Base(file), info.ModTime(), io.NewSectionReader(f, 0, info.Size()))
		})}
	go func() { _ = srv.Serve(l) }() // ends when it is closed
	return at.String(), func() {
		_ = srv.Close()
		_ = f.Close()
	}, nil
}

// here returns the address of this computer from which it reaches vCenter. Nothing is sent.
func (m *Images) here(ctx context.Context) (net.IP, error) {
	vc, err := url.Parse(m.conn.URL())
	if err != nil {
		return nil, err
	}
	port := vc.Port()
	if port == "" {
		port = "443"
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "udp", net.JoinHostPort(vc.Hostname(), port))
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	return c.LocalAddr().(*net.UDPAddr).IP, nil
}
