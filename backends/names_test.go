package backends_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
)

func TestBaseName(t *testing.T) {
	for name, want := range map[string]string{"vm-01": "vm-01", "/DC/vm/vm-01": "vm-01", "/DC/vm/a%2fb": "a/b", "/DC/vm/50%25%5C": `50%\`,
		"/DC/vm/%41": "%41", "a/b": "a/b", "": "", "/DC/vm/100%": "100%"} {
		if got := backends.BaseName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestHostIn(t *testing.T) {
	alone := backends.Host{Name: "esx-09", Path: "/DC/host/esx-09/esx-09", Datacenter: "DC"}
	for _, tt := range []struct {
		datacenter, cluster string
		want                bool
	}{{"", "", true}, {"DC", "", true}, {"/DC", "", true}, {"/D", "", false}, {"Other", "", false}, {"DC", "C", false},
		{"", "/DC/host/esx-09", false}} {
		if got := alone.In(tt.datacenter, tt.cluster); got != tt.want {
			t.Errorf("standalone host in %q %q: %t", tt.datacenter, tt.cluster, got)
		}
	}
	shared := backends.Host{Name: "esx-01", Path: "/F/DC/host/C/esx-01", Datacenter: "/F/DC", Cluster: "/F/DC/host/C"}
	for _, tt := range []struct {
		datacenter, cluster string
		want                bool
	}{{"DC", "C", true}, {"/F/DC", "C", true}, {"/DC", "C", false}, {"/F/DC", "/F/DC/host/C", true}, {"DC", "/DC/host/C", false},
		{"DC", "D", false}} {
		if got := shared.In(tt.datacenter, tt.cluster); got != tt.want {
			t.Errorf("host with shared names in %q %q: %t", tt.datacenter, tt.cluster, got)
		}
	}
}
