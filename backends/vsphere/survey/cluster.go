package survey

import (
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// clusterRow is a cluster while it is being read: the VMs of its overrides and rules have no names yet.
type clusterRow struct {
	ref       place.Ref
	cluster   backends.Cluster
	overrides map[place.Ref]string
	rules     []types.BaseClusterRuleInfo
	groups    []types.BaseClusterGroupInfo
}

// clusterOf reads the settings of a cluster; nil if the account may not see it.
func clusterOf(o wire.Object) *clusterRow {
	config, told := wire.Prop[types.ClusterConfigInfoEx](o, "configurationEx")
	if !told {
		return nil
	}
	r := &clusterRow{ref: o.Ref, overrides: map[place.Ref]string{}, rules: config.Rule, groups: config.Group}
	r.cluster = backends.Cluster{DRS: yes(config.DrsConfig.Enabled), DRSMode: string(config.DrsConfig.DefaultVmBehavior),
		HA: yes(config.DasConfig.Enabled)}
	if summary, told := wire.Prop[types.ClusterComputeResourceSummary](o, "summary"); told {
		r.cluster.EVC = &summary.CurrentEVCModeKey
	}
	if yes(config.DasConfig.Enabled) && yes(config.DasConfig.AdmissionControlEnabled) {
		r.cluster.Failover = failoverLevel(config.DasConfig)
	}
	if v := config.VsanConfigInfo; v != nil {
		r.cluster.VSAN = yes(v.Enabled)
	}
	for _, vm := range config.DrsVmConfig {
		switch {
		case vm.Enabled != nil && !*vm.Enabled:
			r.overrides[vm.Key] = "disabled"
		case vm.Behavior != "":
			r.overrides[vm.Key] = string(vm.Behavior)
		}
	}
	return r
}

// failoverLevel returns how many host failures admission control tolerates; at least one if it is on.
func failoverLevel(das types.ClusterDasConfigInfo) int {
	level := das.FailoverLevel
	switch p := das.AdmissionControlPolicy.(type) {
	case *types.ClusterFailoverLevelAdmissionControlPolicy:
		level = p.FailoverLevel
	case *types.ClusterFailoverResourcesAdmissionControlPolicy:
		level = p.FailoverLevel
	case *types.ClusterFailoverHostAdmissionControlPolicy:
		level = max(p.FailoverLevel, int32(len(p.FailoverHosts)))
	}
	return max(1, int(level))
}

func (r *clusterRow) join(x *place.Index) backends.Cluster {
	c := r.cluster
	c.Name, c.Datacenter = x.Name(r.ref), x.Datacenter(r.ref)
	for vm, mode := range r.overrides {
		if c.DRSOverride == nil {
			c.DRSOverride = map[string]string{}
		}
		c.DRSOverride[x.Name(vm)] = mode
	}
	c.Rules = drsRules(r.rules, r.groups, x.Name)
	return c
}

// drsRules reads the enabled affinity rules of a cluster; unknown kinds are left out.
func drsRules(rules []types.BaseClusterRuleInfo, groups []types.BaseClusterGroupInfo, name func(place.Ref) string) []backends.DRSRule {
	named := func(refs []place.Ref) []string {
		var out []string
		for _, ref := range refs {
			if n := name(ref); n != "" {
				out = append(out, n)
			}
		}
		slices.SortFunc(out, natural)
		return out
	}
	members := map[string][]string{}
	for _, g := range groups {
		switch g := g.(type) {
		case *types.ClusterVmGroup:
			members[g.Name] = named(g.Vm)
		case *types.ClusterHostGroup:
			members[g.Name] = named(g.Host)
		}
	}
	var out []backends.DRSRule
	for _, r := range rules {
		info := r.GetClusterRuleInfo()
		if !yes(info.Enabled) {
			continue
		}
		rule := backends.DRSRule{Name: info.Name, Mandatory: yes(info.Mandatory)}
		switch r := r.(type) {
		case *types.ClusterAntiAffinityRuleSpec:
			rule.Kind, rule.VMs = backends.RuleApart, named(r.Vm)
		case *types.ClusterAffinityRuleSpec:
			rule.Kind, rule.VMs = backends.RuleTogether, named(r.Vm)
		case *types.ClusterVmHostRuleInfo:
			rule.Kind, rule.VMs = backends.RuleHosts, members[r.VmGroupName]
			rule.Hosts, rule.NotHosts = members[r.AffineHostGroupName], members[r.AntiAffineHostGroupName]
		default:
			continue
		}
		out = append(out, rule)
	}
	return out
}

// mismatch is a finding of the health check of a DVS on a host.
type mismatch struct {
	host place.Ref
	what string
}

// checksHealth reports whether the VLAN and MTU check is enabled; the teaming check does not matter for RDMA.
func checksHealth(configs []types.BaseDVSHealthCheckConfig) bool {
	for _, c := range configs {
		if _, vlan := c.(*types.VMwareDVSVlanMtuHealthCheckConfig); vlan && yes(c.GetDVSHealthCheckConfig().Enable) {
			return true
		}
	}
	return false
}

// mismatchesOf returns the uplink ports whose configuration does not match the physical switch.
func mismatchesOf(results []types.BaseHostMemberHealthCheckResult) []string {
	var out []string
	for _, res := range results {
		switch r := res.(type) {
		case *types.VMwareDVSVlanHealthCheckResult:
			if len(r.UntrunkedVlan) > 0 {
				out = append(out, "uplink port "+r.UplinkPortKey+": VLAN "+ranges(r.UntrunkedVlan)+" not trunked")
			}
		case *types.VMwareDVSMtuHealthCheckResult:
			if r.MtuMismatch || len(r.VlanNotSupportSwitchMtu) > 0 {
				out = append(out,
					strings.TrimSuffix("uplink port "+r.UplinkPortKey+": MTU too small on the physical switch, VLAN "+ranges(r.VlanNotSupportSwitchMtu),
						", VLAN "))
			}
		}
	}
	return out
}

// securityOf returns what ports allow a guest to do with its MAC; since 6.7 it is in the MAC management policy, and vCenter keeps
// the older property equal if it is set at all.
func securityOf(port *types.VMwareDVSPortSetting) *backends.PortSecurity {
	set := func(p *types.BoolPolicy) bool { return p != nil && yes(p.Value) }
	switch {
	case port.MacManagementPolicy != nil:
		m := port.MacManagementPolicy
		return &backends.PortSecurity{MACChanges: yes(m.MacChanges), Forged: yes(m.ForgedTransmits)}
	case port.SecurityPolicy != nil:
		s := port.SecurityPolicy
		return &backends.PortSecurity{MACChanges: set(s.MacChanges), Forged: set(s.ForgedTransmits)}
	}
	return nil
}
