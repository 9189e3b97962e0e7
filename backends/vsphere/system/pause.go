package system

import (
	"context"
	"strconv"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

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
		_, err := s.cli.Run(ctx, host, "network", "nic", "pauseParams", "set", "-n", t.Name, "-r", strconv.FormatBool(want.Rx), "-t", strconv.FormatBool(want.Tx))
		return err
	})
}
