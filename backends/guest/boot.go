package guest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

const bootIDFile = "/proc/sys/kernel/random/boot_id"

// BootID reads what changes with every boot.
func (g *Guests) BootID(ctx context.Context, vm string) (string, error) {
	r, err := g.Run(ctx, vm, ssh.Command{Argv: []string{"cat", bootIDFile}, Limit: 30 * time.Second})
	if err != nil {
		return "", err
	}
	if id := strings.TrimSpace(r.Stdout); r.ExitCode == 0 && id != "" {
		return id, nil
	}
	return "", failed(vm, "read "+bootIDFile, r)
}

// Wait waits until the guest answers over SSH.
func (g *Guests) Wait(ctx context.Context, vm string) error {
	return g.await(ctx, vm, "")
}

// Boot waits until the guest answers over SSH with another boot id than before. With before "" it is Wait.
func (g *Guests) Boot(ctx context.Context, vm, before string) error {
	return g.await(ctx, vm, before)
}

// await tries again what time may mend: a guest that is not up yet. A refused login or host key is final.
func (g *Guests) await(ctx context.Context, vm, before string) error {
	ctx, cancel := context.WithTimeout(ctx, g.options.BootTime)
	defer cancel()
	var last error
	for {
		id, err := g.BootID(ctx, vm)
		switch kind := backends.KindOf(err); {
		case err == nil && id != before:
			return nil
		case err == nil:
			last = fmt.Errorf("it has not rebooted")
		case kind == backends.KindAuth || kind == backends.KindUsage:
			return err
		case ctx.Err() == nil:
			last = err
		}
		select {
		case <-ctx.Done():
			if ctx.Err() == context.DeadlineExceeded {
				return backends.Errorf(backends.KindUnreachable, label(vm), "Look at the VM's console.",
					"it did not answer over SSH within %s: %w", g.options.BootTime, last)
			}
			return backends.Errorf(backends.KindInterrupted, label(vm), "", "wait for it to answer: %w", ctx.Err())
		case <-time.After(g.options.Poll):
		}
	}
}
