package esxi

import (
	"context"
	"errors"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// read reads the facts of one host through its shell.
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
		return backends.Errorf(backends.KindPermanent, t.Target.Name, "", "set the firmware of %s: %w", t.Name, err)
	}
	for try := 1; ; try++ {
		err := f.with(ctx, t.Target.Name, func(s *shell) error { return nic.FirmwareTools(s).SetConfig(ctx, t.Name, want, progress) })
		if !errors.Is(err, ssh.ErrConnectionLost) || try == tries {
			return err
		}
	}
}
