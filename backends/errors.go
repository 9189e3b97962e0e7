package backends

import (
	"errors"
	"fmt"
)

// ErrorKind is the category of an error. It decides what to do next.
type ErrorKind string

// The kinds, with the exit code of the command.
const (
	KindUsage       ErrorKind = "usage"       // invalid flags or answers: 2
	KindRefused     ErrorKind = "refused"     // refused by the preflight or because of the inventory, nothing written: 3
	KindAuth        ErrorKind = "auth"        // login refused, key or certificate not accepted: 4
	KindUnreachable ErrorKind = "unreachable" // no connection, or no answer in time: 4
	KindPermission  ErrorKind = "permission"  // logged in, but a privilege is missing
	KindConflict    ErrorKind = "conflict"    // changed by another client in the meantime
	KindTransient   ErrorKind = "transient"   // a retry may succeed
	KindPermanent   ErrorKind = "permanent"   // a retry fails in the same way
	KindInterrupted ErrorKind = "interrupted" // stopped by the operator or a signal: 130
)

// An Error says what failed, on which target, why, and what to do next.
type Error struct {
	Kind   ErrorKind
	Target string // "esx-03", "guest vm-01", "" for the program itself
	What   string // what was being done, as a clause: "enable the firewall ruleset pvrdma"
	Hint   string // one sentence for the operator; may be empty
	Err    error  // the cause; may be nil
	// Lasting means that the target refuses this request because of its configuration: a retry fails as long as the configuration
	// stays the same.
	Lasting bool

	told bool // What already contains the text of Err
}

func (e *Error) Error() string {
	s := e.What
	if e.Target != "" {
		s = e.Target + ": " + s
	}
	if e.Err != nil && !e.told {
		s += ": " + ErrorText(e.Err)
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an Error with a formatted message; a cause wrapped with %w stays reachable for errors.Is and errors.As.
func Errorf(kind ErrorKind, target, hint, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Target: target, What: ErrorText(err), Hint: hint, Err: errors.Unwrap(err), told: true}
}

// Permanentf, and its siblings of the other frequent kinds, is Errorf of a kind.
func Permanentf(target, hint, format string, args ...any) error {
	return Errorf(KindPermanent, target, hint, format, args...)
}

func Refusedf(target, hint, format string, args ...any) error {
	return Errorf(KindRefused, target, hint, format, args...)
}

func Usagef(target, hint, format string, args ...any) error {
	return Errorf(KindUsage, target, hint, format, args...)
}

func Unreachablef(target, hint, format string, args ...any) error {
	return Errorf(KindUnreachable, target, hint, format, args...)
}

func Conflictf(target, hint, format string, args ...any) error {
	return Errorf(KindConflict, target, hint, format, args...)
}

func Transientf(target, hint, format string, args ...any) error {
	return Errorf(KindTransient, target, hint, format, args...)
}

func Authf(target, hint, format string, args ...any) error {
	return Errorf(KindAuth, target, hint, format, args...)
}

func Interruptedf(target, hint, format string, args ...any) error {
	return Errorf(KindInterrupted, target, hint, format, args...)
}

// KindOf returns the kind of the outermost Error in err's chain, "" when there is none.
func KindOf(err error) ErrorKind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}

// WithHint returns an error with another hint.
func WithHint(err error, hint string) error {
	if e, is := err.(*Error); is {
		other := *e
		other.Hint = hint
		return &other
	}
	return &Error{Kind: KindOf(err), What: err.Error(), Hint: hint, Err: err, told: true}
}

// IsLasting reports whether an error in err's chain is Lasting.
func IsLasting(err error) bool {
	for e, ok := errors.AsType[*Error](err); ok; e, ok = errors.AsType[*Error](e.Err) {
		if e.Lasting {
			return true
		}
	}
	return false
}

// HintOf returns the first hint found in err's chain.
func HintOf(err error) string {
	for e, ok := errors.AsType[*Error](err); ok; e, ok = errors.AsType[*Error](e.Err) {
		if e.Hint != "" {
			return e.Hint
		}
	}
	return ""
}
