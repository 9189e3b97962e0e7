package pkgs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
)

// DebPrograms returns the programs of apt and dpkg.
func (db *DB) DebPrograms() map[string]sh.Program {
	return map[string]sh.Program{
		"apt-get": db.apt, "apt-cache": db.aptCache, "dpkg": db.dpkg, "dpkg-query": db.dpkgQuery,
		"apt-mark": db.aptMark,
	}
}

// aptMark implements apt-mark(8) for automatically installed packages and packages on hold.
func (db *DB) aptMark(_ context.Context, p *sh.Proc) int {
	args := slices.DeleteFunc(slices.Clone(p.Args[1:]), func(a string) bool { return a == "--" })
	if len(args) == 0 {
		return 1
	}
	what, names := args[0], args[1:]
	db.mu.Lock()
	defer db.mu.Unlock()
	set := db.auto
	if strings.HasSuffix(what, "hold") {
		set = db.held
	}
	if strings.HasPrefix(what, "show") {
		for _, n := range slices.Sorted(maps.Keys(set)) {
			if db.installed[n] && (len(names) == 0 || slices.Contains(names, n)) {
				p.Printf("%s\n", n)
			}
		}
		return 0
	}
	for _, n := range names {
		switch what {
		case "auto", "hold":
			set[n] = true
		case "manual", "unhold":
			delete(set, n)
		}
	}
	return 0
}

func (db *DB) apt(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("y q s o: t: yes quiet simulate no-install-recommends reinstall allow-downgrades")
	if err != nil {
		fmt.Fprintf(p.Stderr, "E: Command line option %s is not understood in combination with the other options\n",
			strings.TrimPrefix(err.Error(), "invalid option -- "))
		return 100
	}
	if len(o.Args) == 0 {
		return 0
	}
	what, names := o.Args[0], o.Args[1:]
	simulate := o.Has("s", "simulate")
	if !p.Root() && !simulate && slices.Contains([]string{"install", "remove", "purge", "update"}, what) {
		lock := "/var/lib/dpkg/lock-frontend"
		text := "Unable to acquire the dpkg frontend lock (" + lock + "), are you root?"
		if what == "update" {
			lock = "/var/lib/apt/lists/lock"
			text = "Unable to lock directory /var/lib/apt/lists/"
		}
		fmt.Fprintf(p.Stderr, "E: Could not open lock file %s - open (13: Permission denied)\nE: %s\n", lock, text)
		return 100
	}
	if !simulate && what != "update" && db.interrupted() {
		fmt.Fprintf(p.Stderr, "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem. \n")
		return 100
	}
	if !simulate && slices.Contains([]string{"install", "remove", "purge"}, what) {
		release := db.frontend(ctx, p, o.Values("o"))
		if release == nil {
			return 100
		}
		defer release()
		if !p.Spend(ctx, "apt lists") {
			return 100
		}
	}
	switch what {
	case "update":
		db.mu.Lock()
		db.updated = true
		db.mu.Unlock()
		p.Printf("Hit:1 http://archive.ubuntu.com/ubuntu stable InRelease\nReading package lists...\n")
		return 0
	case "install":
		return db.aptInstall(ctx, p, o, names, simulate)
	case "remove", "purge":
		return db.aptRemove(ctx, p, o, names, simulate, what == "purge")
	}
	fmt.Fprintf(p.Stderr, "E: Invalid operation %s\n", what)
	return 100
}

func (db *DB) aptInstall(ctx context.Context, p *sh.Proc, o sh.Options, names []string, simulate bool) int {
	p.Printf("Reading package lists...\nBuilding dependency tree...\nReading state information...\n")
	var wanted, again []string
	var back []Package // packages installed in a version other than the default
	for _, spec := range names {
		if strings.HasSuffix(spec, "-") {
			continue
		}
		name, version, pinned := strings.Cut(spec, "=")
		name, _, _ = strings.Cut(name, ":")
		pkg, ok := db.Offered(name)
		by := db.Providers(name)
		archived, there := db.archived(name, version)
		_, old := db.outdated(name)
		switch {
		case there && !old && !o.Has("allow-downgrades"):
			fmt.Fprintf(p.Stderr, "E: Packages were downgraded and -y was used without --allow-downgrades.\n")
			return 100
		case there && !old:
			back = append(back, archived)
			db.mu.Lock()
			delete(db.auto, name) // the package is now explicitly requested
			db.mu.Unlock()
		case ok && pinned && version != pkg.Version:
			fmt.Fprintf(p.Stderr, "E: Version '%s' for '%s' was not found\n", version, name)
			return 100
		case ok && db.entered(name) && !old && !o.Has("reinstall"):
			p.Printf("%s is already the newest version (%s).\n", name, pkg.Version)
		case ok:
			wanted, again = append(wanted, name), append(again, name)
		case len(by) == 1:
			p.Printf("Note, selecting '%s' instead of '%s'\n", by[0], name)
			wanted = append(wanted, by[0])
		default:
			fmt.Fprintf(p.Stderr, "E: Unable to locate package %s\n", name)
			return 100
		}
	}
	for _, pkg := range db.known() {
		if db.state(pkg.Name) == halfInstalled {
			wanted = append(wanted, pkg.Name) // the package can still be installed from its archive
		}
	}
	plan := append(db.Plan(wanted, again...), back...)
	waiting := slices.ContainsFunc(db.known(), func(pkg Package) bool { return db.entered(pkg.Name) && !db.Installed(pkg.Name) })
	if len(plan) == 0 && !waiting {
		p.Printf("0 upgraded, 0 newly installed, 0 to remove and 0 not upgraded.\n")
		return 0
	}
	fresh, upgraded := db.upgrades(plan)
	for _, part := range []struct {
		heading string
		list    []Package
	}{{"The following NEW packages will be installed:", fresh}, {"The following packages will be upgraded:", upgraded}} {
		var list []string
		for _, pkg := range part.list {
			list = append(list, pkg.Name)
		}
		if len(list) > 0 {
			p.Printf("%s\n  %s\n", part.heading, strings.Join(slices.Sorted(slices.Values(list)), " "))
		}
	}
	p.Printf("%d upgraded, %d newly installed, 0 to remove and 0 not upgraded.\n", len(upgraded), len(fresh))
	if simulate {
		for _, verb := range []string{"Inst", "Conf"} {
			for _, pkg := range plan {
				if have, _ := db.Have(pkg.Name); verb == "Inst" && db.Installed(pkg.Name) {
					p.Printf("Inst %s [%s] (%s Ubuntu:stable [%s])\n", pkg.Name, have.Version, pkg.Version, pkg.Arch)
					continue
				}
				p.Printf("%s %s (%s Ubuntu:stable [%s])\n", verb, pkg.Name, pkg.Version, pkg.Arch)
			}
		}
		return 0
	}
	if !agreed(p, o, "Do you want to continue? [Y/n] ") {
		p.Printf("Abort.\n")
		return 1
	}
	for range plan {
		if !p.Spend(ctx, "apt fetch") {
			return 100
		}
	}
	archives, err := db.fetch(plan)
	if err != nil {
		fmt.Fprintf(p.Stderr, "E: Failed to fetch: %v\nE: Unable to fetch some archives, maybe run apt-get update or try with --fix-missing?\n",
			err)
		return 100
	}
	for _, args := range [][]string{append([]string{"--no-triggers", "--unpack", "--auto-deconfigure"}, archives...),
		{"--configure", "--pending"}} {
		if args[0] != "--configure" && len(archives) == 0 {
			continue // unpacked packages are configured in any case
		}
		status, err := p.Sys.Exec(ctx, p.With(append(append(dpkg(o), "--status-fd", "9"), args...)...))
		if err != nil || status != 0 {
			fmt.Fprintf(p.Stderr, "E: Sub-process /usr/bin/dpkg returned an error code (%d)\n", status)
			return 100
		}
	}
	return 0
}

// dpkg runs dpkg with the options that apt-get passes to it: -o Dpkg::Options::=OPTION (apt.conf(5), The DPkg group; names are
// case-insensitive).
func dpkg(o sh.Options) []string {
	list := []string{"/usr/bin/dpkg"}
	for _, set := range o.Values("o") {
		if name, value, _ := strings.Cut(set, "="); strings.EqualFold(name, "Dpkg::Options::") {
			list = append(list, value)
		}
	}
	return list
}

// agreed prompts for confirmation, unless -y is set. Without input the answer is no.
func agreed(p *sh.Proc, o sh.Options, question string) bool {
	if o.Has("y", "yes") {
		return true
	}
	p.Printf("%s", question)
	b := make([]byte, 1)
	n, err := p.Stdin.Read(b)
	return err == nil && n == 1 && (b[0] == 'y' || b[0] == 'Y' || b[0] == '\n')
}

func (db *DB) aptRemove(ctx context.Context, p *sh.Proc, o sh.Options, names []string, simulate, purge bool) int {
	p.Printf("Reading package lists...\nBuilding dependency tree...\nReading state information...\n")
	for _, name := range names {
		_, ok := db.Have(name)
		switch {
		case !ok && db.Providers(name) == nil:
			fmt.Fprintf(p.Stderr, "E: Unable to locate package %s\n", name)
			return 100
		case db.state(name) == "":
			p.Printf("Package '%s' is not installed, so not removed\n", name)
		}
	}
	list := db.Removal(names)
	if len(list) == 0 {
		p.Printf("0 upgraded, 0 newly installed, 0 to remove and 0 not upgraded.\n")
		return 0
	}
	mark := ""
	if purge {
		mark = "*"
	}
	var shown []string
	for _, pkg := range list {
		shown = append(shown, pkg.Name+mark)
	}
	p.Printf("The following packages will be REMOVED:\n  %s\n0 upgraded, 0 newly installed, %d to remove and 0 not upgraded.\n",
		strings.Join(shown, " "), len(list))
	if simulate {
		verb := "Remv"
		if purge {
			verb = "Purg"
		}
		for _, pkg := range list {
			p.Printf("%s %s [%s]\n", verb, pkg.Name, pkg.Version)
		}
		return 0
	}
	if !agreed(p, o, "Do you want to continue? [Y/n] ") {
		p.Printf("Abort.\n")
		return 1
	}
	verb := "--remove"
	if purge {
		verb = "--purge"
	}
	args := append(dpkg(o), "--status-fd", "9", "--force-depends", verb)
	for _, pkg := range list {
		args = append(args, pkg.Name)
	}
	if status, err := p.Sys.Exec(ctx, p.With(args...)); err != nil || status != 0 {
		fmt.Fprintf(p.Stderr, "E: Sub-process /usr/bin/dpkg returned an error code (%d)\n", status)
		return 100
	}
	return 0
}

func (db *DB) aptCache(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("q n")
	if err != nil || len(o.Args) == 0 || o.Args[0] != "madison" {
		fmt.Fprintf(p.Stderr, "E: Invalid operation\n")
		return 100
	}
	for _, name := range o.Args[1:] {
		if _, ok := db.Offered(name); !ok {
			fmt.Fprintf(p.Stderr, "N: Unable to locate package %s\n", name)
			continue
		}
		for _, version := range db.versions(name) {
			p.Printf("%10s | %10s | http://archive.ubuntu.com/ubuntu stable/main amd64 Packages\n", name, version)
		}
	}
	return 0
}

// versions returns the versions of a package in the repositories.
func (db *DB) versions(name string) []string {
	db.mu.Lock()
	defer db.mu.Unlock()
	all := []string{db.offered[name].Version}
	if old := db.archive[name]; old != "" {
		all = append(all, old)
	}
	return all
}
