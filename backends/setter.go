package backends

import (
	"context"
	"slices"
)

// Kind is the kind of a Setting; there is one Setter per Kind.
type Kind string

// A Setting is one thing of one target that can be read and set. Name distinguishes settings of one kind (the key of an advanced
// option, the path of a file) and is empty if a target has only one.
type Setting struct {
	Target Ref
	Kind   Kind
	Name   string
}

// ID is stable across runs: "host/esx-01/option/Net.PVRDMAVmknic".
func (s Setting) ID() string {
	id := s.Target.String() + "/" + string(s.Kind)
	if s.Name != "" {
		id += "/" + s.Name
	}
	return id
}

// Progress receives the percentage done (0 to 100) if the target reports it. It may be nil.
type Progress func(percent int)

// Report calls p unless it is nil.
func (p Progress) Report(percent int) {
	if p != nil {
		p(percent)
	}
}

// A Setter reads and sets all settings of one kind.
//
// Read returns the current value in the same shape as the values in a plan, so that equal values mean nothing to do; Absent if
// the thing does not exist. Set is safe to repeat and returns nil only if the target confirmed the change; setting Absent removes
// the thing. After an error the value is unknown until the next Read. Both respect ctx.
type Setter interface {
	Read(ctx context.Context, s Setting) (Value, error)
	Set(ctx context.Context, s Setting, to Value, progress Progress) error
}

// A Resolver is a Setter whose values may refer to something that gets its name only during the run, such as the pNIC at a PCI
// address, which appears after the reboot. Resolve returns the value with the current names.
type Resolver interface {
	Resolve(ctx context.Context, s Setting, to Value) (Value, error)
}

// An Assignment is a setting and its requested value.
type Assignment struct {
	Setting
	To Value
}

// A ManySetter merges assignments of one parent (a DVS, a VM) into one reconfigure. Parent returns the key under which
// assignments may be merged; assignments of several kinds may have the same parent if they share the ManySetter. SetMany returns
// one error per assignment, in order, nil for each that succeeded.
type ManySetter interface {
	Setter
	Parent(s Setting) string
	SetMany(ctx context.Context, as []Assignment, progress Progress) []error
}

// A BracketKind names the state that a target must be in while it is changed.
type BracketKind string

// The brackets.
const (
	BracketVMPower     BracketKind = "vm-power"         // VM off while its devices change, then on again
	BracketMaintenance BracketKind = "host-maintenance" // host evacuated and in maintenance mode
	BracketReboot      BracketKind = "host-reboot"      // maintenance mode, and a reboot after the changes
	BracketSSH         BracketKind = "host-ssh"         // SSH service on an ESXi host, restored to its previous state
)

// A Bracket prepares a target for changes and restores it afterwards. State returns the current state; the engine journals it
// before Open. Open and Close are safe to repeat; Close restores leave, a value returned by State.
type Bracket interface {
	State(ctx context.Context, t Ref) (Value, error)
	Open(ctx context.Context, t Ref, progress Progress) error
	Close(ctx context.Context, t Ref, leave Value, progress Progress) error
}

// An EffectReader is a Bracket whose effect may occur before it is closed, because a change inside it, or another party, reboots
// the host. Happened reports whether the effect has occurred since the state leave was read.
type EffectReader interface {
	Happened(ctx context.Context, t Ref, leave Value) (bool, error)
}

// A ManyReader is a Setter that reads many settings of its kinds in fewer calls than one each (for example one property read for
// all hosts). ReadMany returns one value and one error per setting, in order. The engine uses it for the settings of one SetMany
// and for settings of many targets that are due at the same time.
type ManyReader interface {
	ReadMany(ctx context.Context, ss []Setting) ([]Value, []error)
}

// An Aborter is a Bracket that can be closed without its effect. The engine calls Abort instead of Close if Open failed or
// nothing was changed between Open and Close: the host then leaves maintenance mode without a reboot. Abort is safe to repeat.
type Aborter interface {
	Abort(ctx context.Context, t Ref, found Value, progress Progress) error
}

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
