package vcenter_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

func TestAvailableVersions(t *testing.T) {
	c := start(t, scenario.Spec{})
	res, err := methods.QueryAvailableDvsSpec(c.ctx, c.Client, &types.QueryAvailableDvsSpec{This: *c.ServiceContent.DvSwitchManager})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(res.Returnval); n != 6 || res.Returnval[n-1].Version != "8.0.3" {
		t.Errorf("versions %v", res.Returnval)
	}
}

// A newSwitch contains the values that a test changes in a valid DVS.
type newSwitch struct {
	name, version string
	folder        string // "": that of DC
	uplinks       []string
	mtu           int32
	hosts         []types.DistributedVirtualSwitchHostMemberConfigSpec
}

func (c *client) createDVS(n newSwitch) (*object.DistributedVirtualSwitch, error) {
	c.t.Helper()
	folder, err := c.find.Folder(c.ctx, cmp.Or(n.folder, "/DC/network"))
	if err != nil {
		c.t.Fatal(err)
	}
	spec := types.DVSCreateSpec{ConfigSpec: &types.VMwareDVSConfigSpec{MaxMtu: n.mtu,
		DVSConfigSpec: types.DVSConfigSpec{Name: n.name, Host: n.hosts}}}
	if n.uplinks != nil {
		spec.ConfigSpec.GetDVSConfigSpec().UplinkPortPolicy = &types.DVSNameArrayUplinkPortPolicy{UplinkPortName: n.uplinks}
	}
	if n.version != "" {
		spec.ProductInfo = &types.DistributedVirtualSwitchProductSpec{Version: n.version}
	}
	task, err := folder.CreateDVS(c.ctx, spec)
	if err != nil {
		return nil, err
	}
	info, err := task.WaitForResult(c.ctx, nil)
	if err != nil {
		return nil, err
	}
	return object.NewDistributedVirtualSwitch(c.Client.Client, info.Result.(types.ManagedObjectReference)), nil
}

func (c *client) member(op types.ConfigSpecOperation, host string, pnics ...string) types.DistributedVirtualSwitchHostMemberConfigSpec {
	b := &types.DistributedVirtualSwitchHostMemberPnicBacking{}
	for _, p := range pnics {
		b.PnicSpec = append(b.PnicSpec, types.DistributedVirtualSwitchHostMemberPnicSpec{PnicDevice: p})
	}
	return types.DistributedVirtualSwitchHostMemberConfigSpec{Operation: string(op), Host: c.host(host).Reference(), Backing: b}
}

// rdmaDVS creates a DVS with vmnic2 of all hosts, and a port group.
func (c *client) rdmaDVS() (*object.DistributedVirtualSwitch, types.ManagedObjectReference) {
	c.t.Helper()
	n := newSwitch{name: "rdma", uplinks: []string{"up1"}, mtu: 9000}
	for i := range 3 {
		n.hosts = append(n.hosts, c.member(types.ConfigSpecOperationAdd, fmt.Sprintf("esx-0%d", i+1), "vmnic2"))
	}
	dvs, err := c.createDVS(n)
	if err != nil {
		c.t.Fatal(err)
	}
	c.must(dvs.AddPortgroup(c.ctx, []types.DVPortgroupConfigSpec{{Name: "rdma-pg", Type: "earlyBinding", NumPorts: 8}}))
	return dvs, c.network("rdma-pg")
}

func (c *client) network(name string) types.ManagedObjectReference {
	c.t.Helper()
	n, err := c.find.Network(c.ctx, name)
	if err != nil {
		c.t.Fatal(err)
	}
	return n.Reference()
}

func (c *client) config(dvs *object.DistributedVirtualSwitch) *types.VMwareDVSConfigInfo {
	c.t.Helper()
	var d mo.DistributedVirtualSwitch
	c.read(dvs.Reference(), &d, "config")
	return d.Config.(*types.VMwareDVSConfigInfo)
}

func TestCreateSwitchRefused(t *testing.T) {
	for _, row := range []struct {
		name       string // with the number of the rule in the source, if it has one
		with       func(*client) newSwitch
		kind, text string
	}{
		{"unknown version", func(*client) newSwitch { return newSwitch{name: "d", version: "9.9.9"} },
			"InvalidArgument", "A specified parameter was not correct: spec.productInfo.version"},
		{"MTU beyond the capability (rule 13)", func(*client) newSwitch { return newSwitch{name: "d", mtu: 9500} },
			"InvalidArgument", "A specified parameter was not correct: spec.maxMtu"},
		{"no name", func(*client) newSwitch { return newSwitch{} }, "InvalidName", "The name '' is invalid."},
		{"name taken by a network", func(*client) newSwitch { return newSwitch{name: "VM Network"} },
			"DuplicateName", "The name 'VM Network' already exists."},
		{"same uplink twice", func(*client) newSwitch { return newSwitch{name: "d", uplinks: []string{"a", "a"}} },
			"InvalidArgument", "A specified parameter was not correct: spec.uplinkPortPolicy.uplinkPortName"},
		{"pNIC that does not exist (rule 12)", func(c *client) newSwitch {
			return newSwitch{name: "d", hosts: []types.DistributedVirtualSwitchHostMemberConfigSpec{c.member("add", "esx-01", "vmnic99")}}
		}, "DvsOperationBulkFault", "Cannot complete a vSphere Distributed Switch operation for one or more host members."},
		{"pNIC of another switch (rule 12)", func(c *client) newSwitch {
			return newSwitch{name: "d", hosts: []types.DistributedVirtualSwitchHostMemberConfigSpec{c.member("add", "esx-01", "vmnic0")}}
		}, "DvsOperationBulkFault", "Cannot complete a vSphere Distributed Switch operation for one or more host members."},
		{"more pNICs than uplinks", func(c *client) newSwitch {
			return newSwitch{name: "d", uplinks: []string{"a"},
				hosts: []types.DistributedVirtualSwitchHostMemberConfigSpec{c.member("add", "esx-01", "vmnic2", "vmnic3")}}
		}, "DvsOperationBulkFault", "Cannot complete a vSphere Distributed Switch operation for one or more host members."},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := start(t, scenario.Spec{})
			_, err := c.createDVS(row.with(c))
			refused(t, err, row.kind, row.text)
			var n int
			c.world.View(func(s *world.State) { n = len(s.Switches) })
			if n != 0 {
				t.Error("the switch is there all the same")
			}
		})
	}
}

// Each datacenter has its own switches, whose names are unique there, and which have only its hosts.
func TestSwitchesOfTwoDatacenters(t *testing.T) {
	c := startWith(t, scenario.Spec{Hosts: 3}, func(s *world.State) {
		s.Others, s.Clusters = []string{"Other"}, []world.Cluster{{Name: s.Cluster, Datacenter: 1}}
		s.Hosts[2].Cluster = 1
	})
	own := c.member("add", "esx-01", "vmnic2")
	_, err := c.createDVS(newSwitch{name: "d", folder: "/Other/network", hosts: []types.DistributedVirtualSwitchHostMemberConfigSpec{own}})
	refused(t, err, "InvalidArgument", "A specified parameter was not correct: spec.host")
	for _, folder := range []string{"/DC/network", "/Other/network"} {
		if _, err := c.createDVS(newSwitch{name: "d", folder: folder}); err != nil {
			t.Fatal(err)
		}
		if found, err := c.find.Network(c.ctx, folder+"/d"); err != nil || found.GetInventoryPath() != folder+"/d" {
			t.Errorf("%v, %v", found, err)
		}
		_, err := c.createDVS(newSwitch{name: "d", folder: folder})
		refused(t, err, "DuplicateName", "The name 'd' already exists.")
	}
	if list, err := c.find.NetworkList(c.ctx, "/Other/network/*"); err != nil || len(list) < 2 {
		t.Errorf("networks of the other datacenter: %v, %v", list, err)
	}
}

func TestBulkFaultNamesHostAndReason(t *testing.T) {
	c := start(t, scenario.Spec{})
	_, err := c.createDVS(newSwitch{name: "d", hosts: []types.DistributedVirtualSwitchHostMemberConfigSpec{
		c.member("add", "esx-01", "vmnic2"), c.member("add", "esx-02", "vmnic99")}})
	f, _ := fault(err)
	bulk, ok := f.(*types.DvsOperationBulkFault)
	if !ok || len(bulk.HostFault) != 1 {
		t.Fatalf("fault %#v", f)
	}
	if bulk.HostFault[0].Host != c.host("esx-02").Reference() {
		t.Errorf("host %v", bulk.HostFault[0].Host)
	}
	want := "The physical network adapter 'vmnic99' does not exist on host esx-02."
	if got := bulk.HostFault[0].Fault.LocalizedMessage; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
}

func TestSwitchKeepsWhatWasSet(t *testing.T) {
	c := start(t, scenario.Spec{})
	dvs, _ := c.rdmaDVS()
	config := c.config(dvs)
	if config.MaxMtu != 9000 || len(config.Host) != 3 || len(config.UplinkPortgroup) != 1 || config.ProductInfo.Version != "8.0.3" {
		t.Errorf("MTU %d, %d hosts, %d uplink port groups, version %s", config.MaxMtu, len(config.Host), len(config.UplinkPortgroup),
			config.ProductInfo.Version)
	}
	if names := config.UplinkPortPolicy.(*types.DVSNameArrayUplinkPortPolicy).UplinkPortName; !slices.Equal(names, []string{"up1"}) {
		t.Errorf("uplinks %v", names)
	}
	net := c.hostMO("esx-02", "config.network").Config.Network
	if len(net.ProxySwitch) != 1 || net.ProxySwitch[0].Mtu != 9000 ||
		!slices.Equal(net.ProxySwitch[0].Pnic, []string{"key-vim.host.PhysicalNic-vmnic2"}) {
		t.Errorf("proxy switch %+v", net.ProxySwitch)
	}
	for _, r := range net.RdmaDevice {
		if r.Device == "vmrdma0" && r.ConnectionInfo.Mtu != 4096 {
			t.Errorf("RDMA MTU %d over Ethernet 9000, want 4096", r.ConnectionInfo.Mtu)
		}
	}
	res, err := methods.EnableNetworkResourceManagement(c.ctx, c.Client, &types.EnableNetworkResourceManagement{This: dvs.Reference(),
		Enable: false})
	if err != nil || res == nil {
		t.Fatal(err)
	}
	if c.config(dvs).NetworkResourceManagementEnabled {
		t.Error("network I/O control is still on")
	}
}

func TestReconfigureSwitch(t *testing.T) {
	c := start(t, scenario.Spec{})
	dvs, _ := c.rdmaDVS()
	spec := func(version string, mtu int32) types.BaseDVSConfigSpec {
		return &types.VMwareDVSConfigSpec{MaxMtu: mtu, DVSConfigSpec: types.DVSConfigSpec{ConfigVersion: version}}
	}
	refused(t, c.done(dvs.Reconfigure(c.ctx, spec("", 1500))), "InvalidArgument", "A specified parameter was not correct: spec.configVersion")
	stale := c.config(dvs).ConfigVersion
	c.must(dvs.Reconfigure(c.ctx, spec(stale, 1500)))
	refused(t, c.done(dvs.Reconfigure(c.ctx, spec(stale, 9000))), "ConcurrentAccess",
		"Cannot complete operation due to concurrent modification by another operation.")
	if mtu := c.config(dvs).MaxMtu; mtu != 1500 {
		t.Errorf("MTU %d, want 1500", mtu)
	}
	if mtu := c.hostMO("esx-03", "config.network").Config.Network.ProxySwitch[0].Mtu; mtu != 1500 {
		t.Errorf("MTU on the host %d, want 1500", mtu)
	}

	edit := func(m types.DistributedVirtualSwitchHostMemberConfigSpec) error {
		return c.done(dvs.Reconfigure(c.ctx, &types.DVSConfigSpec{ConfigVersion: c.config(dvs).ConfigVersion,
			Host: []types.DistributedVirtualSwitchHostMemberConfigSpec{m}}))
	}
	refused(t, edit(c.member("add", "esx-01", "vmnic2")), "AlreadyExists", "The specified key, name, or identifier 'esx-01' already exists.")
	if err := edit(c.member("edit", "esx-01", "vmnic3")); err != nil {
		t.Fatal(err)
	}
	if err := edit(c.member("remove", "esx-01")); err != nil {
		t.Fatal(err)
	}
	refused(t, edit(c.member("remove", "esx-01")), "NotFound", "The object or item referred to could not be found.")
	if n := len(c.hostMO("esx-01", "config.network").Config.Network.ProxySwitch); n != 0 {
		t.Error("the host that left still has a proxy switch")
	}
	if _, err := c.createDVS(newSwitch{name: "other",
		hosts: []types.DistributedVirtualSwitchHostMemberConfigSpec{c.member("add", "esx-01", "vmnic2")}}); err != nil {
		t.Errorf("the pNIC is not free again: %v", err)
	}
}

func TestOlderHostCannotJoin(t *testing.T) {
	c := start(t, scenario.Spec{})
	c.world.View(func(s *world.State) { s.Host("esx-02").Version = "7.0.3" })
	join := []types.DistributedVirtualSwitchHostMemberConfigSpec{c.member("add", "esx-02", "vmnic2")}
	_, err := c.createDVS(newSwitch{name: "new", hosts: join})
	f := refused(t, err, "DvsOperationBulkFault", "Cannot complete a vSphere Distributed Switch operation for one or more host members.")
	if got := f.(*types.DvsOperationBulkFault).HostFault[0].Fault.LocalizedMessage; got != "Host esx-02 is not compatible with the VDS "+
		"version 8.0.3." {
		t.Errorf("text %q", got)
	}
	if _, err := c.createDVS(newSwitch{name: "old", version: "7.0.3", hosts: join}); err != nil {
		t.Error(err)
	}
}

func TestDestroySwitch(t *testing.T) {
	c := start(t, scenario.Spec{Scenario: "done", Hosts: 2, VMs: 2})
	net, err := c.find.Network(c.ctx, "RDMA-DVS")
	if err != nil {
		t.Fatal(err)
	}
	dvs := object.NewDistributedVirtualSwitch(c.Client.Client, net.Reference())
	refused(t, c.done(dvs.Destroy(c.ctx)), "ResourceInUse", "The resource 'RDMA-DVS' is in use.")
	group := object.NewCommon(c.Client.Client, c.network("RDMA-PG"))
	refused(t, c.done(group.Destroy(c.ctx)), "ResourceInUse", "The resource 'RDMA-PG' is in use.")
	for _, name := range []string{"vm-01", "vm-02"} {
		v := c.vm(name)
		devices, err := v.Device(c.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.RemoveDevice(c.ctx, false, devices.SelectByType((*types.VirtualVmxnet3Vrdma)(nil))...); err != nil {
			t.Fatal(err)
		}
	}
	c.must(dvs.Destroy(c.ctx))
	if _, err := c.find.Network(c.ctx, "RDMA-PG"); err == nil {
		t.Error("the port group outlived its switch")
	}
	h := c.hostMO("esx-01", "network", "config.network")
	if len(h.Network) != 1 || len(h.Config.Network.ProxySwitch) != 0 {
		t.Errorf("esx-01 still shows networks %v", h.Network)
	}
}
