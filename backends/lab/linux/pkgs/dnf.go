package pkgs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
)

// RPMPrograms returns the programs of dnf and rpm.
func (db *DB) RPMPrograms() map[string]sh.Program {
	return map[string]sh.Program{"dnf": db.dnf, "dnf-3": db.dnf, "yum": db.dnf, "rpm": db.rpm}
}

func (db *DB) dnf(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("y q assumeno quiet setopt: showduplicates")
	if err != nil {
		return p.Fail(1, "error: %v", err)
	}
	if len(o.Args) == 0 {
		return p.Fail(1, "error: the following arguments are required: COMMAND")
	}
	what, names := o.Args[0], slices.Clone(o.Args[1:])
	if what != "downgrade" {
		for i := range names {
			names[i] = db.bare(names[i])
		}
	}
	if !p.Root() && slices.Contains([]string{"install", "remove", "downgrade"}, what) {
		fmt.Fprintf(p.Stderr, "Error: This command has to be run with superuser privileges (under the root user on most systems).\n")
		return 1
	}
	if slices.Contains([]string{"install", "remove", "downgrade"}, what) {
		release := db.transaction(ctx, p)
		if release == nil {
			return 1
		}
		defer release()
		if !p.Spend(ctx, "dnf lists") {
			return 1
		}
	}
	switch what {
	case "install":
		return db.dnfInstall(ctx, p, o, names)
	case "downgrade":
		return db.dnfDowngrade(ctx, p, o, names)
	case "remove":
		list := db.Removal(names)
		for _, name := range names {
			if !db.Installed(name) {
				fmt.Fprintf(p.Stderr, "No match for argument: %s\n", name)
			}
		}
		if len(list) == 0 {
			p.Printf("No packages marked for removal.\nDependencies resolved.\nNothing to do.\nComplete!\n")
			return 0
		}
		if !db.confirm(p, o, "Removing", list, nil) {
			return 1
		}
		for _, pkg := range list {
			if !p.Spend(ctx, "rpm remove") {
				return 1
			}
			db.Remove([]Package{pkg}, true)
		}
		p.Printf("\nRemoved:\n%s\nComplete!\n", listing(list))
		return 0
	case "list":
		return db.dnfList(p, o, names)
	case "clean":
		return 0
	}
	fmt.Fprintf(p.Stderr, "No such command: %s. Please use /usr/bin/dnf --help\n", what)
	return 1
}

// nevra returns the full name of a package: NAME-VERSION-RELEASE.ARCH.
func nevra(pkg Package) string {
	return pkg.Name + "-" + pkg.Version[strings.Index(pkg.Version, ":")+1:] + "." + pkg.Arch
}

// names reports whether NAME-VERSION-RELEASE, with or without .ARCH, is the full name of a package.
func names(spec string, p Package) bool {
	return spec == nevra(p) || spec+"."+p.Arch == nevra(p)
}

func listing(list []Package) string {
	var b strings.Builder
	for _, pkg := range list {
		b.WriteString("  " + nevra(pkg) + "\n")
	}
	return b.String()
}

func (db *DB) confirm(p *sh.Proc, o sh.Options, verb string, list, upgraded []Package) bool {
	p.Printf(
		"Dependencies resolved.\n================================================================================\n Package  Architecture  " +
			"Version  Repository  Size\n" +
			"================================================================================\n")
	for _, part := range []struct {
		heading string
		list    []Package
	}{{verb, list}, {"Upgrading", upgraded}} {
		if len(part.list) > 0 {
			p.Printf("%s:\n", part.heading)
		}
		for _, pkg := range part.list {
			p.Printf(" %s  %s  %s  baseos  %d k\n", pkg.Name, pkg.Arch, pkg.Version, pkg.KB)
		}
	}
	if !agreed(p, o, "Is this ok [y/N]: ") {
		p.Printf("Operation aborted.\n")
		return false
	}
	return true
}

func (db *DB) dnfInstall(ctx context.Context, p *sh.Proc, o sh.Options, names []string) int {
	var wanted, missing []string
	for _, name := range names {
		_, ok := db.Offered(name)
		_, old := db.outdated(name)
		switch {
		case ok && db.Installed(name) && !old:
			pkg, _ := db.Offered(name)
			p.Printf("Package %s is already installed.\n", nevra(pkg))
		case ok, db.Providers(name) != nil:
			wanted = append(wanted, name)
		default:
			fmt.Fprintf(p.Stderr, "No match for argument: %s\n", name)
			missing = append(missing, name)
		}
	}
	if missing != nil {
		fmt.Fprintf(p.Stderr, "Error: Unable to find a match: %s\n", strings.Join(missing, " "))
		return 1
	}
	plan := db.Plan(wanted)
	if len(plan) == 0 {
		p.Printf("Dependencies resolved.\nNothing to do.\nComplete!\n")
		return 0
	}
	fresh, upgraded := db.upgrades(plan)
	if !db.confirm(p, o, "Installing", fresh, upgraded) {
		return 1
	}
	return db.rpmInstall(ctx, p, plan)
}

// dnfDowngrade implements dnf downgrade NAME-VERSION-RELEASE...
func (db *DB) dnfDowngrade(ctx context.Context, p *sh.Proc, o sh.Options, specs []string) int {
	var plan []Package
	for _, spec := range specs {
		i := slices.IndexFunc(db.order, func(n string) bool {
			rest, is := strings.CutPrefix(spec, n+"-")
			_, there := db.archived(n, rest)
			return is && there && db.Installed(n)
		})
		if i < 0 {
			fmt.Fprintf(p.Stderr, "No match for argument: %s\nError: No packages marked for downgrade.\n", spec)
			return 1
		}
		pkg, _ := db.archived(db.order[i], strings.TrimPrefix(spec, db.order[i]+"-"))
		plan = append(plan, pkg)
	}
	if !db.confirm(p, o, "Downgrading", plan, nil) {
		return 1
	}
	return db.rpmInstall(ctx, p, plan)
}

func (db *DB) rpmInstall(ctx context.Context, p *sh.Proc, plan []Package) int {
	for range plan {
		if !p.Spend(ctx, "dnf fetch") {
			return 1
		}
	}
	// rpm first writes a package's files with a temporary suffix (NAME;ID), then renames them, and finally adds the package to
	// the database (rpm's fsm.c and psm.c).
	for _, pkg := range plan {
		ending := fmt.Sprintf(";%08x", p.PID)
		err := db.spread(pkg, ending)
		if err == nil && !p.Spend(ctx, "rpm install") {
			return 1
		}
		db.sweep(pkg, ending)
		if err == nil {
			err = db.Install([]Package{pkg})
		}
		if err != nil {
			fmt.Fprintf(p.Stderr, "Error: Transaction failed: %v\n", err)
			return 1
		}
	}
	p.Printf("\nInstalled:\n%s\nComplete!\n", listing(plan))
	return 0
}

func (db *DB) dnfList(p *sh.Proc, o sh.Options, names []string) int {
	found := false
	for _, name := range names {
		pkg, ok := db.Offered(name)
		for _, n := range db.order {
			version, is := strings.CutPrefix(name, n+"-")
			if archived, there := db.archived(n, version); is && there && o.Has("showduplicates") {
				pkg, ok = archived, true
			}
		}
		if !ok {
			continue
		}
		found = true
		repo := "baseos"
		if db.Installed(name) {
			repo = "@anaconda"
		}
		p.Printf("%s.%s  %s  %s\n", pkg.Name, pkg.Arch, pkg.Version, repo)
	}
	if !found {
		fmt.Fprintf(p.Stderr, "Error: No matching Packages to list\n")
		return 1
	}
	return 0
}

func (db *DB) rpm(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("q a i qf: queryformat: query quiet")
	if err != nil {
		fmt.Fprintf(p.Stderr, "rpm: %v\n", err)
		return 1
	}
	if o.Has("i") && !o.Has("q", "query") {
		if !p.Root() {
			fmt.Fprintf(p.Stderr, "error: can't create transaction lock on /var/lib/rpm/.rpm.lock (Permission denied)\n")
			return 1
		}
		if bad := db.fromFile(p, o.Args); bad != "" {
			fmt.Fprintf(p.Stderr, "error: open of %s failed: No such file or directory\n", bad)
			return 1
		}
		return 0
	}
	if !o.Has("q", "query") {
		fmt.Fprintf(p.Stderr, "rpm: no arguments given\n")
		return 1
	}
	show := func(pkg Package) {
		version, release, _ := strings.Cut(pkg.Version[strings.Index(pkg.Version, ":")+1:], "-")
		if f := o.Value("qf", "queryformat"); f != "" {
			p.Printf("%s", strings.NewReplacer("%{NAME}", pkg.Name, "%{VERSION}", version, "%{RELEASE}", release, "%{ARCH}", pkg.Arch,
				"%{name}", pkg.Name, "%{version}", version, "%{release}", release, "%{arch}", pkg.Arch, `\n`, "\n", `\t`, "\t").Replace(f))
			return
		}
		p.Printf("%s\n", nevra(pkg))
	}
	if o.Has("a") {
		for _, pkg := range db.List() {
			show(pkg)
		}
		return 0
	}
	status := 0
	for _, name := range o.Args {
		asked := name
		name = db.bare(name)
		pkg, _ := db.Have(name)
		if !db.Installed(name) || asked != name && !names(asked, pkg) {
			p.Printf("package %s is not installed\n", asked)
			status++
			continue
		}
		show(pkg)
	}
	return status
}
