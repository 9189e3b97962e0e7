package wire

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
)

// A Cost is the traffic of a connection: SOAP round trips and bytes of bodies.
type Cost struct {
	Calls    int64
	Sent     int64
	Received int64
}

// A StatusError is an HTTP status with which no SOAP server answers a call.
type StatusError struct {
	Code   int
	Status string
}

func (e *StatusError) Error() string { return fmt.Sprintf("HTTP status %s", e.Status) }

// meter counts the traffic, and ends replies that are too large. It also turns every status except 200 and 500 (a SOAP fault)
// into a StatusError, because the library's own error for these cannot be inspected.
type meter struct {
	base                  http.RoundTripper
	limit                 int64       // bytes of one reply after login; zero: according to vcenterLimits
	loggedIn              atomic.Bool // the server accepted the password, so it is the intended vCenter
	calls, sent, received atomic.Int64
}

func (m *meter) RoundTrip(req *http.Request) (*http.Response, error) {
	m.calls.Add(1)
	var sent, received *atomic.Int64
	if size, ok := req.Context().Value(bodySize{}).(*bodySize); ok {
		sent, received = &size.sent, &size.received
	}
	if req.Body != nil {
		// The transport must not change the caller's request.
		req = req.Clone(req.Context())
		req.Body = &counted{req.Body, &m.sent, sent}
	}
	res, err := m.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusInternalServerError {
		_, _ = io.CopyN(io.Discard, res.Body, 64<<10)
		_ = res.Body.Close()
		return nil, &StatusError{Code: res.StatusCode, Status: res.Status}
	}
	limits := m.limits()
	body := &limited{counted: counted{res.Body, &m.received, received}, limit: limits.bytes, left: limits.bytes}
	if req.Method == http.MethodPost { // a SOAP call; a file of a datastore is fetched with GET
		body.shape = &shape{limits: limits}
	}
	res.Body = body
	return res, nil
}

func (m *meter) limits() replyLimits {
	if !m.loggedIn.Load() {
		return strangerLimits
	}
	l := vcenterLimits
	if m.limit > 0 {
		l.bytes = m.limit
	}
	return l
}

func (m *meter) cost() Cost {
	return Cost{Calls: m.calls.Load(), Sent: m.sent.Load(), Received: m.received.Load()}
}

type counted struct {
	io.ReadCloser
	n    *atomic.Int64
	call *atomic.Int64 // only of this call; may be nil
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	if c.call != nil {
		c.call.Add(int64(n))
	}
	return n, err
}

// limited is a body that fails if it is longer than its limit.
type limited struct {
	counted
	limit, left int64
	shape       *shape // nil: not XML
}

func (l *limited) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1] // one more byte distinguishes a body that ends at the limit from a longer one
	}
	n, err := l.counted.Read(p)
	if l.left -= int64(n); l.left < 0 {
		l.left = 0
		return n - 1, &LongReplyError{l.limit, "bytes"}
	}
	if l.shape != nil {
		if long := l.shape.scan(p[:n]); long != nil {
			return 0, long
		}
	}
	return n, err
}
