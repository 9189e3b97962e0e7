package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// Exit codes; scripts rely on them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitRefused     = 3
	exitConnect     = 4
	exitPartial     = 5
	exitChanges     = 10 // plan --detailed-exitcode
	exitInterrupted = 130
)

// A codeError ends a command with an exit code of its own. Without words it prints nothing: the command has said it.
type codeError struct {
	code int
	err  error
}

func (e *codeError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *codeError) Unwrap() error { return e.err }

// exit ends a command with a code and no further words.
func exit(code int) error {
	if code == exitOK {
		return nil
	}
	return &codeError{code: code}
}

// usage is an error of the command line itself.
func usage(hint, format string, args ...any) error {
	return backends.Errorf(backends.KindUsage, "", hint, format, args...)
}

// exitCode is the one switch from errors to exit codes.
func exitCode(err error) int {
	var code *codeError
	var refused *plan.Refused
	var problems answers.Problems
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return code.code
	case errors.As(err, &refused):
		return refusedCode(refused)
	case errors.As(err, &problems):
		return exitUsage
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	switch backends.KindOf(err) {
	case backends.KindUsage:
		return exitUsage
	case backends.KindRefused:
		return exitRefused
	case backends.KindAuth, backends.KindUnreachable:
		return exitConnect
	case backends.KindInterrupted:
		return exitInterrupted
	}
	return exitFailed
}

// refusedCode tells what an inventory forbids from guests that nobody could log in to: where nothing else stands in the way,
// the login is what has to be mended.
func refusedCode(refused *plan.Refused) int {
	for _, r := range refused.Refusals {
		if r.Kind != backends.KindAuth && r.Kind != backends.KindUnreachable {
			return exitRefused
		}
	}
	return exitConnect
}

// explain prints what went wrong as "error:" and "hint:" lines.
func explain(w io.Writer, err error) {
	var code *codeError
	if errors.As(err, &code) && code.err == nil || errors.Is(err, syscall.EPIPE) {
		return // a reader that has gone wants to hear no more
	}
	var refused *plan.Refused
	if errors.As(err, &refused) {
		for _, r := range folded(refused.Refusals) {
			printError(w, r.String(), r.Remedy)
		}
		return
	}
	var problems answers.Problems
	if errors.As(err, &problems) {
		for _, p := range problems {
			printError(w, p.String(), p.Hint)
		}
		return
	}
	printError(w, err.Error(), backends.HintOf(err))
}

// folded tells once what is refused of many targets for one reason: "esx-01 to esx-04: has no vmknic vmk9".
func folded(all []plan.Refusal) []plan.Refusal {
	type reason struct {
		kind        backends.TargetType
		why, remedy string
	}
	names := map[reason][]string{}
	var out []plan.Refusal
	for _, r := range all {
		key := reason{r.Target.Type, r.Why, r.Remedy}
		if names[key] == nil {
			out = append(out, r)
		}
		names[key] = append(names[key], r.Target.Name)
	}
	for i, r := range out {
		if same := names[reason{r.Target.Type, r.Why, r.Remedy}]; len(same) > 1 {
			out[i].Target.Name = plain.Names(same)
		}
	}
	return out
}

func printError(w io.Writer, what, hint string) {
	fmt.Fprintf(w, "error: %s\n", visible(what))
	if hint != "" {
		fmt.Fprintf(w, "hint:  %s\n", visible(hint))
	}
}

// visible makes text harmless that names and machines that we do not trust have had a say in. Lines after the first are
// indented: none can pose as an error or a hint of its own.
func visible(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = plain.Clean(line)
	}
	return strings.Join(lines, "\n       ")
}
