package guest

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// stepWaiter is a decorator around a Setter of a guest. It first waits, once for each guest, for a step of an earlier process; see
// settle. A partial value may be the current work of another process: it is reread after each of that process's steps, as
// long as the value changes.
type stepWaiter struct {
	backends.Wrapped
	g *Guests
}

var _ backends.Decorator = (*stepWaiter)(nil)

func (d *stepWaiter) Read(ctx context.Context, s backends.Setting) (backends.Value, error) {
	if err := d.g.settle(ctx, s.Target.Name); err != nil {
		return backends.Absent, err
	}
	v, err := d.Wrapped.Read(ctx, s)
	for n := 0; n < rereads && err == nil && v.IsPartial(); n++ {
		before := v
		waited, werr := d.wait(ctx, s.Target.Name)
		if werr != nil {
			return backends.Absent, werr
		}
		if v, err = d.Wrapped.Read(ctx, s); v == before && !waited {
			break
		}
	}
	return v, err
}

// rereads bounds how often a partial value is read again: a setting has fewer steps.
const rereads = 20

// wait waits for a step of another process and reports whether there was one.
func (d *stepWaiter) wait(ctx context.Context, vm string) (waited bool, err error) {
	backends.ReadsOf(ctx).Forget()
	before := d.g.heard(vm)
	d.g.unsettle(vm)
	err = d.g.settle(ctx, vm)
	return d.g.heard(vm) != before, err
}

func (d *stepWaiter) Set(ctx context.Context, s backends.Setting, to backends.Value, progress backends.Progress) error {
	if err := d.g.settle(ctx, s.Target.Name); err != nil {
		return err
	}
	began := time.Now()
	return d.restarted(ctx, s, began, d.Wrapped.Set(ctx, s, to, progress))
}

func (d *stepWaiter) SetMany(ctx context.Context, as []backends.Assignment, progress backends.Progress) []error {
	for _, a := range as {
		if err := d.g.settle(ctx, a.Target.Name); err != nil {
			return slices.Repeat([]error{err}, len(as))
		}
	}
	return d.Wrapped.SetMany(ctx, as, progress)
}

func (d *stepWaiter) ReadMany(ctx context.Context, ss []backends.Setting) ([]backends.Value, []error) {
	for _, s := range ss {
		if err := d.g.settle(ctx, s.Target.Name); err != nil {
			return make([]backends.Value, len(ss)), slices.Repeat([]error{err}, len(ss))
		}
	}
	values, errs := d.Wrapped.ReadMany(ctx, ss)
	for range rereads {
		half, again, before := false, false, values
		for i, v := range values {
			if i >= len(errs) || errs[i] != nil || !v.IsPartial() {
				continue
			}
			waited, err := d.wait(ctx, ss[i].Target.Name)
			if err != nil {
				return make([]backends.Value, len(ss)), slices.Repeat([]error{err}, len(ss))
			}
			half, again = true, again || waited
		}
		if !half {
			break
		}
		if values, errs = d.Wrapped.ReadMany(ctx, ss); slices.Equal(values, before) && !again {
			break
		}
	}
	return values, errs
}

func (d *stepWaiter) Keep(ctx context.Context, s backends.Setting, to backends.Value) (backends.Kept, error) {
	if err := d.g.settle(ctx, s.Target.Name); err != nil {
		return backends.Kept{}, err
	}
	return d.Wrapped.Keep(ctx, s, to)
}

func (d *stepWaiter) Observe(ctx context.Context, s backends.Setting, kept backends.Kept) (backends.Kept, error) {
	if err := d.g.settle(ctx, s.Target.Name); err != nil {
		return backends.Kept{}, err
	}
	return d.Wrapped.Observe(ctx, s, kept)
}

func (d *stepWaiter) Restore(ctx context.Context, s backends.Setting, kept backends.Kept, progress backends.Progress) error {
	if err := d.g.settle(ctx, s.Target.Name); err != nil {
		return err
	}
	began := time.Now()
	return d.restarted(ctx, s, began, d.Wrapped.Restore(ctx, s, kept, progress))
}

// restarted adds to a permanent error that the guest has restarted since the operation began: another user shut it down, for
// example. A reboot undoes what an operation has changed at runtime, so what it found afterwards says nothing about the guest. The
// operation is not retried, because it may have caused the restart. The time since the boot is the first number of /proc/uptime
// (proc_uptime(5)). If the answer took so long that it does not tell, the open connection is asked again.
func (d *stepWaiter) restarted(ctx context.Context, s backends.Setting, began time.Time, err error) error {
	// which reboots the guest itself
	if backends.KindOf(err) != backends.KindPermanent || s.Kind == backends.KindNouveau || s.Kind == backends.KindRestart {
		return err
	}
	vm := s.Target.Name
	for range 2 {
		took := time.Since(began)
		r, unread := d.g.Run(ctx, vm, ssh.Command{Argv: []string{"cat", "/proc/uptime"}, Limit: 30 * time.Second})
		first, _, _ := strings.Cut(r.Stdout, " ")
		up, unparsed := strconv.ParseFloat(first, 64)
		if unread != nil || r.ExitCode != 0 || unparsed != nil || up > time.Since(began).Seconds() {
			break
		}
		if up < took.Seconds()-0.01 { // it has two decimals
			return backends.Permanentf(label(vm),
				strings.TrimSpace("Find out why it restarted (its events in vCenter; last -x in the guest), then run rdma-setup resume. "+
					backends.HintOf(err)),
				"it has restarted during this step: %s", strings.TrimPrefix(err.Error(), label(vm)+": "))
		}
	}
	return err
}
