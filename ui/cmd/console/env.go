// Package console is the basis of all commands: streams, clock and prompts, settings from flags, environment and file, output
// formats, signals, and the mapping from errors to exit codes.
package console

import (
	"context"
	"io"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"golang.org/x/term"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

// Env is the environment of a command; tests provide their own.
type Env struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Getenv func(string) string
	Now    func() time.Time

	// Version is the version of this program; cmd.Run sets it.
	Version string

	// NoPager disables $PAGER for long output.
	NoPager bool
	// Terminal reports whether stdin and stdout are both terminals.
	Terminal func() bool
	// Secret prompts for a secret without echo; it fails if there is no terminal.
	Secret func(prompt string) (string, error)
	// Confirm asks a question whose default is no; it fails if there is no terminal.
	Confirm func(question string) (bool, error)
	// Restart starts this command line again in this process with a setting for Go's runtime, NAME=VALUE as in GODEBUG, if the
	// process does not have it. It returns if it has, or if that is impossible. nil: the process serves more than one command.
	Restart func(setting string)
	// Executable returns the path of this program, to start its lab as a separate process.
	Executable func() (string, error)
	// Interrupts delivers SIGINT, SIGTERM, SIGHUP and SIGPIPE until stop is called.
	Interrupts func() (signals <-chan os.Signal, stop func())

	// JournalFile wraps the file of a journal; may be nil. Tests use it to end the process at a record, rehearsals to flush nothing.
	JournalFile func(journal.File) journal.File
	// CallLimit bounds one call of vCenter and one command in a guest or on a host whose own limit is longer; zero: their own.
	CallLimit time.Duration
	// PutBackLimit bounds closing what is open on hosts after the operator has ended the program at a prompt; zero: 700 ms.
	PutBackLimit time.Duration
	// Apart bounds simultaneous operations and readings of guests, which load only their own machine; zero: as the answers say. The
	// guests of a rehearsal all run in this process.
	Apart int
	// Connections bounds the open SSH connections that no command uses; zero: no bound.
	Connections int
	// Alone says that the process does nothing else while a command runs, so that the command may set limits of the process.
	Alone bool
	// Twin is set if the site is a twin in this process, whose guests start in no time and are soon asked again. The rehearsal's
	// timeline applies run.power.max_unavailable and run.window.
	Twin *Twin
}

// A Twin is what the commands on a twin share.
type Twin struct {
	// Dial connects to the address of the vCenter, or of a host's or guest's SSH server, which listen in this process only.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	Wait time.Duration // the most that is waited for a host or guest to come back, whatever its limit; zero: the limit

	Last   *backends.Inventory // the last one that a command has read to plan from
	Keep   bool                // Last is still valid: do not read again
	Guests bool                // the guests of Last are still valid: the next survey reads the rest only
}

// Wait returns how long to wait for a host or a guest that has to come back within a limit.
func (e *Env) Wait(limit time.Duration) time.Duration {
	if e.Twin != nil && e.Twin.Wait > 0 {
		return min(limit, e.Twin.Wait)
	}
	return limit
}

// JournalOptions returns the options for this process's journals.
func (e *Env) JournalOptions() []journal.Option {
	if e.JournalFile == nil {
		return nil
	}
	return []journal.Option{journal.WithFile(e.JournalFile)}
}

// Made returns the time of a reproducible build (SOURCE_DATE_EPOCH), else now.
func (e *Env) Made() time.Time {
	if n, err := strconv.ParseInt(e.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		return time.Unix(n, 0)
	}
	return e.Now()
}

// OSEnv returns the environment of a real process.
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
		Alone:      true,
	}
}

// Collect sets the percentage of the garbage collector and the memory limit in bytes, each unless it is zero, until restore is called;
// see package debug. Both apply to the whole process: if that does anything else, they stay as they are.
func (e *Env) Collect(percent int, limit int64) (restore func()) {
	if !e.Alone {
		return func() {}
	}
	oldPercent, oldLimit := 0, int64(0)
	if percent != 0 {
		oldPercent = debug.SetGCPercent(percent)
	}
	if limit != 0 {
		oldLimit = debug.SetMemoryLimit(limit)
	}
	return func() {
		if percent != 0 {
			debug.SetGCPercent(oldPercent)
		}
		if limit != 0 {
			debug.SetMemoryLimit(oldLimit)
		}
	}
}

// Theme is for printing to stdout: colour only on a terminal and unless NO_COLOR is set.
func (e *Env) Theme() theme.Theme {
	colour := isTerminal(e.Stdout) && e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb"
	return theme.New(colour, !theme.UTF8(e.Getenv), true)
}

// Lines returns a writer for the lines of a command that go to w: where stream is a terminal, they are coloured by their meaning and
// folded at words. Other files, and terminals that are dumb, get them as they are.
func (e *Env) Lines(w, stream io.Writer) io.Writer {
	if !isTerminal(stream) || e.Getenv("TERM") == "dumb" {
		return w
	}
	width, _, err := term.GetSize(int(stream.(*os.File).Fd()))
	if err != nil {
		width = 0
	}
	return theme.New(e.Getenv("NO_COLOR") == "", !theme.UTF8(e.Getenv), true).Writer(w, width)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Width returns the number of columns of the terminal, or 80 if stdout is not a terminal.
func (e *Env) Width() int {
	if f, ok := e.Stdout.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	return 80
}

// ThemeFor returns the terminal's theme, or the plain one for a file.
func (e *Env) ThemeFor(out string) theme.Theme {
	if out != "" {
		return theme.Plain()
	}
	return e.Theme()
}
