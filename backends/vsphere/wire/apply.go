package wire

import (
	"context"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Tries bounds how often a change is repeated after a conflict or a lost connection.
const Tries = 5

// Apply makes a change and repeats it until it is read back. After a conflict or a lost connection it reads first, because the
// change may have been made. What is the clause for errors ("set option Net.PVRDMAVmknic").
func Apply(ctx context.Context, target, what string, to backends.Value, read func() (backends.Value, bool, error), act func() error) error {
	if err := Attempt(ctx, target, what, read, act); err != nil {
		return err
	}
	return Confirm(ctx, target, what, to, read)
}

// Set is Apply that reports the end.
func Set(ctx context.Context, target, what string, to backends.Value, progress backends.Progress, read func() (backends.Value, bool, error),
	act func() error) error {
	err := Apply(ctx, target, what, to, read, act)
	if err == nil {
		progress.Report(100)
	}
	return err
}

// Reading returns the read of Apply for a setting that reads back as it was set.
func Reading(ctx context.Context, read func(context.Context, backends.Setting) (backends.Value, error), t backends.Setting,
	to backends.Value) func() (backends.Value, bool, error) {
	return func() (backends.Value, bool, error) {
		got, err := read(ctx, t)
		return got, got == to, err
	}
}

// Attempt is Apply without the final read.
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

// Confirm reads a value back. vCenter may return the old one until the host has reported the change, so Confirm retries for three
// seconds.
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
				"%s: it was accepted, but reads back as %s, not %s", what, got, to)
		}
	}
}

// Retriable reports whether the same change may succeed after an error.
func Retriable(err error) bool {
	switch backends.KindOf(err) {
	case backends.KindConflict, backends.KindTransient:
		return true
	}
	return false
}

// Pause waits, longer with each try; it returns false if ctx ends first.
func Pause(ctx context.Context, try int) bool {
	return backends.Sleep(ctx, time.Duration(try*try)*100*time.Millisecond)
}
