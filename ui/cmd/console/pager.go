package console

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"

	"charm.land/lipgloss/v2"
	"golang.org/x/term"
)

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

// rows returns the number of terminal lines that a text needs.
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
