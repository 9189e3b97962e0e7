package vcenter_test

import (
	"slices"
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

func setting(vlan int32, active ...string) *types.VMwareDVSPortSetting {
	s := &types.VMwareDVSPortSetting{Vlan: &types.VmwareDistributedVirtualSwitchVlanIdSpec{VlanId: vlan}}
	if active != nil {
		s.UplinkTeamingPolicy = &types.VmwareUplinkPortTeamingPolicy{UplinkPortOrder: &types.VMwareUplinkPortOrderPolicy{
			ActiveUplinkPort: active}}
	}
	return s
}

func TestPortGroupRefused(t *testing.T) {
	c := start(t, scenario.Spec{})
	dvs, _ := c.rdmaDVS()
	for _, row := range []struct {
		name       string
		spec       types.DVPortgroupConfigSpec
		kind, text string
	}{
		{"VLAN 5000 (rule 13)", types.DVPortgroupConfigSpec{Name: "a", DefaultPortConfig: setting(5000)},
			"InvalidArgument", "A specified parameter was not correct: spec.defaultPortConfig.vlan"},
		{"VLAN 4095 (rule 13)", types.DVPortgroupConfigSpec{Name: "a", DefaultPortConfig: setting(4095)},
			"InvalidArgument", "A specified parameter was not correct: spec.defaultPortConfig.vlan"},
		{"uplink that does not exist", types.DVPortgroupConfigSpec{Name: "a", DefaultPortConfig: setting(0, "nosuch")},
			"InvalidArgument", "A specified parameter was not correct: spec.defaultPortConfig.uplinkTeamingPolicy.uplinkPortOrder"},
		{"name taken", types.DVPortgroupConfigSpec{Name: "rdma-pg"}, "DuplicateName", "The name 'rdma-pg' already exists."},
		{"unknown binding", types.DVPortgroupConfigSpec{Name: "a", Type: "glue"}, "InvalidArgument",
			"A specified parameter was not correct: spec.type"},
	} {
		t.Run(row.name, func(t *testing.T) {
			refused(t, c.done(dvs.AddPortgroup(c.ctx, []types.DVPortgroupConfigSpec{{Name: "b"}, row.spec})), row.kind, row.text)
			if _, err := c.find.Network(c.ctx, "b"); err == nil {
				t.Error("the sound one of the two was added")
			}
		})
	}
}

func TestReconfigurePortGroupKeepsTheRest(t *testing.T) {
	c := start(t, scenario.Spec{})
	dvs, _ := c.rdmaDVS()
	policy := &types.DVSSecurityPolicy{ForgedTransmits: &types.BoolPolicy{Value: types.NewBool(true)}}
	made := setting(100, "up1")
	made.SecurityPolicy = policy
	c.must(dvs.AddPortgroup(c.ctx,
		[]types.DVPortgroupConfigSpec{{Name: "pg", Type: "earlyBinding", NumPorts: 16, Description: "ours", DefaultPortConfig: made}}))
	ref := c.network("pg")
	group := object.NewDistributedVirtualPortgroup(c.Client.Client, ref)
	read := func() types.DVPortgroupConfigInfo {
		var g mo.DistributedVirtualPortgroup
		c.read(ref, &g, "config", "portKeys")
		if len(g.PortKeys) != int(g.Config.NumPorts) {
			t.Errorf("%d port keys for %d ports", len(g.PortKeys), g.Config.NumPorts)
		}
		return g.Config
	}
	before := read()
	c.must(group.Reconfigure(c.ctx, types.DVPortgroupConfigSpec{ConfigVersion: before.ConfigVersion, DefaultPortConfig: setting(200)}))
	after := read()
	set := after.DefaultPortConfig.(*types.VMwareDVSPortSetting)
	if set.Vlan.(*types.VmwareDistributedVirtualSwitchVlanIdSpec).VlanId != 200 {
		t.Errorf("VLAN %v", set.Vlan)
	}
	if after.Name != "pg" || after.NumPorts != 16 || after.Type != "earlyBinding" || after.Description != "ours" {
		t.Errorf("what the spec did not name has changed: %+v", after)
	}
	if order := set.UplinkTeamingPolicy.UplinkPortOrder.ActiveUplinkPort; !slices.Equal(order, []string{"up1"}) {
		t.Errorf("active uplinks %v", order)
	}
	if !*set.SecurityPolicy.ForgedTransmits.Value {
		t.Error("the security policy is lost")
	}
	refused(t, c.done(group.Reconfigure(c.ctx, types.DVPortgroupConfigSpec{ConfigVersion: before.ConfigVersion, NumPorts: 8})),
		"ConcurrentAccess", "Cannot complete operation due to concurrent modification by another operation.")
}

func TestUplinkPortGroupCannotBeRemoved(t *testing.T) {
	c := start(t, scenario.Spec{})
	dvs, _ := c.rdmaDVS()
	up := object.NewCommon(c.Client.Client, c.config(dvs).UplinkPortgroup[0])
	refused(t, c.done(up.Destroy(c.ctx)), "NotSupported", "The operation is not supported on the object.")
}
