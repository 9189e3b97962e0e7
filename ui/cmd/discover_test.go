package cmd_test

import (
	"crypto/tls"
	"strings"
	"testing"

	"github.com/vmware/govmomi/simulator"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// discover says why there is nothing to choose: nothing to see, or nothing that answers.
func TestDiscoverSaysWhyNothingFits(t *testing.T) {
	t.Run("no host", func(t *testing.T) {
		model := simulator.VPX()
		model.Datacenter, model.Host, model.Cluster, model.Machine = 0, 0, 0, 0
		t.Cleanup(model.Remove)
		if err := model.Create(); err != nil {
			t.Fatal(err)
		}
		model.Service.TLS = new(tls.Config)
		s := model.Service.NewServer()
		t.Cleanup(s.Close)
		state := t.TempDir()
		env := map[string]string{"HOME": state, "XDG_STATE_HOME": state, "XDG_CONFIG_HOME": state, "GOVC_URL": s.URL.Scheme + "://" + s.URL.Host + "/sdk",
			"GOVC_USERNAME": s.URL.User.Username(), "GOVC_PASSWORD": "pass", "GOVC_INSECURE": "true"}
		_, errs, code := inProcess(env, "discover", "--insecure")
		if code != 3 || !strings.Contains(errs, "no host was found") || strings.Contains(errs, "0 hosts") {
			t.Errorf("exit %d\n%s", code, errs)
		}
	})
	t.Run("no host answers", func(t *testing.T) {
		l, err := lab.Start(t.Context(), lab.Options{Hosts: 2, VMs: 1, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
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
		if code != 3 || !strings.Contains(errs, "not connected to any of the 2 hosts; esx-01 is notResponding") || strings.Count(out, "no        is on a host that is notResponding") != 8 {
			t.Errorf("exit %d\n%s%s", code, out, errs)
		}
	})
}
