package vcenter

import (
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/vmware/govmomi/vim25/soap"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// folder serves files of VMs as vCenter does, to whoever has a session: GET /folder/VM/vmware.log?dcPath=DC&dsName=shared-01.
func (f *front) folder(w http.ResponseWriter, r *http.Request) {
	c, err := r.Cookie(soap.SessionCookieName)
	f.mu.Lock()
	known := err == nil && !f.ended[c.Value] && !f.sessions[c.Value].IsZero()
	f.mu.Unlock()
	if !known {
		w.Header().Set("WWW-Authenticate", `Basic realm="VMware HTTP server"`)
		http.Error(w, "401 Unauthorized", http.StatusUnauthorized)
		return
	}
	dir, file := path.Split(strings.TrimPrefix(r.URL.Path, "/folder/"))
	text, found := "", false
	f.world.View(func(s *world.State) {
		if q := r.URL.Query(); q.Get("dcPath") != s.Datacenter || q.Get("dsName") != "shared-01" {
			return
		}
		for _, v := range s.VMs {
			if v.Name == strings.TrimSuffix(dir, "/") && file == "vmware.log" {
				text, found = v.Log(0)
			}
		}
	})
	if !found {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = fmt.Fprint(w, text) // a client that has gone cannot be told
}
