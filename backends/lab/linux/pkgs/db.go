// Package pkgs implements package management in the lab's guests: installed packages, available packages, and the package
// managers (apt and dpkg, or dnf and rpm).
package pkgs

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// A Package is one package of the distribution.
type Package struct {
	Name     string
	Version  string
	Arch     string // amd64, x86_64, all, noarch
	Needs    []string
	Provides []string
	Base     bool              // part of a new installation
	Bin      map[string]string // path -> program
	Files    map[string]string // path -> content
	From     string            // package with its repository; "": the distribution's; "file": only available as a file
	Script   string            // script that dpkg runs on configuration, "" for none
	KB       int               // installed size
}

// DB is the package database of one guest. It is safe for concurrent use.
type DB struct {
	FS  *vfs.FS
	Sys *sh.System

	Changed func(p Package, installed bool) // called after a package was installed or removed; may be nil

	*Offer

	mu        sync.Mutex
	installed map[string]bool
	foreign   map[string]Package // packages of another source that replace the distribution's
	older     map[string]string  // installed version of packages that are not in the distribution's default version
	archive   map[string]string  // older version that the distribution's repositories also offer
	half      map[string]string  // state of packages that dpkg has not completed
	auto      map[string]bool    // automatically installed packages (apt-mark auto)
	held      map[string]bool    // apt-mark hold; removed with the package, because dpkg then changes its selection
	noted     int                // number of entries in dpkg's journal
	busy      lock
	made      map[string]bool // directories created by packages; removed with the last package if they are empty
	updated   bool            // the package lists were downloaded
}

// An Offer is the packages that are available, the same for all guests of a distribution. It does not change.
type Offer struct {
	offered map[string]Package
	order   []string
}

// NewOffer returns an offer of packages.
func NewOffer(packages []Package) *Offer {
	o := &Offer{offered: map[string]Package{}}
	for _, p := range packages {
		o.offered[p.Name] = p
		o.order = append(o.order, p.Name)
	}
	return o
}

// New returns a database with the available packages. None of them is installed.
func New(fs *vfs.FS, sys *sh.System, o *Offer) *DB {
	return &DB{FS: fs, Sys: sys, Offer: o, installed: map[string]bool{}, foreign: map[string]Package{}, half: map[string]string{},
		auto: map[string]bool{}, held: map[string]bool{}, made: map[string]bool{}}
}

// Installed reports whether a package is installed.
func (db *DB) Installed(name string) bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.installed[name]
}

// List returns the installed packages, sorted by name.
func (db *DB) List() []Package {
	db.mu.Lock()
	defer db.mu.Unlock()
	list := make([]Package, 0, len(db.installed)+4) // for those that are not complete
	for _, name := range slices.Sorted(maps.Keys(db.installed)) {
		if p, ok := db.foreign[name]; ok {
			list = append(list, p)
			continue
		}
		list = append(list, db.dated(db.offered[name]))
	}
	return list
}

// Foreign reports whether a package was installed by InstallForeign.
func (db *DB) Foreign(name string) bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	_, is := db.foreign[name]
	return is
}

// Have returns a package that is installed or available.
func (db *DB) Have(name string) (Package, bool) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if p, is := db.foreign[name]; is {
		return p, true
	}
	p, ok := db.offered[name]
	return db.dated(p), ok
}

// bare returns the name in a package specification, which can be NAME-VERSION-RELEASE.ARCH.
func (db *DB) bare(name string) string {
	if _, ok := db.offered[name]; ok {
		return name
	}
	for _, n := range db.order {
		if strings.HasPrefix(name, n+"-") && names(name, db.offered[n]) {
			return n
		}
	}
	return name
}

// Offered returns an available package by name.
func (db *DB) Offered(name string) (Package, bool) {
	p, ok := db.offered[name]
	if p.From != "" && !db.Installed(p.From) && !db.Installed(name) {
		return Package{}, false
	}
	return p, ok
}

// fromFile installs packages from files, whose names begin with the package name. It returns the first invalid file, or "" on
// success.
func (db *DB) fromFile(p *sh.Proc, files []string) string {
	for _, file := range files {
		at := strings.LastIndexByte(file, '/') + 1
		i := slices.IndexFunc(db.order, func(n string) bool {
			rest, is := strings.CutPrefix(file[at:], n)
			return is && db.offered[n].From == "file" && rest != "" && strings.ContainsAny(rest[:1], "_-")
		})
		if _, err := db.FS.Stat(p.User.Cred(), p.Path(file)); err != nil || i < 0 {
			return file
		}
		if err := db.Install([]Package{db.offered[db.order[i]]}); err != nil {
			return file
		}
	}
	return ""
}

// Providers returns the packages that provide a virtual package.
func (db *DB) Providers(name string) []string {
	var list []string
	for _, n := range db.order {
		if slices.Contains(db.offered[n].Provides, name) {
			list = append(list, n)
		}
	}
	return list
}

// Plan returns the packages to install for names, dependencies first. It omits packages that are already installed, unless they
// are in again.
func (db *DB) Plan(names []string, again ...string) []Package {
	var plan []Package
	seen := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		p, ok := db.Offered(name)
		if !ok {
			if by := db.Providers(name); len(by) > 0 {
				add(by[0])
			}
			return
		}
		// All packages of a source have one version here: installing a package upgrades an outdated dependency.
		if _, old := db.outdated(name); seen[name] || db.entered(name) && !old && !slices.Contains(again, name) {
			return
		}
		seen[name] = true
		for _, need := range p.Needs {
			add(need)
		}
		plan = append(plan, p)
	}
	for _, name := range names {
		add(name)
	}
	return plan
}

// Removal returns the installed packages to remove for names: these packages and those that depend on them.
func (db *DB) Removal(names []string) []Package {
	gone := map[string]bool{}
	all := db.known()
	for _, n := range names {
		if db.state(n) != "" {
			gone[n] = true
		}
	}
	for again := true; again; {
		again = false
		for _, p := range all {
			for _, need := range p.Needs {
				if gone[need] && !gone[p.Name] {
					gone[p.Name], again = true, true
				}
			}
		}
	}
	var list []Package
	for _, p := range all {
		if gone[p.Name] {
			list = append(list, p)
		}
	}
	return list
}

// Install creates the files of packages.
func (db *DB) Install(list []Package) error {
	for _, p := range list {
		if err := db.unpack(p); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		db.mu.Lock()
		db.installed[p.Name] = true
		db.mu.Unlock()
		db.date(p.Name, p.Version)
		if db.Changed != nil {
			db.Changed(p, true)
		}
	}
	return nil
}

// InstallForeign installs packages of another source, which replace the distribution's until they are removed.
func (db *DB) InstallForeign(list []Package) error {
	db.mu.Lock()
	if db.foreign == nil {
		db.foreign = map[string]Package{}
	}
	for _, p := range list {
		db.foreign[p.Name] = p
	}
	db.mu.Unlock()
	return db.Install(list)
}

func (db *DB) unpack(p Package) error {
	for path, program := range p.Bin {
		db.dirs(path)
		if err := db.Sys.Install(program, path); err != nil {
			return err
		}
	}
	for path, text := range p.Files {
		if err := db.file(path, text, 0o644); err != nil {
			return err
		}
	}
	if p.Script != "" {
		return db.file(script(p), p.Script, 0o755)
	}
	return nil
}

// dirs records which parent directories are created for a file.
func (db *DB) dirs(file string) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for dir := path.Dir(file); dir != "/"; dir = path.Dir(dir) {
		if _, err := db.FS.Stat(vfs.Root(), dir); err == nil {
			return
		}
		db.made[dir] = true
	}
}

// tidy removes the empty parent directories of a package's file: dpkg(1) and rpm(8) remove the directories of a package when
// they are empty.
func (db *DB) tidy(file string) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for dir := path.Dir(file); db.made[dir]; dir = path.Dir(dir) {
		if err := db.FS.Remove(vfs.Root(), dir); err != nil {
			return
		}
		delete(db.made, dir)
	}
}

func (db *DB) file(path, text string, mode fs.FileMode) error {
	db.dirs(path)
	if err := db.FS.MkdirAll(vfs.Root(), path[:strings.LastIndex(path, "/")+1], 0o755); err != nil {
		return err
	}
	return db.FS.WriteFile(vfs.Root(), path, []byte(text), mode)
}

// Remove removes the files of packages. Configuration below /etc is kept unless purge is true.
func (db *DB) Remove(list []Package, purge bool) {
	for _, p := range list {
		for path := range p.Bin {
			_ = db.FS.RemoveAll(vfs.Root(), path) // already removed
			db.tidy(path)
		}
		for path := range p.Files {
			if purge || !strings.HasPrefix(path, "/etc/") {
				_ = db.FS.RemoveAll(vfs.Root(), path)
				db.tidy(path)
			}
		}
		db.mu.Lock()
		delete(db.installed, p.Name)
		delete(db.half, p.Name)
		delete(db.foreign, p.Name)
		delete(db.older, p.Name)
		delete(db.auto, p.Name)
		delete(db.held, p.Name)
		db.mu.Unlock()
		if db.Changed != nil {
			db.Changed(p, false)
		}
	}
}

// InstallBase installs the packages of a new installation.
func (db *DB) InstallBase() error {
	var list []Package
	for _, name := range db.order {
		if p := db.offered[name]; p.Base {
			list = append(list, p)
		}
	}
	return db.Install(list)
}
