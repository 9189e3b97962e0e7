package guest

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/settertest"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

func TestStepWaiterIsADecorator(t *testing.T) {
	// It is known that nothing runs on one target of the suite.
	g := New(nil, func(string) (ssh.Target, bool) { return ssh.Target{}, false }, nil, Options{})
	g.idle[settertest.Target] = true
	settertest.RunDecorator(t,
		settertest.Decoration{Wrap: func(s backends.Setter) backends.Setter { return &stepWaiter{backends.Wrapped{Setter: s}, g} }})
}
