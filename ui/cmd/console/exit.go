package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// Exit codes; scripts rely on them.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitRefused     = 3
	ExitConnect     = 4
	ExitPartial     = 5
	ExitChanges     = 10 // plan --detailed-exitcode
	ExitInterrupted = 130
)

// A CodeError ends a command with an exit code of its own. Without a message it prints nothing, because the command has already
// printed it.
type CodeError struct {
	Code int
	Err  error // nil: nothing is left to print
}

// Error implements error.
func (e *CodeError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *CodeError) Unwrap() error { return e.Err }

// Exit ends a command with a code and no message.
func Exit(code int) error {
	if code == ExitOK {
		return nil
	}
	return &CodeError{Code: code}
}

// Usage returns an error of the command line itself.
func Usage(hint, format string, args ...any) error {
	return backends.Usagef("", hint, format, args...)
}

// Meant is the hint about an unknown word: the nearest of the known ones in the format, else another hint.
func Meant(word string, known []string, format, otherwise string) string {
	if near := answers.Nearest(word, known); near != "" {
		return "did you mean " + fmt.Sprintf(format, near)
	}
	return otherwise
}

// ExitCode maps an error to the exit code of the command.
func ExitCode(err error) int {
	var code *CodeError
	var refused *plan.Refused
	var problems answers.Problems
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &code):
		return code.Code
	case errors.As(err, &refused):
		return refusedCode(refused)
	case errors.As(err, &problems):
		return ExitUsage
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	}
	return cmp.Or(kindCodes[backends.KindOf(err)], ExitFailed)
}

// kindCodes are the exit codes of kinds of errors; those of others are ExitFailed.
var kindCodes = map[backends.ErrorKind]int{backends.KindUsage: ExitUsage, backends.KindRefused: ExitRefused, backends.KindAuth: ExitConnect,
	backends.KindUnreachable: ExitConnect, backends.KindInterrupted: ExitInterrupted}

// refusedCode distinguishes a refusal by the inventory from guests whose login failed: if nothing else is refused, the login has
// to be fixed.
func refusedCode(refused *plan.Refused) int {
	if slices.ContainsFunc(refused.Refusals,
		func(r plan.Refusal) bool { return r.Kind != backends.KindAuth && r.Kind != backends.KindUnreachable }) {
		return ExitRefused
	}
	return ExitConnect
}

// Explain prints an error as "error:" and "hint:" lines.
func Explain(w io.Writer, err error) {
	if code, ok := errors.AsType[*CodeError](err); ok && code.Err == nil || errors.Is(err, syscall.EPIPE) {
		return // the reader has closed its end
	}
	if refused, ok := errors.AsType[*plan.Refused](err); ok {
		for _, r := range folded(refused.Refusals) {
			PrintError(w, r.String(), r.Remedy)
		}
		return
	}
	if problems, ok := errors.AsType[answers.Problems](err); ok {
		for _, p := range problems {
			PrintError(w, p.String(), p.Hint)
		}
		return
	}
	PrintError(w, backends.ErrorText(err), backends.HintOf(err))
}

// folded combines targets that are refused for one reason: "esx-01 to esx-04: has no vmknic vmk9".
func folded(all []plan.Refusal) []plan.Refusal {
	type reason struct {
		kind        backends.TargetType
		why, remedy string
	}
	var by plain.Gathered[reason, plan.Refusal]
	for _, r := range all {
		by.Add(reason{r.Target.Type, r.Why, r.Remedy}, r)
	}
	var out []plan.Refusal
	for _, same := range by.All() {
		r := same[0]
		if len(same) > 1 {
			r.Target.Name = plain.Names(plain.Mapped(same, func(r plan.Refusal) string { return r.Target.Name }))
		}
		out = append(out, r)
	}
	return out
}

// PrintError prints one error and its hint.
func PrintError(w io.Writer, what, hint string) {
	fmt.Fprintf(w, "error: %s\n", Visible(what))
	if hint != "" {
		fmt.Fprintf(w, "hint:  %s\n", Visible(hint))
	}
}

// Visible makes text safe that contains untrusted names or output. Lines after the first are indented, so that none looks like an
// error or a hint.
func Visible(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = backends.Clean(line)
	}
	return strings.Join(lines, "\n       ")
}
