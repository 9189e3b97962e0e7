package wire

import (
	"context"
	"fmt"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// An outage is a time in which no connection to vCenter can be made. The first call that notices it tells so, and the first that is
// answered again; all calls share its limit, so that it passes once and not for each target.
type outages struct {
	mu    sync.Mutex
	since time.Time // zero: vCenter answers
	up    atomic.Bool
}

// reconnect is how long a call is repeated while no connection can be made: its own limit.
func (c *Config) reconnect() time.Duration {
	if c.CallLimit > 0 {
		return min(callLimit, c.CallLimit)
	}
	return callLimit
}

// lost notes that no connection could be made, and reports whether it is worth trying again.
func (c *Conn) lost(err error) bool {
	kind, text, _ := classify(err)
	if !c.outages.up.Load() || kind != backends.KindUnreachable && kind != backends.KindTransient {
		return false // not logged in yet, or a certificate that is not trusted any more
	}
	c.outages.mu.Lock()
	first := c.outages.since.IsZero()
	if first {
		c.outages.since = time.Now()
	}
	left := time.Until(c.outages.since.Add(c.cfg.reconnect()))
	c.outages.mu.Unlock()
	if first {
		if isBroken(err) {
			text = "it closes connections"
		}
		c.notice(fmt.Sprintf("vCenter %s cannot be reached (%s); calls are repeated for at most %s", c.host, text, c.cfg.reconnect()))
	}
	return left > 0
}

// found notes that a call was answered.
func (c *Conn) found() {
	c.outages.mu.Lock()
	since := c.outages.since
	c.outages.since = time.Time{}
	c.outages.mu.Unlock()
	if !since.IsZero() {
		c.notice(fmt.Sprintf("vCenter %s answers again, after %s", c.host, time.Since(since).Round(time.Second)))
	}
}

func (c *Conn) notice(text string) {
	if c.cfg.Notice != nil {
		c.cfg.Notice(text)
	}
}

// sending returns a context that notes whether a request was sent: one that was not can be repeated, whatever it does.
func sending(ctx context.Context) (context.Context, *atomic.Bool) {
	sent := new(atomic.Bool)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}), sent
}
