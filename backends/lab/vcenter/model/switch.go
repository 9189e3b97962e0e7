package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// SwitchExtra contains the vCenter data of a DVS that is not part of the world.
type SwitchExtra struct {
	Created  time.Time
	Contact  types.DVSContactInfo
	Policy   *types.DVSPolicy
	MaxPorts int32
}

// The limits of the MTU of a DVS.
const (
	MinMTU = 1280
	MaxMTU = 9190
)

// Number assigns identifiers to a new DVS, its port groups and their ports, and adds the uplink port group. The caller holds the
// lock of the world.
func Number(s *world.State, d *world.DVS) {
	if d.ID == "" {
		d.ID = fmt.Sprintf("dvs-%d", s.NextID())
		d.Changes = 1
	}
	if d.UplinkGroup() == nil {
		d.PortGroups = append([]*world.PortGroup{{
			Name: fmt.Sprintf("%s-DVUplinks-%s", d.Shown(), strings.TrimPrefix(d.ID, "dvs-")), Uplink: true, Trunk: "0-4094",
			Binding: "earlyBinding", Ports: len(d.Uplinks) * len(d.Members), Active: d.Uplinks,
		}}, d.PortGroups...)
	}
	for _, p := range d.PortGroups {
		if p.Key == "" {
			p.Key = fmt.Sprintf("dvportgroup-%d", s.NextID())
			p.Changes = 1
			p.First = d.NextPort
			d.NextPort += max(p.Ports, 1024)
		}
	}
	for _, v := range s.VMs {
		for _, a := range v.Adapters {
			if a.DVS == d.Name && a.PortKey == "" {
				a.PortKey, _ = FreePort(s, d, d.PortGroup(a.PortGroup))
			}
		}
	}
}

// FreePort returns an unused port of a port group and whether there is one. An elastic port group grows if necessary. also lists
// VMs that are not in the world, or not yet in their final state. The caller holds the lock of the world.
func FreePort(s *world.State, d *world.DVS, g *world.PortGroup, also ...*world.VM) (string, bool) {
	if g == nil {
		return "", false
	}
	used := map[string]bool{}
	for _, v := range append(slices.Clone(s.VMs), also...) {
		for _, a := range v.Adapters {
			if a.DVS == d.Name && a.PortGroup == g.Name {
				used[a.PortKey] = true
			}
		}
	}
	for i := range g.Ports {
		if key := strconv.Itoa(g.First + i); !used[key] {
			return key, true
		}
	}
	if !g.Expand && g.Binding != "ephemeral" {
		return "", false
	}
	g.Ports++
	return strconv.Itoa(g.First + g.Ports - 1), true
}

func switchObject(s *world.State, d *world.DVS) *mo.VmwareDistributedVirtualSwitch {
	obj := &mo.VmwareDistributedVirtualSwitch{}
	obj.ManagedEntity = entityOf(SwitchRef(d), d.Shown(), ptr(FolderOf(d)))
	fillSwitch(s, d, &obj.DistributedVirtualSwitch)
	return obj
}

func portGroupObject(s *world.State, d *world.DVS, p *world.PortGroup) *mo.DistributedVirtualPortgroup {
	obj := &mo.DistributedVirtualPortgroup{}
	obj.ManagedEntity = entityOf(PortGroupRef(p), p.Name, ptr(FolderOf(d)))
	fillPortGroup(s, d, p, obj)
	if p.Uplink {
		obj.Tag = []types.Tag{{Key: "SYSTEM/DVS.UPLINKPG"}}
	}
	return obj
}

func fillSwitch(s *world.State, d *world.DVS, obj *mo.DistributedVirtualSwitch) {
	extra, _ := d.Setting.(SwitchExtra)
	if extra.Created.IsZero() {
		extra.Created = time.Date(2025, time.March, 4, 9, 0, 0, 0, time.UTC)
	}
	product := Product(d.Version)
	config := &types.VMwareDVSConfigInfo{
		DVSConfigInfo: types.DVSConfigInfo{
			Uuid: d.UUID, Name: d.Shown(), NumPorts: int32(ports(d)), MaxPorts: 1<<31 - 1,
			UplinkPortPolicy:  &types.DVSNameArrayUplinkPortPolicy{UplinkPortName: slices.Clone(d.Uplinks)},
			DefaultPortConfig: PortSetting(d, &world.PortGroup{Active: d.Uplinks}),
			ProductInfo:       product, Policy: extra.Policy, Description: d.Note, ConfigVersion: strconv.Itoa(d.Changes),
			Contact: extra.Contact, CreateTime: extra.Created, NetworkResourceManagementEnabled: d.NIOC,
			HealthCheckConfig:             healthChecks(),
			DefaultProxySwitchMaxNumPorts: 9216, NetworkResourceControlVersion: "version3",
		},
		MaxMtu: int32(d.MTU), LinkDiscoveryProtocolConfig: discovery(d.Discovery), LacpApiVersion: "multipleLag",
		MulticastFilteringMode: "legacyFiltering",
		// Defaults: API reference, VMwareIpfixConfig.
		IpfixConfig: &types.VMwareIpfixConfig{ActiveFlowTimeout: 60, IdleFlowTimeout: 15, SamplingRate: 4096},
	}
	summary := types.DVSSummary{Name: d.Shown(), Uuid: d.UUID, NumPorts: int32(ports(d)), ProductInfo: &product,
		NumHosts:    int32(len(d.Members)),
		Description: d.Note, Contact: &types.DVSContactInfo{}}
	run := &types.DVSRuntimeInfo{}
	for n, m := range d.Members {
		h := s.Host(m.Host)
		host := HostRef(h)
		member := types.DistributedVirtualSwitchHostMember{
			RuntimeState: &types.DistributedVirtualSwitchHostMemberRuntimeState{CurrentMaxProxySwitchPorts: 9216},
			Config: types.DistributedVirtualSwitchHostMemberConfigInfo{Host: &host, MaxProxySwitchPorts: 9216, Backing: memberBacking(n, d, m),
				NsxSwitch: types.NewBool(false), EnsEnabled: types.NewBool(m.ENS), EnsInterruptEnabled: types.NewBool(m.Interrupt)},
			Status: memberStatus(h),
		}
		for i := range d.Uplinks {
			member.UplinkPortKey = append(member.UplinkPortKey, fmt.Sprint(uplinkPort(n, m, i)))
		}
		config.Host = append(config.Host, member)
		summary.HostMember = append(summary.HostMember, host)
		summary.Host = append(summary.Host, host)
		run.HostMemberRuntime = append(run.HostMemberRuntime, types.HostMemberRuntimeInfo{Host: host, Status: memberStatus(h)})
	}
	obj.Portgroup = nil
	for _, p := range d.PortGroups {
		obj.Portgroup = append(obj.Portgroup, PortGroupRef(p))
		summary.PortgroupName = append(summary.PortgroupName, p.Name)
		if p.Uplink {
			config.UplinkPortgroup = append(config.UplinkPortgroup, PortGroupRef(p))
		}
	}
	summary.Vm = connectedVMs(s, d, "")
	obj.Uuid, obj.Config, obj.Summary, obj.Runtime, obj.Capability = d.UUID, config, summary, run, capability()
	obj.Name = d.Shown()
}

func memberStatus(h *world.Host) string {
	if !h.Managed() {
		return "disconnected"
	}
	return "up"
}

// Product returns the description of a DVS version.
func Product(version string) types.DistributedVirtualSwitchProductSpec {
	return types.DistributedVirtualSwitchProductSpec{Name: "DVS", Vendor: "VMware, Inc.", Version: version, ForwardingClass: "etherswitch"}
}

// Feature returns the capabilities of a DVS.
func Feature() *types.VMwareDVSFeatureCapability {
	return &types.VMwareDVSFeatureCapability{
		DVSFeatureCapability: types.DVSFeatureCapability{NetworkResourceManagementSupported: true,
			NicTeamingPolicy: []string{"loadbalance_ip", "loadbalance_srcmac", "loadbalance_srcid", "failover_explicit", "loadbalance_loadbased"}},
		LldpSupported: types.NewBool(true),
		MtuCapability: &types.VMwareDvsMtuCapability{MinMtuSupported: MinMTU, MaxMtuSupported: MaxMTU},
	}
}

func capability() types.DVSCapability {
	return types.DVSCapability{DvsOperationSupported: types.NewBool(true), DvPortGroupOperationSupported: types.NewBool(true),
		DvPortOperationSupported: types.NewBool(true), FeaturesSupported: Feature()}
}

func discovery(text string) *types.LinkDiscoveryProtocolConfig {
	protocol, operation, ok := strings.Cut(text, " ")
	if !ok {
		return &types.LinkDiscoveryProtocolConfig{Protocol: "cdp", Operation: "none"}
	}
	return &types.LinkDiscoveryProtocolConfig{Protocol: protocol, Operation: operation}
}

func ports(d *world.DVS) int {
	n := 0
	for _, p := range d.PortGroups {
		n += p.Ports
	}
	return n
}

func connectedVMs(s *world.State, d *world.DVS, group string) []types.ManagedObjectReference {
	var list []types.ManagedObjectReference
	for _, v := range s.ConnectedVMs(d, group) {
		list = append(list, VMRef(v))
	}
	return list
}

func fillPortGroup(s *world.State, d *world.DVS, p *world.PortGroup, obj *mo.DistributedVirtualPortgroup) {
	self, sw := PortGroupRef(p), SwitchRef(d)
	obj.ManagedEntity.Name, obj.Network.Name, obj.Key = p.Name, p.Name, p.Key
	obj.Summary = &types.NetworkSummary{Network: &self, Name: p.Name, Accessible: true}
	obj.Config = types.DVPortgroupConfigInfo{
		Key: p.Key, Name: p.Name, NumPorts: int32(p.Ports), DistributedVirtualSwitch: &sw, DefaultPortConfig: PortSetting(d, p),
		Description: p.Note, Type: p.Binding, BackingType: "standard", ConfigVersion: strconv.Itoa(p.Changes),
		AutoExpand: types.NewBool(p.Expand), Uplink: types.NewBool(p.Uplink),
		Policy: &types.VMwareDVSPortgroupPolicy{DVPortgroupPolicy: types.DVPortgroupPolicy{BlockOverrideAllowed: true,
			PortConfigResetAtDisconnect:        true,
			NetworkResourcePoolOverrideAllowed: types.NewBool(false), TrafficFilterOverrideAllowed: types.NewBool(false)},
			IpfixOverrideAllowed: types.NewBool(false), MacManagementOverrideAllowed: types.NewBool(false)},
	}
	obj.PortKeys = nil
	for i := range p.Ports {
		if p.Uplink {
			break
		}
		obj.PortKeys = append(obj.PortKeys, strconv.Itoa(p.First+i))
	}
	if p.Uplink {
		for _, up := range UplinkPorts(s, d) {
			obj.PortKeys = append(obj.PortKeys, up.Key)
		}
	}
	obj.Host = nil
	for _, m := range d.Members {
		obj.Host = append(obj.Host, HostRef(s.Host(m.Host)))
	}
	obj.Vm = connectedVMs(s, d, p.Name)
}

// PortSetting returns the complete default port configuration of a port group: the settings of users on top of vCenter's
// defaults.
func PortSetting(d *world.DVS, p *world.PortGroup) *types.VMwareDVSPortSetting {
	no := func() *types.BoolPolicy { return &types.BoolPolicy{Value: types.NewBool(false)} }
	set := &types.VMwareDVSPortSetting{}
	if kept, ok := p.Setting.(types.VMwareDVSPortSetting); ok {
		*set = kept
	}
	if set.Blocked == nil {
		set.Blocked = no()
	}
	if set.IpfixEnabled == nil {
		set.IpfixEnabled = no()
	}
	if set.SecurityPolicy == nil {
		set.SecurityPolicy = &types.DVSSecurityPolicy{AllowPromiscuous: no(), MacChanges: no(), ForgedTransmits: no()}
	}
	if set.MacManagementPolicy == nil { // vCenter keeps both values identical
		set.MacManagementPolicy = &types.DVSMacManagementPolicy{AllowPromiscuous: policy(set.SecurityPolicy.AllowPromiscuous),
			MacChanges:      policy(set.SecurityPolicy.MacChanges),
			ForgedTransmits: policy(set.SecurityPolicy.ForgedTransmits)}
	}
	// MAC learning is disabled on a new DVS of 6.6.0 and later (API reference, DVSMacLearningPolicy: since vSphere API 6.7). The
	// other values are common in public scripts, and unverified.
	if mac := *set.MacManagementPolicy; mac.MacLearningPolicy == nil && !world.VersionLess(d.Version, "6.6.0") {
		mac.MacLearningPolicy = &types.DVSMacLearningPolicy{AllowUnicastFlooding: types.NewBool(true), Limit: ptr(int32(4096)),
			LimitPolicy: "DROP"}
		set.MacManagementPolicy = &mac
	}
	set.Vlan = &types.VmwareDistributedVirtualSwitchVlanIdSpec{VlanId: int32(p.VLAN)}
	if from, to, ok := strings.Cut(p.Trunk, "-"); ok {
		a, _ := strconv.Atoi(from)
		b, _ := strconv.Atoi(to)
		set.Vlan = &types.VmwareDistributedVirtualSwitchTrunkVlanSpec{VlanId: []types.NumericRange{{Start: int32(a), End: int32(b)}}}
	}
	team := types.VmwareUplinkPortTeamingPolicy{}
	if set.UplinkTeamingPolicy != nil {
		team = *set.UplinkTeamingPolicy
	}
	if team.Policy == nil {
		team.Policy = &types.StringPolicy{Value: "loadbalance_srcid"}
	}
	if team.NotifySwitches == nil {
		team.NotifySwitches = &types.BoolPolicy{Value: types.NewBool(true)}
	}
	if team.ReversePolicy == nil {
		team.ReversePolicy = &types.BoolPolicy{Value: types.NewBool(true)}
	}
	if team.RollingOrder == nil {
		team.RollingOrder = no()
	}
	for _, shaping := range []**types.DVSTrafficShapingPolicy{&set.InShapingPolicy, &set.OutShapingPolicy} {
		if *shaping == nil {
			*shaping = &types.DVSTrafficShapingPolicy{Enabled: no(), AverageBandwidth: &types.LongPolicy{Value: 100_000_000},
				PeakBandwidth: &types.LongPolicy{Value: 100_000_000}, BurstSize: &types.LongPolicy{Value: 100 << 20}}
		}
	}
	active := p.Active
	if active == nil && p.Standby == nil {
		active = d.Uplinks
	}
	team.UplinkPortOrder = &types.VMwareUplinkPortOrderPolicy{ActiveUplinkPort: slices.Clone(active),
		StandbyUplinkPort: slices.Clone(p.Standby)}
	set.UplinkTeamingPolicy = &team
	return set
}

// Security returns the Setting of a port group that accepts or rejects MAC address changes and forged transmits.
func Security(macChanges, forged bool) any {
	no := types.NewBool(false)
	set := func(on bool) *types.BoolPolicy { return &types.BoolPolicy{Value: types.NewBool(on)} }
	return types.VMwareDVSPortSetting{SecurityPolicy: &types.DVSSecurityPolicy{AllowPromiscuous: &types.BoolPolicy{Value: no},
		MacChanges: set(macChanges), ForgedTransmits: set(forged)}}
}

// syncSwitch updates a DVS and its port groups. It adds new objects and removes deleted ones. The folder is updated first,
// because a view adds a new object only if the folder already contains it.
func (t *Tree) syncSwitch(s *world.State, name string) {
	t.syncNetworks(s)
	if d := s.Switch(name); d != nil {
		t.put(switchObject(s, d))
		for _, p := range d.PortGroups {
			t.put(portGroupObject(s, d, p))
		}
	}
}

// put adds an object, or updates it if it exists.
func (t *Tree) put(obj mo.Reference) {
	if t.f.Reg.Get(obj.Reference()) == nil {
		t.f.Reg.Put(obj)
		return
	}
	t.f.Become(obj)
}

func policy(p *types.BoolPolicy) *bool {
	return types.NewBool(p != nil && p.Value != nil && *p.Value)
}

// healthChecks returns the health check configuration of a new DVS: all checks are disabled.
func healthChecks() []types.BaseDVSHealthCheckConfig {
	off := types.VMwareDVSHealthCheckConfig{DVSHealthCheckConfig: types.DVSHealthCheckConfig{Enable: types.NewBool(false), Interval: 1}}
	return []types.BaseDVSHealthCheckConfig{&types.VMwareDVSVlanMtuHealthCheckConfig{VMwareDVSHealthCheckConfig: off},
		&types.VMwareDVSTeamingHealthCheckConfig{VMwareDVSHealthCheckConfig: off}}
}
