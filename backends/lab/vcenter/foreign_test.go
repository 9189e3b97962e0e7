package vcenter_test

import (
	"bytes"
	"encoding/xml"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/performance"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

// Methods that the lab does not implement return NotSupported, and a method that panics returns a SystemError. Each is called
// twice: if a lock was not released, the second call would wait forever.
func TestNoCallHangsOrEndsTheLab(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	for range 2 {
		_, err := object.NewVirtualDiskManager(c.Client.Client).QueryVirtualDiskInfo(c.ctx, "[shared-01] vm-01/vm-01.vmdk", nil, false)
		refused(t, err, "NotSupported", "The operation is not supported on the object.")
		_, err = methods.CreateSecondaryVM_Task(c.ctx, c.Client.Client, &types.CreateSecondaryVM_Task{This: c.vm("vm-01").Reference()})
		refused(t, err, "NotSupported", "The operation is not supported on the object.")
		// The simulator's own method expects an entity.
		_, err = methods.AcknowledgeAlarm(c.ctx, c.Client.Client, &types.AcknowledgeAlarm{This: *c.ServiceContent.AlarmManager,
			Entity: *c.ServiceContent.AlarmManager})
		if f, _ := fault(err); err == nil || reflect.TypeOf(f) != reflect.TypeFor[*types.SystemError]() {
			t.Errorf("an alarm of no entity: %T %v", f, err)
		}
	}
}

// A request body that names no method, or has a data object in its place, gets a fault as the answer.
func TestInvalidRequestBodies(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: c.DefaultTransport().TLSClientConfig.Clone()}}
	t.Cleanup(web.CloseIdleConnections)
	for _, body := range []string{"", "<x>", envelope(""), envelope(`<NoSuchMethod xmlns="urn:vim25"/>`),
		envelope(`<AboutInfo xmlns="urn:vim25"/>`)} {
		res, err := web.Post(c.server.URL.String(), "text/xml", strings.NewReader(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusInternalServerError ||
			!bytes.Contains(text, []byte("<faultcode>ServerFaultCode</faultcode>")) {
			t.Errorf("%s: status %s, %v: %s", body, res.Status, err, text)
		}
		res.Body.Close()
	}
}

// The properties that Ansible's modules vmware_host_vmnic_info, vmware_dvswitch_info, vmware_dvs_portgroup_info,
// vmware_dvs_host, vmware_cluster_drs and vmware_guest_tools_info read without checking whether they exist.
func TestWhatAnsibleReads(t *testing.T) {
	c := start(t, scenario.Spec{Scenario: "done", Hosts: 1, VMs: 1})
	var of mo.HostNetworkSystem
	var groups []mo.DistributedVirtualPortgroup
	at := property.DefaultCollector(c.Client.Client)
	if err := at.RetrieveOne(c.ctx, types.ManagedObjectReference{Type: "HostNetworkSystem", Value: "networkSystem-1001"},
		[]string{"networkConfig"}, &of); err != nil {
		t.Fatal(err)
	}
	if n := of.NetworkConfig; n == nil || len(n.Pnic) == 0 || len(n.ProxySwitch) != 1 ||
		len(n.ProxySwitch[0].Spec.Backing.(*types.DistributedVirtualSwitchHostMemberPnicBacking).PnicSpec) != 1 {
		t.Errorf("network config %+v", n)
	}
	v, err := view.NewManager(c.Client.Client).CreateContainerView(c.ctx, c.ServiceContent.RootFolder, []string{"DistributedVirtualPortgroup"},
		true)
	if err == nil {
		err = v.Retrieve(c.ctx, []string{"DistributedVirtualPortgroup"}, []string{"config"}, &groups)
	}
	if err != nil || len(groups) == 0 {
		t.Fatal(groups, err)
	}
	for _, g := range groups {
		if p := g.Config.DefaultPortConfig.(*types.VMwareDVSPortSetting).MacManagementPolicy.MacLearningPolicy; p == nil || p.Enabled ||
			p.AllowUnicastFlooding == nil {
			t.Errorf("%s: MAC learning %+v", g.Config.Name, p)
		}
	}
	ports, err := methods.FetchDVPorts(c.ctx, c.Client.Client, &types.FetchDVPorts{This: *groups[0].Config.DistributedVirtualSwitch,
		Criteria: &types.DistributedVirtualSwitchPortCriteria{UplinkPort: types.NewBool(true)}})
	if err != nil || len(ports.Returnval) == 0 || ports.Returnval[0].Config.Name == "" {
		t.Errorf("%+v, %v", ports, err)
	}
	backing := of.NetworkConfig.ProxySwitch[0].Spec.Backing.(*types.DistributedVirtualSwitchHostMemberPnicBacking)
	if p := ports.Returnval[0]; p.Key != backing.PnicSpec[0].UplinkPortKey || p.ProxyHost == nil || p.Connectee == nil ||
		p.Connectee.NicKey != backing.PnicSpec[0].PnicDevice {
		t.Errorf("the first uplink port is %+v, the host's pNIC is on %+v", p, backing.PnicSpec[0])
	}
	for _, g := range groups {
		team := g.Config.DefaultPortConfig.(*types.VMwareDVSPortSetting).UplinkTeamingPolicy
		if team.ReversePolicy == nil || !*team.ReversePolicy.Value || team.RollingOrder == nil || *team.RollingOrder.Value {
			t.Errorf("%s: teaming %+v", g.Config.Name, team)
		}
	}

	var sw mo.VmwareDistributedVirtualSwitch
	var cluster mo.ClusterComputeResource
	for _, read := range []struct {
		of   types.ManagedObjectReference
		path string
		into any
	}{
		{*groups[0].Config.DistributedVirtualSwitch, "config", &sw}, {model.Cluster, "configurationEx", &cluster},
	} {
		if err := at.RetrieveOne(c.ctx, read.of, []string{read.path}, read.into); err != nil {
			t.Fatal(err)
		}
	}
	if f := sw.Config.(*types.VMwareDVSConfigInfo).IpfixConfig; f == nil || f.ActiveFlowTimeout != 60 || f.IdleFlowTimeout != 15 ||
		f.SamplingRate != 4096 {
		t.Errorf("NetFlow %+v", f)
	}
	if p := cluster.ConfigurationEx.(*types.ClusterConfigInfoEx).ProactiveDrsConfig; p == nil || *p.Enabled {
		t.Errorf("proactive DRS %+v", p)
	}
	use, err := methods.GetResourceUsage(c.ctx, c.Client.Client, &types.GetResourceUsage{This: model.Cluster})
	if err != nil || use.Returnval.MemCapacityMB != 512<<10 || use.Returnval.MemUsedMB == 0 {
		t.Errorf("use of the cluster %+v, %v", use, err)
	}
	var vm mo.VirtualMachine
	if err := at.RetrieveOne(c.ctx, c.vm("vm-01").Reference(), []string{"config"}, &vm); err != nil ||
		vm.Config.Tools.LastInstallInfo == nil ||
		len(vm.Config.DatastoreUrl) != 1 || vm.Config.DatastoreUrl[0].Name != "shared-01" {
		t.Errorf("%+v, %v", vm.Config, err)
	}
}

func envelope(body string) string {
	return `<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body>` + body + `</Body></Envelope>`
}

// SearchIndex.FindByUuid (vSphere Web Services API): a VM by its BIOS or instance UUID, a host by its BIOS UUID, null if there is none.
func TestFindByUUID(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 2, VMs: 3})
	vm, host := c.vm("vm-02").Reference(), c.host("esx-02").Reference()
	var v world.VM
	var h world.Host
	c.world.View(func(s *world.State) { v, h = *s.VM("vm-02"), *s.Host("esx-02") })
	s := object.NewSearchIndex(c.Client.Client)
	dc, err := c.find.DefaultDatacenter(c.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		uuid     string
		vms      bool
		instance *bool
		want     types.ManagedObjectReference
	}{{v.UUID, true, nil, vm}, {"50" + v.UUID[2:], true, types.NewBool(true), vm}, {h.UUID, false, nil, host},
		{h.UUID, true, nil, types.ManagedObjectReference{}}} {
		got, err := s.FindByUuid(c.ctx, dc, x.uuid, x.vms, x.instance)
		if err != nil || (got == nil) != (x.want.Value == "") || got != nil && got.Reference() != x.want {
			t.Errorf("%+v: %v, %v", x, got, err)
		}
	}
}

// RFC 9562: 8-4-4-4-12 digits. vCenter writes the bytes of a DVS's UUID separately.
func TestUUIDs(t *testing.T) {
	for _, kind := range []string{"vm", "host", "x"} {
		for i := range 300 {
			if id, err := uuid.Parse(world.UUID(kind, i)); err != nil || id.Version() != 4 || id.Variant() != uuid.RFC4122 ||
				id.String() != world.UUID(kind, i) {
				t.Fatalf("%s %d: %s: %v", kind, i, world.UUID(kind, i), err)
			}
		}
	}
	if id := world.SwitchUUID("x"); !regexp.MustCompile(`^([0-9a-f]{2} ){7}[0-9a-f]{2}-([0-9a-f]{2} ){7}[0-9a-f]{2}$`).MatchString(id) {
		t.Errorf("DVS %s", id)
	}
}

func TestPerformanceCounters(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	m := performance.NewManager(c.Client.Client)
	for _, entity := range []types.ManagedObjectReference{c.host("esx-01").Reference(), c.vm("vm-01").Reference()} {
		ids, err := m.AvailableMetric(c.ctx, entity, 20)
		if err != nil || len(ids) < 10 {
			t.Fatalf("%v: %d counters, %v", entity, len(ids), err)
		}
		samples, err := m.Query(c.ctx, []types.PerfQuerySpec{{Entity: entity, IntervalId: 20, MetricId: ids[:1]}})
		if err != nil {
			t.Fatal(err)
		}
		// "Data Collection Intervals": every 20 seconds, held for one hour.
		if n := len(samples[0].(*types.PerfEntityMetric).SampleInfo); n < 170 || n > 181 {
			t.Errorf("%v: %d samples of real time", entity, n)
		}
	}
}

// The data that pyVmomi reads before it logs in (SmartConnect uses the newest of its own versions that is listed), and that
// govmomi's UseServiceVersion reads.
func TestServiceVersions(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	if err := c.UseServiceVersion(); err != nil || c.Namespace != "urn:vim25" || c.Version != "8.0.3.0" {
		t.Fatalf("%s %s: %v", c.Namespace, c.Version, err)
	}
	u := *c.server.URL
	u.Path += "/vimServiceVersions.xml"
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: c.DefaultTransport().TLSClientConfig.Clone()}}
	t.Cleanup(web.CloseIdleConnections)
	res, err := web.Get(u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var list struct {
		Prior []string `xml:"namespace>priorVersions>version"`
	}
	if err := xml.NewDecoder(res.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	// The versions of pyVmomi 6.7.1, which is part of Debian 12.
	for _, version := range []string{"6.7.1", "6.7", "6.5", "6.0", "5.5", "5.1", "5.0", "4.1", "4.0"} {
		if !slices.Contains(list.Prior, version) {
			t.Errorf("%s is not among %v", version, list.Prior)
		}
	}
}
