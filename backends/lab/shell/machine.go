package shell

import (
	"context"
	"errors"
	"sync"

	"github.com/rdma-setup/rdma-setup/backends/lab/esxi"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sshd"
)

// inner is a machine that can be closed.
type inner interface {
	sshd.Machine
	Close()
}

// machine is a placeholder that creates the actual machine at the first connection.
type machine struct {
	build func() (inner, error)

	mu     sync.Mutex
	real   inner
	err    error
	closed bool
}

func (m *machine) get() (inner, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, errors.New("closed")
	}
	if m.real == nil && m.err == nil {
		m.real, m.err = m.build()
	}
	return m.real, m.err
}

func (m *machine) built() inner {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.real
}

// update notifies the machine, if it was created, that the world has changed.
func (m *machine) update() {
	switch real := m.built().(type) {
	case *linux.Machine:
		real.Replug()
	case *esxi.Host:
		real.Update()
	}
}

func (m *machine) close() {
	m.mu.Lock()
	m.closed = true
	real := m.real
	m.mu.Unlock()
	if real != nil {
		real.Close()
	}
}

// Up implements sshd.Machine. A machine that could not be created is down.
func (m *machine) Up() (context.Context, bool) {
	real, err := m.get()
	if err != nil {
		return nil, false
	}
	return real.Up()
}

// Account implements sshd.Machine.
func (m *machine) Account(name string) (sshd.Account, bool) { return m.built().Account(name) }

// Login implements sshd.Machine.
func (m *machine) Login(u sh.User, s *sh.Session) *sh.Proc { return m.built().Login(u, s) }

// Connect implements sshd.Machine.
func (m *machine) Connect() sshd.Verdict { return m.built().Connect() }

// Banner implements sshd.Machine.
func (m *machine) Banner() string { return m.built().Banner() }
