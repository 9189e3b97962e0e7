package backends

import (
	"errors"
	"fmt"
)

// ErrorKind is the cause of an error as far as it decides what to do next.
type ErrorKind string

// The kinds, and the exit code that the command gives them.
const (
	KindUsage       ErrorKind = "usage"       // bad flags or answers: 2
	KindRefused     ErrorKind = "refused"     // preflight or inventory refuses, nothing written: 3
	KindAuth        ErrorKind = "auth"        // login refused, key or certificate not accepted: 4
	KindUnreachable ErrorKind = "unreachable" // no connection, no answer in time: 4
	KindPermission  ErrorKind = "permission"  // logged in, but a privilege is missing
	KindConflict    ErrorKind = "conflict"    // somebody else changed it meanwhile
	KindTransient   ErrorKind = "transient"   // worth trying again
	KindPermanent   ErrorKind = "permanent"   // trying again gives the same
	KindInterrupted ErrorKind = "interrupted" // stopped by the operator or a signal: 130
)

// An Error says what failed, on which target, why, and what to do next.
type Error struct {
	Kind   ErrorKind
	Target string // "esx-03", "guest vm-01", "" for the program itself
	What   string // what was being done, as a clause: "enable the firewall ruleset pvrdma"
	Hint   string // one sentence for the operator; may be empty
	Err    error  // the cause; may be nil
	// Lasting tells that the other side refuses this request for what the target is made of: it does so again while that stays.
	Lasting bool

	told bool // What already holds the words of Err
}

func (e *Error) Error() string {
	s := e.What
	if e.Target != "" {
		s = e.Target + ": " + s
	}
	if e.Err != nil && !e.told {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error of a formatted sentence; a cause wrapped with %w stays reachable for errors.Is and As.
func Errorf(kind ErrorKind, target, hint, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Target: target, What: err.Error(), Hint: hint, Err: errors.Unwrap(err), told: true}
}

// KindOf returns the kind of the outermost Error in err's chain, "" when there is none.
func KindOf(err error) ErrorKind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// IsLasting reports whether an error in err's chain is lasting.
func IsLasting(err error) bool {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return false
		}
		if e.Lasting {
			return true
		}
		err = e.Err
	}
	return false
}

// HintOf returns the first hint found in err's chain.
func HintOf(err error) string {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}
