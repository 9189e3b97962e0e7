package guest

import (
	"context"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// restart proves that a guest boots with its network: KindRestart. Only this process knows that it has: another one restarts it again.
type restart struct{ g *Guests }

// Read returns true if this process has restarted the guest, and every interface came back.
func (r restart) Read(_ context.Context, s backends.Setting) (backends.Value, error) {
	if _, done := r.g.proven.Load(s.Target.Name); done {
		return backends.ValueOf(true), nil
	}
	return backends.Absent, nil
}

// Set restarts the guest and compares its network, that of this program included, with the one before.
func (r restart) Set(ctx context.Context, s backends.Setting, to backends.Value, progress backends.Progress) error {
	vm := s.Target.Name
	if to.IsAbsent() {
		return nil // a state, not a setting: there is nothing to undo
	}
	before, err := address(r).network(ctx, s)
	if err != nil {
		return err
	}
	id, err := r.g.BootID(ctx, vm)
	if err != nil {
		return err
	}
	progress.Report(10)
	if err := r.g.reboot(ctx, vm, id); err != nil {
		return err
	}
	progress.Report(70)
	if err := r.g.same(ctx, vm, before, false); err != nil {
		return err
	}
	r.g.proven.Store(vm, true)
	return nil
}

// same fails unless the interfaces of a guest are as before it was restarted; without ours, those that this program configures are not
// compared.
func (g *Guests) same(ctx context.Context, vm string, before *network, withoutOurs bool) error {
	if withoutOurs {
		before = before.withoutOurs()
	}
	differs, err := g.settled(ctx, vm, before, "", 2*g.options.Settle) // a lease behind a port that spanning tree blocks for 30 s, for example
	switch {
	case err != nil:
		return err
	case len(differs) > 0:
		return backends.Permanentf(label(vm),
			"Correct the guest's network configuration, then run rdma-setup resume; or run rdma-setup rollback.",
			"it has restarted, and its network is not as before: %s", strings.Join(differs, "; "))
	}
	return nil
}

// Remember records the network of a guest before its VM is powered off; Returned compares it. A guest that was not
// read before, or cannot be read, is not compared.
func (g *Guests) Remember(ctx context.Context, vm string) {
	g.before.Delete(vm)
	g.mu.Lock()
	connected := g.conns[vm] != nil
	g.mu.Unlock()
	if !connected {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if n, err := (address{g}).network(ctx, backends.Setting{Target: backends.GuestRef(vm)}); err == nil {
		g.before.Store(vm, n)
	}
}

// Returned fails unless the interfaces that this program does not configure are as Remember found them.
func (g *Guests) Returned(ctx context.Context, vm string) error {
	n, there := g.before.LoadAndDelete(vm)
	if !there {
		return nil
	}
	return g.same(ctx, vm, n.(*network), true)
}

// reboot restarts the guest and waits until it answers with another boot id. The connection may end before the command reports
// success: then the boot id decides.
func (g *Guests) reboot(ctx context.Context, vm, before string) error {
	r, err := g.Run(ctx, vm, ssh.Command{Script: "systemctl reboot", Sudo: true, What: "reboot the guest", Limit: time.Minute})
	switch kind := backends.KindOf(err); {
	case err == nil && r.ExitCode > 0 && r.Stderr != "":
		return failed(vm, "reboot the guest", r)
	case err != nil && kind != backends.KindUnreachable && kind != backends.KindTransient:
		return err
	}
	g.unsettle(vm)
	return g.Boot(ctx, vm, before)
}
