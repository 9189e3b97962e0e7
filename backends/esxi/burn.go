package esxi

import (
	"context"
	"errors"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

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
		return backends.Errorf(backends.KindPermanent, t.Target.Name, "", "update the firmware of %s: no file is named for %s", t.Name, to)
	}
	for try := 1; ; try++ {
		err := f.with(ctx, t.Target.Name, func(s *shell) error { return nic.FirmwareTools(s).Burn(ctx, t.Name, want, progress) })
		if !errors.Is(err, ssh.ErrConnectionLost) || try == tries {
			return err
		}
	}
}
