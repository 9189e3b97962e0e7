package setting

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/survey"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// trunk is the value for a VLAN setting of a port group other than a single id.
const trunk = -1

// standbyMark marks a standby uplink in PortGroupSpec.Active, so that it shows as a difference and can be restored.
const standbyMark = " (standby)"

type groupSetter struct{ *site }

// A groupView is a port group as it was read.
type groupView struct {
	ref     place.Ref
	version string
	spec    backends.PortGroupSpec
}

func (s groupSetter) view(ctx context.Context, t backends.Ref) (*groupView, error) {
	for range 2 {
		ref, ok, err := s.places.Look(ctx, t)
		if err != nil || !ok {
			return nil, err
		}
		o, err := s.conn.One(ctx, ref, "config")
		if stale(err) {
			s.places.Drop(ref)
			continue
		}
		if err != nil {
			return nil, err
		}
		c := wire.Value[types.DVPortgroupConfigInfo](o, "config")
		v := &groupView{ref: ref, version: c.ConfigVersion, spec: backends.PortGroupSpec{Binding: c.Type, Active: []string{}}}
		if c.DistributedVirtualSwitch != nil {
			v.spec.Switch = s.places.Name(*c.DistributedVirtualSwitch)
		}
		if port, ok := c.DefaultPortConfig.(*types.VMwareDVSPortSetting); ok {
			if v.spec.VLAN, err = strconv.Atoi(survey.VLAN(port.Vlan)); err != nil {
				v.spec.VLAN = trunk
			}
			if team := port.UplinkTeamingPolicy; team != nil && team.UplinkPortOrder != nil {
				v.spec.Active = append(v.spec.Active, team.UplinkPortOrder.ActiveUplinkPort...)
				for _, u := range team.UplinkPortOrder.StandbyUplinkPort {
					v.spec.Active = append(v.spec.Active, u+standbyMark)
				}
			}
		}
		return v, nil
	}
	return nil, nil
}

// Read returns the current spec of a port group; VLAN is -1 for trunks and private VLANs.
func (s groupSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	v, err := s.view(ctx, t.Target)
	if err != nil {
		return backends.Absent, wire.Explain(err, t.Target.Name, "read the port group")
	}
	if v == nil {
		return backends.Absent, nil
	}
	return backends.ValueOf(v.spec), nil
}

// Set creates a port group, changes the differences of an existing one, and removes it for Absent. Uplinks that are not named as
// active are unused: PVRDMA does not support NIC teaming (vSphere 7.0 "PVRDMA Support").
func (s groupSetter) Set(ctx context.Context, t backends.Setting, to backends.Value, progress backends.Progress) error {
	name := t.Target.Name
	if to.IsAbsent() {
		read := func() (backends.Value, bool, error) {
			v, err := s.view(ctx, t.Target)
			if err != nil || v == nil {
				return backends.Absent, v == nil, err
			}
			return backends.ValueOf(v.spec), false, nil
		}
		return wire.Apply(ctx, name, "remove the port group", to, read, func() error {
			v, err := s.view(ctx, t.Target)
			if err != nil || v == nil {
				return err
			}
			return s.destroy(ctx, v.ref, progress)
		})
	}
	want, err := backends.Decoded[backends.PortGroupSpec](to, name, "set the port group")
	if err != nil {
		return err
	}
	read := func() (backends.Value, bool, error) {
		v, err := s.view(ctx, t.Target)
		if err != nil || v == nil {
			return backends.Absent, false, err
		}
		is := v.spec
		return backends.ValueOf(is), is.Switch == want.Switch && is.VLAN == want.VLAN && is.Binding == binding(want) &&
			(want.Active == nil || same(is.Active, want.Active)), nil
	}
	return wire.Apply(ctx, name, "set up the port group", to, read, func() error {
		dvs, err := s.look(ctx, backends.SwitchRef(want.Switch), s.dvs.recent)
		if err != nil {
			return err
		}
		if dvs == nil {
			return backends.Conflictf(name, "", "its distributed switch %s does not exist", want.Switch)
		}
		v, err := s.view(ctx, t.Target)
		if err != nil {
			return err
		}
		if v == nil {
			return s.create(ctx, t.Target, dvs, want, progress)
		}
		if v.spec.Switch != want.Switch {
			return backends.Refusedf(name, "choose another name for the port group", "a port group of that name exists on %s",
				v.spec.Switch)
		}
		return s.change(ctx, v, dvs, want, progress)
	})
}

func (s groupSetter) create(ctx context.Context, t backends.Ref, dvs *switchView, want backends.PortGroupSpec,
	progress backends.Progress) error {
	port, err := portSetting(nil, dvs, want)
	if err != nil {
		return err
	}
	spec := types.DVPortgroupConfigSpec{
		Name: place.Raw(t.Name), Type: binding(want), DefaultPortConfig: port,
		NumPorts: 16, AutoExpand: types.NewBool(true), // elastic: ports are added as needed
	}
	defer s.places.Expire(backends.TypePortGroup) // neither the task nor a failed call says what it created
	_, err = s.run(ctx, progress, wire.Starts(s.conn, methods.AddDVPortgroup_Task,
		&types.AddDVPortgroup_Task{This: dvs.ref, Spec: []types.DVPortgroupConfigSpec{spec}}))
	return err
}

func (s groupSetter) change(ctx context.Context, v *groupView, dvs *switchView, want backends.PortGroupSpec,
	progress backends.Progress) error {
	spec := types.DVPortgroupConfigSpec{ConfigVersion: v.version}
	if v.spec.Binding != binding(want) {
		spec.Type = binding(want)
	}
	port, err := portSetting(&v.spec, dvs, want)
	if err != nil {
		return err
	}
	if port != nil {
		spec.DefaultPortConfig = port
	}
	if spec.Type == "" && port == nil {
		return nil
	}
	_, err = s.run(ctx, progress, wire.Starts(s.conn, methods.ReconfigureDVPortgroup_Task,
		&types.ReconfigureDVPortgroup_Task{This: v.ref, Spec: spec}))
	return err
}

// portSetting returns the differences from is (nil: everything); nil if there are none.
func portSetting(is *backends.PortGroupSpec, dvs *switchView, want backends.PortGroupSpec) (*types.VMwareDVSPortSetting, error) {
	active := want.Active
	if active == nil && is == nil {
		if len(dvs.uplinks) == 0 {
			return nil, fmt.Errorf("the distributed switch %s has no uplinks", want.Switch)
		}
		active = dvs.uplinks[:1]
	}
	port, differs := &types.VMwareDVSPortSetting{}, false
	if is == nil || is.VLAN != want.VLAN {
		if want.VLAN == trunk {
			return nil, backends.Permanentf("", "set the trunk in vCenter", "a VLAN trunk is not set by rdma-setup")
		}
		port.Vlan = &types.VmwareDistributedVirtualSwitchVlanIdSpec{VlanId: int32(want.VLAN)}
		differs = true
	}
	if active != nil && (is == nil || !same(is.Active, active)) {
		order := &types.VMwareUplinkPortOrderPolicy{}
		for _, u := range active {
			name, standby := strings.CutSuffix(u, standbyMark)
			if !slices.Contains(dvs.uplinks, name) {
				return nil, backends.Permanentf("", "name one of: "+strings.Join(dvs.uplinks, ", "),
					"the distributed switch %s has no uplink %q", want.Switch, name)
			}
			if standby {
				order.StandbyUplinkPort = append(order.StandbyUplinkPort, name)
			} else {
				order.ActiveUplinkPort = append(order.ActiveUplinkPort, name)
			}
		}
		port.UplinkTeamingPolicy = &types.VmwareUplinkPortTeamingPolicy{
			Policy:          &types.StringPolicy{Value: string(types.DistributedVirtualSwitchNicTeamingPolicyModeFailover_explicit)},
			UplinkPortOrder: order,
		}
		differs = true
	}
	if !differs {
		return nil, nil
	}
	return port, nil
}

func binding(want backends.PortGroupSpec) string {
	if want.Binding == "" {
		return string(types.DistributedVirtualPortgroupPortgroupTypeEarlyBinding)
	}
	return want.Binding
}
