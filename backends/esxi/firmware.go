package esxi

import (
	"context"
	"errors"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

func (h *Hosts) read(ctx context.Context, host string) (r Reading) {
	r.Err = h.with(ctx, host, func(s *shell) (err error) {
		r.SecureBoot, r.Log = s.secureBoot(ctx), s.log(ctx)
		r.Cards, err = nic.FirmwareTools(s).Cards(ctx)
		return err
	})
	return r
}

// secureBoot reports whether the host booted with UEFI Secure Boot; nil if it cannot be read (VMware vSphere 7.0 ESXi STIG uses
// the same program, which prints Enabled or Disabled).
func (s *shell) secureBoot(ctx context.Context) *bool {
	r, err := s.conn.Run(ctx, ssh.Command{Argv: []string{"/usr/lib/vmware/secureboot/bin/secureBoot.py", "-s"}, Limit: s.limit})
	if err != nil || r.ExitCode != 0 {
		return nil
	}
	for word, is := range map[string]bool{"enabled": true, "disabled": false} {
		if strings.EqualFold(strings.TrimSpace(r.Stdout), word) {
			return &is
		}
	}
	return nil
}

// log greps vmkernel.log; nil if it cannot be read.
func (s *shell) log(ctx context.Context) []string {
	argv := []string{"grep", "-i"}
	for _, text := range backends.LogTexts {
		argv = append(argv, "-e", text)
	}
	r, err := s.conn.Run(ctx, ssh.Command{Argv: append(argv, "/var/log/vmkernel.log"), Limit: s.limit})
	if err != nil || r.ExitCode > 1 { // 1: no match
		return nil
	}
	return strings.FieldsFunc(r.Stdout, func(c rune) bool { return c == '\n' })
}

// firmwareSetter sets the firmware configuration of one card. It takes effect at the next boot.
type firmwareSetter struct{ *Hosts }

// tries bounds how often a configuration is written again after the connection was lost.
const tries = 3

// Read returns the keys that the card has, as the next boot will have them.
func (f firmwareSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	var got backends.Firmware
	err := f.with(ctx, t.Target.Name, func(s *shell) (err error) {
		got, err = nic.FirmwareTools(s).Config(ctx, t.Name)
		return err
	})
	if err != nil {
		return backends.Absent, err
	}
	return backends.ValueOf(got.Next), nil
}

// Set writes the keys that differ and reads them back.
func (f firmwareSetter) Set(ctx context.Context, t backends.Setting, to backends.Value, progress backends.Progress) error {
	var want map[string]string
	if err := to.Decode(&want); err != nil {
		return backends.Permanentf(t.Target.Name, "", "set the firmware of %s: %w", t.Name, err)
	}
	for try := 1; ; try++ {
		err := f.with(ctx, t.Target.Name, func(s *shell) error { return nic.FirmwareTools(s).SetConfig(ctx, t.Name, want, progress) })
		if !errors.Is(err, ssh.ErrConnectionLost) || try == tries {
			return err
		}
	}
}

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
			why = backends.Permanentf(host,
				"put the host into maintenance mode, shut it down, cut its power by the BMC (cold boot: a reboot is not enough), "+
					"start it, end maintenance mode, then run rdma-setup resume",
				"the card %s still runs firmware %s after the reboot, and its flash holds %s: the VMs of this host get no VF of it", t.Name,
				image.Running, image.Version)
		}
		return nil
	})
	return why, err
}

// imageSetter writes the firmware of one card from a file on a datastore. The card loads it at the next boot and runs its
// previous firmware until then.
type imageSetter struct{ *Hosts }

// Read returns the firmware that the card's flash holds.
func (f imageSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	var got backends.FirmwareImage
	err := f.with(ctx, t.Target.Name, func(s *shell) (err error) {
		got, err = nic.FirmwareTools(s).Image(ctx, t.Name)
		return err
	})
	if err != nil {
		return backends.Absent, err
	}
	return backends.ValueOf(got), nil
}

// Set writes the file unless the card already has that firmware, and reads it back.
func (f imageSetter) Set(ctx context.Context, t backends.Setting, to backends.Value, progress backends.Progress) error {
	var want backends.FirmwareImage
	if err := to.Decode(&want); err != nil || want.File == "" {
		return backends.Permanentf(t.Target.Name, "", "update the firmware of %s: no file is named for %s", t.Name, to)
	}
	for try := 1; ; try++ {
		err := f.with(ctx, t.Target.Name, func(s *shell) error { return nic.FirmwareTools(s).Burn(ctx, t.Name, want, progress) })
		if !errors.Is(err, ssh.ErrConnectionLost) || try == tries {
			return err
		}
	}
}
