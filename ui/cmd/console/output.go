package console

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rdma-setup/rdma-setup/backends"
)

// OutputFlag adds -o with fixed choices; the first is the default. Any other word is a usage error.
func OutputFlag(c *cobra.Command, into *string, formats ...string) {
	c.Flags().VarP(&Choice{Into: into, From: formats}, "output", "o", "output format: "+strings.Join(formats, ", "))
	*into = formats[0]
}

// A Choice is a flag whose value is one of a list.
type Choice struct {
	Into *string  // the selected word; its initial value is the default
	From []string // the list
}

// String implements pflag.Value.
func (c *Choice) String() string {
	if c.Into == nil {
		return ""
	}
	return *c.Into
}

// Type implements pflag.Value.
func (c *Choice) Type() string { return "format" }

// Set implements pflag.Value.
func (c *Choice) Set(s string) error {
	if !slices.Contains(c.From, s) {
		return fmt.Errorf("use one of %s", strings.Join(c.From, ", "))
	}
	*c.Into = s
	return nil
}

// Replaceable refuses a name for an output file that is a device, a pipe or a directory: files are replaced atomically, which would
// replace /dev/stdout for everyone. "-" is refused too, because it means stdout in other programs: a file of this name is ./-. flag
// is the flag that names the file.
func Replaceable(flag, path string) error {
	hint := "set --" + flag + " to a file"
	switch flag {
	case "out":
		hint += "; without --out, output goes to stdout where possible"
	case "trace":
		hint += "; -v prints a line for each call on stderr"
	}
	if path == "-" {
		return Usage(strings.Replace(hint, " to a file", " to a file (./- for one of this name)", 1), "--%s - is not a file", flag)
	}
	at, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(at)
	if err == nil && !info.Mode().IsRegular() || strings.HasPrefix(at, "/dev/") || strings.HasPrefix(at, "/proc/") {
		return Usage(hint, "--%s %s is not a file", flag, path)
	}
	return nil
}

// OutputFiles refuses flags whose output file cannot be written as one, before the command begins: see Replaceable.
func OutputFiles(cmd *cobra.Command) error {
	for _, name := range []string{"out", "trace"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() != "" {
			if err := Replaceable(name, f.Value.String()); err != nil {
				return err
			}
		}
	}
	return nil
}

// readable is the mode of report files: others may read them, such as a monitoring agent.
const readable = 0o644

// RenderTo writes to stdout, through the pager if the output is long, or atomically to a file if one is named.
func RenderTo(e *Env, path string, render func(io.Writer) error) error {
	if path == "" {
		return Page(e, render)
	}
	if err := Replaceable("out", path); err != nil {
		return err
	}
	f, err := renameio.NewPendingFile(path, renameio.WithPermissions(readable))
	if err == nil {
		defer f.Cleanup()
		if bad := render(f); bad != nil {
			return bad
		}
		err = f.CloseAtomicallyReplace()
	}
	if err != nil {
		return NotWritable(path, err)
	}
	return nil
}

// Publish is RenderTo for documents that others read again and again. If the new one cannot be written, the old one is removed, or
// emptied where that is all that is possible, and the exit code is ExitRefused.
func Publish(e *Env, path string, render func(io.Writer) error) error {
	err := RenderTo(e, path, render)
	if path == "" || err == nil {
		return err
	}
	if info, bad := os.Lstat(path); bad == nil && info.Mode().IsRegular() {
		if bad := os.Remove(path); bad != nil && os.Truncate(path, 0) != nil {
			err = errors.Join(err, fmt.Errorf("the old document is still there: %w", bad))
		}
	}
	return &CodeError{Code: ExitRefused, Err: err}
}

// NotWritable is the error about a file that cannot be written.
func NotWritable(path string, err error) error {
	// The error of the system names a temporary file beside path.
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	} else if at, ok := errors.AsType[*os.LinkError](err); ok {
		err = at.Err
	}
	return backends.Permanentf("", "name a file in a writable directory", "%s cannot be written: %w", path, err)
}

// Page prints the output of render. If it is longer than the terminal and $PAGER names a program, that program shows it.
func Page(e *Env, render func(io.Writer) error) error {
	pager, width, height := e.pager()
	if pager == "" {
		return render(e.Stdout)
	}
	var b bytes.Buffer
	err := render(&b)
	if err == nil && rows(b.String(), width) >= height && e.page(pager, b.Bytes()) {
		return nil
	}
	_, bad := e.Stdout.Write(b.Bytes())
	return errors.Join(err, bad)
}

// pager returns the command line of the pager and the size of the terminal; "" if output is not paged: without a terminal, on a
// dumb one, or if the operator does not want it.
func (e *Env) pager() (command string, width, height int) {
	f, ok := e.Stdout.(*os.File)
	command = strings.TrimSpace(e.Getenv("PAGER"))
	if !ok || e.NoPager || command == "" || command == "cat" || e.Getenv("TERM") == "dumb" {
		return "", 0, 0
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return "", 0, 0
	}
	return command, width, height
}

func rows(text string, width int) int {
	n := 0
	for line := range strings.Lines(text) {
		n += max(1, (lipgloss.Width(strings.TrimSuffix(line, "\n"))+width-1)/width)
	}
	return n
}

// page shows text in the pager until the operator quits it. It returns false if the pager could not be started and has shown
// nothing.
//
// $PAGER is a command line for the shell, as in man(1) and git(1). As they do, less is configured to keep colours and to leave
// the text on the screen unless its own variable is set (git-config(1), core.pager).
func (e *Env) page(pager string, text []byte) bool {
	c := exec.Command("sh", "-c", pager)
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(text), e.Stdout, e.Stderr
	c.Env = os.Environ()
	if e.Getenv("LESS") == "" {
		c.Env = append(c.Env, "LESS=FRX")
	}
	signals, stop := e.Interrupts()
	defer stop()
	if err := c.Start(); err != nil {
		return false
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for {
		select {
		case err := <-ended:
			exit, failed := errors.AsType[*exec.ExitError](err)
			return !failed || exit.ExitCode() != 126 && exit.ExitCode() != 127 // sh(1) did not find the program
		case sig := <-signals:
			if sig != os.Interrupt { // Ctrl-C is for the pager, which gets it from the terminal
				_ = c.Process.Signal(sig)
			}
		}
	}
}
