package backends

import "context"

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
