package memnet

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// pipe returns the two ends of a connection.
func pipe(near, far net.Addr) (*conn, *conn) {
	there, back := newStream(), newStream()
	return &conn{in: back, out: there, local: near, remote: far}, &conn{in: there, out: back, local: far, remote: near}
}

// A conn is one end of a connection.
type conn struct {
	in, out       *stream
	local, remote net.Addr
	writing       sync.Mutex // one Write at a time, as in package net

	mu     sync.Mutex
	abort  bool
	closed bool
}

func (c *conn) Read(b []byte) (int, error) { return c.in.read(b) }
func (c *conn) LocalAddr() net.Addr        { return c.local }
func (c *conn) RemoteAddr() net.Addr       { return c.remote }

func (c *conn) Write(b []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.out.write(b)
}

// SetLinger makes Close reset the connection if sec is 0; see net.TCPConn.
func (c *conn) SetLinger(sec int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.abort = sec == 0
	return nil
}

func (c *conn) Close() error {
	c.mu.Lock()
	abort, closed := c.abort, c.closed
	c.closed = true
	c.mu.Unlock()
	if closed {
		return failed("close", net.ErrClosed)
	}
	c.in.change(func(s *stream) {
		s.unread, s.reset = true, s.reset || abort
		s.readBy.set(time.Time{}, nil)
	})
	c.out.change(func(s *stream) {
		s.ended, s.reset = true, s.reset || abort
		s.writeBy.set(time.Time{}, nil)
	})
	return nil
}

func (c *conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t) // neither fails
	return c.SetWriteDeadline(t)
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.change(func(s *stream) { s.readBy.set(t, s.wake) })
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.out.change(func(s *stream) { s.writeBy.set(t, s.wake) })
	return nil
}

const (
	room   = 64 << 10 // bytes that can be written without a reader
	spared = 32 << 10 // bytes of an empty buffer that are kept for another stream
)

// buffers are empty. A stream has one only while it carries something: most of hundreds of connections are idle.
var buffers = sync.Pool{New: func() any { return &bytes.Buffer{} }}

// A stream carries the bytes of one direction.
type stream struct {
	mu              sync.Mutex
	changed         *sync.Cond
	data            *bytes.Buffer // nil: nothing is unread
	ended           bool          // the writer has closed its end
	unread          bool          // the reader has closed its end
	reset           bool          // one of them has reset the connection
	readBy, writeBy deadline
}

func newStream() *stream {
	s := &stream{}
	s.changed = sync.NewCond(&s.mu)
	return s
}

func (s *stream) wake() { s.change(func(*stream) {}) }

func (s *stream) change(do func(*stream)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do(s)
	s.changed.Broadcast()
}

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.unread:
			return 0, failed("read", net.ErrClosed)
		case s.readBy.passed():
			return 0, failed("read", os.ErrDeadlineExceeded)
		case len(b) == 0:
			return 0, nil
		case s.data != nil:
			n, _ := s.data.Read(b) // not at its end
			if s.data.Len() == 0 {
				if s.data.Cap() <= spared {
					s.data.Reset()
					buffers.Put(s.data)
				}
				s.data = nil
			}
			s.changed.Broadcast()
			return n, nil
		case s.reset:
			return 0, failed("read", syscall.ECONNRESET)
		case s.ended:
			return 0, io.EOF
		}
		s.changed.Wait()
	}
}

func (s *stream) write(b []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.ended:
			return n, failed("write", net.ErrClosed)
		case s.reset:
			return n, failed("write", syscall.ECONNRESET)
		case s.unread:
			return n, failed("write", syscall.EPIPE)
		case s.writeBy.passed():
			return n, failed("write", os.ErrDeadlineExceeded)
		case len(b) == n:
			return n, nil
		}
		if s.data == nil {
			s.data = buffers.Get().(*bytes.Buffer)
		}
		if free := room - s.data.Len(); free > 0 {
			part := b[n:min(len(b), n+free)]
			s.data.Write(part)
			n += len(part)
			s.changed.Broadcast()
			continue
		}
		s.changed.Wait()
	}
}

// A deadline is the time at which blocked reads or writes fail; zero: never.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func (d *deadline) set(at time.Time, wake func()) {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if d.at = at; !at.IsZero() {
		d.timer = time.AfterFunc(time.Until(at), wake)
	}
}
