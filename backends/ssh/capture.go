package ssh

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"sync"
)

// A capture collects one output stream: noise before the begin marker, then at most limit bytes, until the end marker.
type capture struct {
	begin, end []byte
	limit      int
	onLine     func(string)
	onBegin    func(rest string) // the rest of the marker's line
	onNoise    func(noise string)

	mu      sync.Mutex
	begun   bool
	ended   bool   // the end marker was seen
	closed  bool   // no reader is left
	noise   []byte // the end of the output before the marker
	hold    []byte // possible start of a marker
	kept    bytes.Buffer
	dropped bool
	line    []byte
	code    int
}

const (
	noiseLimit = 8 << 10
	lineLimit  = 64 << 10
	markLimit  = 1 << 10 // maximum length of a marker's line: a longer line is not a marker
)

// Write never fails: bytes over the limit are counted as dropped, so that the other side does not block.
func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(p)
	if c.closed {
		return n, nil
	}
	if !c.begun {
		p = c.search(p)
	}
	if c.begun {
		c.take(p)
	}
	return n, nil
}

// ReadFrom writes what it reads. io.Copy, which uses it, would take 32 KiB for each stream of each command.
func (c *capture) ReadFrom(r io.Reader) (int64, error) {
	room := rooms.Get().(*[4 << 10]byte)
	defer rooms.Put(room)
	return io.CopyBuffer(struct{ io.Writer }{c}, struct{ io.Reader }{r}, room[:])
}

var rooms = sync.Pool{New: func() any { return new([4 << 10]byte) }}

// search finds the begin marker and returns the text after its line.
func (c *capture) search(p []byte) []byte {
	c.hold = append(c.hold, p...)
	i := bytes.Index(c.hold, c.begin)
	if i < 0 {
		if c.onNoise != nil {
			c.onNoise(string(c.hold))
		}
		if over := len(c.hold) - noiseLimit; over > 0 {
			c.hold = append([]byte(nil), c.hold[over:]...)
		}
		return nil
	}
	nl := bytes.IndexByte(c.hold[i:], '\n')
	if nl < 0 {
		c.hold = c.hold[:min(len(c.hold), i+markLimit)]
		return nil
	}
	rest := string(c.hold[i+len(c.begin) : i+nl])
	p = c.hold[i+nl+1:]
	c.noise, c.hold = c.hold[:i:i], nil
	c.begun = true
	if c.onBegin != nil {
		c.onBegin(rest)
	}
	return p
}

func (c *capture) take(p []byte) {
	if c.ended {
		return
	}
	if c.end == nil {
		c.keep(p)
		return
	}
	c.hold = append(c.hold, p...)
	if i := bytes.Index(c.hold, c.end); i >= 0 {
		nl := bytes.IndexByte(c.hold[i:], '\n')
		if nl < 0 {
			c.keep(c.hold[:i])
			c.hold = append([]byte(nil), c.hold[i:min(len(c.hold), i+markLimit)]...)
			return
		}
		c.keep(c.hold[:i])
		c.code, _ = strconv.Atoi(strings.TrimSpace(string(c.hold[i+len(c.end) : i+nl])))
		c.hold, c.ended = nil, true
		return
	}
	// Everything except a possible start of the marker can be discarded.
	safe := len(c.hold)
	for k := min(len(c.end)-1, len(c.hold)); k > 0; k-- {
		if bytes.HasSuffix(c.hold, c.end[:k]) {
			safe = len(c.hold) - k
			break
		}
	}
	c.keep(c.hold[:safe])
	c.hold = append([]byte(nil), c.hold[safe:]...)
}

func (c *capture) keep(p []byte) {
	if room := c.limit - c.kept.Len(); len(p) <= room {
		c.kept.Write(p)
	} else {
		c.kept.Write(p[:max(room, 0)])
		c.dropped = true
	}
	if c.onLine == nil {
		return
	}
	for len(p) > 0 {
		nl := bytes.IndexByte(p, '\n')
		if nl < 0 {
			c.line = append(c.line, p...)
			if len(c.line) >= lineLimit {
				c.flushLine()
			}
			return
		}
		c.line = append(c.line, p[:nl]...)
		c.flushLine()
		p = p[nl+1:]
	}
}

func (c *capture) flushLine() {
	c.onLine(strings.TrimSuffix(string(c.line), "\r"))
	c.line = c.line[:0]
}

// finish is called at the end of the stream.
func (c *capture) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	if c.begun && !c.ended {
		c.keep(c.hold)
	} else if !c.begun {
		c.noise = c.hold
	}
	c.hold = nil
	if c.onLine != nil && len(c.line) > 0 {
		c.flushLine()
	}
}
