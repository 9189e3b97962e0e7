package system

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/esxcli"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// moduleSetter sets the parameters of a kernel module as one string: parameters that the string does not name are unset. They
// take effect at the next boot.
type moduleSetter struct{ *System }

// parameters reads the parameters of a module and which of them are set.
func (s *System) parameters(ctx context.Context, host, module string) (backends.Module, error) {
	m := backends.Module{Known: []string{}, Params: map[string]string{}}
	rows, err := s.cli.Ask(ctx, host, "system module parameters list", esxcli.Arg{Name: "module", Text: module})
	for _, r := range rows {
		m.Known = append(m.Known, r["Name"])
		if v := strings.TrimSpace(r["Value"]); v != "" {
			m.Params[r["Name"]] = v
		}
	}
	slices.Sort(m.Known)
	return m, err
}

// Read returns the parameters that are set, as of the next boot.
func (s moduleSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	m, err := s.parameters(ctx, t.Target.Name, t.Name)
	if err != nil {
		return backends.Absent, err
	}
	return backends.ValueOf(m.Params), nil
}

// Set writes the complete string. Parameters that the module does not have are refused: a driver with an unknown parameter does not
// load, and the host loses its adapters.
func (s moduleSetter) Set(ctx context.Context, t backends.Setting, to backends.Value, progress backends.Progress) error {
	host, what := t.Target.Name, "set the parameters of "+t.Name
	want, err := backends.Decoded[map[string]string](to, host, what)
	if err != nil {
		return err
	}
	m, err := s.parameters(ctx, host, t.Name)
	if err != nil {
		return err
	}
	if maps.Equal(m.Params, want) {
		return nil
	}
	line, err := parameterString(want, m.Known)
	if err != nil {
		return backends.Refusedf(host, backends.HintOf(err), "%s: %w", what, err)
	}
	return wire.Set(ctx, host, what, to, progress, wire.Reading(ctx, s.Read, t, to), func() error {
		_, err := s.cli.Run(ctx, host, "system", "module", "parameters", "set", "-m", t.Name, "-p", line)
		return err
	})
}

// parameterString writes NAME=VALUE words sorted by name. Values cannot be quoted there.
func parameterString(want map[string]string, known []string) (string, error) {
	words := make([]string, 0, len(want))
	for _, name := range slices.Sorted(maps.Keys(want)) {
		value := want[name]
		switch {
		case !slices.Contains(known, name):
			return "", backends.Refusedf("", "this version of the driver takes: "+strings.Join(known, ", "),
				"the module has no parameter %s", name)
		case value == "" || strings.ContainsFunc(value, unfit):
			return "", backends.Refusedf("", "", "%q cannot be the value of %s", value, name)
		}
		words = append(words, name+"="+value)
	}
	return strings.Join(words, " "), nil
}

// unfit are characters that would end a value or be interpreted by a shell or the boot loader.
func unfit(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	return !letter && !strings.ContainsRune("_-.,:/+", r)
}

// powerSetter sets the power policy. It takes effect immediately.
type powerSetter struct{ *System }

const (
	currentPolicy   = "config.powerSystemInfo.currentPolicy.shortName"
	offeredPolicies = "config.powerSystemCapability.availablePolicy"
)

// Read returns the short name of the active policy: static is High Performance.
func (s powerSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	const what = "read the power policy"
	o, err := s.places.One(ctx, t.Target, currentPolicy)
	if err != nil {
		return backends.Absent, wire.Explain(err, t.Target.Name, what)
	}
	name := wire.Value[string](o, currentPolicy)
	if name == "" {
		return backends.Absent, backends.Unreachablef(t.Target.Name, "check the host's connection in vCenter",
			"%s: the host does not report it", what)
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
		return 0,
			backends.Permanentf("",
				"set the system profile in the BIOS to one that leaves power to the operating system (Performance Per Watt (OS), OS Control)",
				"the BIOS keeps control of the power states; ESXi has no policy to choose")
	}
	return 0, backends.Permanentf("", "choose one of: "+strings.Join(offered, ", "), "the host has no power policy %q",
		policy)
}

// pauseSetter sets the global pause of a pNIC (VMware, lossless network: esxcli network nic pauseParams). PFC in the driver
// disables it, and it then reads as off.
type pauseSetter struct{ *System }

// pause reads the active setting of every pNIC of a host.
func (s *System) pause(ctx context.Context, host string) (map[string]backends.PauseSpec, error) {
	rows, err := s.cli.Ask(ctx, host, "network nic pauseParams list")
	if err != nil {
		return nil, err
	}
	out := map[string]backends.PauseSpec{}
	for _, r := range rows {
		out[r["NIC"]] = backends.PauseSpec{Rx: r["PauseRX"] == "true", Tx: r["PauseTX"] == "true"}
	}
	return out, nil
}

// Read returns the active pause; Absent for a pNIC that the host does not have.
func (s pauseSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	all, err := s.pause(ctx, t.Target.Name)
	if err != nil {
		return backends.Absent, err
	}
	p, there := all[t.Name]
	if !there {
		return backends.Absent, nil
	}
	return backends.ValueOf(p), nil
}

// Set sets both directions and reads them back.
func (s pauseSetter) Set(ctx context.Context, t backends.Setting, to backends.Value, progress backends.Progress) error {
	host, what := t.Target.Name, "set the global pause of "+t.Name
	want, err := backends.Decoded[backends.PauseSpec](to, host, what)
	if err != nil {
		return err
	}
	read := wire.Reading(ctx, s.Read, t, to)
	if _, same, err := read(); err == nil && same {
		return nil
	}
	return wire.Set(ctx, host, what, to, progress, read, func() error {
		_, err := s.cli.Run(ctx, host, "network", "nic", "pauseParams", "set", "-n", t.Name, "-r", strconv.FormatBool(want.Rx), "-t",
			strconv.FormatBool(want.Tx))
		return err
	})
}
