package wire

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
)

// A Cost is what the wire has carried: SOAP round trips and bytes of bodies.
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

// meter counts what passes. It also turns every status but 200 and 500 (a SOAP fault) into a StatusError, since the
// library's own error for these cannot be inspected.
type meter struct {
	base                  http.RoundTripper
	calls, sent, received atomic.Int64
}

func (m *meter) RoundTrip(req *http.Request) (*http.Response, error) {
	m.calls.Add(1)
	if req.Body != nil {
		// The transport must not change the caller's request.
		req = req.Clone(req.Context())
		req.Body = &counted{ReadCloser: req.Body, n: &m.sent}
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
	res.Body = &counted{ReadCloser: res.Body, n: &m.received}
	return res, nil
}

func (m *meter) cost() Cost {
	return Cost{Calls: m.calls.Load(), Sent: m.sent.Load(), Received: m.received.Load()}
}

type counted struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}
