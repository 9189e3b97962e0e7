package backends

import (
	"context"
	"slices"
)

// A Decorator is a Setter around another one. It has the methods of every optional interface, so that none is lost, and
// As reports only those that the wrapped Setter has too. Called without asking As first, a method whose interface the
// wrapped Setter lacks fails with ErrNotOffered.
type Decorator interface {
	Setter
	ManySetter
	ManyReader
	Keeper
	Unwrap() Setter
}

// ErrNotOffered is the error of a Decorator whose wrapped Setter lacks the requested operation.
var ErrNotOffered = Errorf(KindPermanent, "", "", "the setting offers no such operation")

// A Wrapped is the Setter inside a Decorator with every optional interface. A Decorator embeds it and redefines the methods that
// it changes; the others, and those that it calls on its Wrapped, fail with ErrNotOffered if the Setter lacks the interface.
type Wrapped struct{ Setter }

var _ Decorator = Wrapped{}

// Unwrap returns the wrapped Setter.
func (w Wrapped) Unwrap() Setter { return w.Setter }

// Parent returns the key of the wrapped Setter, or the setting's own if it merges nothing.
func (w Wrapped) Parent(s Setting) string {
	if many, ok := As[ManySetter](w.Setter); ok {
		return many.Parent(s)
	}
	return s.ID()
}

// SetMany sets all settings in one operation of the wrapped Setter.
func (w Wrapped) SetMany(ctx context.Context, as []Assignment, p Progress) []error {
	if many, ok := As[ManySetter](w.Setter); ok {
		return many.SetMany(ctx, as, p)
	}
	return slices.Repeat([]error{ErrNotOffered}, len(as))
}

// ReadMany reads all settings in one operation of the wrapped Setter.
func (w Wrapped) ReadMany(ctx context.Context, ss []Setting) ([]Value, []error) {
	if many, ok := As[ManyReader](w.Setter); ok {
		return many.ReadMany(ctx, ss)
	}
	return make([]Value, len(ss)), slices.Repeat([]error{ErrNotOffered}, len(ss))
}

// Keep saves what a value cannot hold, before the wrapped Setter changes it.
func (w Wrapped) Keep(ctx context.Context, s Setting, to Value) (Kept, error) {
	if keeper, ok := As[Keeper](w.Setter); ok {
		return keeper.Keep(ctx, s, to)
	}
	return Kept{}, ErrNotOffered
}

// Observe adds what the wrapped Setter left after its change.
func (w Wrapped) Observe(ctx context.Context, s Setting, kept Kept) (Kept, error) {
	if keeper, ok := As[Keeper](w.Setter); ok {
		return keeper.Observe(ctx, s, kept)
	}
	return Kept{}, ErrNotOffered
}

// Restore brings back what Keep saved.
func (w Wrapped) Restore(ctx context.Context, s Setting, kept Kept, p Progress) error {
	if keeper, ok := As[Keeper](w.Setter); ok {
		return keeper.Restore(ctx, s, kept, p)
	}
	return ErrNotOffered
}

// As finds an optional interface (ManySetter, ManyReader, Keeper, Aborter, EffectReader) of a Setter or a Bracket. Decorators
// have them all, so a type assertion on one proves nothing: As follows Unwrap, and the wrapped Setter must have T too. If the
// decorator itself lacks T, the wrapped Setter is searched.
func As[T any](s any) (T, bool) {
	own, ok := s.(T)
	var inner any
	switch w := s.(type) {
	case interface{ Unwrap() Setter }:
		inner = w.Unwrap()
	case interface{ Unwrap() Bracket }:
		inner = w.Unwrap()
	default:
		return own, ok
	}
	below, has := As[T](inner)
	if !has || ok {
		return own, has
	}
	return below, true
}
