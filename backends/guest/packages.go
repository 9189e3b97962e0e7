package guest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest/pkgman"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// packages sets which packages are installed: KindPackages.
type packages struct{ g *Guests }

// Read returns the packages of the set that are installed; Partial if the installation of one of them was interrupted.
func (p packages) Read(ctx context.Context, s backends.Setting) (backends.Value, error) {
	names := p.names(s, nil)
	f, err := p.ask(ctx, s.Target.Name, names)
	if err != nil {
		return backends.Absent, err
	}
	have := f.packages(names)
	spec := backends.PackageSpec{Installed: slices.DeleteFunc(slices.Clone(names), func(n string) bool { _, ok := have[n]; return !ok })}
	unfinished := slices.DeleteFunc(f.begun(names), func(n string) bool { _, ok := have[n]; return ok })
	if len(unfinished) > 0 {
		return backends.Partial(map[string][]string{"installed": spec.Installed, "unfinished": unfinished}), nil
	}
	return backends.ValueOf(spec), nil
}

// names returns the names of a set: the requested ones, else all in the options, and more.
func (p packages) names(s backends.Setting, more []string) []string {
	var spec backends.PackageSpec
	if !p.g.want(s, &spec) {
		spec.Installed = p.g.options.Packages
	}
	list := append(slices.Clone(spec.Installed), more...)
	slices.Sort(list)
	return slices.Compact(list)
}

// installed returns those names that are completely installed.
func (p packages) installed(ctx context.Context, vm string, names []string) ([]string, error) {
	f, err := p.ask(ctx, vm, names)
	if err != nil {
		return nil, err
	}
	have, out := f.packages(names), []string{}
	for _, n := range names {
		if _, ok := have[n]; ok {
			out = append(out, n)
		}
	}
	return out, nil
}

// begun returns those names of which more than configuration files exist.
func (p packages) begun(ctx context.Context, vm string, names []string) ([]string, error) {
	f, err := p.ask(ctx, vm, names)
	return f.begun(names), err
}

func (p packages) ask(ctx context.Context, vm string, names []string) (facts, error) {
	text := section("dpkg", script("dpkg-versions.sh"))
	if _, known := p.g.withoutRPM.Load(vm); !known {
		text += section("rpm", script("rpm-versions.sh", names...))
	}
	f, err := p.g.lookFacts(ctx, vm, ssh.Command{Script: text, MaxOutput: 8 << 20})
	if err == nil && !f.knowsPackages() {
		err = unreadPackages(vm)
	}
	if err == nil && strings.TrimSpace(f["rpm"]) == "" {
		p.g.withoutRPM.Store(vm, true)
	}
	return f, err
}

func unreadPackages(vm string) error {
	return backends.Transientf(label(vm), "Check dpkg-query -W or rpm -q rpm in the guest.",
		"its packages cannot be read: the package manager does not answer")
}

// Keep asks the package manager what it would install and records those packages as absent, so that a rollback removes exactly
// these; packages that it would upgrade are recorded with their current version.
func (p packages) Keep(ctx context.Context, s backends.Setting, to backends.Value) (backends.Kept, error) {
	p.g.learn(s, to)
	spec, err := wanted[backends.PackageSpec](to)
	if err != nil {
		return backends.Kept{}, err
	}
	missing, err := p.missing(ctx, s.Target.Name, spec.Installed)
	if err != nil || len(missing) == 0 {
		return backends.Kept{}, err
	}
	m, err := p.manager(ctx, s.Target.Name)
	if err != nil {
		return backends.Kept{}, err
	}
	if err := p.refresh(ctx, s.Target.Name, m); err != nil {
		return backends.Kept{}, err
	}
	r, err := p.g.Run(ctx, s.Target.Name, ssh.Command{What: "simulate the installation of packages", Script: m.Simulate(missing), Sudo: true,
		Limit: 5 * time.Minute})
	if err != nil {
		return backends.Kept{}, err
	}
	would := m.WouldInstall(r.Stdout)
	if len(would) == 0 && pkgman.Undetermined(r.Stderr) {
		// What a later attempt would install is not known, and what is recorded stays recorded.
		return backends.Kept{}, p.explain(m, s.Target.Name, missing, r)
	}
	// There is one kernel-modules-extra for each kernel: only the one for the requested kernel is new.
	fresh := append(slices.DeleteFunc(would, func(n string) bool { return among(n, missing) }), missing...)
	slices.Sort(fresh)
	kept := backends.Kept{Items: packageItems(slices.Compact(fresh), nil)}
	moved := m.WouldMove(r.Stdout)
	if len(moved) == 0 {
		return kept, nil
	}
	f, err := p.ask(ctx, s.Target.Name, moved)
	if err != nil {
		return backends.Kept{}, err
	}
	marked, err := p.g.facts(ctx, s.Target.Name, ssh.Command{Script: marks(), MaxOutput: 4 << 20})
	if err != nil {
		return backends.Kept{}, err
	}
	auto := strings.Fields(marked["auto"])
	for name, version := range f.packages(moved) {
		if !slices.Contains(fresh, name) {
			i := backends.Item{Kind: backends.ItemPackage, Name: name, State: backends.ValueOf(version)}
			if slices.Contains(auto, name) {
				i.Content = []byte(autoInstalled)
			}
			kept.Items = append(kept.Items, i)
		}
	}
	slices.SortFunc(kept.Items, func(a, b backends.Item) int { return strings.Compare(a.Name, b.Name) })
	return kept, nil
}

// packageItems records packages with their version, Absent if they are not installed.
func packageItems(names []string, version func(string) backends.Value) []backends.Item {
	var out []backends.Item
	for _, n := range names {
		i := backends.Item{Kind: backends.ItemPackage, Name: n}
		if version != nil {
			i.State = version(n)
		}
		out = append(out, i)
	}
	return out
}

// packagesOf returns the names of the packages in a record that were installed, and of those that were not.
func packagesOf(kept backends.Kept) (there, absent []string) {
	for _, i := range kept.Items {
		switch {
		case i.Kind != backends.ItemPackage:
		case i.State.IsAbsent():
			absent = append(absent, i.Name)
		default:
			there = append(there, i.Name)
		}
	}
	return there, absent
}

// observePackages returns the current state of the packages in a record: the version of complete ones, Partial for incomplete
// ones.
func (p packages) observePackages(ctx context.Context, vm string, kept backends.Kept) ([]backends.Item, error) {
	there, absent := packagesOf(kept)
	names := append(there, absent...)
	if len(names) == 0 {
		return nil, nil
	}
	f, err := p.ask(ctx, vm, names)
	if err != nil {
		return nil, err
	}
	complete, begun := f.packages(names), f.begun(names)
	return packageItems(names, func(n string) backends.Value {
		switch version := complete[n]; {
		case !slices.Contains(begun, n): // its name may be provided by another package
			return backends.Absent
		case version != "":
			return backends.ValueOf(version)
		}
		return backends.Partial(nil)
	}), nil
}

func (p packages) Observe(ctx context.Context, s backends.Setting, kept backends.Kept) (backends.Kept, error) {
	items, err := p.observePackages(ctx, s.Target.Name, kept)
	return backends.Kept{Items: items}, err
}

// missing returns those names that are not completely installed.
func (p packages) missing(ctx context.Context, vm string, names []string) ([]string, error) {
	have, err := p.installed(ctx, vm, names)
	return without(names, have), err
}

// Set installs all missing packages that are available, even if some names are unknown to the guest's repositories; those are
// then named in the error. Packages of the set that are no longer wanted are removed.
func (p packages) Set(ctx context.Context, s backends.Setting, to backends.Value, progress backends.Progress) error {
	vm := s.Target.Name
	p.g.learn(s, to)
	spec, err := wanted[backends.PackageSpec](to)
	if err != nil {
		return err
	}
	missing, err := p.missing(ctx, vm, spec.Installed)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		progress.Report(5)
		if err := p.install(ctx, vm, missing); err != nil {
			return err
		}
		progress.Report(90)
	}
	var set backends.PackageSpec
	if !p.g.want(s, &set) {
		return nil
	}
	have, err := p.installed(ctx, vm, set.Installed)
	if err != nil {
		return err
	}
	return p.remove(ctx, vm, without(have, spec.Installed), "")
}

func (p packages) install(ctx context.Context, vm string, missing []string) error {
	m, err := p.manager(ctx, vm)
	if err != nil {
		return err
	}
	why, err := p.repair(ctx, vm, m)
	if err != nil {
		return err
	}
	if err := p.refresh(ctx, vm, m); err != nil {
		return err
	}
	r, err := p.locked(ctx, vm, "install packages", ssh.Command{Script: m.Install(missing), Limit: 30 * time.Minute, MaxOutput: 4 << 20})
	if err != nil {
		return err
	}
	left, err := p.missing(ctx, vm, missing)
	if err != nil || len(left) == 0 {
		return err
	}
	if r.ExitCode != 0 {
		r.Stderr += "\n" + why
	}
	return p.explain(m, vm, left, r)
}

// learn remembers the contents of a set. A rollback requests less than the set, so a part of it is ignored.
func (g *Guests) learn(s backends.Setting, to backends.Value) {
	var old, now struct {
		Installed []string `json:"installed"`
	}
	if g.want(s, &old) && to.Decode(&now) == nil && within(now.Installed, old.Installed) {
		return
	}
	var oldList, nowList []string
	if g.want(s, &oldList) && to.Decode(&nowList) == nil && within(nowList, oldList) {
		return
	}
	g.Want(s, to)
}
