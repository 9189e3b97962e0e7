package wire

import (
	"context"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Tries bounds how often a change is made again after somebody else came first or the connection broke.
const Tries = 5

// Apply makes a change until it is read back. After a conflict or a broken connection it reads first: the change may
// have been made. What is the clause for errors ("set option Net.PVRDMAVmknic").
func Apply(ctx context.Context, target, what string, to backends.Value, read func() (backends.Value, bool, error), act func() error) error {
	if err := Attempt(ctx, target, what, read, act); err != nil {
		return err
	}
	return Confirm(ctx, target, what, to, read)
}

// Attempt is Apply without the reading back at the end.
func Attempt(ctx context.Context, target, what string, read func() (backends.Value, bool, error), act func() error) error {
	for try := 1; ; try++ {
		err := act()
		if err == nil {
			return nil
		}
		err = Explain(err, target, what)
		if !Retriable(err) || try == Tries || !Pause(ctx, try) {
			return err
		}
		if _, same, rerr := read(); rerr == nil && same {
			return nil
		}
	}
}

// Confirm reads a value back. vCenter may show the old one for a moment, until it has heard from the host: three seconds
// are given to it.
func Confirm(ctx context.Context, target, what string, to backends.Value, read func() (backends.Value, bool, error)) error {
	for try := 1; ; try++ {
		got, same, err := read()
		if err != nil {
			return Explain(err, target, what+": read it back")
		}
		if same {
			return nil
		}
		if try == Tries || !Pause(ctx, try) {
			return backends.Errorf(backends.KindConflict, target, "another user or program sets it back; check the object's events in vCenter",
				"%s: it was accepted, but reads %s, not %s", what, got, to)
		}
	}
}

// Retriable tells errors after which the same change may succeed.
func Retriable(err error) bool {
	switch backends.KindOf(err) {
	case backends.KindConflict, backends.KindTransient:
		return true
	}
	return false
}

// Pause waits longer from try to try; false when ctx ends first.
func Pause(ctx context.Context, try int) bool {
	return backends.Sleep(ctx, time.Duration(try*try)*100*time.Millisecond)
}
