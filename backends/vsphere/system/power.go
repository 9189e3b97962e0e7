package system

import (
	"context"
	"strings"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// powerSetter sets the power policy. It takes effect immediately.
type powerSetter struct{ *System }

const (
	currentPolicy   = "config.powerSystemInfo.currentPolicy.shortName"
	offeredPolicies = "config.powerSystemCapability.availablePolicy"
)

// Read returns the short name of the active policy: static is High Performance.
func (s powerSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	const what = "read the power policy"
	host, err := s.places.Find(ctx, t.Target)
	if err != nil {
		return backends.Absent, wire.Explain(err, t.Target.Name, what)
	}
	o, err := s.conn.One(ctx, host, currentPolicy)
	if err != nil {
		return backends.Absent, wire.Explain(err, t.Target.Name, what)
	}
	name := wire.Value[string](o, currentPolicy)
	if name == "" {
		return backends.Absent, backends.Errorf(backends.KindUnreachable, t.Target.Name, "check the host's connection in vCenter", "%s: the host does not report it", what)
	}
	return backends.ValueOf(name), nil
}

// Set selects a policy by its short name; its key differs between hosts and versions.
func (s powerSetter) Set(ctx context.Context, t backends.Setting, to backends.Value, progress backends.Progress) error {
	what := "set the power policy"
	want, err := backends.Decoded[string](to, t.Target.Name, what)
	if err != nil {
		return err
	}
	what += " to " + want
	read := wire.Reading(ctx, s.Read, t, to)
	if _, same, err := read(); err != nil || same {
		return err
	}
	host, system, err := s.places.Part(ctx, t.Target, func(m types.HostConfigManager) *types.ManagedObjectReference { return m.PowerSystem })
	if err != nil {
		return wire.Explain(err, t.Target.Name, what)
	}
	return wire.Set(ctx, t.Target.Name, what, to, progress, read, func() error {
		key, err := s.key(ctx, host, want)
		if err != nil {
			return err
		}
		_, err = methods.ConfigurePowerPolicy(ctx, s.conn.VIM(), &types.ConfigurePowerPolicy{This: system, Key: key})
		return err
	})
}

func (s powerSetter) key(ctx context.Context, host place.Ref, policy string) (int32, error) {
	o, err := s.conn.One(ctx, host, offeredPolicies)
	if err != nil {
		return 0, err
	}
	var offered []string
	for _, p := range wire.Value[types.ArrayOfHostPowerPolicy](o, offeredPolicies).HostPowerPolicy {
		if p.ShortName == policy {
			return p.Key, nil
		}
		offered = append(offered, p.ShortName)
	}
	if len(offered) == 0 {
		return 0, backends.Errorf(backends.KindPermanent, "", "set the system profile in the BIOS to one that leaves power to the operating system (Performance Per Watt (OS), OS Control)",
			"the BIOS keeps control of the power states; ESXi has no policy to choose")
	}
	return 0, backends.Errorf(backends.KindPermanent, "", "choose one of: "+strings.Join(offered, ", "), "the host has no power policy %q", policy)
}
