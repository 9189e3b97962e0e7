package guest

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/settertest"
)

func TestSettledIsADecorator(t *testing.T) {
	// It is known that nothing runs on one target of the suite.
	g := &Guests{settled: map[string]bool{settertest.Target: true}}
	settertest.RunDecorator(t, settertest.Decoration{Wrap: func(s backends.Setter) backends.Setter { return &settled{backends.Wrapped{Setter: s}, g} }})
}
