// Package cmd is the command tree of rdma-setup: one file a command. It is the only place that builds concrete
// backends, and the only one that knows exit codes.
package cmd

import (
	"context"
	"io"
	"os"
	"runtime/debug"
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

	// Terminal tells whether a person sits there: stdin and stdout are both terminals.
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
}

// journalOptions is how this process writes journals.
func (e *Env) journalOptions() []journal.Option {
	if e.JournalFile == nil {
		return nil
	}
	return []journal.Option{journal.WithFile(e.JournalFile)}
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

// Main runs the command line of this process and gives its exit code.
func Main() int {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(75) // a thousand hosts with ten thousand VMs in 150 MB instead of 190, for no more CPU that could be measured
	}
	return Run(context.Background(), OSEnv(), os.Args[1:])
}
