// Package lifecycle implements the part of the vSphere Automation API that manages the image of a cluster (Lifecycle Manager):
// depots, drafts, compliance and the remediation of hosts. Source: vSphere Automation API reference, esx/settings, esx/hosts and
// cis/tasks; VMware vSphere Lifecycle Manager 8.0.
package lifecycle

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// A Handler serves the API. It stores sessions and tasks.
type Handler struct {
	f   *frame.Frame
	mux *http.ServeMux

	mu       sync.Mutex
	sessions map[string]string // user name by session id
	tasks    map[string]*task
}

// New returns the handler of a lab's vCenter.
func New(f *frame.Frame) *Handler {
	h := &Handler{f: f, mux: http.NewServeMux(), sessions: map[string]string{}, tasks: map[string]*task{}}
	const settings, cluster = "/api/esx/settings", "/api/esx/settings/clusters/{cluster}"
	const specRead, specWrite = "VcIntegrity.lifecycleSoftwareSpecification.Read", "VcIntegrity.lifecycleSoftwareSpecification.Write"
	h.mux.HandleFunc("POST /api/session", h.login)
	h.mux.HandleFunc("DELETE /api/session", h.logout)
	h.handle("GET /api/cis/tasks/{task}", "", h.task)
	h.handle("GET /api/esx/hosts/{host}/software/installed-components", specRead, h.installed)
	h.handle("GET "+settings+"/depots/offline", "VcIntegrity.lifecycleSettings.Read", h.depots)
	h.handle("POST "+settings+"/depots/offline", "VcIntegrity.lifecycleSettings.Write", h.addDepot)
	h.handle("GET "+settings+"/depot-content/components", "VcIntegrity.lifecycleSettings.Read", h.components)
	h.handle("GET "+cluster+"/policies/apply/effective", "VcIntegrity.lifecycleSettings.Read", h.policy)
	h.handle("GET "+cluster+"/software", specRead, h.image)
	h.handle("GET "+cluster+"/software/compliance", specRead, h.compliance)
	h.handle("POST "+cluster+"/software", "", h.act)
	h.handle("GET "+cluster+"/software/drafts", specRead, h.drafts)
	h.handle("POST "+cluster+"/software/drafts", specWrite, h.create)
	h.handle("GET "+cluster+"/software/drafts/{draft}", specRead, h.draft)
	h.handle("DELETE "+cluster+"/software/drafts/{draft}", specWrite, h.discard)
	h.handle("POST "+cluster+"/software/drafts/{draft}", specWrite, h.actOnDraft)
	h.handle("PATCH "+cluster+"/software/drafts/{draft}/software/components", specWrite, h.edit)
	return h
}

// Serves reports whether a path belongs to this API.
func Serves(path string) bool { return strings.HasPrefix(path, "/api/") }

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// A call is one authorized request of a user.
type call struct {
	w       http.ResponseWriter
	r       *http.Request
	user    string
	cluster int                          // of a path with {cluster}: number that hosts have
	on      types.ManagedObjectReference // cluster or host of the path; of other paths the root folder
}

// handle calls do only if the user is logged in and has the privilege.
func (h *Handler) handle(pattern, privilege string, do func(call)) {
	h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		user := h.sessions[r.Header.Get("vmware-api-session-id")]
		h.mu.Unlock()
		c := call{w: w, r: r, user: user, on: model.Root}
		name := r.PathValue("cluster")
		known, managed := false, false
		h.f.World.View(func(s *world.State) {
			for n := range len(s.Clusters) + 1 {
				if name == model.ClusterRef(n).Value {
					c.cluster, c.on, known, managed = n, model.ClusterRef(n), true, s.ClusterServices(n).Image != nil
				}
			}
			if host := hostOf(s, r.PathValue("host")); host != nil {
				c.on = model.HostRef(host)
			}
		})
		switch {
		case user == "":
			c.refuse(http.StatusUnauthorized, "UNAUTHENTICATED", "This method requires authentication.")
		case name != "" && !known:
			c.refuse(http.StatusNotFound, "NOT_FOUND", "There is no cluster associated with "+name+" in the system.")
		case privilege != "" && !h.holds(c, privilege): // it has answered
		case name != "" && !managed:
			c.refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "The cluster "+name+" is not managed with a single software specification.")
		default:
			do(c)
		}
	})
}

// holds reports whether the caller has the privileges on vCenter, and on the cluster or host that the request names. If not, it sends
// the error response. Source: VMware's vSphere Automation SDK for Python, esx.settings: "Method execution requires ...", "The
// resource ClusterComputeResource referenced by the parameter cluster requires ...".
func (h *Handler) holds(c call, privileges ...string) bool {
	for _, p := range privileges {
		if !h.f.Auth.Holds(c.user, p, model.Root) || !h.f.Auth.Holds(c.user, p, c.on) {
			c.denied(p)
			return false
		}
	}
	return true
}

func (c call) denied(privilege string) {
	c.refuse(http.StatusForbidden, "UNAUTHORIZED", "Unable to authorize user: "+privilege+" is required.")
}

// refuse sends an error response in the format of the API.
func (c call) refuse(status int, kind, text string) {
	c.answer(status,
		map[string]any{"error_type": kind,
			"messages": []any{map[string]any{"id": "com.vmware.lab", "default_message": text, "args": []string{}}}})
}

func (c call) answer(status int, body any) {
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(status)
	if body != nil {
		_ = json.NewEncoder(c.w).Encode(body) // the client has disconnected
	}
}

func (c call) read(into any) bool {
	err := json.NewDecoder(http.MaxBytesReader(c.w, c.r.Body, 1<<20)).Decode(into)
	if err != nil {
		c.refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "The body cannot be read: "+err.Error())
	}
	return err == nil
}

func (h *Handler) login(w http.ResponseWriter, r *http.Request) {
	c := call{w: w, r: r}
	name, password, ok := r.BasicAuth()
	if !ok || !h.f.Auth.Valid(name, password) {
		c.refuse(http.StatusUnauthorized, "UNAUTHENTICATED", "Authentication required.")
		return
	}
	id := uuid.NewString()
	h.mu.Lock()
	h.sessions[id] = name
	h.mu.Unlock()
	c.answer(http.StatusCreated, id)
}

func (h *Handler) logout(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	delete(h.sessions, r.Header.Get("vmware-api-session-id"))
	h.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

// A task is a running or finished operation of the API.
type task struct {
	Status    string         `json:"status"`
	Operation string         `json:"operation"`
	Service   string         `json:"service"`
	User      string         `json:"user"`
	Start     time.Time      `json:"start_time"`
	Error     map[string]any `json:"error,omitempty"`
	Result    any            `json:"result,omitempty"`
}

// fails returns the error that a fault rule defines for an operation, or nil if there is none. In rules, operations are named
// "lifecycle." plus the name of the operation.
func (h *Handler) fails(operation string, on types.ManagedObjectReference) error {
	if rule, hit := h.f.World.Faults.Take(h.f.Target(on), "lifecycle."+operation, ""); hit {
		return errors.New(rule.Arg)
	}
	return nil
}

// start starts an operation and responds with the id of its task.
func (h *Handler) start(c call, service, operation string, do func(*frame.Task) (any, error)) {
	id := uuid.NewString() + ":com.vmware.esx.settings." + service
	t := &task{Status: "RUNNING", Operation: operation, Service: "com.vmware.esx.settings." + service, User: c.user, Start: time.Now().UTC()}
	h.mu.Lock()
	h.tasks[id] = t
	h.mu.Unlock()
	end := func(result any, err error) (any, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		t.Status, t.Result = "SUCCEEDED", result
		if err != nil {
			t.Status = "FAILED"
			t.Error = map[string]any{"error_type": "ERROR",
				"messages": []any{map[string]any{"id": "com.vmware.lab", "default_message": err.Error(), "args": []string{}}}}
		}
		return nil, err
	}
	h.f.StartLong(&simulator.Context{Map: h.f.Reg}, "lifecycle."+operation, "com.vmware.esx.settings."+service+"."+operation, c.on,
		frame.TaskOptions{},
		func(ft *frame.Task) (any, error) {
			if err := ft.Walk(0); err != nil {
				return end(nil, err)
			}
			return end(do(ft))
		})
	c.answer(http.StatusAccepted, id)
}

func (h *Handler) task(c call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.tasks[c.r.PathValue("task")]; t != nil {
		c.answer(http.StatusOK, t)
		return
	}
	c.refuse(http.StatusNotFound, "NOT_FOUND", "Task not found.")
}
