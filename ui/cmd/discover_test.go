package cmd_test

import (
	"crypto/tls"
	"strings"
	"testing"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// noView answers as a vCenter on which the account has no role on the root folder.
type noView struct{ mo.AuthorizationManager }

func (n *noView) HasPrivilegeOnEntity(*types.HasPrivilegeOnEntity) soap.HasFault {
	return &refusal{Res: &refused{"false"}}
}

// A refusal is the reply in vCenter's form; govmomi's own type omits false values.
type refusal struct {
	Res *refused `xml:"urn:vim25 HasPrivilegeOnEntityResponse"`
}

type refused struct {
	Returnval string `xml:"returnval"`
}

func (r *refusal) Fault() *soap.Fault { return nil }

// discover explains why there is nothing to select: there is none, or the account cannot see it.
func TestDiscoverSaysWhyNothingFits(t *testing.T) {
	for name, tt := range map[string]struct {
		datacenters int
		blind       bool // the account cannot read the root folder
		want        string
	}{
		"no datacenter": {0, false, "no host was found: vCenter has no datacenter"},
		"no rights":     {0, true, "has no role that shows it a datacenter (System.View is not granted on the root folder)"},
		"no host":       {1, false, "sees no host in its datacenters DC0"},
	} {
		t.Run(name, func(t *testing.T) {
			model := simulator.VPX()
			model.Datacenter, model.Host, model.Cluster, model.Machine = tt.datacenters, 0, 0, 0
			t.Cleanup(model.Remove)
			if err := model.Create(); err != nil {
				t.Fatal(err)
			}
			if tt.blind {
				model.Map().Put(&noView{mo.AuthorizationManager{Self: *model.ServiceContent.AuthorizationManager}})
			}
			model.Service.TLS = new(tls.Config)
			s := model.Service.NewServer()
			t.Cleanup(s.Close)
			state := t.TempDir()
			env := map[string]string{"HOME": state, "XDG_STATE_HOME": state, "XDG_CONFIG_HOME": state,
				"GOVC_URL":      s.URL.Scheme + "://" + s.URL.Host + "/sdk",
				"GOVC_USERNAME": s.URL.User.Username(), "GOVC_PASSWORD": "pass", "GOVC_INSECURE": "true"}
			_, errs, code := inProcess(env, "discover", "--insecure")
			if code != 3 || !strings.Contains(errs, tt.want) || strings.Contains(errs, "0 hosts") {
				t.Errorf("exit %d\n%s", code, errs)
			}
		})
	}
	t.Run("no host answers", func(t *testing.T) {
		l, err := lab.Start(t.Context(), lab.Options{Hosts: 2, VMs: 1, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		closeAtEnd(t, l)
		err = l.World().Update(func(s *world.State) (all []world.Event, _ error) {
			for _, h := range s.Hosts {
				h.State = world.Down
				all = append(all, world.Event{What: world.HostDown, Host: h.Name})
			}
			return all, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		out, errs, code := inProcess(environment(l, t.TempDir()), "discover")
		if code != 3 || !strings.Contains(errs, "not connected to any of the 2 hosts; esx-01 is notResponding") ||
			strings.Count(out, "no        is on a host that is notResponding") != 8 {
			t.Errorf("exit %d\n%s%s", code, out, errs)
		}
	})
}
