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

// optionSetter sets advanced settings of hosts.
type optionSetter struct{ *site }

func (s optionSetter) options(ctx context.Context, t backends.Ref) (place.Ref, error) {
	_, manager, err := s.places.Part(ctx, t, func(m types.HostConfigManager) *place.Ref { return m.AdvancedOption })
	return manager, err
}

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
	return backends.Absent, backends.Permanentf(t.Target.Name, "", "the host has no advanced setting %s", t.Name)
}

// Parent is the same for all hosts.
func (s optionSetter) Parent(t backends.Setting) string { return "option " + t.Name }

func (s optionSetter) write(ctx context.Context, t backends.Setting, to backends.Value) error {
	manager, err := s.options(ctx, t.Target)
	if err != nil {
		return wire.Explain(err, t.Target.Name, s.what(t, to))
	}
	value, err := optionValue(to, t.Target.Name, s.what(t, to))
	if err != nil {
		return err
	}
	return wire.Attempt(ctx, t.Target.Name, s.what(t, to), wire.Reading(ctx, s.Read, t, to), func() error {
		return s.update(ctx, manager, t.Name, value)
	})
}

func (s optionSetter) what(t backends.Setting, _ backends.Value) string {
	return "set the advanced setting " + t.Name
}

// object and path locate the setting for a property read.
func (s optionSetter) object(ctx context.Context, t backends.Setting) (place.Ref, error) {
	return s.places.Find(ctx, t.Target)
}

func (s optionSetter) path(t backends.Setting) string { return `config.option["` + t.Name + `"]` }

func (s optionSetter) value(prop any) (backends.Value, bool) {
	o, ok := prop.(types.OptionValue)
	return backends.ValueOf(o.Value), ok
}

// update writes the value. Numbers are long for most settings and int for some; the wrong type is refused as an invalid argument.
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
	raw, err := backends.Decoded[json.RawMessage](to, target, what)
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
	return nil, backends.Permanentf(target, "", "%s: %s is neither text nor a number", what, to)
}

// firewallSetter enables and disables firewall rulesets of hosts.
type firewallSetter struct{ *site }

func (s firewallSetter) system(ctx context.Context, t backends.Ref) (place.Ref, error) {
	_, system, err := s.places.Part(ctx, t, func(m types.HostConfigManager) *place.Ref { return m.FirewallSystem })
	return system, err
}

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

// ruleset reads one ruleset. Some servers cannot return a single one; then the complete list is read.
func (s firewallSetter) ruleset(ctx context.Context, system place.Ref, key string) (*types.HostFirewallRuleset, error) {
	for _, path := range []string{rulesetPath(key), rulesets} {
		o, err := s.conn.One(ctx, system, path)
		if err != nil {
			return nil, err
		}
		if set, ok := wire.Prop[types.HostFirewallRuleset](o, path); ok {
			return &set, nil
		}
		for _, set := range wire.Value[types.ArrayOfHostFirewallRuleset](o, path).HostFirewallRuleset {
			if set.Key == key {
				return &set, nil
			}
		}
	}
	return nil, backends.Permanentf("", "", "the host has no firewall ruleset %s", key)
}

const rulesets = "firewallInfo.ruleset"

func rulesetPath(key string) string { return rulesets + `["` + key + `"]` }

// Parent is the same for all hosts.
func (s firewallSetter) Parent(t backends.Setting) string { return "ruleset " + t.Name }

func (s firewallSetter) write(ctx context.Context, t backends.Setting, to backends.Value) error {
	on, err := backends.Decoded[bool](to, t.Target.Name, "set the firewall ruleset "+t.Name)
	if err != nil {
		return err
	}
	system, err := s.system(ctx, t.Target)
	if err != nil {
		return wire.Explain(err, t.Target.Name, s.what(t, to))
	}
	return wire.Attempt(ctx, t.Target.Name, s.what(t, to), wire.Reading(ctx, s.Read, t, to), func() error {
		var err error
		if on {
			_, err = methods.EnableRuleset(ctx, s.conn.VIM(), &types.EnableRuleset{This: system, Id: t.Name})
		} else {
			_, err = methods.DisableRuleset(ctx, s.conn.VIM(), &types.DisableRuleset{This: system, Id: t.Name})
		}
		return s.controllable(ctx, err, system, t.Name)
	})
}

func (s firewallSetter) what(t backends.Setting, to backends.Value) string {
	if to == backends.ValueOf(true) {
		return "enable the firewall ruleset " + t.Name
	}
	return "disable the firewall ruleset " + t.Name
}

func (s firewallSetter) object(ctx context.Context, t backends.Setting) (place.Ref, error) {
	return s.system(ctx, t.Target)
}

func (s firewallSetter) path(t backends.Setting) string { return rulesetPath(t.Name) }

func (s firewallSetter) value(prop any) (backends.Value, bool) {
	set, ok := prop.(types.HostFirewallRuleset)
	return backends.ValueOf(set.Enabled), ok
}

// controllable explains, for a refused ruleset, whether users may change it at all (HostFirewallRuleset.userControllable, since
// 8.0.2).
func (s firewallSetter) controllable(ctx context.Context, err error, system place.Ref, key string) error {
	if wire.FaultOf(err) == nil {
		return err
	}
	if set, rerr := s.ruleset(ctx, system, key); rerr == nil && set.UserControllable != nil && !*set.UserControllable {
		return backends.Permanentf("", "enable the service that owns the ruleset; ESXi opens it then",
			"ESXi controls this ruleset itself: %w", err)
	}
	return err
}
