package setting

import (
	"context"
	"encoding/json"
	"math"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// part finds a host and one of its managers, which older or disconnected hosts may lack.
func (s *site) part(ctx context.Context, t backends.Ref, pick func(types.HostConfigManager) *types.ManagedObjectReference) (place.Ref, error) {
	host, err := s.places.Find(ctx, t)
	if err != nil {
		return place.Ref{}, err
	}
	parts, err := s.places.Parts(ctx, host)
	if err != nil {
		return place.Ref{}, err
	}
	p := pick(parts)
	if p == nil {
		return place.Ref{}, backends.Errorf(backends.KindUnreachable, t.Name, "check the host's connection in vCenter", "the host does not offer this now")
	}
	return *p, nil
}

type optionSetter struct{ *site }

func (s optionSetter) options(ctx context.Context, t backends.Ref) (place.Ref, error) {
	return s.part(ctx, t, func(m types.HostConfigManager) *types.ManagedObjectReference { return m.AdvancedOption })
}

// Read gives an advanced setting of a host.
func (s optionSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	what := "read the advanced setting " + t.Name
	manager, err := s.options(ctx, t.Target)
	if err != nil {
		return backends.Absent, wire.Explain(err, t.Target.Name, what)
	}
	res, err := methods.QueryOptions(ctx, s.conn.VIM(), &types.QueryOptions{This: manager, Name: t.Name})
	if err != nil {
		return backends.Absent, wire.Explain(err, t.Target.Name, what)
	}
	for _, o := range res.Returnval {
		if kv := o.GetOptionValue(); kv.Key == t.Name {
			return backends.ValueOf(kv.Value), nil
		}
	}
	return backends.Absent, backends.Errorf(backends.KindPermanent, t.Target.Name, "", "the host has no advanced setting %s", t.Name)
}

// Set writes an advanced setting and reads it back.
func (s optionSetter) Set(ctx context.Context, t backends.Setting, to backends.Value, progress backends.Progress) error {
	what := "set the advanced setting " + t.Name
	manager, err := s.options(ctx, t.Target)
	if err != nil {
		return wire.Explain(err, t.Target.Name, what)
	}
	value, err := optionValue(to, t.Target.Name, what)
	if err != nil {
		return err
	}
	read := func() (backends.Value, bool, error) {
		got, err := s.Read(ctx, t)
		return got, got == to, err
	}
	err = settle(ctx, t.Target.Name, what, to, read, func() error {
		return s.update(ctx, manager, t.Name, value)
	})
	if err == nil {
		progress.Report(100)
	}
	return err
}

// update writes the value. Numbers are long for most settings and int for some; the wrong one is an invalid argument.
func (s optionSetter) update(ctx context.Context, manager place.Ref, key string, value any) error {
	call := func(v any) error {
		_, err := methods.UpdateOptions(ctx, s.conn.VIM(), &types.UpdateOptions{
			This: manager, ChangedValue: []types.BaseOptionValue{&types.OptionValue{Key: key, Value: v}},
		})
		return err
	}
	err := call(value)
	n, long := value.(int64)
	if _, invalid := wire.FaultOf(err).(*types.InvalidArgument); invalid && long && n >= math.MinInt32 && n <= math.MaxInt32 {
		return call(int32(n))
	}
	return err
}

func optionValue(to backends.Value, target, what string) (any, error) {
	raw, err := decode[json.RawMessage](to, target, what)
	if err != nil {
		return nil, err
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var n int64
	if json.Unmarshal(raw, &n) == nil {
		return n, nil
	}
	var b bool
	if json.Unmarshal(raw, &b) == nil {
		return b, nil
	}
	return nil, backends.Errorf(backends.KindPermanent, target, "", "%s: %s is neither text nor a number", what, to)
}

type firewallSetter struct{ *site }

func (s firewallSetter) system(ctx context.Context, t backends.Ref) (place.Ref, error) {
	return s.part(ctx, t, func(m types.HostConfigManager) *types.ManagedObjectReference { return m.FirewallSystem })
}

// Read tells whether a firewall ruleset is enabled.
func (s firewallSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	system, err := s.system(ctx, t.Target)
	var set *types.HostFirewallRuleset
	if err == nil {
		set, err = s.ruleset(ctx, system, t.Name)
	}
	if err != nil {
		return backends.Absent, wire.Explain(err, t.Target.Name, "read the firewall ruleset "+t.Name)
	}
	return backends.ValueOf(set.Enabled), nil
}

func (s firewallSetter) ruleset(ctx context.Context, system place.Ref, key string) (*types.HostFirewallRuleset, error) {
	o, err := s.conn.One(ctx, system, "firewallInfo.ruleset")
	if err != nil {
		return nil, err
	}
	for _, set := range wire.Value[types.ArrayOfHostFirewallRuleset](o, "firewallInfo.ruleset").HostFirewallRuleset {
		if set.Key == key {
			return &set, nil
		}
	}
	return nil, backends.Errorf(backends.KindPermanent, "", "", "the host has no firewall ruleset %s", key)
}

// Set enables or disables a firewall ruleset and reads it back.
func (s firewallSetter) Set(ctx context.Context, t backends.Setting, to backends.Value, progress backends.Progress) error {
	what := "disable the firewall ruleset " + t.Name
	on, err := decode[bool](to, t.Target.Name, "set the firewall ruleset "+t.Name)
	if err != nil {
		return err
	}
	if on {
		what = "enable the firewall ruleset " + t.Name
	}
	system, err := s.system(ctx, t.Target)
	if err != nil {
		return wire.Explain(err, t.Target.Name, what)
	}
	read := func() (backends.Value, bool, error) {
		got, err := s.Read(ctx, t)
		return got, got == to, err
	}
	err = settle(ctx, t.Target.Name, what, to, read, func() error {
		var err error
		if on {
			_, err = methods.EnableRuleset(ctx, s.conn.VIM(), &types.EnableRuleset{This: system, Id: t.Name})
		} else {
			_, err = methods.DisableRuleset(ctx, s.conn.VIM(), &types.DisableRuleset{This: system, Id: t.Name})
		}
		return s.controllable(ctx, err, system, t.Name)
	})
	if err == nil {
		progress.Report(100)
	}
	return err
}

// controllable says of a refused ruleset whether users may change it at all (HostFirewallRuleset.userControllable,
// since 8.0.2).
func (s firewallSetter) controllable(ctx context.Context, err error, system place.Ref, key string) error {
	if wire.FaultOf(err) == nil {
		return err
	}
	if set, rerr := s.ruleset(ctx, system, key); rerr == nil && set.UserControllable != nil && !*set.UserControllable {
		return backends.Errorf(backends.KindPermanent, "", "enable the service that owns the ruleset; ESXi opens it then", "ESXi keeps this ruleset to itself: %w", err)
	}
	return err
}
