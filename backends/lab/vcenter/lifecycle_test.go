package vcenter_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

// api is a session of the vSphere Automation API.
type api struct {
	c       *client
	http    *http.Client
	session string
}

const image = "/api/esx/settings/clusters/domain-c8/software"

func (c *client) api(user, password string) *api {
	c.t.Helper()
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: c.roots}}
	c.t.Cleanup(tr.CloseIdleConnections)
	a := &api{c: c, http: &http.Client{Transport: tr}}
	req := a.request("POST", "/api/session", nil)
	req.SetBasicAuth(user, password)
	_, body := a.do(req)
	if err := json.Unmarshal(body, &a.session); err != nil {
		c.t.Fatalf("%s: %v", body, err)
	}
	return a
}

func (a *api) request(method, path string, body any) *http.Request {
	a.c.t.Helper()
	text := []byte{}
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			a.c.t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(a.c.ctx, method, "https://"+a.c.server.URL.Host+path, bytes.NewReader(text))
	if err != nil {
		a.c.t.Fatal(err)
	}
	req.Header.Set("vmware-api-session-id", a.session)
	return req
}

func (a *api) do(req *http.Request) (int, []byte) {
	a.c.t.Helper()
	res, err := a.http.Do(req)
	if err != nil {
		a.c.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		a.c.t.Fatal(err)
	}
	return res.StatusCode, body
}

// want sends a request and checks the status and text of the response.
func (a *api) want(status int, text, method, path string, body any) string {
	a.c.t.Helper()
	got, reply := a.do(a.request(method, path, body))
	if got != status || !strings.Contains(string(reply), text) {
		a.c.t.Errorf("%s %s: %d %s, want %d %q", method, path, got, reply, status, text)
	}
	var id string
	_ = json.Unmarshal(reply, &id) // only some replies are an id
	return id
}

// ends waits for a task and checks its error text.
func (a *api) ends(id, text string) {
	a.c.t.Helper()
	for a.c.ctx.Err() == nil {
		_, reply := a.do(a.request("GET", "/api/cis/tasks/"+id, nil))
		if strings.Contains(string(reply), `"RUNNING"`) {
			continue // the request is asynchronous, as in every client of this API
		}
		if !strings.Contains(string(reply), text) {
			a.c.t.Errorf("%s, want %q", reply, text)
		}
		return
	}
}

type ids = map[string]any

func TestLifecycleRefusesUnauthorized(t *testing.T) {
	c := start(t, scenario.Spec{Scenario: "sriov-image", Hosts: 1, VMs: 1})
	stranger := &api{c: c, http: c.api(vcenter.Admin, vcenter.Password).http}
	stranger.want(401, "UNAUTHENTICATED", "GET", image, nil)
	reader := c.api(vcenter.ReadOnly, vcenter.Password)
	reader.want(403, "VcIntegrity.lifecycleSoftwareSpecification.Read", "GET", image, nil)
	admin := c.api(vcenter.Admin, vcenter.Password)
	admin.want(404, "NOT_FOUND", "GET", "/api/esx/settings/clusters/domain-c9/software", nil)
	admin.want(204, "", "DELETE", "/api/session", nil)
	admin.want(401, "UNAUTHENTICATED", "GET", image, nil)
}

func TestBaselinesHaveNoImage(t *testing.T) {
	c := start(t, scenario.Spec{Scenario: "bare", Hosts: 1, VMs: 1})
	c.api(vcenter.Admin, vcenter.Password).want(400, "not managed with a single software specification", "GET", image, nil)
}

func TestDraftsOfAnImage(t *testing.T) {
	c := start(t, scenario.Spec{Scenario: "sriov-image", Hosts: 1, VMs: 1})
	a := c.api(vcenter.Admin, vcenter.Password)
	id := a.want(201, "", "POST", image+"/drafts", nil)
	a.want(400, "ALREADY_EXISTS", "POST", image+"/drafts", nil)
	a.want(200, `VSPHERE.LOCAL\\administrator`, "GET", image+"/drafts", nil)
	draft := image + "/drafts/" + id
	var bundle world.Bundle
	c.world.View(func(s *world.State) { bundle = s.Lifecycle.Bundles[0] })
	a.want(204, "", "PATCH", draft+"/software/components", ids{"components_to_set": ids{bundle.Name: bundle.Version}})
	a.want(404, "is not in the draft", "PATCH", draft+"/software/components", ids{"components_to_delete": []string{"no-such"}})

	// No depot contains it yet.
	a.ends(a.want(202, "", "POST", draft+"?action=validate&vmw-task=true", nil), "cannot be found in depot")
	a.ends(a.want(202, "", "POST", draft+"?action=commit&vmw-task=true", ids{"message": ""}), "FAILED")
	add := func(location string) string {
		return a.want(202, "", "POST", "/api/esx/settings/depots/offline?vmw-task=true", ids{"source_type": "PULL", "location": location})
	}
	a.ends(add("http://depot.lab/no-such.zip"), "404")
	a.ends(add(bundle.Location), "SUCCEEDED")
	a.want(200, bundle.Version, "GET", "/api/esx/settings/depot-content/components", nil)
	a.ends(a.want(202, "", "POST", draft+"?action=validate&vmw-task=true", nil), `"errors":[]`)
	a.ends(a.want(202, "", "POST", draft+"?action=commit&vmw-task=true", ids{"message": ""}), "SUCCEEDED")
	a.want(404, "NOT_FOUND", "GET", draft, nil)
	a.want(200, bundle.Name, "GET", image, nil)
	a.want(200, "NON_COMPLIANT", "GET", image+"/compliance", nil)
}

func TestRemediation(t *testing.T) {
	c := start(t, scenario.Spec{Scenario: "sriov-image", Hosts: 2, VMs: 2})
	if err := c.world.Update(func(s *world.State) ([]world.Event, error) {
		b := s.Lifecycle.Bundles[0]
		s.Lifecycle.Depots, s.Services.Image.Components = []string{b.Location}, map[string]string{b.Name: b.Version}
		s.VMs[0].Local = true // the VM cannot leave the first host
		return nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	c.world.Timing.HostReboot = 10 * time.Millisecond
	a := c.api(vcenter.Admin, vcenter.Password)
	host := func(i int) string { return fmt.Sprintf("host-%d", 1001+i) }
	const apply = image + "?action=apply&vmw-task=true"
	a.want(500, "EULA", "POST", apply, ids{"hosts": []string{host(0)}})
	a.want(400, "not part of the cluster", "POST", apply, ids{"hosts": []string{"host-1"}, "accept_eula": true})
	busy := func(is bool) {
		if err := c.world.Update(func(s *world.State) ([]world.Event, error) { s.Services.Image.Busy = is; return nil, nil }); err != nil {
			t.Fatal(err)
		}
	}
	busy(true)
	a.want(400, "NOT_ALLOWED_IN_CURRENT_STATE", "POST", apply, ids{"hosts": []string{host(1)}, "accept_eula": true})
	busy(false)
	a.ends(a.want(202, "", "POST", apply, ids{"hosts": []string{host(0)}, "accept_eula": true}), "cannot enter maintenance mode")
	a.ends(a.want(202, "", "POST", apply, ids{"hosts": []string{host(1)}, "accept_eula": true}), `"successful_hosts":["esx-02"]`)
	a.want(200, "Mellanox-MFT-Tools", "GET", "/api/esx/hosts/"+host(1)+"/software/installed-components", nil)
	if _, reply := a.do(a.request("GET", "/api/esx/hosts/"+host(0)+"/software/installed-components", nil)); strings.Contains(string(reply),
		"Mellanox") {
		t.Errorf("the other host has it too: %s", reply)
	}
	c.world.View(func(s *world.State) {
		if s.Host("esx-02").Maintenance {
			t.Error("a host that was in service is left in maintenance mode")
		}
	})
}

// twoImages is a lab of two clusters of one host each, with a VM on the first host. The image of the second one has a component that its
// host lacks.
func twoImages(t *testing.T) *client {
	c := startWith(t, scenario.Spec{Scenario: "sriov-image", Hosts: 2, VMs: 1}, func(s *world.State) {
		b := s.Lifecycle.Bundles[0]
		s.Lifecycle.Depots = []string{b.Location}
		s.Clusters = []world.Cluster{{Name: "GPU",
			Services: world.Services{Image: &world.Image{Base: "8.0.3-0.35.24022510", Components: map[string]string{b.Name: b.Version}}}}}
		s.Hosts[1].Cluster = 1
	})
	c.world.Timing.HostReboot = 10 * time.Millisecond
	return c
}

const second = "/api/esx/settings/clusters/domain-c5001/software"

// Each cluster has its own image, drafts and hosts.
func TestImagesOfTwoClusters(t *testing.T) {
	c := twoImages(t)
	a := c.api(vcenter.Admin, vcenter.Password)
	a.want(200, `"components":{}`, "GET", image, nil)
	a.want(200, "Mellanox-MFT-Tools", "GET", second, nil)
	a.want(201, "", "POST", image+"/drafts", nil)
	a.want(200, "{}", "GET", second+"/drafts", nil)
	a.want(200, `"compliant_hosts":["host-1001"]`, "GET", image+"/compliance", nil)
	a.want(200, `"compliant_hosts":[]`, "GET", second+"/compliance", nil)
	a.want(200, `"non_compliant_hosts":["host-1002"]`, "GET", second+"/compliance", nil)

	if err := c.world.Update(func(s *world.State) ([]world.Event, error) { s.Services.Image.Busy = true; return nil, nil }); err != nil {
		t.Fatal(err)
	}
	const apply = "?action=apply&vmw-task=true"
	a.want(400, "not part of the cluster", "POST", image+apply, ids{"hosts": []string{"host-1002"}, "accept_eula": true})
	a.want(400, "not part of the cluster", "POST", second+apply, ids{"hosts": []string{"host-1001"}, "accept_eula": true})
	a.ends(a.want(202, "", "POST", second+apply, ids{"accept_eula": true}), `"successful_hosts":["esx-02"]`)
	a.want(200, `"compliant_hosts":["host-1002"]`, "GET", second+"/compliance", nil)
	a.want(200, "Mellanox-MFT-Tools", "GET", "/api/esx/hosts/host-1002/software/installed-components", nil)
	var first, other mo.ClusterComputeResource
	c.read(model.ClusterRef(0), &first, "recentTask")
	c.read(model.ClusterRef(1), &other, "recentTask")
	if len(first.RecentTask) != 0 || len(other.RecentTask) != 1 {
		t.Errorf("tasks of the first cluster %v, of the second one %v", first.RecentTask, other.RecentTask)
	}
}

// A role on one cluster is none on the other one and its hosts. Each operation needs the privilege on vCenter, too.
func TestLifecyclePrivilegesOfTwoClusters(t *testing.T) {
	c := twoImages(t)
	set := object.NewAuthorizationManager(c.Client.Client)
	role, err := set.AddRole(c.ctx, "reader", []string{"System.Read", "VcIntegrity.lifecycleSoftwareSpecification.Read",
		"VcIntegrity.lifecycleSettings.Read"})
	if err != nil {
		t.Fatal(err)
	}
	grant := func(on types.ManagedObjectReference, propagate bool) {
		if err := set.SetEntityPermissions(c.ctx, on,
			[]types.Permission{{Principal: `VSPHERE.LOCAL\readonly`, RoleId: role, Propagate: propagate}}); err != nil {
			t.Fatal(err)
		}
	}
	a := c.api(vcenter.ReadOnly, vcenter.Password)
	grant(model.ClusterRef(1), true)
	a.want(403, "UNAUTHORIZED", "GET", second, nil)
	a.want(403, "UNAUTHORIZED", "GET", "/api/esx/settings/depots/offline", nil)
	grant(model.Root, false)
	a.want(200, "Mellanox", "GET", second, nil)
	a.want(200, "ESXi", "GET", "/api/esx/hosts/host-1002/software/installed-components", nil)
	a.want(200, "http", "GET", "/api/esx/settings/depots/offline", nil)
	a.want(403, "UNAUTHORIZED", "GET", image, nil)
	a.want(403, "UNAUTHORIZED", "GET", "/api/esx/hosts/host-1001/software/installed-components", nil)
}
