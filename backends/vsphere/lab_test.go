package vsphere_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
)

// startLab serves the strict lab and connects to it.
func startLab(t *testing.T, o lab.Options) (*lab.Lab, *vsphere.Client) {
	t.Helper()
	o.Dir = t.TempDir()
	l, err := lab.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l, dialLab(t, l, vcenter.Admin, vcenter.Password)
}

func dialLab(t *testing.T, l *lab.Lab, user, password string) *vsphere.Client {
	t.Helper()
	c, err := vsphere.Dial(t.Context(), vsphere.Config{
		URL: l.URL().String(), Username: user, Password: word(password), CAFiles: []string{l.Dir() + "/ca.pem"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
