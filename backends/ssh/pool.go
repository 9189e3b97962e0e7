package ssh

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A Pool holds one connection per target. It is safe for concurrent use; Close closes all connections.
type Pool struct {
	config   Config
	settings settings
	keys     keyring
	prompts  sync.Mutex // one prompt at a time
	hosts    sync.Mutex // known_hosts files
	known    knownKeys  // under hosts

	calls atomic.Int64 // connection attempts and commands so far, to number them

	mu      sync.Mutex
	links   map[endpoint]*link
	idle    []*link // if Connections is set: links whose last command has ended, the one that has waited longest first
	closed  bool
	refused map[refusal]bool
	// commands for login shells by script; framedBefore has the older ones
	framed, framedBefore map[framed]string
}

// NewPool returns a Pool. It reads the ssh_config files and connects to nothing yet.
func NewPool(c Config) (*Pool, error) {
	c.Port, c.DialTimeout = cmp.Or(c.Port, 22), cmp.Or(c.DialTimeout, 10*time.Second)
	c.Again, c.KeepAlive = cmp.Or(c.Again, 100*time.Millisecond), cmp.Or(c.KeepAlive, 15*time.Second)
	s, err := loadSettings(c.SSHConfig, c.Warn)
	if err != nil {
		return nil, err
	}
	return &Pool{config: c, settings: s, links: map[endpoint]*link{}, refused: map[refusal]bool{}, framed: map[framed]string{}}, nil
}

// Dial connects to a target, or shares the existing connection. Every Conn must be closed; closing the last one closes the
// connection. Errors are of kind auth or unreachable and have a hint.
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
		return nil, backends.Interruptedf(t.String(), "", "the connections were closed")
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

// release drops a reference; the last one closes the link.
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

// rest is called when a command of l has ended. It closes the connection that has been idle for longest if there are too many.
func (p *Pool) rest(l *link) {
	if p.config.Connections == 0 {
		return
	}
	p.mu.Lock()
	p.idle = append(slices.DeleteFunc(p.idle, func(other *link) bool { return other == l }), l)
	var oldest *link
	if len(p.idle) > p.config.Connections {
		oldest, p.idle = p.idle[0], p.idle[1:]
	}
	p.mu.Unlock()
	if oldest != nil {
		oldest.rest()
	}
}

// AskAgain lets sudo passwords be prompted for again where the maximum number was refused. Refused ones are still not tried again.
func (p *Pool) AskAgain() {
	p.mu.Lock()
	links := slices.Collect(maps.Values(p.links))
	p.mu.Unlock()
	for _, l := range links {
		l.mu.Lock()
		l.wrongs = 0
		l.mu.Unlock()
	}
}

// Close closes every connection and refuses new ones.
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

// A Conn is one user's share of the connection to a target. It reconnects by itself if the connection was lost before a command
// was sent.
type Conn struct {
	link   *link
	target Target
	once   sync.Once
}

// Target is the dialed target, User the logged-in user, Address the host:port.
func (c *Conn) Target() Target  { return c.target }
func (c *Conn) User() string    { return c.link.endpoint.user }
func (c *Conn) Address() string { return c.link.endpoint.address() }

// Close releases the share. Commands that still run on it are not ended.
func (c *Conn) Close() error {
	c.once.Do(func() { c.link.pool.release(c.link) })
	return nil
}

// Drop closes the connection for all shares: the next command logs in again (and so gets new limits and groups).
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
	wrong  map[string]bool // refused sudo passwords: they are not tried again, because failed attempts lock accounts
	wrongs int             // how many passwords were refused since someone asked for another prompt

	carries  atomic.Bool   // it is a jump host of other links
	sudoTurn chan struct{} // held while determining how to become root
}

// A line is one established connection; it is never reused after it ended.
type line struct {
	client *ssh.Client
	jump   *Conn
	dead   chan struct{} // closed when the connection has ended
}

const maxSessions = 8

func newLink(p *Pool, e endpoint, t Target) *link {
	return &link{pool: p, endpoint: e, target: t, lock: make(chan struct{}, 1), sudoTurn: make(chan struct{}, 1),
		sessions: make(chan struct{}, maxSessions)}
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

// dies waits briefly for a connection whose sessions have ended.
func (n *line) dies(within time.Duration) bool {
	select {
	case <-n.dead:
		return true
	case <-time.After(within):
		return false
	}
}

// connect returns the open connection, or dials a new one.
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
		return nil, backends.Interruptedf(t.String(), "", "the connection was closed")
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

// keepAlive closes a line whose peer did not answer three probes.
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

// rest closes the connection unless it is in use; the next command connects again.
func (l *link) rest() {
	if l.carries.Load() {
		return
	}
	for taken := range maxSessions {
		select {
		case l.sessions <- struct{}{}:
		default:
			for range taken {
				<-l.sessions
			}
			return
		}
	}
	if !l.carries.Load() { // it may carry the first one since
		l.drop()
	}
	for range maxSessions {
		<-l.sessions
	}
}

func (l *link) shut() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.drop()
}
