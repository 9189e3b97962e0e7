package pkgs

// dated returns a package with its installed version. The caller must hold mu.
func (db *DB) dated(p Package) Package {
	if v, is := db.older[p.Name]; is {
		p.Version = v
	}
	return p
}

// Outdate installs a package in a version other than the repositories' default. The repositories contain both versions.
func (db *DB) Outdate(name, version string) error {
	if err := db.Install(db.Plan([]string{name})); err != nil {
		return err
	}
	db.date(name, version)
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.archive == nil {
		db.archive = map[string]string{}
	}
	db.archive[name] = version
	return nil
}

// date records the installed version of a package.
func (db *DB) date(name, version string) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if delete(db.older, name); version == db.offered[name].Version {
		return
	}
	if db.older == nil {
		db.older = map[string]string{}
	}
	db.older[name] = version
}

// outdated reports whether the installed version of a package is older than the available one, and returns it.
func (db *DB) outdated(name string) (version string, is bool) {
	db.mu.Lock()
	defer db.mu.Unlock()
	version, is = db.older[name]
	return version, is && db.installed[name]
}

// archived returns a package in the older version that the repositories also contain.
func (db *DB) archived(name, version string) (Package, bool) {
	db.mu.Lock()
	defer db.mu.Unlock()
	p := db.offered[name]
	p.Version = version
	return p, version != "" && db.archive[name] == version
}

// upgrades divides a plan into new packages and packages that are installed in an older version.
func (db *DB) upgrades(plan []Package) (fresh, upgraded []Package) {
	for _, p := range plan {
		if db.Installed(p.Name) {
			upgraded = append(upgraded, p)
		} else {
			fresh = append(fresh, p)
		}
	}
	return fresh, upgraded
}
