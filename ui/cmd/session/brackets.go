package session

import (
	"context"
	"maps"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Evacuation is the limit for evacuating a host.
const Evacuation = 30 * time.Minute

// Brackets returns vCenter's brackets, extended by waiting for the guest after a VM was powered on.
func (s *Session) Brackets(a *answers.Answers) map[backends.BracketKind]backends.Bracket {
	o := vsphere.BracketOptions{Reboot: a.Run.Reboot.Limit(), Evacuate: Evacuation, ShellUser: a.ESXi.User,
		Migrate: a.Run.Bystanders == answers.BystandersMigrate}
	if s.Env.Twin != nil {
		o.Wait = s.Env.Twin.Wait
	}
	b := maps.Clone(s.VC.Brackets(o))
	if power := b[backends.BracketVMPower]; power != nil {
		b[backends.BracketVMPower] = powerAndGuest{power, s}
	}
	if shell := b[backends.BracketSSH]; shell != nil {
		b[backends.BracketSSH] = shellAndLogin{shell, s}
	}
	return b
}

// shellAndLogin is the SSH bracket of a host whose shell is used: it is open after a successful login.
type shellAndLogin struct {
	backends.Bracket
	s *Session
}

// Unwrap returns the bracket without the login.
func (b shellAndLogin) Unwrap() backends.Bracket { return b.Bracket }

// Open starts the service and logs in.
func (b shellAndLogin) Open(ctx context.Context, t backends.Ref, progress backends.Progress) error {
	if err := b.Bracket.Open(ctx, t, progress); err != nil {
		return err
	}
	return b.s.Shells.Prove(ctx, t.Name)
}

// powerAndGuest is the power bracket of a VM; closing it waits for the guest, because later changes need the guest to respond.
type powerAndGuest struct {
	backends.Bracket
	s *Session
}

// Open reads the guest's network before the VM is powered off.
func (p powerAndGuest) Open(ctx context.Context, t backends.Ref, progress backends.Progress) error {
	p.s.Guests.Remember(ctx, t.Name)
	return p.Bracket.Open(ctx, t, progress)
}

// Close powers on and waits for the guest's SSH if the answers name one. The interfaces that the run does not configure must come back as
// they were.
func (p powerAndGuest) Close(ctx context.Context, t backends.Ref, leave backends.Value, progress backends.Progress) error {
	if err := p.Bracket.Close(ctx, t, leave, progress); err != nil {
		return err
	}
	if _, reached := p.s.target(t.Name); !reached || leave != backends.ValueOf("poweredOn") {
		return nil
	}
	// A VM that powers off again has no guest to wait for.
	parent := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	var off error
	go func() {
		defer close(watched)
		if off = p.s.VC.OffAgain(ctx, t.Name); off != nil {
			cancel(off)
		}
	}()
	err := p.s.Guests.Wait(ctx, t.Name)
	cause := context.Cause(ctx)
	cancel(nil)
	<-watched
	if off != nil && cause == off {
		return off // it has ended the wait, whatever its kind
	}
	if err != nil {
		return err
	}
	return p.s.Guests.Returned(parent, t.Name)
}
