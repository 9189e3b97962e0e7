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

// A replyLimits bounds one reply: its bytes after decompression, and the memory that the library allocates for them. A ten-byte
// element can become a struct of a hundred bytes, and a nested one needs a level of the parser's stack.
type replyLimits struct {
	bytes    int64
	elements int
	typed    int // elements that name a type of vSphere, which may be a large struct
	depth    int
	text     int // bytes between two tags, or in one
}

// Before login any server may answer, and a reply has a few kB: the service content, the session. Afterwards a page has at most
// pageSize objects; all replies for 1,000 hosts with 10,000 VMs together have 158 MB.
var (
	strangerLimits = replyLimits{bytes: 1 << 20, elements: 20_000, typed: 1000, depth: 64, text: 256 << 10}
	vcenterLimits  = replyLimits{bytes: 64 << 20, elements: 1_200_000, typed: 200_000, depth: 128, text: 16 << 20}
)

// A LongReplyError means that a reply was longer, deeper or had more elements than allowed. The rest of it was not read.
type LongReplyError struct {
	Limit int64
	What  string // "bytes"
}

func (e *LongReplyError) Error() string {
	return fmt.Sprintf("the reply is longer than %d %s and was not read to its end", e.Limit, e.What)
}

// shape counts the elements of an XML text while it is read, without parsing it: invalid XML fails in the parser.
type shape struct {
	limits                replyLimits
	elements, depth, text int
	typed                 int
	value                 int  // bytes of the current value so far
	colon                 bool // the name of the attribute has a prefix: xsi:type
	in                    byte // 0: text; '<': just opened; 't': a tag; '/': an end tag; '!': a comment or similar; '"' or '\'': a value
	last                  byte
}

func (s *shape) scan(p []byte) error {
	for _, c := range p {
		s.text++
		switch s.in {
		case 0:
			if c == '<' {
				s.in, s.text = '<', 0
			}
		case '<':
			switch c {
			case '/':
				s.in = '/'
				s.depth--
			case '!', '?':
				s.in = '!'
			default:
				s.in = 't'
				s.elements++
				s.depth++
			}
		case 't':
			switch c {
			case '"', '\'':
				s.in, s.value = c, 0
			case ':':
				s.colon = true
			case ' ', '\t', '\r', '\n':
				s.colon = false
			case '>':
				if s.last == '/' {
					s.depth--
				}
				s.in, s.text = 0, 0
			}
		case '/', '!':
			if c == '>' {
				s.in, s.text = 0, 0
			}
		default: // a quoted value
			if s.value++; c == s.in {
				s.in = 't'
			} else if s.value == 1 && s.colon && 'A' <= c && c <= 'Z' {
				s.typed++ // xsi:type="HostConfigInfo", not "xsd:string"
			}
		}
		s.last = c
		switch {
		case s.elements > s.limits.elements:
			return &LongReplyError{int64(s.limits.elements), "elements"}
		case s.typed > s.limits.typed:
			return &LongReplyError{int64(s.limits.typed), "typed elements"}
		case s.depth > s.limits.depth:
			return &LongReplyError{int64(s.limits.depth), "elements in one another"}
		case s.text > s.limits.text:
			return &LongReplyError{int64(s.limits.text), "bytes in one text"}
		}
	}
	return nil
}

// CheckXML refuses a text with too many or too deeply nested elements: a parser would need many times its bytes.
func CheckXML(text []byte, elements, depth int) error {
	s := shape{limits: replyLimits{elements: elements, typed: elements, depth: depth, text: len(text)}}
	if long, ok := s.scan(text).(*LongReplyError); ok {
		return fmt.Errorf("it has more than %d %s", long.Limit, long.What)
	}
	return nil
}
