package vsphere_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	labworld "github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// Automatic policies of the cluster, the switch and the port group, on a vCenter that has all of them enabled.
func TestPoliciesOfClusterAndSwitch(t *testing.T) {
	w := start(t, nil, func(m *simulator.Model) {
		reg := m.Map()
		cluster := reg.Any("ClusterComputeResource").(*simulator.ClusterComputeResource)
		var vms []types.ManagedObjectReference
		for _, e := range reg.All("VirtualMachine") {
			vms = append(vms, e.Reference())
		}
		cluster.ConfigurationEx = &types.ClusterConfigInfoEx{
			DrsConfig: types.ClusterDrsConfigInfo{Enabled: types.NewBool(true), DefaultVmBehavior: types.DrsBehaviorFullyAutomated},
			DasConfig: types.ClusterDasConfigInfo{Enabled: types.NewBool(true), AdmissionControlEnabled: types.NewBool(true),
				AdmissionControlPolicy: &types.ClusterFailoverResourcesAdmissionControlPolicy{FailoverLevel: 2}},
			VsanConfigInfo: &types.VsanClusterConfigInfo{Enabled: types.NewBool(true)},
			DrsVmConfig: []types.ClusterDrsVmConfigInfo{{Key: vms[0], Enabled: types.NewBool(false)},
				{Key: vms[1], Behavior: types.DrsBehaviorManual}},
			Rule: []types.BaseClusterRuleInfo{
				&types.ClusterAntiAffinityRuleSpec{ClusterRuleInfo: types.ClusterRuleInfo{Name: "apart", Enabled: types.NewBool(true)}, Vm: vms[:2]},
				&types.ClusterAffinityRuleSpec{ClusterRuleInfo: types.ClusterRuleInfo{Name: "off", Enabled: types.NewBool(false)}, Vm: vms[:2]},
				&types.ClusterVmHostRuleInfo{ClusterRuleInfo: types.ClusterRuleInfo{Name: "licence", Enabled: types.NewBool(true),
					Mandatory: types.NewBool(true)},
					VmGroupName: "VMs", AffineHostGroupName: "hosts"},
			},
			Group: []types.BaseClusterGroupInfo{
				&types.ClusterVmGroup{ClusterGroupInfo: types.ClusterGroupInfo{Name: "VMs"}, Vm: vms[2:3]},
				&types.ClusterHostGroup{ClusterGroupInfo: types.ClusterGroupInfo{Name: "hosts"}, Host: cluster.Host[:1]},
			},
		}
		cluster.Summary.(*types.ClusterComputeResourceSummary).CurrentEVCModeKey = "intel-cascadelake"

		dvs := reg.Any("DistributedVirtualSwitch").(*simulator.DistributedVirtualSwitch)
		config := dvs.Config.(*types.VMwareDVSConfigInfo)
		config.HealthCheckConfig = []types.BaseDVSHealthCheckConfig{
			&types.VMwareDVSTeamingHealthCheckConfig{VMwareDVSHealthCheckConfig: health(true)},
			&types.VMwareDVSVlanMtuHealthCheckConfig{VMwareDVSHealthCheckConfig: health(true)}}
		host := reg.Any("HostSystem").(*simulator.HostSystem)
		uplink := types.HostMemberUplinkHealthCheckResult{UplinkPortKey: "9"}
		dvs.Runtime = &types.DVSRuntimeInfo{HostMemberRuntime: []types.HostMemberRuntimeInfo{{Host: host.Self,
			HealthCheckResult: []types.BaseHostMemberHealthCheckResult{
				&types.VMwareDVSVlanHealthCheckResult{HostMemberUplinkHealthCheckResult: uplink, UntrunkedVlan: []types.NumericRange{{Start: 7, End: 7},
					{Start: 20, End: 29}}},
				&types.VMwareDVSMtuHealthCheckResult{HostMemberUplinkHealthCheckResult: uplink, MtuMismatch: true},
				&types.VMwareDVSMtuHealthCheckResult{HostMemberUplinkHealthCheckResult: uplink},
			}}}}
		for _, e := range reg.All("DistributedVirtualPortgroup") {
			g := e.(*simulator.DistributedVirtualPortgroup)
			if g.Config.Uplink == nil || !*g.Config.Uplink {
				g.Config.DefaultPortConfig = &types.VMwareDVSPortSetting{
					SecurityPolicy: &types.DVSSecurityPolicy{MacChanges: &types.BoolPolicy{Value: types.NewBool(true)}}}
			}
		}
		host.Config.GraphicsConfig = &types.HostGraphicsConfig{HostDefaultGraphicsType: "sharedDirect"}
		host.Config.Network.Pnic[0].DpuId = "dpu-1"
	})
	c := w.dial(t)
	inv := inventory(t, c, backends.Scope{Details: true})
	var names []string
	for _, v := range inv.VMs {
		names = append(names, v.Name)
	}
	if len(inv.Clusters) != 1 || len(inv.Clusters[0].DRSOverride) != 2 {
		t.Fatalf("%+v of %v", inv.Clusters, names)
	}
	modes := map[string]int{}
	for _, mode := range inv.Clusters[0].DRSOverride {
		modes[mode]++
	}
	inv.Clusters[0].DRSOverride = nil
	rules := inv.Clusters[0].Rules
	inv.Clusters[0].Rules = nil
	if len(rules) != 2 || len(rules[0].VMs) != 2 || rules[0].Kind != backends.RuleApart || rules[1].Kind != backends.RuleHosts ||
		!rules[1].Mandatory || len(rules[1].VMs) != 1 || len(rules[1].Hosts) != 1 || inv.Host(rules[1].Hosts[0]) == nil {
		t.Errorf("rules %+v", rules)
	}
	want := backends.Cluster{Name: "DC0_C0", Datacenter: "DC0", DRS: true, DRSMode: "fullyAutomated", HA: true, Failover: 2, VSAN: true,
		EVC: new("intel-cascadelake")}
	if diff := cmp.Diff(want, inv.Clusters[0]); diff != "" || modes["disabled"] != 1 || modes["manual"] != 1 {
		t.Errorf("%s%v", diff, modes)
	}
	dvs := inv.Switches[0]
	if h := dvs.Health; h == nil || !h.Enabled || len(h.Mismatch) != 2 || h.Mismatch[0] == h.Mismatch[1] {
		t.Errorf("health %+v", h)
	}
	secure := 0
	for _, g := range inv.PortGroups {
		if g.Security != nil && *g.Security == (backends.PortSecurity{MACChanges: true}) {
			secure++
		}
	}
	if secure == 0 {
		t.Errorf("no port group lets guests change the MAC: %+v", inv.PortGroups)
	}
	direct, dpu := 0, 0
	for _, h := range inv.Hosts {
		if h.GraphicsType == "sharedDirect" {
			direct++
		}
		for _, n := range h.NICs {
			if n.DPU == "dpu-1" {
				dpu++
			}
		}
	}
	if direct != 1 || dpu == 0 {
		t.Errorf("%d hosts keep GPUs for vGPU, %d pNICs belong to a DPU", direct, dpu)
	}
}

func health(on bool) types.VMwareDVSHealthCheckConfig {
	return types.VMwareDVSHealthCheckConfig{DVSHealthCheckConfig: types.DVSHealthCheckConfig{Enable: types.NewBool(on), Interval: 1}}
}

func TestPoliciesOfTheLab(t *testing.T) {
	l, c := startLab(t, lab.Options{Scenario: "done"})
	err := l.World().Update(func(s *labworld.State) ([]labworld.Event, error) {
		s.VMs[1].Extra = map[string]string{"NUMA.nodeAffinity": "1"}
		return []labworld.Event{{What: labworld.VMDevices, VM: s.VMs[1].Name}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	inv := inventory(t, c, backends.Scope{Details: true})
	if few := inventory(t, c, backends.Scope{Cluster: inv.Hosts[0].Cluster}); len(few.Clusters) != 1 {
		t.Errorf("of the one cluster: %+v", few.Clusters)
	}
	if len(inv.Clusters) != 1 || !inv.Clusters[0].DRS || inv.Clusters[0].HA || inv.Clusters[0].VSAN || inv.Clusters[0].EVC == nil ||
		*inv.Clusters[0].EVC != "" {
		t.Errorf("%+v", inv.Clusters)
	}
	if h := inv.Switches[0].Health; h == nil || h.Enabled || len(h.Mismatch) > 0 {
		t.Errorf("health %+v", h)
	}
	if g := inv.PortGroup("RDMA-PG").Security; g == nil || g.MACChanges || g.Forged {
		t.Errorf("security %+v", g)
	}
	if h := inv.Host("esx-01"); h.GraphicsType != "shared" {
		t.Errorf("graphics type %q", h.GraphicsType)
	}
	for i, want := range []string{"", "1"} {
		if v := inv.VMs[i]; v.NodeAffinity == nil || *v.NodeAffinity != want || v.CPUReserved == nil || *v.CPUReserved != 0 {
			t.Errorf("%s: affinity %v, CPU %v", v.Name, v.NodeAffinity, v.CPUReserved)
		}
	}
	if n := len(inv.VCenter.Thumbprint); n != 32*3-1 {
		t.Errorf("thumbprint %q", inv.VCenter.Thumbprint)
	}
}
