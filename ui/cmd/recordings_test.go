package cmd_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmware/govmomi/simulator"
	_ "github.com/vmware/govmomi/vapi/simulator"

	"github.com/rdma-setup/rdma-setup/ui/cmd"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
)

// TestForeignInventories reads vCenters other than the lab: the stock simulator of govmomi and, if RDMA_SETUP_RECORDINGS names a
// directory of inventories recorded with "govc object.save", those. None has an RDMA card, and each command reports exactly that.
func TestForeignInventories(t *testing.T) {
	t.Parallel()
	vpx := simulator.VPX()
	if err := vpx.Create(); err != nil {
		t.Fatal(err)
	}
	sites := map[string]*simulator.Model{"stock": vpx}
	if root := os.Getenv("RDMA_SETUP_RECORDINGS"); root != "" {
		dirs, err := os.ReadDir(root)
		if err != nil || len(dirs) == 0 {
			t.Fatalf("%s: %d recordings, %v", root, len(dirs), err)
		}
		for _, d := range dirs {
			m := &simulator.Model{}
			if err := m.Load(filepath.Join(root, d.Name())); err != nil {
				t.Fatal(err)
			}
			sites[d.Name()] = m
		}
	}
	for name, model := range sites {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(model.Remove)
			model.Service.RegisterEndpoints = true
			model.Service.Listen = &url.URL{User: url.UserPassword("admin", "secret-word")}
			model.Service.TLS = new(tls.Config)
			server := model.Service.NewServer()
			t.Cleanup(server.Close)
			dir := t.TempDir()
			ca, file := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "answers.yaml")
			write(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
			write(t, file, "apiVersion: rdma-setup/v1\nmode: pvrdma\nswitch: {name: RDMA-DVS, portgroup: RDMA-PG}\n")
			address := *server.URL
			address.User = nil
			for _, c := range []struct {
				args string
				code int
				says string
			}{
				{"discover", 3, "no RDMA device"},
				{"plan -f " + file, 3, "RoCE needs an adapter with an RDMA device"},
				{"check -f " + file, 1, "choose a pNIC that supports RoCE v2"},
			} {
				e, out := console.OSEnv(), &strings.Builder{}
				e.Stdout, e.Stderr = out, out
				e.Getenv = func(key string) string {
					return map[string]string{"GOVC_URL": address.String(), "GOVC_USERNAME": "admin", "GOVC_PASSWORD": "secret-word",
						"GOVC_TLS_CA_CERTS": ca,
						"XDG_STATE_HOME":    dir, "HOME": dir}[key]
				}
				code := cmd.Run(context.Background(), e, strings.Fields(c.args))
				if code != c.code || !strings.Contains(out.String(), c.says) {
					t.Errorf("%s: exit %d, want %d with %q\n%s", c.args, code, c.code, c.says, out)
				}
				for _, wrong := range []string{"SIMULATED", "panic", "%!", "the 1 hosts", "the 0 hosts", "load the RDMA driver"} {
					if strings.Contains(out.String(), wrong) {
						t.Errorf("%s says %q\n%s", c.args, wrong, out)
					}
				}
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
