package guest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
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
	r, err := p.locked(ctx, vm, "finish an interrupted installation of packages", ssh.Command{Script: m.Repair, Limit: 30 * time.Minute,
		MaxOutput: 4 << 20})
	if err != nil || r.ExitCode == 0 {
		return "", err
	}
	return cmp.Or(pkgman.Reason(r.Stdout+"\n"+r.Stderr), lastLines(r.Stderr, 2)), nil
}

// locked runs a package manager, and retries while another one holds the lock.
func (p packages) locked(ctx context.Context, vm, what string, cmd ssh.Command) (ssh.Result, error) {
	var r ssh.Result
	wait := backends.Poll{What: what, Target: vm, Limit: p.g.options.AptLock, Every: p.g.options.Poll, Whole: true}
	err := wait.Until(ctx, func(ctx context.Context) (over bool, err error) {
		r, err = p.g.step(ctx, vm, step{what: what, keep: true, Command: cmd})
		return r.ExitCode == 0 || !pkgman.Locked(r.Stderr+r.Stdout), err
	})
	if err == backends.ErrLate {
		err = backends.Transientf(label(vm),
			"Wait until the guest's automatic updates (unattended-upgrades) have ended, then run rdma-setup resume.",
			"another package manager holds the lock for more than %s", p.g.options.AptLock)
	}
	return r, err
}

// refresh updates the package lists, once per guest. The exit code of apt-get update is not reliable, so failures show when
// packages are installed.
func (p packages) refresh(ctx context.Context, vm string, m pkgman.Manager) error {
	if _, done := p.g.updated.Load(vm); done || m.Update == "" {
		return nil
	}
	r, err := p.locked(ctx, vm, "fetch the package lists", ssh.Command{Script: m.Update, Limit: 10 * time.Minute})
	if err == nil {
		p.g.updated.Store(vm, r.Stderr)
	}
	return err
}

// manager returns the package manager of a guest, which is asked once.
func (p packages) manager(ctx context.Context, vm string) (pkgman.Manager, error) {
	if known, is := p.g.managers.Load(vm); is {
		return known.(pkgman.Manager), nil
	}
	r, err := p.g.Run(ctx, vm,
		ssh.Command{What: "find the package manager", Script: "for c in apt-get dnf yum; do command -v $c && break; done"})
	if err != nil {
		return pkgman.Manager{}, err
	}
	if m, ok := pkgman.For(path.Base(strings.TrimSpace(r.Stdout))); ok {
		p.g.managers.Store(vm, m)
		return m, nil
	}
	return pkgman.Manager{}, backends.Permanentf(label(vm),
		"Install the RDMA packages by hand and set guest.install to false.",
		"it has none of the supported package managers (apt, dnf, yum)")
}

// explain returns why names are still missing after an installation. The output of updating the package lists may tell.
func (p packages) explain(m pkgman.Manager, vm string, left []string, r ssh.Result) error {
	what := "install " + strings.Join(left, ", ")
	if why := pkgman.Reason(r.Stdout + "\n" + r.Stderr); why != "" {
		r.Stderr = why // apt-get itself only says that dpkg failed
	}
	updated, _ := p.g.updated.Load(vm)
	lists, _ := updated.(string)
	said := lists + "\n" + r.Stderr
	switch {
	case pkgman.Unreachable(said + r.Stdout):
		return backends.Unreachablef(label(vm), "Make the guest's package repositories reachable, or set up a local mirror.",
			"%s: the repositories cannot be reached: %s", what, lastLines(said, 2))
	case r.ExitCode != 0 && !pkgman.OnlyUnknown(r.Stderr), r.ExitCode == 0 && pkgman.HasOtherError(r.Stderr):
		return failed(vm, what, r)
	}
	return backends.Permanentf(label(vm), m.Unavailable,
		"%s: not in the guest's repositories; all other packages are installed", what)
}

// Restore removes exactly what was newly installed; it fails if that would remove other packages too. Upgraded packages return to
// their previous version.
func (p packages) Restore(ctx context.Context, s backends.Setting, kept backends.Kept, _ backends.Progress) error {
	there, fresh := packagesOf(kept)
	if len(there)+len(fresh) == 0 {
		return nil
	}
	m, err := p.manager(ctx, s.Target.Name)
	if err != nil {
		return err
	}
	// An interrupted installation prevents apt-get from removing anything. Packages that dpkg requires to be reinstalled are
	// installed again first: dpkg may have no list of their files yet, and a removal would leave the unpacked files behind
	// (dpkg(1), reinst-required). If that fails, they are removed anyway.
	why, err := p.repair(ctx, s.Target.Name, m)
	if err != nil {
		return err
	}
	have, err := p.begun(ctx, s.Target.Name, fresh)
	if err != nil {
		return err
	}
	if err := p.remove(ctx, s.Target.Name, have, why); err != nil {
		return err
	}
	was := map[string]string{}
	var auto []string
	for _, name := range there {
		i := kept.Item(backends.ItemPackage, name)
		var version string
		if i.State.Decode(&version) == nil {
			was[name] = version
		}
		if string(i.Content) == autoInstalled {
			auto = append(auto, name)
		}
	}
	return p.exact(ctx, s.Target.Name, m, was, auto)
}

// autoInstalled is the content of a recorded package that apt has marked as automatically installed.
const autoInstalled = "auto"

// exact restores packages to their previous versions, and marks those in auto as automatically installed again: apt treats
// packages installed by name as manual (apt-mark(8), manual). If a repository no longer has the versions, the error names each
// with its current version.
func (p packages) exact(ctx context.Context, vm string, m pkgman.Manager, was map[string]string, auto []string) error {
	differ := func() (map[string]string, []string, error) {
		names := slices.Sorted(maps.Keys(was))
		f, err := p.ask(ctx, vm, names)
		if err != nil {
			return nil, nil, err
		}
		have, out := f.packages(names), map[string]string{}
		var texts []string
		for _, n := range names {
			if is := have[n]; is != was[n] {
				out[n] = was[n]
				texts = append(texts, fmt.Sprintf("%s is %s and was %s", n, cmp.Or(is, "not whole"), was[n]))
			}
		}
		return out, texts, nil
	}
	back, _, err := differ()
	if err != nil || len(back) == 0 {
		return err
	}
	if err := p.refresh(ctx, vm, m); err != nil {
		return err
	}
	script := m.Exact(back)
	if len(auto) > 0 {
		script += "\napt-mark auto -- " + ssh.QuoteAll(auto...) + " >/dev/null\n"
	}
	r, err := p.locked(ctx, vm, "restore the versions of packages", ssh.Command{Script: script, Limit: 30 * time.Minute, MaxOutput: 4 << 20})
	if err != nil {
		return err
	}
	left, texts, err := differ()
	if err != nil || len(left) == 0 {
		return err
	}
	said := lastLines(r.Stdout+"\n"+r.Stderr, 2)
	if pkgman.Unreachable(r.Stdout+r.Stderr) || pkgman.Locked(r.Stdout+r.Stderr) {
		return backends.Permanentf(label(vm), "Make the repositories reachable, then run rdma-setup rollback again.",
			"restore the versions of packages: %s: %s", strings.Join(texts, ", "), said)
	}
	return backends.Permanentf(label(vm),
		"Provide these versions in a repository of the guest or install them by hand, then run "+
			"rdma-setup rollback again. To leave the packages as they are, add --on-conflict keep.",
		"restore the versions of packages: %s: %w", strings.Join(texts, ", "),
		backends.Unobtainable{Kind: backends.ItemPackage, Names: slices.Sorted(maps.Keys(left)), Said: said})
}

func (p packages) remove(ctx context.Context, vm string, names []string, why string) error {
	if len(names) == 0 {
		return nil
	}
	m, err := p.manager(ctx, vm)
	if err != nil {
		return err
	}
	others, err := p.alongside(ctx, vm, names)
	if err != nil {
		return err
	}
	if len(others) > 0 {
		return backends.Conflictf(label(vm), "Remove those packages first, or keep these.",
			"remove %s: this would also remove %s", strings.Join(names, ", "), strings.Join(others, ", "))
	}
	r, err := p.locked(ctx, vm, "remove packages", ssh.Command{Script: m.Remove(names), Limit: 10 * time.Minute})
	if err != nil {
		return err
	}
	left, err := p.begun(ctx, vm, names)
	if err == nil && len(left) > 0 {
		r.Stderr += "\n" + why
		err = failed(vm, "remove "+strings.Join(left, ", "), r)
	}
	return err
}

// alongside returns what else would be removed with packages.
func (p packages) alongside(ctx context.Context, vm string, names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	m, err := p.manager(ctx, vm)
	if err != nil {
		return nil, err
	}
	r, err := p.g.Run(ctx, vm, ssh.Command{What: "simulate the removal of packages", Script: m.SimulateRemove(names), Sudo: true,
		Limit: 5 * time.Minute})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(m.WouldRemove(r.Stdout), func(n string) bool { return among(n, names) }), nil
}

// ofKernel matches the end of the name of a package for one kernel: kernel-devel-5.14.0-427.el9.x86_64.
var ofKernel = regexp.MustCompile(`^-[0-9][^-]*-[^-]*\.(x86_64|aarch64|ppc64le)$`)

// among reports whether a package is one of names, which may refer to it for one kernel.
func among(pkg string, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		rest, is := strings.CutPrefix(n, pkg)
		return is && (rest == "" || ofKernel.MatchString(rest))
	})
}

func within(part, all []string) bool { return len(without(part, all)) == 0 }

func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(others, n) })
}
