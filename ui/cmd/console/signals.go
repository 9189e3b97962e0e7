package console

import (
	"os"
	"os/signal"
	"syscall"
)

// watchSignals handles the signals that would end the process: a lost SSH session (SIGHUP) must not end a run, nor must a closed
// reader (SIGPIPE: "| head").
func watchSignals() (<-chan os.Signal, func()) {
	ch := make(chan os.Signal, 4)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	return ch, func() { signal.Stop(ch) }
}
