package perftest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

const (
	grace    = 10 * time.Second // until a server has printed its banner; old releases print none
	patience = 30 * time.Second // for the client's attempts to connect
	farewell = 5 * time.Second  // for a client to end by itself after its server has failed
)

// errTaken means that the control port is used by another measurement or any other program.
var errTaken = errors.New("is taken by another program there")

// A process is the running server of a test.
type process struct {
	stop  context.CancelFunc
	ready chan struct{} // closed when it waits for its client
	ended chan struct{} // closed when out and err are set
	out   Output
	err   error
}

// server starts the server of a test.
func (r *Runner) server(ctx context.Context, p Pair, test, sizes string, port int) *process {
	ctx, stop := context.WithCancel(ctx)
	s := &process{stop: stop, ready: make(chan struct{}), ended: make(chan struct{})}
	var once sync.Once
	go func() {
		defer close(s.ended)
		s.out, s.err = r.Shell.Exec(ctx, p.Server.VM, Command{
			Line: r.line(test, sizes, p.Server, port, ""), Sudo: !p.Server.User || strings.HasSuffix(test, inContainer),
			OnLine: func(line string) {
				if strings.Contains(line, "Waiting for client") {
					once.Do(func() { close(s.ready) })
				}
			},
		})
	}()
	return s
}

// failed reports whether a server that has ended was unsuccessful.
func (s *process) failed() bool { return s.err != nil || s.out.Exit != 0 }

// cause returns why a server has ended.
func (s *process) cause(p Pair, test string, port int) error {
	switch {
	case s.err != nil:
		return fmt.Errorf("server on %s: %w", p.Server.VM, s.err)
	case strings.Contains(strings.ToLower(s.out.Stdout+s.out.Stderr), "couldn't listen to port"):
		return fmt.Errorf("server on %s: TCP port %d %w", p.Server.VM, port, errTaken)
	}
	return fmt.Errorf("server on %s: %s", p.Server.VM, firstCause(test, s.out))
}

// await waits until a server waits for its client, or has had the time for it.
func (s *process) await(ctx context.Context, p Pair, test string, port int) error {
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-s.ready:
	case <-late.C:
	case <-s.ended:
		return s.cause(p, test, port)
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// lost returns the cause if a server could not bind its port, had ended when its client wanted to connect, or reports why the
// exchange failed while its client saw only the end of the connection; nil otherwise, or if it still runs shortly after its client
// has failed.
func (s *process) lost(p Pair, test string, port int, code string) error {
	moment := time.NewTimer(200 * time.Millisecond)
	defer moment.Stop()
	select {
	case <-moment.C:
	case <-s.ended:
		cause, unspecific := s.cause(p, test, port), []string{"", "exchange_failed"}
		knowsMore := slices.Contains(unspecific, code) && !slices.Contains(unspecific, errorCode(test, s.out))
		if errors.Is(cause, errTaken) || s.failed() && (code == "connect_failed" || knowsMore) {
			return cause
		}
	}
	return nil
}

// exchange starts the server, then the client, and returns the client's output: a server's own figures are useless (its peak is 0
// and it exits 0 even if the client failed).
func (r *Runner) exchange(ctx context.Context, p Pair, test, sizes string, port int, m *Measurement) (Output, error) {
	backends.ReadsOf(ctx).Forget()
	s := r.server(ctx, p, test, sizes, port)
	defer func() {
		s.stop()
		<-s.ended
	}()
	if err := s.await(ctx, p, test, port); err != nil {
		return Output{}, err
	}
	line := r.line(test, sizes, p.Client, port, p.Server.IP)
	if sizes == sweep {
		m.Command = line
	}
	clientCtx, stopClient := context.WithCancel(ctx)
	defer stopClient()
	over := s.attend(stopClient)
	out, err := r.client(clientCtx, s, p, test, Command{Line: line, Sudo: !p.Client.User || m.Image != ""})
	switch stopped := over(); {
	case ctx.Err() != nil:
		return Output{}, ctx.Err()
	case stopped:
		return Output{}, s.cause(p, test, port)
	case err == nil && out.Exit == 0:
		return out, nil
	}
	if cause := s.lost(p, test, port, errorCode(test, out)); cause != nil {
		return Output{}, cause
	}
	if err != nil {
		return Output{}, fmt.Errorf("client on %s: %w", p.Client.VM, err)
	}
	return out, nil
}

// client runs the client of a test, and retries if the server's port is not open yet: the server prints its banner before that.
// Dropped packets are reported after minutes, and are not retried.
func (r *Runner) client(ctx context.Context, s *process, p Pair, test string, c Command) (Output, error) {
	pauses := []time.Duration{200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second}
	for begun, attempt := time.Now(), 0; ; attempt++ {
		out, err := r.Shell.Exec(ctx, p.Client.VM, c)
		if err != nil || out.Exit == 0 || errorCode(test, out) != "connect_failed" || attempt == len(pauses) || time.Since(begun) > patience {
			return out, err
		}
		pause := time.NewTimer(pauses[attempt])
		select {
		case <-pause.C:
		case <-s.ended:
			pause.Stop()
			return out, nil // no listener is left
		case <-ctx.Done():
			pause.Stop()
			return out, ctx.Err()
		}
	}
}

// attend stops a client whose server fails: the banner comes before the port is bound, and if another program uses the port the
// client would wait for that program until its limit. The returned function is called when the client has ended and reports
// whether it was stopped.
func (s *process) attend(stopClient func()) (over func() bool) {
	ended, stopped := make(chan struct{}), make(chan bool, 1)
	go func() {
		select {
		case <-ended:
			stopped <- false
			return
		case <-s.ended:
		}
		if !s.failed() {
			<-ended
			stopped <- false
			return
		}
		leave := time.NewTimer(farewell)
		defer leave.Stop()
		select {
		case <-ended:
			stopped <- false
		case <-leave.C:
			stopClient()
			stopped <- true
		}
	}()
	return func() bool {
		close(ended)
		return <-stopped
	}
}

// silence is how many seconds to wait for any reply from the server's TCP port.
const silence = 8

// silent reports whether the server's guest drops packets to the control connection, which perftest itself notices only after
// minutes. A port without a listener refuses immediately, so the server must not be running yet: it would take the first
// connection for its client. For the same reason a port on which another server listens is not tested. Guests without bash cannot
// be tested.
func (r *Runner) silent(ctx context.Context, p Pair, port int) bool {
	if p.Server.IP == "" {
		return false
	}
	if listening, err := r.Shell.Exec(ctx, p.Server.VM, Command{Line: "ss -ltn"}); err == nil &&
		regexp.MustCompile(fmt.Sprintf(`:%d\s`, port)).MatchString(listening.Stdout) {
		return false
	}
	out, err := r.Shell.Exec(ctx, p.Client.VM, Command{
		Line: fmt.Sprintf("timeout %d bash -c %s", silence, quote(fmt.Sprintf(": </dev/tcp/%s/%d", p.Server.IP, port))),
	})
	return err == nil && out.Exit == timedOut
}

// unheard is the result of a test that is skipped because the server's port does not answer.
func (r *Runner) unheard(p Pair, test string, port int) Measurement {
	m := r.blank(p, test)
	m.Verdict = VerdictFail
	m.Error = fmt.Sprintf("TCP port %d of %s (%s) does not answer %s: a firewall or a network device drops the packets", port, p.Server.VM,
		p.Server.IP, p.Client.VM)
	m.Hint = remedy(evidence{code: "connect_failed"})
	return m
}
