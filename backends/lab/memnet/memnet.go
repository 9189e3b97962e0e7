// Package memnet is a network inside this process. Its connections behave like those of TCP on the loopback addresses, but no system
// call carries their data, and no other process can connect. It is for rehearsals, whose vCenter, hosts and guests are all in one
// process.
package memnet

import (
	"context"
	"net"
	"sync"
	"syscall"
)

// A Network has listeners with addresses of its own. It is safe for concurrent use.
type Network struct {
	mu        sync.Mutex
	last      int // listeners so far
	listeners map[string]*listener
}

// New returns a Network without listeners.
func New() *Network { return &Network{listeners: map[string]*listener{}} }

const (
	firstPort = 10_000
	ports     = 50_000 // of each address
	backlog   = 128    // connections that wait for Accept
)

// address returns the nth address: 127.0.0.1:10000 and following.
func address(n int) *net.TCPAddr {
	at := n / ports
	return &net.TCPAddr{IP: net.IPv4(127, byte(at>>16), byte(at>>8), byte(at)+1), Port: firstPort + n%ports}
}

// Listen returns a listener at the next address.
func (n *Network) Listen() net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &listener{net: n, at: address(n.last), waiting: make(chan *conn, backlog), closed: make(chan struct{})}
	n.last++
	n.listeners[l.at.String()] = l
	return l
}

// Dial connects to the listener at an address. It fails with ECONNREFUSED if there is none.
func (n *Network) Dial(ctx context.Context, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[address]
	n.mu.Unlock()
	if l == nil {
		return nil, failed("dial", syscall.ECONNREFUSED)
	}
	near, far := pipe(&net.TCPAddr{IP: l.at.IP}, l.at)
	select {
	case l.waiting <- far:
	case <-l.closed:
		return nil, failed("dial", syscall.ECONNREFUSED)
	case <-ctx.Done():
		return nil, failed("dial", context.Cause(ctx))
	}
	select {
	case <-l.closed: // perhaps after Close has emptied the backlog
		l.refuse()
	default:
	}
	return near, nil
}

func failed(op string, err error) error { return &net.OpError{Op: op, Net: "tcp", Err: err} }

type listener struct {
	net     *Network
	at      *net.TCPAddr
	waiting chan *conn
	once    sync.Once
	closed  chan struct{}
}

func (l *listener) Addr() net.Addr { return l.at }

func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, failed("accept", net.ErrClosed)
	default:
	}
	select {
	case c := <-l.waiting:
		return c, nil
	case <-l.closed:
		return nil, failed("accept", net.ErrClosed)
	}
}

// Close resets the connections that were not accepted.
func (l *listener) Close() error {
	l.once.Do(func() {
		l.net.mu.Lock()
		delete(l.net.listeners, l.at.String())
		l.net.mu.Unlock()
		close(l.closed)
	})
	l.refuse()
	return nil
}

func (l *listener) refuse() {
	for {
		select {
		case c := <-l.waiting:
			_ = c.SetLinger(0)
			_ = c.Close()
		default:
			return
		}
	}
}
