package memnet

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/nettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connected returns both ends of a new connection.
func connected(t *testing.T) (near, far net.Conn) {
	t.Helper()
	n := New()
	l := n.Listen()
	t.Cleanup(func() { l.Close() })
	near, err := n.Dial(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return near, far
}

// The witness for how a net.Conn behaves is the suite of golang.org/x/net that the connections of package net pass, too.
func TestConn(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		n := New()
		l := n.Listen()
		if c1, err = n.Dial(t.Context(), l.Addr().String()); err == nil {
			c2, err = l.Accept()
		}
		return c1, c2, func() { c1.Close(); c2.Close(); l.Close() }, err
	})
}

// Each row is what a TCP connection of this machine does, too: the same calls on one must end the same.
func TestEndsLikeTCP(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(near, far net.Conn) error
		want error
	}{
		"closed: the rest is read, then the end": {func(near, far net.Conn) error {
			_, _ = near.Write([]byte("rest"))
			near.Close()
			if b, err := io.ReadAll(far); string(b) != "rest" || err != nil {
				return errors.Join(errors.New("read "+string(b)), err)
			}
			return nil
		}, nil},
		"reset: what has arrived is read, then the reset": {func(near, far net.Conn) error {
			_, _ = near.Write([]byte("rest"))
			_ = near.(interface{ SetLinger(int) error }).SetLinger(0)
			near.Close()
			b, err := io.ReadAll(far)
			if string(b) != "rest" {
				return errors.New("read " + string(b))
			}
			return err
		}, syscall.ECONNRESET},
		"closed twice, the second time with a reset": {func(near, far net.Conn) error {
			near.Close()
			_ = near.(interface{ SetLinger(int) error }).SetLinger(0)
			if err := near.Close(); !errors.Is(err, net.ErrClosed) {
				return err
			}
			_, err := io.ReadAll(far)
			return err
		}, nil},
		"own end closed": {func(near, _ net.Conn) error {
			near.Close()
			_, err := near.Read(make([]byte, 1))
			return err
		}, net.ErrClosed},
		"written after the other end was closed": {func(near, far net.Conn) error {
			far.Close()
			for { // TCP hears of it from the answer to the first packet
				if _, err := near.Write([]byte("x")); err != nil {
					return err
				}
			}
		}, syscall.EPIPE},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := connected(t)
			if err := test.do(near, far); !errors.Is(err, test.want) {
				t.Errorf("in memory: %v, want %v", err, test.want)
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if near, err = net.Dial("tcp", l.Addr().String()); err != nil {
				t.Fatal(err)
			}
			if far, err = l.Accept(); err != nil {
				t.Fatal(err)
			}
			defer near.Close()
			defer far.Close()
			err = test.do(near, far)
			if !errors.Is(err, test.want) && !(test.want == syscall.EPIPE && errors.Is(err, syscall.ECONNRESET)) {
				t.Errorf("TCP: %v, want %v", err, test.want)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	n := New()
	l := n.Listen()
	address := l.Addr().String()
	if other := n.Listen(); other.Addr().String() == address {
		t.Errorf("two listeners have %s", address)
	}
	waiting, err := n.Dial(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := waiting.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("not accepted: %v", err)
	}
	if _, err := n.Dial(t.Context(), address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept of a closed listener: %v", err)
	}
}

func TestDialWaitsForRoomInTheBacklog(t *testing.T) {
	n := New()
	l := n.Listen()
	defer l.Close()
	for range backlog {
		if _, err := n.Dial(t.Context(), l.Addr().String()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := n.Dial(ctx, l.Addr().String()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("full: %v", err)
	}
}

func TestAddresses(t *testing.T) {
	seen := map[string]bool{}
	for n := range 2*ports + 1 {
		if at := address(n); seen[at.String()] || !at.IP.IsLoopback() || at.Port > 65535 {
			t.Fatalf("%d: %s", n, at)
		}
		seen[address(n).String()] = true
	}
}
