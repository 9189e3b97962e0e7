package guest

import (
	"context"

	"github.com/rdma-setup/rdma-setup/backends"
)

// settled is a Setter of a guest that first waits, once for each guest, for a step of an earlier process; see settle.
type settled struct {
	g *Guests
	backends.Setter
}

// settledSetter puts settled around a Setter of a guest.
func (g *Guests) settledSetter(s backends.Setter) backends.Setter {
	d := &settled{g, s}
	if k, ok := s.(backends.Keeper); ok {
		return &settledKeeper{d, k}
	}
	return d
}

// Unwrap gives the Setter itself.
func (d *settled) Unwrap() backends.Setter { return d.Setter }

func (d *settled) Read(ctx context.Context, s backends.Setting) (backends.Value, error) {
	if err := d.g.settle(ctx, s.Target.Name); err != nil {
		return backends.Absent, err
	}
	return d.Setter.Read(ctx, s)
}

func (d *settled) Set(ctx context.Context, s backends.Setting, to backends.Value, progress backends.Progress) error {
	if err := d.g.settle(ctx, s.Target.Name); err != nil {
		return err
	}
	return d.Setter.Set(ctx, s, to, progress)
}

// settledKeeper is settled around a Keeper.
type settledKeeper struct {
	*settled
	keeper backends.Keeper
}

func (d *settledKeeper) Keep(ctx context.Context, s backends.Setting, to backends.Value) (backends.Kept, error) {
	if err := d.g.settle(ctx, s.Target.Name); err != nil {
		return backends.Kept{}, err
	}
	return d.keeper.Keep(ctx, s, to)
}

func (d *settledKeeper) Observe(ctx context.Context, s backends.Setting, kept backends.Kept) (backends.Kept, error) {
	if err := d.g.settle(ctx, s.Target.Name); err != nil {
		return backends.Kept{}, err
	}
	return d.keeper.Observe(ctx, s, kept)
}

func (d *settledKeeper) Restore(ctx context.Context, s backends.Setting, kept backends.Kept, progress backends.Progress) error {
	if err := d.g.settle(ctx, s.Target.Name); err != nil {
		return err
	}
	return d.keeper.Restore(ctx, s, kept, progress)
}
