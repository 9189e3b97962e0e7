package image

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/vmware/govmomi/vapi/esx/settings/clusters"
	"github.com/vmware/govmomi/vapi/esx/settings/depots"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// setter sets a component in the image of a cluster, or remediates a host with that image.
type setter struct {
	*Images
	remediation time.Duration // limit
}

// Read returns the version in the image, or in the running image of the host; Absent if it is not there.
func (s setter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	what := "read the component " + t.Name
	if t.Target.Type == backends.TypeHost {
		components, err := s.installed(ctx, t.Target)
		return valueOf(components, t.Name), wire.Explain(err, t.Target.Name, what)
	}
	cluster, err := s.places.Find(ctx, t.Target)
	if err != nil {
		return backends.Absent, wire.Explain(err, t.Target.Name, what)
	}
	img, _, err := s.edited(ctx, cluster)
	if err != nil {
		return backends.Absent, wire.Explain(err, t.Target.Name, what)
	}
	return img.Component(t.Name), nil
}

// edited is the part of an image that edits need: its components and drafts, with the ids of the drafts.
func (m *Images) edited(ctx context.Context, cluster place.Ref) (img *backends.ClusterImage, ids []string, err error) {
	img = &backends.ClusterImage{}
	doc, err := m.document(ctx, software(cluster))
	if err == nil {
		img.Components = doc.components
		img.Drafts, ids, err = m.drafts(ctx, cluster, doc)
	}
	return img, ids, err
}

func valueOf(components map[string]string, name string) backends.Value {
	if v, there := components[name]; there {
		return backends.ValueOf(v)
	}
	return backends.Absent
}

// A document is an image or a draft of one (Esx.Settings.SoftwareInfo).
type document struct {
	components map[string]string // added to the base image, version by name
	rest       map[string]any    // everything else: base image, add-on, firmware, removed components
}

func (m *Images) document(ctx context.Context, path string) (doc document, err error) {
	if err := m.conn.REST(ctx, http.MethodGet, path, nil, &doc.rest); err != nil {
		return doc, err
	}
	if of, is := doc.rest["software"].(map[string]any); is { // of a draft
		doc.rest = of
	}
	doc.components = map[string]string{}
	list, _ := doc.rest["components"].(map[string]any)
	for name, c := range list {
		info, _ := c.(map[string]any)
		doc.components[name], _ = info["version"].(string)
	}
	delete(doc.rest, "components")
	return doc, nil
}

// components returns the components that were added to the base image, of an image or a draft.
func (m *Images) components(ctx context.Context, path string) (map[string]string, error) {
	doc, err := m.document(ctx, path)
	return doc.components, err
}

// Set edits the image, or remediates the host.
func (s setter) Set(ctx context.Context, t backends.Setting, to backends.Value, progress backends.Progress) error {
	version := ""
	what := "remove " + t.Name
	if !to.IsAbsent() {
		if err := to.Decode(&version); err != nil {
			return backends.Permanentf(t.Target.Name, "", "set the component %s: %w", t.Name, err)
		}
		what = "add " + t.Name + " " + version
	}
	name := t.Target
	if t.Target.Type == backends.TypeHost {
		what = "remediate the host"
		host, err := s.places.Find(ctx, t.Target)
		if err != nil {
			return wire.Explain(err, t.Target.Name, what)
		}
		return wire.Explain(s.remediate(ctx, t, host, to, progress), t.Target.Name, what)
	}
	cluster, err := s.places.Find(ctx, name)
	if err != nil {
		return wire.Explain(err, name.Name, what)
	}
	done, err := s.turn(ctx, cluster)
	if err != nil {
		return wire.Explain(err, name.Name, what)
	}
	defer done()
	return wire.Explain(s.edit(ctx, t, cluster, version, what, progress), name.Name, "edit the image: "+what)
}

// edit changes the image through a new draft: it is scanned and validated before it is committed, and deleted if that fails.
func (s setter) edit(ctx context.Context, t backends.Setting, cluster place.Ref, version, what string, progress backends.Progress) error {
	img, ids, err := s.edited(ctx, cluster)
	if err != nil {
		return err
	}
	needed := img.Components[t.Name] != version
	if err := s.noDraft(ctx, t, cluster, img, ids, needed); err != nil || !needed {
		return err
	}
	if version != "" {
		if err := s.fetch(ctx, t.Name, version); err != nil {
			return err
		}
	}
	progress.Report(20)
	drafts := software(cluster) + "/drafts"
	var id string
	if err := s.conn.REST(ctx, http.MethodPost, drafts, nil, &id); err != nil {
		return err
	}
	draft := drafts + "/" + id
	if err := s.commit(ctx, t.Name, draft, version, what, progress); err != nil {
		// The draft must not block others, even if the run is interrupted. After the commit it no longer exists.
		tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if left := s.conn.REST(tidy, http.MethodDelete, draft, nil, nil); left != nil && !wire.IsREST(left, "NOT_FOUND") {
			return errors.Join(err, fmt.Errorf("its draft %s stays: %w", id, left))
		}
		return err
	}
	after, err := s.components(ctx, software(cluster))
	if err == nil && after[t.Name] != version {
		err = backends.Conflictf("", "look at the image of the cluster (Updates, Image); somebody else edits it",
			"it was committed, but reads back as %q", after[t.Name])
	}
	return err
}

func (s setter) commit(ctx context.Context, name, draft, version, what string, progress backends.Progress) error {
	change := clusters.SoftwareComponentsUpdateSpec{ComponentsToDelete: []string{name}}
	if version != "" {
		change = clusters.SoftwareComponentsUpdateSpec{ComponentsToSet: map[string]string{name: version}}
	}
	if err := s.conn.REST(ctx, http.MethodPatch, draft+"/software/components", change, nil); err != nil {
		return err
	}
	var said struct {
		Errors []struct {
			Message wire.Message `json:"message"`
		} `json:"errors"`
	}
	if err := s.conn.RESTTask(ctx, editLimit, draft+"?action=validate&vmw-task=true", nil, &said); err != nil {
		return fmt.Errorf("validate the draft: %w", err)
	}
	if len(said.Errors) > 0 {
		var list []wire.Message
		for _, e := range said.Errors {
			list = append(list, e.Message)
		}
		return backends.Refusedf("", "choose components that fit the base image and each other, then plan again",
			"the image would not be valid: %s", wire.Sentences(list))
	}
	progress.Report(50)
	var scan struct {
		Incompatible []string `json:"incompatible_hosts"`
	}
	if err := s.conn.RESTTask(ctx, editLimit, draft+"?action=scan&vmw-task=true", nil, &scan); err != nil {
		return fmt.Errorf("scan the hosts against the draft: %w", err)
	}
	if len(scan.Incompatible) > 0 {
		return backends.Refusedf("", "see why at the cluster: Updates, Image, Check compliance",
			"%d host(s) of the cluster are "+
				"incompatible with the image", len(scan.Incompatible))
	}
	progress.Report(80)
	spec := clusters.SettingsClustersSoftwareDraftsCommitSpec{Message: "rdma-setup: " + what}
	if err := s.conn.RESTTask(ctx, editLimit, draft+"?action=commit&vmw-task=true", spec, nil); err != nil {
		return fmt.Errorf("commit the draft: %w", err)
	}
	progress.Report(100)
	return nil
}

// noDraft fails if a change is needed and someone else is editing the image. A draft of this account that contains only this
// change was left by an interrupted run, and is deleted.
func (s setter) noDraft(ctx context.Context, t backends.Setting, cluster place.Ref, img *backends.ClusterImage, ids []string,
	needed bool) error {
	for i, d := range img.Drafts {
		if !img.Left(d, t.Name) {
			if !needed {
				continue
			}
			return backends.Refusedf("", "let "+d.Owner+" save or discard that draft (cluster, Updates, Image), then run "+
				"rdma-setup resume",
				"%s edits the image; that draft stays as it is", d.Owner)
		}
		if err := s.conn.REST(ctx, http.MethodDelete, software(cluster)+"/drafts/"+ids[i], nil, nil); err != nil &&
			!wire.IsREST(err, "NOT_FOUND") {
			return err
		}
	}
	return nil
}

// fetch imports the offline bundle of a component into vCenter, unless one of its depots has it.
func (s setter) fetch(ctx context.Context, name, version string) error {
	has, err := s.offered(ctx)
	if err != nil || slices.Contains(has[name], version) {
		return err
	}
	s.mu.Lock()
	locations := slices.Clone(s.locations)
	s.mu.Unlock()
	i := slices.IndexFunc(locations, func(l string) bool {
		c, ok := nic.Bundle(l)
		return ok && c.Name == name && c.Version == version
	})
	if i < 0 {
		return backends.Refusedf("",
			"name its offline bundle under sriov.components in the answers, or import it: Lifecycle Manager, Actions, Import Updates",
			"no depot of vCenter has %s %s", name, version)
	}
	from := locations[i]
	if nic.IsFile(from) {
		url, stop, err := s.serve(ctx, from)
		if err != nil {
			return err
		}
		defer stop()
		from = url
	}
	spec := depots.SettingsDepotsOfflineCreateSpec{SourceType: string(depots.SourceTypePull), Location: from,
		Description: "rdma-setup: " + name + " " + version}
	// An import that an earlier run started makes a second one fail, and may have finished by now.
	failed := s.conn.RESTTask(ctx, editLimit, depots.DepotsOfflinePath+"?vmw-task=true", spec, nil)
	has, err = s.offered(ctx)
	if failed != nil && (err != nil || !slices.Contains(has[name], version)) {
		if from != locations[i] {
			return backends.Refusedf("",
				"let vCenter reach this computer, or import the file: Lifecycle Manager, Actions, Import Updates; then run rdma-setup resume",
				"import %s, which vCenter was to fetch at %s: %w", locations[i], from, failed)
		}
		return fmt.Errorf("import %s: %w", locations[i], failed)
	}
	if err == nil && !slices.Contains(has[name], version) {
		err = backends.Refusedf("", "name the bundle COMPONENT_VERSION_BUILD.zip, as its vendor did",
			"%s does not hold %s %s; vCenter "+
				"has versions %v of it", locations[i], name, version, has[name])
	}
	return err
}
