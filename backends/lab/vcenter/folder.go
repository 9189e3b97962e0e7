package vcenter

import (
	"io"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/soap"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// folder serves the files of VMs on the datastore, for example /folder/vm-01/vmware.log?dcPath=DC&dsName=shared-01. The caller
// needs a session, or must send a user name and password, and needs the privilege to browse the datastore (vSphere Web Services
// SDK, "Datastore access over HTTP").
func (f *front) folder(w http.ResponseWriter, r *http.Request) {
	user := f.user(r)
	switch {
	case user == "":
		w.Header().Set("WWW-Authenticate", `Basic realm="VMware HTTP server"`)
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	case !f.frame.Auth.Holds(user, "Datastore.Browse", model.Datastore):
		http.Error(w, "Forbidden", http.StatusForbidden)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "Method not allowed", http.StatusMethodNotAllowed)
		return
	}
	vm, name := path.Split(strings.TrimPrefix(r.URL.Path, "/folder/"))
	text, found := "", false
	f.world.View(func(s *world.State) {
		q := r.URL.Query()
		var v *world.VM
		if i := slices.IndexFunc(s.VMs, func(v *world.VM) bool { return v.Stem() == strings.Trim(vm, "/") }); i >= 0 {
			v = s.VMs[i]
		}
		if v == nil || q.Get("dsName") != "shared-01" || strings.TrimPrefix(q.Get("dcPath"), "/") != s.DatacenterName(s.VMDatacenter(v)) || !slices.Contains(model.VMFiles(v), name) {
			return
		}
		text, found = model.VMFile(v, name), true
	})
	if !found {
		http.Error(w, "Not found", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = io.WriteString(w, text) // the client has disconnected
}

// user returns the user name of the caller, identified by a valid session or by name and password.
func (f *front) user(r *http.Request) string {
	if name, password, ok := r.BasicAuth(); ok && f.frame.Auth.Valid(name, password) {
		return name
	}
	f.session(r)
	c, err := r.Cookie(soap.SessionCookieName)
	if err != nil {
		return ""
	}
	return f.frame.SessionUser(strings.Trim(c.Value, `"`))
}
