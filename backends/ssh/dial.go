package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends"
)

const dialTries = 4

// open makes one connection, through jump hosts if there are any. It retries if a server disconnects before it has answered: sshd
// drops connections at random if many arrive at once (MaxStartups).
func (p *Pool) open(ctx context.Context, t Target, e endpoint) (*ssh.Client, *Conn, error) {
	var jump *Conn
	if e.jump != "" {
		before, hop, err := splitJump(e.jump)
		if err != nil {
			return nil, nil, backends.Usagef(t.String(), "", "%w", err)
		}
		he, err := p.resolve(hop)
		if err != nil {
			return nil, nil, err
		}
		he.jump = before
		if jump, err = p.dial(ctx, hop, he); err != nil {
			return nil, nil, fmt.Errorf("%s: through %w", t, err)
		}
		jump.link.carries.Store(true)
	}
	asked := false
	for try := 1; ; try++ {
		client, err := p.handshake(ctx, t, e, jump, asked)
		if err == nil {
			return client, jump, nil
		}
		if errors.Is(err, errLate) && ctx.Err() == nil {
			asked, try = true, 0 // the answer is known now
			continue
		}
		if try < dialTries && errors.Is(err, errHungUp) {
			select {
			case <-ctx.Done():
			case <-time.After(time.Duration(try) * (p.config.Again + rand.N(2*p.config.Again))):
				continue
			}
		}
		if jump != nil {
			jump.Close()
		}
		return nil, nil, err
	}
}

// A attemptTimer cancels an attempt that takes too long; prompts to the operator stop its clock.
type attemptTimer struct {
	mu     sync.Mutex
	limit  time.Duration
	timer  *time.Timer
	ranOut bool
	paused time.Duration // by prompts so far
}

func newAttemptTimer(limit time.Duration, end func()) *attemptTimer {
	p := &attemptTimer{limit: limit}
	p.timer = time.AfterFunc(limit, func() {
		p.mu.Lock()
		p.ranOut = true
		p.mu.Unlock()
		end()
	})
	return p
}

func (p *attemptTimer) pause(ask func()) {
	if p.timer.Stop() {
		defer p.timer.Reset(p.limit)
	}
	began := time.Now()
	ask()
	p.mu.Lock()
	p.paused += time.Since(began)
	p.mu.Unlock()
}

// worked returns the duration of an attempt without its prompts.
func (p *attemptTimer) worked(began time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(began) - p.paused
}

func (p *attemptTimer) exhausted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ranOut
}

// handshake makes one connection. If asked is set, a late answer is sent anyway.
func (p *Pool) handshake(ctx context.Context, t Target, e endpoint, jump *Conn, asked bool) (client *ssh.Client, err error) {
	ctx, over := (*backends.Voice)(nil).Waiting(ctx, "log in by SSH", t.String(), p.config.DialTimeout)
	defer over()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	clock := newAttemptTimer(p.config.DialTimeout, cancel)
	defer clock.timer.Stop()
	login := &login{pool: p, ctx: ctx, target: t, endpoint: e, clock: clock, asked: asked}
	defer login.done()
	began := time.Now()
	defer func() { login.trace(began, err) }()

	conn, err := p.reach(ctx, e, jump)
	if err != nil {
		return nil, p.explain(ctx, t, e, clock, err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	config, err := login.config()
	if err != nil {
		stop()
		conn.Close()
		return nil, err
	}
	sc, chans, reqs, err := ssh.NewClientConn(conn, e.known(), config)
	if !stop() && err == nil {
		sc.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		if login.refused != nil {
			return nil, login.refused
		}
		if login.late {
			return nil, errLate
		}
		// A login that ran out of time was not refused, however far it got.
		if ctx.Err() == nil {
			err = login.explain(err)
		}
		err = p.explain(ctx, t, e, clock, err)
		if login.given != "" && errors.Is(err, errHungUp) {
			// The server may count the password as a failure: it is not sent again.
			err = backends.Unreachablef(t.String(), backends.HintOf(err),
				"%s closed the connection when it received the password", e.address())
		}
		return nil, err
	}
	return ssh.NewClient(sc, chans, reqs), nil
}

func (p *Pool) reach(ctx context.Context, e endpoint, jump *Conn) (net.Conn, error) {
	if jump == nil && p.config.Dial != nil {
		return p.config.Dial(ctx, e.address())
	}
	if jump == nil {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", e.address())
	}
	n, err := jump.link.connect(ctx, jump.target)
	if err != nil {
		return nil, err
	}
	return n.client.DialContext(ctx, "tcp", e.address())
}

var errHungUp = errors.New("the server closed the connection before the login")

// errLate is the error of a login in which a person took longer to answer than the server may wait: sshd disconnects after
// LoginGraceTime, 120 s by default (sshd_config(5)).
var errLate = errors.New("the answer came too late")

func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
}

func (p *Pool) explain(ctx context.Context, t Target, e endpoint, clock *attemptTimer, err error) error {
	addr := e.address()
	unreachable := func(hint, format string, args ...any) error {
		return backends.Unreachablef(t.String(), hint, format, args...)
	}
	if _, ours := errors.AsType[*backends.Error](err); ours {
		return err
	}
	if clock.exhausted() {
		return unreachable("Check that the address is right and that no firewall blocks the port.",
			"no SSH login at %s within %s", addr, p.config.DialTimeout)
	}
	if ctx.Err() != nil {
		return interrupted(ctx, t, "connect to "+addr)
	}
	var dns *net.DNSError
	var algorithms *ssh.AlgorithmNegotiationError
	var open *ssh.OpenChannelError
	switch {
	case errors.As(err, &dns):
		return unreachable("Use a name that this machine can resolve, or add it to /etc/hosts.", "the name %s could not be resolved", e.host)
	case errors.As(err, &open):
		return unreachable("Check the address as seen from the jump host, and AllowTcpForwarding in its sshd_config.",
			"the jump host could not reach %s: %s", addr, Excerpt(open.Message))
	case errors.Is(err, syscall.ECONNREFUSED):
		return unreachable("Check that sshd runs there and listens on that port.", "%s refused the connection", addr)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return unreachable("Check the address and the routes.", "there is no route to %s", addr)
	case errors.As(err, &algorithms):
		return unreachable(
			"The server offers only algorithms that are no longer secure. Update it; until then, --ssh-weak allows them for one run.",
			"no common algorithm with %s for the %s: it offers %s", addr, algorithms.What,
			Excerpt(strings.Join(algorithms.RequestedAlgorithms, ", ")))
	case hungUp(err):
		return unreachable("Check the server's log. sshd closes connections when MaxStartups is exceeded or the client is blocked.",
			"connect to %s: %w", addr, errHungUp)
	}
	return unreachable("Check that an SSH server answers at this address and port.", "log in to %s: %s", addr, Excerpt(err.Error()))
}

// interrupted is the error of a ctx that ended, by a limit (see its cause) or by the operator.
func interrupted(ctx context.Context, t Target, what string) error {
	kind := backends.KindInterrupted
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || backends.KindOf(context.Cause(ctx)) == backends.KindUnreachable {
		kind = backends.KindUnreachable
	}
	return backends.Errorf(kind, t.String(), "", "%s: %w", what, context.Cause(ctx))
}

// algorithms restricts or extends the algorithms that a client offers.
func (p *Pool) algorithms(c *ssh.ClientConfig, known []string) {
	offer := ssh.SupportedAlgorithms()
	if p.config.WeakAlgorithms {
		weak := ssh.InsecureAlgorithms()
		offer.KeyExchanges = append(offer.KeyExchanges, weak.KeyExchanges...)
		offer.Ciphers = append(offer.Ciphers, weak.Ciphers...)
		offer.MACs = append(offer.MACs, weak.MACs...)
		offer.HostKeys = append(offer.HostKeys, weak.HostKeys...)
	}
	c.KeyExchanges, c.Ciphers, c.MACs = offer.KeyExchanges, offer.Ciphers, offer.MACs
	c.HostKeyAlgorithms = preferred(offer.HostKeys, known)
}

// preferred puts the algorithms of known keys first, so that a server with several keys presents one that can be compared.
func preferred(offer, known []string) []string {
	var first, rest []string
	for _, a := range offer {
		if slices.Contains(known, a) {
			first = append(first, a)
		} else {
			rest = append(rest, a)
		}
	}
	return append(first, rest...)
}
