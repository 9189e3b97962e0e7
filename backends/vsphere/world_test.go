package vsphere_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/vmware/govmomi/simulator"

	"github.com/rdma-setup/rdma-setup/backends/vsphere"
)

// A world is a stock simulated vCenter over TLS.
type world struct {
	*simulator.Server
	model *simulator.Model
	ca    string
}

// start serves a model with the hosts and VMs that equip has configured.
func start(t *testing.T, shape func(*simulator.Model), equip func(*simulator.Model)) *world {
	t.Helper()
	model := simulator.VPX()
	model.Datastore = 1
	if shape != nil {
		shape(model)
	}
	if err := model.Create(); err != nil {
		t.Fatal(err)
	}
	if equip != nil {
		equip(model)
	}
	model.Service.Listen = &url.URL{User: url.UserPassword("admin", "secret-word")}
	model.Service.TLS = new(tls.Config)
	server := model.Service.NewServer()
	t.Cleanup(func() { server.Close(); model.Remove() })
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return &world{Server: server, model: model, ca: ca}
}

func (w *world) config() vsphere.Config {
	u := *w.URL
	u.User = nil
	return vsphere.Config{URL: u.String(), Username: "admin", Password: word("secret-word"), CAFiles: []string{w.ca}}
}

func word(s string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return s, nil }
}

func (w *world) dial(t *testing.T) *vsphere.Client {
	t.Helper()
	c, err := vsphere.Dial(t.Context(), w.config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
