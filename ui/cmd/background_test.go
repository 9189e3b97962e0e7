package cmd_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/ui/cmd"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
)

// A reader collects the output of a command and lets tests wait for a text.
type reader struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newReader() *reader { return &reader{more: make(chan struct{}, 1)} }

func (r *reader) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text.Write(b)
	select {
	case r.more <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (r *reader) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// wait waits until a text occurs n times in the output.
func (r *reader) wait(t *testing.T, words string, n int) {
	t.Helper()
	limit := time.After(time.Minute)
	for strings.Count(r.String(), words) < n {
		select {
		case <-r.more:
		case <-limit:
			text := r.String()
			t.Fatalf("%q did not come %d times:\n%s", words, n, text[max(0, len(text)-3000):])
		}
	}
}

// begin starts a command without a terminal in the background; end waits for its exit code.
func (b *bench) begin(out, errs io.Writer, args ...string) (end func() int) {
	b.t.Helper()
	signals, done := b.interrupts, make(chan int, 1)
	go func() {
		done <- cmd.Run(context.Background(), &console.Env{
			Stdin: strings.NewReader(""), Stdout: out, Stderr: errs, Getenv: func(key string) string { return b.env[key] }, Now: time.Now,
			Terminal:   func() bool { return false },
			Executable: os.Executable,
			Interrupts: func() (<-chan os.Signal, func()) { return signals, func() {} },
		}, args)
	}()
	return func() int { return <-done }
}
