package guest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends"
)

// The license servers in a guest's token are tried; the token itself is not read.
func TestLicenseServers(t *testing.T) {
	for name, c := range map[string]struct {
		closed bool
		setup  string
		want   []backends.LicenseServer
		why    string
	}{
		"reached":        {want: []backends.LicenseServer{{Host: "dls.lab.example", Port: "443", Open: true}}},
		"not reached":    {closed: true, want: []backends.LicenseServer{{Host: "dls.lab.example", Port: "443"}}},
		"no token":       {setup: "rm /etc/nvidia/ClientConfigToken/*"},
		"no JSON":        {setup: "echo abc.def.ghi >$(ls /etc/nvidia/ClientConfigToken/*)", why: "other form"},
		"behind a proxy": {setup: "echo 'ProxyServerAddress=10.0.0.1' >/etc/nvidia/gridd.conf", why: "proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, config{os: "ubuntu-22.04", card: true, vgpu: true, unlicensed: c.closed})
			if c.setup != "" {
				m.root(t, c.setup)
			}
			n := m.Survey(t.Context(), m.vm).NVIDIA
			if seen := m.Survey(t.Context(), m.vm); seen.Built == nil || seen.NVIDIA.Driver == "" {
				t.Errorf("the survey ends with the license servers: %+v", seen)
			}
			if d := cmp.Diff(c.want, n.LicenseServers); d != "" || n.LicenseUnknown != c.why {
				t.Errorf("%q (-want +got)\n%s", n.LicenseUnknown, d)
			}
		})
	}
}
