// Package readonly lets the world be read and never changed: dry runs and checks put it around what they are given.
package readonly

import (
	"context"

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

// Setter reads as s and refuses every change. One that reads many settings at once still does.
func Setter(s backends.Setter) backends.Setter {
	if many, ok := s.(backends.ManyReader); ok {
		return &struct {
			setter
			backends.ManyReader
		}{setter{s}, many}
	}
	return &setter{s}
}

type setter struct{ inner backends.Setter }

func (s *setter) Read(ctx context.Context, what backends.Setting) (backends.Value, error) {
	return s.inner.Read(ctx, what)
}

func (s *setter) Set(_ context.Context, what backends.Setting, _ backends.Value, _ backends.Progress) error {
	return refuse(what.Target, "set "+what.ID())
}

// Brackets gives brackets that tell their state and refuse to be opened or closed (KindRefused).
func Brackets(in map[backends.BracketKind]backends.Bracket) map[backends.BracketKind]backends.Bracket {
	out := make(map[backends.BracketKind]backends.Bracket, len(in))
	for kind, b := range in {
		out[kind] = Bracket(b)
	}
	return out
}

// Bracket tells the state of b and refuses to open or close it.
func Bracket(b backends.Bracket) backends.Bracket { return &bracket{b} }

type bracket struct{ inner backends.Bracket }

func (b *bracket) State(ctx context.Context, t backends.Ref) (backends.Value, error) {
	return b.inner.State(ctx, t)
}

func (b *bracket) Open(_ context.Context, t backends.Ref, _ backends.Progress) error {
	return refuse(t, "open it for changes")
}

func (b *bracket) Close(_ context.Context, t backends.Ref, _ backends.Value, _ backends.Progress) error {
	return refuse(t, "close it after changes")
}

func refuse(t backends.Ref, what string) error {
	return backends.Errorf(backends.KindRefused, t.Name, "", "%s: this command only reads", what)
}
