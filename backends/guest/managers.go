package guest

import (
	"cmp"
	"context"
	"path"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest/pkgman"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// repair completes what an interrupted run of the package manager left half done. If it fails, everything after it fails too,
// without the reason (apt-get only says that dpkg was interrupted): why is that reason, empty if nothing failed.
func (p packages) repair(ctx context.Context, vm string, m pkgman.Manager) (why string, err error) {
	if m.Repair == "" {
		return "", nil
	}
	r, err := p.locked(ctx, vm, "finish an interrupted installation of packages", ssh.Command{Script: m.Repair, Limit: 30 * time.Minute, MaxOutput: 4 << 20})
	if err != nil || r.ExitCode == 0 {
		return "", err
	}
	return cmp.Or(pkgman.Reason(r.Stdout+"\n"+r.Stderr), lastLines(r.Stderr, 2)), nil
}

// locked runs a package manager, and retries while another one holds the lock.
func (p packages) locked(ctx context.Context, vm, what string, cmd ssh.Command) (ssh.Result, error) {
	limit := time.NewTimer(p.g.options.AptLock)
	defer limit.Stop()
	for {
		r, err := p.g.step(ctx, vm, step{what: what, keep: true, Command: cmd})
		if err != nil || r.ExitCode == 0 || !pkgman.Locked(r.Stderr+r.Stdout) {
			return r, err
		}
		select {
		case <-ctx.Done():
			return r, ctx.Err()
		case <-limit.C:
			return r, backends.Errorf(backends.KindTransient, label(vm), "Wait until the guest's automatic updates (unattended-upgrades) have ended, then resume.",
				"another package manager holds the lock for more than %s", p.g.options.AptLock)
		case <-time.After(p.g.options.Poll):
		}
	}
}

// refresh updates the package lists, once per guest. The exit code of apt-get update is not reliable, so failures show when
// packages are installed.
func (p packages) refresh(ctx context.Context, vm string, m pkgman.Manager) error {
	p.g.mu.Lock()
	_, done := p.g.updated[vm]
	p.g.mu.Unlock()
	if done || m.Update == "" {
		return nil
	}
	r, err := p.locked(ctx, vm, "fetch the package lists", ssh.Command{Script: m.Update, Limit: 10 * time.Minute})
	if err == nil {
		p.g.mu.Lock()
		p.g.updated[vm] = r.Stderr
		p.g.mu.Unlock()
	}
	return err
}

// manager returns the package manager of a guest, which is asked once.
func (p packages) manager(ctx context.Context, vm string) (pkgman.Manager, error) {
	p.g.mu.Lock()
	known, is := p.g.managers[vm]
	p.g.mu.Unlock()
	if is {
		return known, nil
	}
	r, err := p.g.Run(ctx, vm, ssh.Command{Script: "for c in apt-get dnf yum; do command -v $c && break; done"})
	if err != nil {
		return pkgman.Manager{}, err
	}
	if m, ok := pkgman.For(path.Base(strings.TrimSpace(r.Stdout))); ok {
		p.g.mu.Lock()
		p.g.managers[vm] = m
		p.g.mu.Unlock()
		return m, nil
	}
	return pkgman.Manager{}, backends.Errorf(backends.KindPermanent, label(vm), "Install the RDMA packages by hand and set guest.install to false.",
		"it has none of the supported package managers (apt, dnf, yum)")
}

// explain returns why names are still missing after an installation; lists is the output of updating the package lists.
func explain(m pkgman.Manager, vm string, left []string, r ssh.Result, lists string) error {
	what := "install " + strings.Join(left, ", ")
	if why := pkgman.Reason(r.Stdout + "\n" + r.Stderr); why != "" {
		r.Stderr = why // apt-get itself only says that dpkg failed
	}
	said := lists + "\n" + r.Stderr
	switch {
	case pkgman.Unreachable(said + r.Stdout):
		return backends.Errorf(backends.KindUnreachable, label(vm), "Make the guest's package repositories reachable, or set up a local mirror.",
			"%s: the repositories cannot be reached: %s", what, lastLines(said, 2))
	case r.ExitCode != 0 && !pkgman.OnlyUnknown(r.Stderr), r.ExitCode == 0 && pkgman.HasOtherError(r.Stderr):
		return failed(vm, what, r)
	}
	return backends.Errorf(backends.KindPermanent, label(vm), m.Unavailable, "%s: not in the guest's repositories; all other packages are installed", what)
}
