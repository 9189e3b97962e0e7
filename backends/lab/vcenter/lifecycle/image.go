package lifecycle

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// view calls read with the world and the image.
func (h *Handler) view(c call, read func(s *world.State, m *world.Image)) {
	h.f.World.View(func(s *world.State) { read(s, s.ClusterServices(c.cluster).Image) })
}

func (h *Handler) change(c call, do func(s *world.State, m *world.Image) error) error {
	return h.f.World.Update(func(s *world.State) ([]world.Event, error) { return nil, do(s, s.ClusterServices(c.cluster).Image) })
}

func details(l world.Lifecycle, name, version string) map[string]any {
	out := map[string]any{"version": version}
	if b := l.Offered(name, version); b != nil {
		out["details"] = map[string]any{"display_name": name, "vendor": b.Vendor, "display_version": version}
	}
	return out
}

// software returns an image in the format of the API.
func software(s *world.State, m *world.Image, base string, components map[string]string) map[string]any {
	list := map[string]any{}
	for name, version := range components {
		list[name] = details(s.Lifecycle, name, version)
	}
	out := map[string]any{
		"base_image": map[string]any{"version": base, "details": map[string]any{"display_name": "ESXi", "display_version": base,
			"release_date": "2024-06-25T00:00:00.000Z"}},
		"components": list, "solutions": map[string]any{},
	}
	if m.AddOn != "" {
		out["add_on"] = map[string]any{"name": m.AddOn, "version": "1.0", "details": map[string]any{"display_name": m.AddOn, "vendor": "OEM",
			"display_version": "1.0"}}
	}
	if m.Hardware != "" {
		out["hardware_support"] = map[string]any{"packages": map[string]any{m.Hardware: map[string]any{"pkg": "firmware", "version": "1.0"}}}
	}
	return out
}

func (h *Handler) image(c call) {
	h.view(c, func(s *world.State, m *world.Image) { c.answer(http.StatusOK, software(s, m, m.Base, m.Components)) })
}

func (h *Handler) policy(c call) {
	h.view(c, func(_ *world.State, m *world.Image) {
		power := "DO_NOT_CHANGE_VMS_POWER_STATE"
		if m.PowerOff {
			power = "POWER_OFF_VMS"
		}
		c.answer(http.StatusOK, map[string]any{"failure_action": map[string]any{"action": "FAIL"}, "pre_remediation_power_action": power,
			"enable_quick_boot": m.QuickBoot, "disable_dpm": true, "disable_hac": false, "evacuate_offline_vms": false,
			"enforce_hcl_validation": false})
	})
}

func (h *Handler) depots(c call) {
	h.f.World.View(func(s *world.State) {
		out := map[string]any{}
		for i, at := range s.Lifecycle.Depots {
			out[fmt.Sprint(i+1)] = map[string]any{"description": at, "source_type": "PULL", "location": at,
				"create_time": "2024-06-25T00:00:00.000Z"}
		}
		c.answer(http.StatusOK, out)
	})
}

// addDepot imports an offline bundle. If vCenter cannot fetch it, or it contains nothing for ESXi, the task fails. A bundle
// whose location is not one of the lab's own is downloaded and identified by its name.
func (h *Handler) addDepot(c call) {
	var spec struct {
		SourceType string `json:"source_type"`
		Location   string `json:"location"`
	}
	if !c.read(&spec) {
		return
	}
	if spec.SourceType != "PULL" || spec.Location == "" {
		c.refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "The location of the offline bundle must be specified.")
		return
	}
	h.start(c, "depots.offline", "create", func(*frame.Task) (any, error) {
		if err := h.fetch(c.r.Context(), &spec.Location); err != nil {
			return nil, err
		}
		return nil, h.change(c, func(s *world.State, _ *world.Image) error {
			switch l := &s.Lifecycle; {
			case !slices.ContainsFunc(l.Bundles, func(b world.Bundle) bool { return b.Location == spec.Location }):
				return fmt.Errorf("cannot download from %s: HTTP Error Code: 404", spec.Location)
			case slices.Contains(l.Depots, spec.Location):
				return fmt.Errorf("the depot with location %s already exists", spec.Location)
			}
			s.Lifecycle.Depots = append(s.Lifecycle.Depots, spec.Location)
			return nil
		})
	})
}

// fetch downloads an offline bundle, unless its location is one of the lab's own, and replaces the location by that of the lab's
// bundle of this name.
func (h *Handler) fetch(ctx context.Context, location *string) error {
	known, own := false, ""
	h.f.World.View(func(s *world.State) {
		for _, b := range s.Lifecycle.Bundles {
			known = known || b.Location == *location
			if path.Base(b.Location) == path.Base(*location) {
				own = b.Location
			}
		}
	})
	if known || !strings.HasPrefix(*location, "http://127.0.0.1:") {
		return nil
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(limited, http.MethodGet, *location, nil)
	if err != nil {
		return err
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("cannot download from %s: %w", *location, err)
	}
	defer func() { _ = got.Body.Close() }()
	n, err := io.Copy(io.Discard, got.Body)
	switch {
	case err != nil || got.StatusCode != http.StatusOK:
		return fmt.Errorf("cannot download from %s: HTTP Error Code: %d", *location, got.StatusCode)
	case n == 0 || own == "":
		return fmt.Errorf("the bundle at %s is not valid", *location)
	}
	*location = own
	return nil
}

func (h *Handler) components(c call) {
	h.f.World.View(func(s *world.State) {
		out := []any{}
		for _, b := range s.Lifecycle.Bundles {
			if s.Lifecycle.Offered(b.Name, b.Version) != nil {
				out = append(out, map[string]any{"name": b.Name, "display_name": b.Name, "vendor": b.Vendor,
					"versions": []any{map[string]any{"version": b.Version, "display_version": b.Version}}})
			}
		}
		c.answer(http.StatusOK, out)
	})
}

func metadata(d *world.Draft) map[string]any {
	return map[string]any{"owner": d.Owner, "status": "VALID", "creation_time": d.Made.UTC()}
}

func (h *Handler) drafts(c call) {
	h.view(c, func(_ *world.State, m *world.Image) {
		out := map[string]any{}
		for _, d := range m.Drafts {
			out[d.ID] = map[string]any{"metadata": metadata(d)}
		}
		c.answer(http.StatusOK, out)
	})
}

// owner returns the name of a user as it is shown as the owner of a draft.
func owner(user string) string {
	name, domain, ok := strings.Cut(user, "@")
	if !ok {
		return user
	}
	return strings.ToUpper(domain) + `\` + name
}

// create creates a draft. Each user can have one.
func (h *Handler) create(c call) {
	id := ""
	_ = h.change(c, func(_ *world.State, m *world.Image) error {
		if !slices.ContainsFunc(m.Drafts, func(d *world.Draft) bool { return strings.EqualFold(d.Owner, owner(c.user)) }) {
			id = m.NewDraft(owner(c.user)).ID
		}
		return nil
	})
	if id == "" {
		c.refuse(http.StatusBadRequest, "ALREADY_EXISTS", "There is already a draft created by this user.")
		return
	}
	c.answer(http.StatusCreated, id)
}

// withDraft calls a function with an existing draft.
func (h *Handler) withDraft(c call, do func(s *world.State, m *world.Image, d *world.Draft)) {
	_ = h.change(c, func(s *world.State, m *world.Image) error {
		d := m.Draft(c.r.PathValue("draft"))
		if d == nil {
			c.refuse(http.StatusNotFound, "NOT_FOUND", "There is no draft associated with the given identifier.")
			return nil
		}
		do(s, m, d)
		return nil
	})
}

func (h *Handler) draft(c call) {
	h.withDraft(c, func(s *world.State, m *world.Image, d *world.Draft) {
		c.answer(http.StatusOK, map[string]any{"metadata": metadata(d), "software": software(s, m, d.Base, d.Components)})
	})
}

func (h *Handler) discard(c call) {
	h.withDraft(c, func(_ *world.State, m *world.Image, d *world.Draft) {
		m.Drop(d.ID)
		c.answer(http.StatusNoContent, nil)
	})
}

func (h *Handler) edit(c call) {
	var spec struct {
		Set    map[string]*string `json:"components_to_set"`
		Delete []string           `json:"components_to_delete"`
	}
	if !c.read(&spec) {
		return
	}
	h.withDraft(c, func(_ *world.State, _ *world.Image, d *world.Draft) {
		for name, version := range spec.Set {
			d.Components[name] = ""
			if version != nil {
				d.Components[name] = *version
			}
		}
		for _, name := range spec.Delete {
			if _, has := d.Components[name]; !has {
				c.refuse(http.StatusNotFound, "NOT_FOUND", "The component "+name+" is not in the draft.")
				return
			}
		}
		for _, name := range spec.Delete {
			delete(d.Components, name)
		}
		c.answer(http.StatusNoContent, nil)
	})
}

// problems returns the reasons why a draft is invalid.
func problems(l world.Lifecycle, d *world.Draft) []any {
	out := []any{}
	for _, name := range slices.Sorted(maps.Keys(d.Components)) {
		text := ""
		switch b := l.Offered(name, d.Components[name]); {
		case b == nil:
			text = fmt.Sprintf("Component %s(%s) cannot be found in depot.", name, d.Components[name])
		case b.Conflict != "":
			text = b.Conflict
		default:
			continue
		}
		out = append(out, map[string]any{"id": "com.vmware.vcIntegrity.lifecycle.EsxImage.Error",
			"message": map[string]any{"default_message": text}})
	}
	return out
}

// actOnDraft validates a draft, scans the hosts for compliance with it, or commits it. Only a valid draft can be committed, and
// the commit deletes it.
func (h *Handler) actOnDraft(c call) {
	action := c.r.URL.Query().Get("action")
	if action != "validate" && action != "commit" && action != "scan" || c.r.URL.Query().Get("vmw-task") != "true" {
		c.refuse(http.StatusNotFound, "NOT_FOUND", "No such operation.")
		return
	}
	found := false
	h.withDraft(c, func(*world.State, *world.Image, *world.Draft) { found = true })
	if !found {
		return
	}
	h.start(c, "clusters.software.drafts", action, func(*frame.Task) (any, error) {
		if err := h.fails(action, c.on); err != nil {
			return nil, err
		}
		var result any
		err := h.change(c, func(s *world.State, m *world.Image) error {
			d := m.Draft(c.r.PathValue("draft"))
			if d == nil {
				return fmt.Errorf("the draft was deleted")
			}
			if action == "scan" {
				result = map[string]any{"status": "NON_COMPLIANT", "impact": "REBOOT_REQUIRED", "incompatible_hosts": []string{}}
				return nil
			}
			wrong := problems(s.Lifecycle, d)
			if action == "validate" {
				result = map[string]any{"errors": wrong, "warnings": []any{}, "info": []any{}}
				return nil
			}
			if len(wrong) > 0 {
				return fmt.Errorf("the draft is not valid")
			}
			m.Base, m.Components = d.Base, maps.Clone(d.Components)
			m.Commits++
			m.Drop(d.ID)
			result = fmt.Sprint(m.Commits)
			return nil
		})
		return result, err
	})
}

// installed lists the components of the running image of a host. The host must respond.
func (h *Handler) installed(c call) {
	h.f.World.View(func(s *world.State) {
		host := hostOf(s, c.r.PathValue("host"))
		switch {
		case host == nil:
			c.refuse(http.StatusNotFound, "NOT_FOUND", "There is no host associated with the given identifier.")
		case host.State != world.Up:
			c.refuse(http.StatusServiceUnavailable, "SERVICE_UNAVAILABLE", "The host does not respond.")
		default:
			out := map[string]any{"ESXi": map[string]any{"version": host.Version, "display_name": "ESXi", "display_version": host.Version}}
			for name, version := range s.Lifecycle.Installed(host) {
				out[name] = map[string]any{"version": version, "display_name": name, "display_version": version}
			}
			c.answer(http.StatusOK, out)
		}
	})
}

func hostOf(s *world.State, id string) *world.Host {
	for _, h := range s.Hosts {
		if model.HostRef(h).Value == id {
			return h
		}
	}
	return nil
}
