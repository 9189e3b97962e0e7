package system

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/esxcli"
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
		return backends.Errorf(backends.KindRefused, host, backends.HintOf(err), "%s: %w", what, err)
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
			return "", backends.Errorf(backends.KindRefused, "", "this version of the driver takes: "+strings.Join(known, ", "), "the module has no parameter %s", name)
		case value == "" || strings.ContainsFunc(value, unfit):
			return "", backends.Errorf(backends.KindRefused, "", "", "%q cannot be the value of %s", value, name)
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
