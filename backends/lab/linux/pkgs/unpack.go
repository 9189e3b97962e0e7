package pkgs

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// journalDir contains dpkg's changes of its status file, in files with numbers as names, until a run of dpkg has ended. Files
// that remain after a killed run prevent apt-get from working (debSystem::CheckUpdates of apt).
const journalDir = "/var/lib/dpkg/updates"

// States of a package that is not completely installed, in the abbreviations of dpkg-query. The results of SIGKILL at each of
// these points were observed with dpkg 1.21 of Debian 12 and a package of 400 MB.
const (
	halfInstalled  = "iHR" // killed while unpacking: files with .dpkg-new; requires reinstallation
	tornUnpacked   = "iUR" // files are in place, but the database entry is incomplete; requires reinstallation
	unpacked       = "iU"
	halfConfigured = "iF"
	halfRemoved    = "pH" // killed while removing files
)

// mustReinstall reports whether dpkg requires reinstallation of a package in this state.
func mustReinstall(state string) bool { return strings.HasSuffix(state, "R") }

// entered reports whether a package's files are in place. apt-get then configures it, and unpacks it again only with
// --reinstall.
func (db *DB) entered(name string) bool {
	return slices.Contains([]string{"ii", unpacked, tornUnpacked, halfConfigured}, db.state(name))
}

// interrupted reports whether a run of dpkg was interrupted.
func (db *DB) interrupted() bool {
	list, err := db.FS.ReadDir(vfs.Root(), journalDir)
	return err == nil && slices.ContainsFunc(list, func(i vfs.Info) bool { return strings.Trim(i.Name(), "0123456789") == "" })
}

// note sets the state of a package ("": installed) and adds it to the journal.
func (db *DB) note(name, state string) error {
	db.mu.Lock()
	if state == "" {
		delete(db.half, name)
		db.installed[name] = true
	} else {
		db.half[name] = state
		delete(db.installed, name)
	}
	n := db.noted
	db.noted++
	db.mu.Unlock()
	if state == "" && db.Changed != nil {
		db.Changed(db.offered[name], true)
	}
	if err := db.FS.MkdirAll(vfs.Root(), journalDir, 0o755); err != nil {
		return err
	}
	return db.FS.WriteFile(vfs.Root(), fmt.Sprintf("%s/%04d", journalDir, n), []byte("Package: "+name+"\n"), 0o644)
}

// checkpoint ends a run of dpkg: it merges the journal into the status file.
func (db *DB) checkpoint() {
	db.mu.Lock()
	db.noted = 0
	db.mu.Unlock()
	_ = db.FS.RemoveAll(vfs.Root(), journalDir) // created again by the next run
}

// state returns dpkg-query's abbreviation for the state of a package, or "" if the package is unknown.
func (db *DB) state(name string) string {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.installed[name] {
		return "ii"
	}
	return db.half[name]
}

// known returns the packages in dpkg's database, sorted by name.
func (db *DB) known() []Package {
	list := db.List()
	for _, name := range db.order {
		if s := db.state(name); s != "" && s != "ii" {
			pkg, _ := db.Have(name)
			list = append(list, pkg)
		}
	}
	slices.SortFunc(list, func(a, b Package) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// fetch downloads the archives of packages to apt-get's cache and returns their names.
func (db *DB) fetch(list []Package) (archives []string, err error) {
	const dir = "/var/cache/apt/archives"
	if err := db.FS.MkdirAll(vfs.Root(), dir, 0o755); err != nil {
		return nil, err
	}
	for _, p := range list {
		file := fmt.Sprintf("%s/%s_%s_%s.deb", dir, p.Name, strings.ReplaceAll(p.Version, ":", "%3a"), p.Arch)
		if err := db.FS.WriteFile(vfs.Root(), file, []byte("!<arch>\n"), 0o644); err != nil {
			return nil, err
		}
		archives = append(archives, file)
	}
	return archives, nil
}

// dpkgUnpack implements dpkg --unpack ARCHIVE...
func (db *DB) dpkgUnpack(ctx context.Context, p *sh.Proc, archives []string) int {
	for _, file := range archives {
		if ctx.Err() != nil {
			return 2
		}
		name, rest, _ := strings.Cut(path.Base(file), "_")
		pkg, ok := db.Offered(name)
		version, _, _ := strings.Cut(rest, "_")
		if older, is := db.archived(name, strings.ReplaceAll(version, "%3a", ":")); is {
			pkg = older
		}
		if _, err := db.FS.Stat(vfs.Root(), file); err != nil || !ok {
			fmt.Fprintf(p.Stderr, "dpkg: error: cannot access archive '%s': No such file or directory\n", file)
			return 2
		}
		if db.state(name) == "" {
			p.Printf("Selecting previously unselected package %s.\n", name)
		}
		p.Printf("Preparing to unpack %s ...\nUnpacking %s (%s) ...\n", file, name, pkg.Version)
		err := db.note(name, halfInstalled)
		if err == nil {
			err = db.spread(pkg, ".dpkg-new")
		}
		if err == nil && !p.Spend(ctx, "dpkg unpack") {
			return 2
		}
		if err == nil {
			err = db.unpack(pkg)
		}
		if err == nil {
			db.sweep(pkg, ".dpkg-new")
			db.date(name, pkg.Version)
			err = db.note(name, tornUnpacked)
		}
		if err == nil && !p.Spend(ctx, "dpkg record") {
			return 2
		}
		if err == nil {
			err = db.note(name, unpacked)
		}
		if err != nil {
			fmt.Fprintf(p.Stderr, "dpkg: error processing archive %s (--unpack):\n %v\nErrors were encountered while processing:\n %s\n", file, err,
				file)
			db.checkpoint()
			return 1
		}
	}
	db.checkpoint()
	return 0
}

// dpkgConfigure implements dpkg --configure for the named packages or, without names, for all unpacked packages. It runs the
// packages' scripts. If dpkg is killed meanwhile, its journal remains.
func (db *DB) dpkgConfigure(ctx context.Context, p *sh.Proc, names []string) int {
	var bad []string
	for _, pkg := range db.known() {
		state := db.state(pkg.Name)
		named := slices.Contains(names, pkg.Name)
		if state == "ii" || len(names) > 0 && !named {
			continue
		}
		if state == tornUnpacked {
			fmt.Fprintf(p.Stderr, "dpkg: error processing package %s (--configure):\n package is in a very bad inconsistent state; you should\n"+
				" reinstall it before attempting configuration\n", pkg.Name)
			bad = append(bad, pkg.Name)
			continue
		}
		if state != unpacked && state != halfConfigured {
			if named {
				fmt.Fprintf(p.Stderr,
					"dpkg: error processing package %s (--configure):\n package %[1]s is not ready for configuration\n cannot configure (current status "+
						"'half-installed')\n", pkg.Name)
				bad = append(bad, pkg.Name)
			}
			continue
		}
		p.Printf("Setting up %s (%s) ...\n", pkg.Name, pkg.Version)
		err := db.note(pkg.Name, halfConfigured)
		if err == nil && !p.Spend(ctx, "dpkg configure") {
			return 2
		}
		if err == nil && pkg.Script != "" {
			var status int
			status, err = p.Sys.Exec(ctx, p.With(script(pkg), "configure", ""))
			if ctx.Err() != nil {
				return 2
			}
			if err == nil && status != 0 {
				err = fmt.Errorf("installed %s package post-installation script subprocess returned error exit status %d", pkg.Name, status)
			}
		}
		if err == nil {
			err = db.note(pkg.Name, "")
		}
		if err != nil {
			fmt.Fprintf(p.Stderr, "dpkg: error processing package %s (--configure):\n %v\n", pkg.Name, err)
			bad = append(bad, pkg.Name)
		}
	}
	db.checkpoint()
	if bad != nil {
		fmt.Fprintf(p.Stderr, "Errors were encountered while processing:\n %s\n", strings.Join(bad, "\n "))
		return 1
	}
	return 0
}

// dpkgAudit implements dpkg --audit, which lists packages that are not completely installed.
func (db *DB) dpkgAudit(p *sh.Proc) int {
	for _, part := range []struct{ state, text string }{
		{"R", "The following packages are in a mess due to serious problems during\n" +
			"installation.  They must be reinstalled for them (and any packages\nthat depend on them) to function properly:\n"},
		{unpacked,
			"The following packages have been unpacked but not yet configured.\nThey must be configured using dpkg --configure or the configure\n" +
				"menu option in dselect for them to work:\n"},
		{halfConfigured,
			"The following packages are only half configured, probably due to problems\nconfiguring them the first time.  The configuration " +
				"should be retried using\n" +
				"dpkg --configure <package> or the configure menu option in dselect:\n"},
	} {
		text := part.text
		for _, pkg := range db.known() {
			if state := db.state(pkg.Name); state == part.state || part.state == "R" && mustReinstall(state) {
				p.Printf("%s %-20s package of the distribution\n", text, pkg.Name)
				text = ""
			}
		}
		if text == "" {
			p.Printf("\n")
		}
	}
	return 0
}

// spread writes the files of a package with a suffix, as package managers do before they rename the files.
func (db *DB) spread(p Package, ending string) error {
	for file := range p.Bin {
		if err := db.file(file+ending, "", 0o600); err != nil {
			return err
		}
	}
	for file := range p.Files {
		if err := db.file(file+ending, "", 0o600); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes the files written by spread.
func (db *DB) sweep(p Package, ending string) {
	for _, files := range []map[string]string{p.Bin, p.Files} {
		for file := range files {
			_ = db.FS.RemoveAll(vfs.Root(), file+ending) // already removed
		}
	}
}

// dpkgRemove implements dpkg --remove and --purge. A package that requires reinstallation is removed only with force.
func (db *DB) dpkgRemove(ctx context.Context, p *sh.Proc, names []string, purge, force bool) int {
	var bad []string
	for _, name := range names {
		pkg, _ := db.Have(name)
		switch db.state(name) {
		case "":
			fmt.Fprintf(p.Stderr, "dpkg: warning: ignoring request to remove %s which isn't installed\n", name)
			continue
		case halfInstalled, tornUnpacked:
			fmt.Fprintf(p.Stderr,
				"dpkg: error processing package %s (--remove):\n package is in a very bad inconsistent state; you should\n reinstall it before "+
					"attempting a removal\n", name)
			if !force {
				bad = append(bad, name)
				continue
			}
		}
		p.Printf("Removing %s (%s) ...\n", name, pkg.Version)
		_ = db.note(name, halfRemoved) // a full disk does not prevent removal
		if !p.Spend(ctx, "dpkg remove") {
			return 2
		}
		db.Remove([]Package{pkg}, purge)
	}
	db.checkpoint()
	if bad != nil {
		fmt.Fprintf(p.Stderr, "Errors were encountered while processing:\n %s\n", strings.Join(bad, "\n "))
		return 1
	}
	return 0
}

// script returns the path of a package's post-installation script.
func script(p Package) string { return "/var/lib/dpkg/info/" + p.Name + ".postinst" }
