package console

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"
)

// watchSignals takes over the signals that would end the process: a lost SSH session (SIGHUP) must not end a run, nor must
// a reader that has gone (SIGPIPE: "| head").
func watchSignals() (<-chan os.Signal, func()) {
	ch := make(chan os.Signal, 4)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	return ch, func() { signal.Stop(ch) }
}

// askSecret reads one line from the terminal without echo.
func askSecret(prompt string) (string, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return "", fmt.Errorf("no terminal to ask for the %s", prompt)
	}
	defer tty.Close()
	fmt.Fprintf(tty, "%s: ", prompt)
	b, err := term.ReadPassword(int(tty.Fd()))
	fmt.Fprintln(tty)
	return string(b), err
}

// askYes asks on the terminal; only y or yes is yes.
func askYes(question string) (bool, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return false, fmt.Errorf("no terminal to ask on")
	}
	defer tty.Close()
	fmt.Fprintf(tty, "%s? [y/N] ", question)
	line, err := bufio.NewReader(tty).ReadString('\n')
	if err != nil {
		return false, err
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes", nil
}
