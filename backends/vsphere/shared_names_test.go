package vsphere_test

import (
	"testing"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// Clusters of two datacenters may have the same name (vSphere Web Services API, ManagedEntity.name). Each host belongs to its own,
// and answers may name it by its name and datacenter, or by its inventory path.
func TestClustersOfTheSameName(t *testing.T) {
	testclass.Plain(t)
	w := start(t, func(m *simulator.Model) { m.Datacenter = 2 }, func(m *simulator.Model) {
		for _, e := range m.Map().All("ClusterComputeResource") {
			c := e.(*simulator.ClusterComputeResource)
			dc := c.Name[:len("DC0")]
			c.Name = "Cluster"
			c.ConfigurationEx.(*types.ClusterConfigInfoEx).DasConfig.Enabled = types.NewBool(dc == "DC1")
		}
	})
	c := w.dial(t)
	inv := inventory(t, c, backends.Scope{})
	if len(inv.Clusters) != 2 {
		t.Fatalf("clusters %+v", inv.Clusters)
	}
	members := 0
	for _, h := range inv.Hosts {
		if h.Cluster == "" {
			continue
		}
		members++
		cl := inv.Cluster(h.Cluster)
		if cl == nil || cl.Datacenter != h.Datacenter || cl.HA != (h.Datacenter == "DC1") {
			t.Errorf("%s in %s: cluster %q is %+v", h.Name, h.Datacenter, h.Cluster, cl)
		}
		path := "/" + h.Datacenter + "/host/Cluster"
		for _, in := range [][2]string{{"", ""}, {h.Datacenter, "Cluster"}, {"", path}, {"/" + h.Datacenter, path}} {
			if !h.In(in[0], in[1]) {
				t.Errorf("%s is not in %q %q", h.Path, in[0], in[1])
			}
		}
		if h.In("", "Cluster of another name") || h.In("DC2", "Cluster") || h.In("", "/DC2/host/Cluster") {
			t.Errorf("%s is in a cluster of another name", h.Path)
		}
	}
	for _, scope := range []backends.Scope{{Datacenter: "DC1", Cluster: "Cluster"}, {Cluster: "/DC1/host/Cluster"}} {
		some := inventory(t, c, scope)
		if len(some.Hosts) != members/2 || members == 0 || len(some.Clusters) != 1 || some.Clusters[0].Name != "/DC1/host/Cluster" {
			t.Errorf("%+v: %d of %d hosts, clusters %+v", scope, len(some.Hosts), members, some.Clusters)
		}
	}
}
