package perftest

import (
	"context"
	"errors"
	"sync"

	"github.com/rdma-setup/rdma-setup/backends/lab/fabric"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/rdma"
)

// side contains the data that one side sends to the other before the test.
type side struct {
	end   fabric.End
	dev   rdma.Device
	gid   rdma.GID
	gidAt int
	mtu   int // InfiniBand MTU in bytes
	opt   options
	qpn   int
	psn   int
	peer  fabric.Peer // for a test with GPU memory

	version string // version of the program
}

// row is one line of the result, measured by the client.
type row struct {
	size, iters int
	bw          bandwidth
	lat         latency
	lost        bool          // the client has stopped
	counted     rdma.Counters // counters of the server
}

// call is a test between a client and a server.
type call struct {
	client side
	answer chan side     // the server's side, sent once
	rows   chan row      // rows from the client
	gone   chan struct{} // closed when the server's process has ended
}

type place struct {
	vm   string
	port int
}

// Meeting connects clients to waiting servers in the guests of a lab. The zero value is ready to use.
type Meeting struct {
	mu      sync.Mutex
	waiting map[place]chan *call
}

var (
	errTaken  = errors.New("address already in use")
	errNobody = errors.New("connection refused")
)

// listen waits for a client on a port of a VM.
func (m *Meeting) listen(at place) (calls <-chan *call, stop func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting == nil {
		m.waiting = map[place]chan *call{}
	}
	if m.waiting[at] != nil {
		return nil, nil, errTaken
	}
	ch := make(chan *call)
	m.waiting[at] = ch
	return ch, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.waiting[at] == ch {
			delete(m.waiting, at)
		}
	}, nil
}

// Listening returns the ports on which servers of a VM are listening.
func (m *Meeting) Listening(vm string) []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ports []int
	for at := range m.waiting {
		if at.vm == vm {
			ports = append(ports, at.port)
		}
	}
	return ports
}

// connect passes a call to a waiting server and returns the server's side.
func (m *Meeting) connect(ctx context.Context, at place, c *call) (side, error) {
	m.mu.Lock()
	ch := m.waiting[at]
	m.mu.Unlock()
	if ch == nil {
		return side{}, errNobody
	}
	select {
	case ch <- c:
	case <-ctx.Done():
		return side{}, ctx.Err()
	}
	select {
	case s := <-c.answer:
		return s, nil
	case <-c.gone:
		select {
		case s := <-c.answer: // the server responded before it ended
			return s, nil
		default:
			return side{}, errNobody
		}
	case <-ctx.Done():
		return side{}, ctx.Err()
	}
}
