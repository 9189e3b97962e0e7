package setting

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/go-version"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

type switchSetter struct{ *site }

func (s switchSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	v, err := s.look(ctx, t.Target, s.dvs.fresh)
	if err != nil {
		return backends.Absent, wire.Explain(err, t.Target.Name, "read the distributed switch")
	}
	if v == nil {
		return backends.Absent, nil
	}
	return backends.ValueOf(v.spec), nil
}

// Set creates a DVS in one task, changes an existing one in one reconfigure, and removes it for Absent, which it refuses for a
// switch without SwitchMark. A newer version is an upgrade, which cannot be undone.
func (s switchSetter) Set(ctx context.Context, t backends.Setting, to backends.Value, progress backends.Progress) error {
	name := t.Target.Name
	if to.IsAbsent() {
		return s.remove(ctx, t, progress)
	}
	want, err := backends.Decoded[backends.SwitchSpec](to, name, "set the distributed switch")
	if err != nil {
		return err
	}
	read := func() (backends.Value, bool, error) {
		v, err := s.look(ctx, t.Target, s.dvs.fresh)
		if err != nil || v == nil {
			return backends.Absent, false, err
		}
		is := v.spec
		is.Datacenter = want.Datacenter // its location cannot change
		if want.Version == "" {
			is.Version = ""
		}
		return backends.ValueOf(v.spec), is == want, nil
	}
	return wire.Apply(ctx, name, "set up the distributed switch", to, read, func() error {
		v, err := s.look(ctx, t.Target, s.dvs.fresh)
		if err != nil {
			return err
		}
		if v == nil {
			if v, err = s.create(ctx, t.Target, want, progress); err != nil {
				s.places.Expire(backends.TypeSwitch) // it may have been created anyway
				return err
			}
		}
		return s.change(ctx, v, want, progress)
	})
}

// create creates a DVS with everything that CreateDVS_Task accepts; the mark in its description identifies it later.
func (s switchSetter) create(ctx context.Context, t backends.Ref, want backends.SwitchSpec,
	progress backends.Progress) (*switchView, error) {
	folder, err := s.networkFolder(ctx, want.Datacenter)
	if err != nil {
		return nil, err
	}
	spec := &types.VMwareDVSConfigSpec{
		DVSConfigSpec: types.DVSConfigSpec{
			Name:             place.Raw(t.Name),
			Description:      strings.ToUpper(backends.SwitchMark[:1]) + backends.SwitchMark[1:],
			UplinkPortPolicy: &types.DVSNameArrayUplinkPortPolicy{UplinkPortName: uplinkNames(nil, want.Uplinks)},
		},
		MaxMtu:                      int32(want.MTU),
		LinkDiscoveryProtocolConfig: discovery(want.Discovery),
	}
	req := types.CreateDVS_Task{This: folder, Spec: types.DVSCreateSpec{ConfigSpec: spec}}
	if want.Version != "" {
		req.Spec.ProductInfo = &types.DistributedVirtualSwitchProductSpec{Version: want.Version}
	}
	result, err := s.run(ctx, progress, wire.Starts(s.conn, methods.CreateDVS_Task, &req))
	if err != nil {
		return nil, err
	}
	if dvs, ok := result.(types.ManagedObjectReference); ok {
		s.places.Put(dvs, place.Raw(t.Name), folder)
		return s.dvs.fresh(ctx, dvs)
	}
	s.places.Expire(backends.TypeSwitch)
	v, err := s.look(ctx, t, s.dvs.fresh)
	if err == nil && v == nil {
		err = fmt.Errorf("the task has ended, but the switch is not there")
	}
	return v, err
}

func (s switchSetter) networkFolder(ctx context.Context, datacenter string) (place.Ref, error) {
	dc, err := s.places.FindDatacenter(ctx, datacenter)
	if err != nil {
		return place.Ref{}, err
	}
	o, err := s.conn.One(ctx, dc, "networkFolder", "name")
	if err != nil {
		return place.Ref{}, err
	}
	folder := wire.Value[place.Ref](o, "networkFolder")
	s.places.Put(folder, "network", dc)
	return folder, nil
}

// change applies the differences to an existing DVS in one reconfigure; NIOC and version have calls of their own.
func (s switchSetter) change(ctx context.Context, v *switchView, want backends.SwitchSpec, progress backends.Progress) error {
	defer s.dvs.forget(v.ref)
	if want.Version != "" && want.Version != v.spec.Version {
		if err := s.upgrade(ctx, v, want.Version, progress); err != nil {
			return err
		}
		var err error
		if v, err = s.dvs.fresh(ctx, v.ref); err != nil {
			return err
		}
	}
	spec := &types.VMwareDVSConfigSpec{DVSConfigSpec: types.DVSConfigSpec{ConfigVersion: v.version}}
	differs := false
	if v.spec.Uplinks != want.Uplinks {
		spec.UplinkPortPolicy = &types.DVSNameArrayUplinkPortPolicy{UplinkPortName: uplinkNames(v.uplinks, want.Uplinks)}
		differs = true
	}
	if v.spec.MTU != want.MTU {
		spec.MaxMtu = int32(want.MTU)
		differs = true
	}
	if v.spec.Discovery != want.Discovery {
		spec.LinkDiscoveryProtocolConfig = discovery(want.Discovery)
		differs = true
	}
	if differs {
		if err := s.reconfigure(ctx, v, spec, progress); err != nil {
			return err
		}
	}
	if v.spec.NIOC != want.NIOC {
		_, err := methods.EnableNetworkResourceManagement(ctx, s.conn.VIM(), &types.EnableNetworkResourceManagement{This: v.ref,
			Enable: want.NIOC})
		return err
	}
	return nil
}

func (s switchSetter) upgrade(ctx context.Context, v *switchView, to string, progress backends.Progress) error {
	from, err1 := version.NewVersion(v.spec.Version)
	next, err2 := version.NewVersion(to)
	if err1 != nil || err2 != nil || next.LessThan(from) {
		return backends.Permanentf("", "keep the version, or create another switch",
			"a distributed switch of version %s cannot be changed to %s", v.spec.Version, to)
	}
	_, err := s.run(ctx, progress, wire.Starts(s.conn, methods.PerformDvsProductSpecOperation_Task, &types.PerformDvsProductSpecOperation_Task{
		This: v.ref, Operation: string(types.DistributedVirtualSwitchProductSpecOperationTypeUpgrade),
		ProductSpec: &types.DistributedVirtualSwitchProductSpec{Version: to},
	}))
	return err
}

func (s *site) reconfigure(ctx context.Context, v *switchView, spec *types.VMwareDVSConfigSpec, progress backends.Progress) error {
	_, err := s.run(ctx, progress, wire.Starts(s.conn, methods.ReconfigureDvs_Task, &types.ReconfigureDvs_Task{This: v.ref, Spec: spec}))
	return err
}

func (s switchSetter) remove(ctx context.Context, t backends.Setting, progress backends.Progress) error {
	read := func() (backends.Value, bool, error) {
		v, err := s.look(ctx, t.Target, s.dvs.fresh)
		if err != nil || v == nil {
			return backends.Absent, v == nil, err
		}
		return backends.ValueOf(v.spec), false, nil
	}
	return wire.Apply(ctx, t.Target.Name, "remove the distributed switch", backends.Absent, read, func() error {
		v, err := s.look(ctx, t.Target, s.dvs.fresh)
		if err != nil || v == nil {
			return err
		}
		if !(&backends.Switch{Note: v.note}).Ours() {
			return backends.Refusedf(t.Target.Name, "remove it in vCenter if that is what you want",
				"the distributed switch was not created by rdma-setup and is not removed")
		}
		return s.destroy(ctx, v.ref, progress)
	})
}

func (s *site) destroy(ctx context.Context, ref place.Ref, progress backends.Progress) error {
	defer s.dvs.forget(ref)
	_, err := s.run(ctx, progress, wire.Starts(s.conn, methods.Destroy_Task, &types.Destroy_Task{This: ref}))
	if err == nil || stale(err) {
		s.places.Drop(ref)
		return nil
	}
	return err
}

// uplinkNames keeps the existing names and adds or removes names at the end.
func uplinkNames(have []string, n int) []string {
	out := append([]string(nil), have[:min(len(have), n)]...)
	for len(out) < n {
		out = append(out, backends.UplinkName(len(out)+1))
	}
	return out
}

// discovery parses "lldp listen", "cdp both" or "none".
func discovery(words string) *types.LinkDiscoveryProtocolConfig {
	protocol, operation, ok := strings.Cut(words, " ")
	if !ok {
		return &types.LinkDiscoveryProtocolConfig{
			Protocol:  string(types.LinkDiscoveryProtocolConfigProtocolTypeCdp),
			Operation: string(types.LinkDiscoveryProtocolConfigOperationTypeNone),
		}
	}
	return &types.LinkDiscoveryProtocolConfig{Protocol: protocol, Operation: operation}
}
