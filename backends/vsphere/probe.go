package vsphere

import (
	"context"

	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// Probe checks that a vCenter answers and that its certificate is trusted, without logging in.
func Probe(ctx context.Context, cfg Config) error { return wire.Probe(ctx, cfg) }
