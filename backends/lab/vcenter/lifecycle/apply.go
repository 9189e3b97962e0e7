package lifecycle

import (
	"fmt"
	"net/http"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

func (h *Handler) compliance(c call) {
	h.view(c, func(s *world.State, m *world.Image) {
		ok, not, away := []string{}, []string{}, []string{}
		for _, host := range s.Hosts {
			switch id := model.HostRef(host).Value; {
			case host.Cluster != c.cluster:
			case host.State != world.Up:
				away = append(away, id)
			case s.Compliant(host):
				ok = append(ok, id)
			default:
				not = append(not, id)
			}
		}
		status, impact := "COMPLIANT", "NO_IMPACT"
		if len(not) > 0 {
			status, impact = "NON_COMPLIANT", "REBOOT_REQUIRED"
		}
		c.answer(http.StatusOK, map[string]any{"status": status, "impact": impact, "scan_time": time.Now().UTC(), "commit": fmt.Sprint(m.Commits),
			"compliant_hosts": ok, "non_compliant_hosts": not, "incompatible_hosts": []string{}, "unavailable_hosts": away})
	})
}

// act scans the hosts, or remediates the given hosts. Only one such operation can run at a time.
func (h *Handler) act(c call) {
	switch q := c.r.URL.Query(); {
	case q.Get("vmw-task") != "true":
		c.refuse(http.StatusNotFound, "NOT_FOUND", "No such operation.")
	case q.Get("action") == "scan":
		if h.holds(c, "VcIntegrity.lifecycleSoftwareSpecification.Read") {
			h.start(c, "clusters.software", "scan", func(*frame.Task) (any, error) { return nil, nil })
		}
	case q.Get("action") == "apply":
		if h.holds(c, "VcIntegrity.lifecycleSoftwareRemediation.Write", "VcIntegrity.lifecycleHealth.Read") {
			h.apply(c)
		}
	default:
		c.refuse(http.StatusNotFound, "NOT_FOUND", "No such operation.")
	}
}

func (h *Handler) apply(c call) {
	var spec struct {
		Hosts  []string `json:"hosts"`
		Accept bool     `json:"accept_eula"`
	}
	if !c.read(&spec) {
		return
	}
	var hosts []string
	refused := false
	_ = h.f.World.Update(func(s *world.State) ([]world.Event, error) {
		m := s.ClusterServices(c.cluster).Image
		refuse := func(status int, kind, text string) {
			refused = true
			c.refuse(status, kind, text)
		}
		for _, id := range spec.Hosts {
			host := hostOf(s, id)
			if host == nil || host.Cluster != c.cluster {
				refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "The host "+id+" is not part of the cluster.")
				return nil, nil
			}
			hosts = append(hosts, host.Name)
		}
		if len(spec.Hosts) == 0 {
			for _, host := range s.Hosts {
				if host.Cluster == c.cluster {
					hosts = append(hosts, host.Name)
				}
			}
		}
		switch {
		case m.Busy:
			refuse(http.StatusBadRequest, "NOT_ALLOWED_IN_CURRENT_STATE", "There is another operation in progress.")
		case !spec.Accept:
			refuse(http.StatusInternalServerError, "ERROR", "The EULA has not been accepted.")
		default:
			m.Busy = true
		}
		return nil, nil
	})
	if refused {
		return
	}
	h.start(c, "clusters.software", "apply", func(t *frame.Task) (any, error) {
		defer func() {
			_ = h.change(c, func(_ *world.State, m *world.Image) error { m.Busy = false; return nil })
		}()
		done, failed := []string{}, []string{}
		var why error
		for _, host := range hosts {
			if err := h.remediate(t, host); err != nil {
				failed, why = append(failed, host), err
				break // the operation stops at the first host that fails
			}
			done = append(done, host)
		}
		result := map[string]any{"status": "OK", "commit": "1", "successful_hosts": done, "failed_hosts": failed, "skipped_hosts": []string{}}
		if why != nil {
			result["status"] = "ERROR"
		}
		return result, why
	})
}

// remediate applies the image to one host. It enters maintenance mode if necessary, installs the image, reboots, and restores
// the earlier mode.
func (h *Handler) remediate(t *frame.Task, name string) error {
	ready, before := false, false
	look := func() {
		h.f.World.View(func(s *world.State) {
			host := s.Host(name)
			ready, before = host.State == world.Up && s.Compliant(host), host.Maintenance
		})
	}
	if look(); ready {
		return nil
	}
	if err := h.fails("remediate", h.ref(name)); err != nil {
		return fmt.Errorf("remediation of the host %s failed: %w", name, err)
	}
	if !before {
		h.f.Commit.Lock()
		h.f.World.Evacuate(name)
		err := h.f.World.SetMaintenance(name, true)
		h.f.Commit.Unlock()
		if err != nil {
			return fmt.Errorf("the host %s cannot enter maintenance mode: %w", name, err)
		}
	}
	if err := h.f.World.Remediate(name); err != nil {
		return err
	}
	if err := h.f.World.RebootHost(name); err != nil {
		return err
	}
	was := before
	for look(); !ready; look() {
		if err := t.Wait(10 * time.Millisecond); err != nil {
			return err
		}
	}
	if was {
		return nil
	}
	return h.f.World.SetMaintenance(name, false)
}

func (h *Handler) ref(host string) (ref types.ManagedObjectReference) {
	h.f.World.View(func(s *world.State) { ref = model.HostRef(s.Host(host)) })
	return ref
}
