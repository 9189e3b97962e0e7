package console

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A Trace writes every vCenter call, SSH login and remote command: with -v a line on stderr, with --trace a record in a file, and at
// log level debug a record in the log of the run. Known secrets are never written.
type Trace struct {
	mu      sync.Mutex
	lines   io.Writer // nil: none
	file    io.WriteCloser
	records *slog.Logger // in file
	run     *slog.Logger // in the log of the run, if there is one
	wanted  bool         // calls before the run has a log are kept for it
	early   []backends.Call
	secrets []string
	covered func() bool // a screen uses the terminal; nil: never
}

// mostEarly bounds what is kept for a run that may never begin.
const mostEarly = 2000

// OpenTrace opens the trace according to the settings. Only its owner can read the file.
func OpenTrace(e *Env, set *Settings) (*Trace, error) {
	t := &Trace{wanted: set.LogLevel == "debug"}
	t.Hide(set.Secrets()...)
	if set.Verbose {
		t.lines = e.Stderr
	}
	if set.Trace == "" {
		return t, nil
	}
	if err := Replaceable("trace", set.Trace); err != nil {
		return nil, err
	}
	err := os.Remove(set.Trace) // if it is a link, its target stays
	if err == nil || os.IsNotExist(err) {
		t.file, err = os.OpenFile(set.Trace, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	}
	if err != nil {
		return nil, backends.Permanentf("", "name a file in a writable directory", "the trace %s cannot be written: %w",
			set.Trace, err)
	}
	t.records = jsonTo(t.file)
	return t, nil
}

// A shared writer is safe for concurrent use, a line at a time.
type shared struct {
	mu sync.Mutex
	w  io.Writer
}

// Shared returns a writer that commands and traces can use at the same time.
func Shared(w io.Writer) io.Writer { return &shared{w: w} }

func (s *shared) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(b)
}

func jsonTo(w io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Hide removes secrets from everything that is written from now on.
func (t *Trace) Hide(secrets ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range secrets {
		if len(s) >= 4 { // a shorter one would match parts of words, and is not in a payload anyway
			t.secrets = append(t.secrets, s)
		}
	}
}

// Covered sets whether a screen uses the terminal; if so, no lines are printed there.
func (t *Trace) Covered(covered func() bool) { t.covered = covered }

// Call implements backends.Trace.
func (t *Trace) Call(c backends.Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.secrets {
		for _, text := range []*string{&c.Method, &c.Target, &c.Outcome, &c.Payload} {
			*text = strings.ReplaceAll(*text, s, "(secret)")
		}
	}
	if t.lines != nil && (t.covered == nil || !t.covered()) {
		fmt.Fprintf(t.lines, "%s  %s  %s  %s\n", backends.Clean(c.Method), backends.Clean(c.Target), round(c.Took), backends.Clean(c.Outcome))
	}
	if t.records != nil {
		record(t.records, c)
	}
	switch {
	case t.run != nil:
		record(t.run, c)
	case t.wanted && len(t.early) < mostEarly:
		t.early = append(t.early, c)
	}
}

// round keeps about three digits.
func round(d time.Duration) time.Duration {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}

func record(l *slog.Logger, c backends.Call) {
	r := slog.NewRecord(c.Started.Add(c.Took), slog.LevelDebug, "call", 0)
	r.AddAttrs(slog.String("event", "call"), slog.String("id", c.ID), slog.String("method", c.Method), slog.String("target", c.Target),
		slog.Float64("ms", float64(c.Took.Microseconds())/1000), slog.String("outcome", c.Outcome), slog.Int64("sent", c.Sent),
		slog.Int64("received", c.Received),
		slog.String("payload", backends.Clean(c.Payload)))
	_ = l.Handler().Handle(context.Background(), r) // a full disk must not stop the run
}

// Run also writes all calls, including earlier ones, to the log of a run, at level debug, until end is called.
func (t *Trace) Run(log io.Writer) (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.wanted {
		return func() {}
	}
	t.run = jsonTo(log)
	for _, c := range t.early {
		record(t.run, c)
	}
	t.early = nil
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.run = nil
	}
}

// Close closes the file.
func (t *Trace) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file != nil {
		_ = t.file.Close()
		t.file, t.records = nil, nil
	}
}
