package esxi

import (
	"context"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
)

// activeFirmwareSetter reports whether a card runs the firmware in its flash, in the mode that the host needs. That cannot be set: it
// takes a boot of the host or, if the card keeps its power over a reboot, a power cycle of the server (NVIDIA,
// MFT documentation, mlxfwreset: the reset level that loads new firmware depends on the extent of its changes; "Cold Reboot" is
// one of the levels. The tool itself does not run on ESXi).
type activeFirmwareSetter struct{ *Hosts }

// Read returns whether it does.
func (a activeFirmwareSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	why, err := a.pending(ctx, t)
	if err != nil {
		return backends.Absent, err
	}
	return backends.ValueOf(why == nil), nil
}

// Set changes nothing: it fails while the card waits for a power cycle, and the error says so.
func (a activeFirmwareSetter) Set(ctx context.Context, t backends.Setting, _ backends.Value, _ backends.Progress) error {
	why, err := a.pending(ctx, t)
	if err != nil {
		return err
	}
	return why
}

// pending says in why a card does not run the firmware in its flash; nil if it does.
func (a activeFirmwareSetter) pending(ctx context.Context, t backends.Setting) (why, err error) {
	host := t.Target.Name
	err = a.with(ctx, host, func(s *shell) error {
		tools := nic.FirmwareTools(s)
		image, err := tools.Image(ctx, t.Name)
		if err != nil {
			return err
		}
		keys, err := tools.Config(ctx, t.Name)
		if err != nil {
			return err
		}
		if why = nic.NICMode(host, t.Name, keys.Current); why == nil && image.Running != "" {
			why = backends.Errorf(backends.KindPermanent, host, "put the host into maintenance mode, shut it down, cut its power by the BMC (cold boot: a reboot is not enough), "+
				"start it, end maintenance mode, then run rdma-setup resume",
				"the card %s still runs firmware %s after the reboot, and its flash holds %s: the VMs of this host get no VF of it", t.Name, image.Running, image.Version)
		}
		return nil
	})
	return why, err
}
