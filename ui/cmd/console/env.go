// Package console is what a command of rdma-setup stands on: streams, clock and questions, settings from flags,
// environment and file, output formats, signals, and the one switch from errors to exit codes.
package console

import (
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/term"

	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

// Env is what a command takes from the outside; tests hand in their own.
type Env struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Getenv func(string) string
	Now    func() time.Time

	// Version is that of this program; cmd.Run fills it in.
	Version string

	// NoPager keeps long output out of $PAGER.
	NoPager bool
	// Terminal reports whether a person sits there: stdin and stdout are both terminals.
	Terminal func() bool
	// Secret asks for a secret without echo; it fails where there is no terminal.
	Secret func(prompt string) (string, error)
	// Confirm asks a question that Enter answers with no; it fails where there is no terminal.
	Confirm func(question string) (bool, error)
	// Executable is the path of this program, to start its lab as a process of its own.
	Executable func() (string, error)
	// Interrupts delivers SIGINT, SIGTERM, SIGHUP and SIGPIPE until stop is called.
	Interrupts func() (signals <-chan os.Signal, stop func())

	// JournalFile puts something between a journal and its file; nil: nothing. Tests die at a record with it.
	JournalFile func(journal.File) journal.File
	// CallLimit bounds one call of vCenter and one command in a guest or on a host, where their own limits are longer;
	// zero: their own.
	CallLimit time.Duration
	// PutBackLimit bounds what is still closed on hosts once the operator has ended the program at a question; zero: 700 ms.
	PutBackLimit time.Duration
}

// JournalOptions is how this process writes journals.
func (e *Env) JournalOptions() []journal.Option {
	if e.JournalFile == nil {
		return nil
	}
	return []journal.Option{journal.WithFile(e.JournalFile)}
}

// Made is the time of a reproducible build (SOURCE_DATE_EPOCH), else now.
func (e *Env) Made() time.Time {
	if n, err := strconv.ParseInt(e.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		return time.Unix(n, 0)
	}
	return e.Now()
}

// OSEnv is the environment of a real process.
func OSEnv() *Env {
	return &Env{
		Stdin:  os.Stdin,
		Stdout: os.Stdout,
		Stderr: os.Stderr,
		Getenv: os.Getenv,
		Now:    time.Now,
		Terminal: func() bool {
			return term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd()))
		},
		Secret:     askSecret,
		Confirm:    askYes,
		Executable: os.Executable,
		Interrupts: watchSignals,
	}
}
