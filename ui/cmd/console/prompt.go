package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
)

// ErrInterrupted is the error of a prompt that was answered with Ctrl-C, or during which the program was told to end.
var ErrInterrupted = backends.Interruptedf("", "", "interrupted at a prompt")

// Prompts makes the prompts of e end the program: after Ctrl-C at one of them cancel is called, no further prompt is shown, and
// interrupted reports it.
func Prompts(e *Env, cancel context.CancelFunc) (interrupted func() bool) {
	var ended atomic.Bool
	e.Secret, e.Confirm = prompting(e.Secret, &ended, cancel), prompting(e.Confirm, &ended, cancel)
	return ended.Load
}

// prompting returns a prompt that ends the program, and is not shown after that; nil if there is no prompt.
func prompting[T any](ask func(string) (T, error), ended *atomic.Bool, cancel context.CancelFunc) func(string) (T, error) {
	if ask == nil {
		return nil
	}
	return func(prompt string) (answer T, err error) {
		if ended.Load() {
			return answer, ErrInterrupted
		}
		if answer, err = ask(prompt); backends.KindOf(err) == backends.KindInterrupted {
			ended.Store(true)
			cancel()
		}
		return answer, err
	}
}

// openTerminal opens the terminal of the process. Its reads end if the program is told to end; the returned function closes it.
func openTerminal() (tty *os.File, closing func(), err error) {
	tty, err = os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	signals := make(chan os.Signal, 1)
	done := make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case <-signals:
			_ = tty.SetReadDeadline(time.Unix(1, 0)) // ends the read that waits for an answer
		case <-done:
		}
	}()
	return tty, func() {
		signal.Stop(signals)
		close(done)
		_ = tty.Close() // only asked on
	}, nil
}

// askSecret reads one line from the terminal without echo. The terminal sends Ctrl-C as a byte meanwhile.
func askSecret(prompt string) (string, error) {
	tty, closing, err := openTerminal()
	if err != nil {
		return "", fmt.Errorf("no terminal to ask for the %s", prompt)
	}
	defer closing()
	restore, err := quiet(tty)
	if err != nil {
		return "", err
	}
	defer restore()
	_ = plain.Printf(tty, "%s: ", prompt)
	s, err := readSecret(tty)
	fmt.Fprint(tty, "\r\n")
	return s, err
}

// quiet disables the terminal's echo, without the blocking reads of os.File.Fd.
func quiet(tty *os.File) (restore func(), err error) {
	conn, err := tty.SyscallConn()
	if err != nil {
		return nil, err
	}
	var before *term.State
	control := func(f func(fd int) error) error {
		var failed error
		return errors.Join(conn.Control(func(fd uintptr) { failed = f(int(fd)) }), failed)
	}
	if err := control(func(fd int) (err error) { before, err = term.MakeRaw(fd); return err }); err != nil {
		return nil, err
	}
	return func() { _ = control(func(fd int) error { return term.Restore(fd, before) }) }, nil // nothing else can be done
}

// The special keys while a secret is typed.
const (
	ctrlC, ctrlD, backspace, ctrlU, del = 3, 4, 8, 21, 127
)

// readSecret reads up to Enter.
func readSecret(r io.Reader) (string, error) {
	var line []byte
	var key [1]byte
	for {
		if _, err := r.Read(key[:]); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.EOF) {
				err = ErrInterrupted
			}
			return "", err
		}
		switch key[0] {
		case ctrlC:
			return "", ErrInterrupted
		case '\r', '\n':
			return string(line), nil
		case ctrlD:
			if len(line) == 0 {
				return "", ErrInterrupted
			}
		case backspace, del:
			_, size := utf8.DecodeLastRune(line)
			line = line[:len(line)-size]
		case ctrlU:
			line = line[:0]
		default:
			line = append(line, key[0])
		}
	}
}

// askYes asks on the terminal; only y or yes mean yes. Ctrl-C arrives as a signal.
func askYes(question string) (bool, error) {
	tty, closing, err := openTerminal()
	if err != nil {
		return false, fmt.Errorf("no terminal for a prompt")
	}
	defer closing()
	_ = plain.Printf(tty, "%s? [y/N] ", question)
	line, err := bufio.NewReader(tty).ReadString('\n')
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.EOF) {
		fmt.Fprintln(tty)
		return false, ErrInterrupted
	}
	if err != nil {
		return false, err
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes", nil
}
