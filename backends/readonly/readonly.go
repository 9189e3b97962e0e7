// Package readonly lets the world be read and never changed: dry runs and checks put it around what they are given.
package readonly

import (
	"context"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Setters gives setters that read as the given ones and refuse every change (KindRefused).
func Setters(in map[backends.Kind]backends.Setter) map[backends.Kind]backends.Setter {
	out := make(map[backends.Kind]backends.Setter, len(in))
	for kind, s := range in {
		out[kind] = Setter(s)
	}
	return out
}

// Setter reads and observes as s, many settings at once where s does, and refuses every change: Set, SetMany, Restore and also Keep,
// which may fetch the package lists of a guest.
func Setter(s backends.Setter) backends.Setter { return &setter{s} }

type setter struct{ inner backends.Setter }

var _ backends.Decorator = (*setter)(nil)

func (s *setter) Unwrap() backends.Setter { return s.inner }

func (s *setter) Read(ctx context.Context, what backends.Setting) (backends.Value, error) {
	return s.inner.Read(ctx, what)
}

func (s *setter) Set(_ context.Context, what backends.Setting, _ backends.Value, _ backends.Progress) error {
	return refuse(what.Target, "set "+what.ID())
}

func (s *setter) Parent(what backends.Setting) string {
	if many, ok := backends.As[backends.ManySetter](s.inner); ok {
		return many.Parent(what)
	}
	return what.ID()
}

func (s *setter) SetMany(_ context.Context, as []backends.Assignment, _ backends.Progress) []error {
	errs := make([]error, len(as))
	for i, a := range as {
		errs[i] = refuse(a.Target, "set "+a.ID())
	}
	return errs
}

func (s *setter) ReadMany(ctx context.Context, ss []backends.Setting) ([]backends.Value, []error) {
	if many, ok := backends.As[backends.ManyReader](s.inner); ok {
		return many.ReadMany(ctx, ss)
	}
	return make([]backends.Value, len(ss)), slices.Repeat([]error{backends.ErrNotOffered}, len(ss))
}

func (s *setter) Keep(_ context.Context, what backends.Setting, _ backends.Value) (backends.Kept, error) {
	return backends.Kept{}, refuse(what.Target, "keep what restores "+what.ID())
}

func (s *setter) Observe(ctx context.Context, what backends.Setting, kept backends.Kept) (backends.Kept, error) {
	if keeper, ok := backends.As[backends.Keeper](s.inner); ok {
		return keeper.Observe(ctx, what, kept)
	}
	return backends.Kept{}, backends.ErrNotOffered
}

func (s *setter) Restore(_ context.Context, what backends.Setting, _ backends.Kept, _ backends.Progress) error {
	return refuse(what.Target, "restore "+what.ID())
}

// Brackets gives brackets that tell their state and refuse to be opened or closed (KindRefused).
func Brackets(in map[backends.BracketKind]backends.Bracket) map[backends.BracketKind]backends.Bracket {
	out := make(map[backends.BracketKind]backends.Bracket, len(in))
	for kind, b := range in {
		out[kind] = Bracket(b)
	}
	return out
}

// Bracket tells the state of b and refuses to open, close or abort it.
func Bracket(b backends.Bracket) backends.Bracket { return &bracket{b} }

type bracket struct{ inner backends.Bracket }

func (b *bracket) Unwrap() backends.Bracket { return b.inner }

func (b *bracket) State(ctx context.Context, t backends.Ref) (backends.Value, error) {
	return b.inner.State(ctx, t)
}

func (b *bracket) Open(_ context.Context, t backends.Ref, _ backends.Progress) error {
	return refuse(t, "open it for changes")
}

func (b *bracket) Close(_ context.Context, t backends.Ref, _ backends.Value, _ backends.Progress) error {
	return refuse(t, "close it after changes")
}

func (b *bracket) Abort(_ context.Context, t backends.Ref, _ backends.Value, _ backends.Progress) error {
	return refuse(t, "back out of it")
}

func refuse(t backends.Ref, what string) error {
	return backends.Errorf(backends.KindRefused, t.Name, "", "%s: this command only reads", what)
}
