package ssh

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A Pool holds one connection a target. It is safe for concurrent use; Close ends what is left open.
type Pool struct {
	config   Config
	settings settings
	keys     keyring
	prompts  sync.Mutex // one question at a time
	hosts    sync.Mutex // known_hosts files
	known    knownKeys  // under hosts

	commands atomic.Int64 // that were run, to number them

	mu      sync.Mutex
	links   map[endpoint]*link
	closed  bool
	refused map[refusal]bool
}

// NewPool makes a Pool. It reads the ssh_config files and nothing else; nothing is dialled yet.
func NewPool(c Config) (*Pool, error) {
	if c.Port == 0 {
		c.Port = 22
	}
	if c.DialTimeout == 0 {
		c.DialTimeout = 10 * time.Second
	}
	if c.KeepAlive == 0 {
		c.KeepAlive = 15 * time.Second
	}
	s, err := loadSettings(c.SSHConfig, c.Warn)
	if err != nil {
		return nil, err
	}
	return &Pool{config: c, settings: s, links: map[endpoint]*link{}, refused: map[refusal]bool{}}, nil
}

// Dial connects to a target, or joins the connection that is there. Every Conn must be closed; the last one to be
// closed ends the connection. Errors are of kind auth or unreachable, and say what to do.
func (p *Pool) Dial(ctx context.Context, t Target) (*Conn, error) {
	e, err := p.resolve(t)
	if err != nil {
		return nil, err
	}
	return p.dial(ctx, t, e)
}

func (p *Pool) dial(ctx context.Context, t Target, e endpoint) (*Conn, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, backends.Errorf(backends.KindInterrupted, t.String(), "", "the connections were closed")
	}
	l := p.links[e]
	if l == nil {
		l = newLink(p, e, t)
		p.links[e] = l
	}
	l.refs++
	p.mu.Unlock()
	c := &Conn{link: l, target: t}
	if _, err := l.connect(ctx, t); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// release drops a reference; without any the link goes.
func (p *Pool) release(l *link) {
	p.mu.Lock()
	l.refs--
	last := l.refs == 0
	if last && p.links[l.endpoint] == l {
		delete(p.links, l.endpoint)
	}
	p.mu.Unlock()
	if last {
		l.shut()
	}
}

// Close ends every connection and refuses new ones.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	links := p.links
	p.links = map[endpoint]*link{}
	p.mu.Unlock()
	for _, l := range links {
		l.shut()
	}
	return nil
}

// A Conn is a share in the connection to one target. It connects again by itself when the connection was lost
// before a command was sent.
type Conn struct {
	link   *link
	target Target
	once   sync.Once
}

// Target is what was dialled, User is who is logged in, Address the host:port behind it.
func (c *Conn) Target() Target  { return c.target }
func (c *Conn) User() string    { return c.link.endpoint.user }
func (c *Conn) Address() string { return c.link.endpoint.address() }

// Close returns the share back. Commands still running on it are not ended by that.
func (c *Conn) Close() error {
	c.once.Do(func() { c.link.pool.release(c.link) })
	return nil
}

// Drop ends the connection under every share in it: the next command logs in afresh (and so sees new limits and
// groups).
func (c *Conn) Drop() { c.link.drop() }

// A link is the connection that several Conns share.
type link struct {
	pool     *Pool
	endpoint endpoint
	target   Target
	refs     int // under Pool.mu

	lock     chan struct{} // held while connecting; a channel, so that waiting for it can be cancelled
	sessions chan struct{} // sshd allows ten sessions a connection (MaxSessions)

	mu     sync.Mutex
	line   *line // nil: not connected
	closed bool
	sudo   sudoState
	wrong  string // a sudo password that was refused: it is not tried again, wrong tries lock accounts
	wrongs int    // how many were

	sudoTurn chan struct{} // held while it is found out how root is reached
}

// A line is one established connection; it is never revived.
type line struct {
	client *ssh.Client
	jump   *Conn
	dead   chan struct{} // closed when the connection has ended
}

const maxSessions = 8

func newLink(p *Pool, e endpoint, t Target) *link {
	return &link{pool: p, endpoint: e, target: t, lock: make(chan struct{}, 1), sudoTurn: make(chan struct{}, 1), sessions: make(chan struct{}, maxSessions)}
}

func (l *link) current() *line {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.line == nil || l.line.isDead() {
		return nil
	}
	return l.line
}

func (n *line) isDead() bool {
	select {
	case <-n.dead:
		return true
	default:
		return false
	}
}

// dies waits a moment for a line whose sessions have ended.
func (n *line) dies(within time.Duration) bool {
	select {
	case <-n.dead:
		return true
	case <-time.After(within):
		return false
	}
}

// connect returns the live line, dialling where there is none.
func (l *link) connect(ctx context.Context, t Target) (*line, error) {
	select {
	case l.lock <- struct{}{}:
		defer func() { <-l.lock }()
	case <-ctx.Done():
		return nil, interrupted(ctx, t, "connect")
	}
	if n := l.current(); n != nil {
		return n, nil
	}
	client, jump, err := l.pool.open(ctx, t, l.endpoint)
	if err != nil {
		return nil, err
	}
	n := &line{client: client, jump: jump, dead: make(chan struct{})}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		n.close()
		return nil, backends.Errorf(backends.KindInterrupted, t.String(), "", "the connection was closed")
	}
	l.line = n
	l.mu.Unlock()
	go func() {
		client.Wait()
		close(n.dead)
	}()
	go n.keepAlive(l.pool.config.KeepAlive)
	return n, nil
}

func (n *line) close() {
	n.client.Close()
	if n.jump != nil {
		n.jump.Close()
	}
}

// keepAlive ends a line whose other end has not answered three probes.
func (n *line) keepAlive(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	defer n.close()
	answers := make(chan error, 1)
	missed, waiting := 0, false
	for {
		select {
		case <-n.dead:
			return
		case err := <-answers:
			if err != nil {
				return
			}
			missed, waiting = 0, false
		case <-tick.C:
			if !waiting {
				waiting = true
				go func() {
					_, _, err := n.client.SendRequest("keepalive@openssh.com", true, nil)
					answers <- err
				}()
			} else if missed++; missed >= 3 {
				return
			}
		}
	}
}

func (l *link) drop() {
	l.mu.Lock()
	n := l.line
	l.line = nil
	l.mu.Unlock()
	if n != nil {
		n.close()
		<-n.dead
	}
}

func (l *link) shut() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.drop()
}
