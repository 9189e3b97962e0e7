package pkgs

import (
	"strings"
)

// DriverVersion is the version of NVIDIA's driver in the packages.
const DriverVersion = "570.133.20"

// OldDriverVersion is the version of the last branch that supports Kepler.
const OldDriverVersion = "470.256.02"

// OFEDVersion is the output of ofed_info -s.
const OFEDVersion = "MLNX_OFED_LINUX-24.10-1.1.4.0"

// The packages to whose installation or removal a guest reacts.
const (
	OFED         = "mlnx-ofed-all"
	LegacyModule = "nvidia-peer-memory-dkms"
)

// GuestDriver is the package with the vGPU guest driver. NVIDIA has no public repository for it: operators offer it in their own
// (NVIDIA, Virtual GPU Software User Guide, "Installing the NVIDIA vGPU Software Graphics Driver on Ubuntu from a Debian Package").
const GuestDriver = "nvidia-linux-grid-570"

// IsDriver reports whether a package contains the modules of NVIDIA's driver, their version, and whether they are the open
// ones.
func IsDriver(name string) (version string, open, is bool) {
	switch name {
	case GuestDriver, "nvidia-dkms-570-server-open", "kmod-nvidia-open-dkms":
		return DriverVersion, true, true
	case "nvidia-dkms-570-server", "kmod-nvidia-latest-dkms":
		return DriverVersion, false, true
	case "nvidia-dkms-470-server":
		return OldDriverVersion, false, true
	}
	return "", false, false
}

// nvidiaDebs returns NVIDIA's packages for Ubuntu and those of MLNX_OFED's repository. nvidia-headless does not contain
// nvidia-smi, which is in nvidia-utils.
func nvidiaDebs() []Package {
	version := func(v string) string { return v + "-0ubuntu0.22.04.1" }
	list := []Package{
		{Name: "dkms", Version: "2.8.7-2ubuntu2.2", Arch: "all", Bin: bin("/usr/sbin", "dkms"), KB: 200},
		{Name: "libnvidia-compute-570-server", Version: version(DriverVersion), KB: 320000},
		{Name: "nvidia-utils-570-server", Version: version(DriverVersion), Needs: []string{"libnvidia-compute-570-server"},
			Bin: bin("/usr/bin", "nvidia-smi"), KB: 1200},
		{Name: "nvidia-compute-utils-570-server", Version: version(DriverVersion), Bin: bin("/usr/bin", "nvidia-persistenced"), Files: daemon(),
			KB: 300},
		{Name: "nvidia-dkms-470-server", Version: version(OldDriverVersion), Needs: []string{"dkms"}, Files: blacklist(), KB: 40000},
		{Name: "nvidia-utils-470-server", Version: version(OldDriverVersion), Bin: bin("/usr/bin", "nvidia-smi"), KB: 1200},
		{Name: "nvidia-headless-470-server", Version: version(OldDriverVersion), Needs: []string{"nvidia-dkms-470-server"}, KB: 20},
		{Name: LegacyModule, Version: "1.3-0", Needs: []string{"dkms"}, Arch: "all", KB: 60},
		{Name: OFED, Version: "24.10-1.1.4.0", Needs: []string{"rdma-core", "ibverbs-utils", "infiniband-diags"}, Arch: "all",
			Bin: bin("/usr/bin", "ofed_info"), KB: 40},
	}
	list = append(list, doca("2.9.1-018000-24.10-ubuntu2204")...)
	list = append(list, guestDriver(DriverVersion))
	for _, open := range []string{"", "-open"} {
		list = append(list,
			Package{Name: "nvidia-dkms-570-server" + open, Version: version(DriverVersion), Needs: []string{"dkms"}, Files: blacklist(), KB: 60000},
			Package{Name: "nvidia-headless-570-server" + open, Version: version(DriverVersion), KB: 20,
				Needs: []string{"nvidia-dkms-570-server" + open, "libnvidia-compute-570-server", "nvidia-compute-utils-570-server"}},
			Package{Name: "nvidia-driver-570-server" + open, Version: version(DriverVersion),
				Needs: []string{"nvidia-headless-570-server" + open, "nvidia-utils-570-server"}, KB: 500})
	}
	return list
}

// nvidiaRPMs returns the packages of NVIDIA's and MLNX_OFED's repositories for RHEL.
func nvidiaRPMs(el string) []Package {
	driver := "3:" + DriverVersion + "-1" + el
	list := []Package{
		{Name: "dkms", Version: "3.0.12-1" + el, Arch: "noarch", Bin: bin("/usr/sbin", "dkms"), KB: 200},
		{Name: "nvidia-driver-cuda", Version: driver, Bin: bin("/usr/bin", "nvidia-smi"), KB: 2000},
		{Name: OFED, Version: "24.10-1.1.4.0", Needs: []string{"rdma-core", "libibverbs-utils", "infiniband-diags"}, Arch: "noarch",
			Bin: bin("/usr/bin", "ofed_info"), KB: 40},
	}
	list = append(list, doca("2.9.1-018000_24.10_rhel92")...)
	list = append(list, guestDriver(DriverVersion+"-1"))
	for _, kind := range []string{"open", "latest"} {
		list = append(list, Package{Name: "kmod-nvidia-" + kind + "-dkms", Version: driver, Needs: []string{"dkms"}, Files: blacklist(),
			KB: 60000})
	}
	return list
}

func guestDriver(version string) Package {
	return Package{Name: GuestDriver, Version: version, Needs: []string{"dkms"}, Bin: bin("/usr/bin", "nvidia-smi", "nvidia-gridd"),
		Files: blacklist(), KB: 400000}
}

// DOCA is the package that installs DOCA-OFED.
const DOCA = "doca-ofed"

// doca returns the package with DOCA's repository, which is installed from a file, and the packages of that repository.
func doca(version string) []Package {
	return []Package{{Name: "doca-host", Version: version, From: "file", KB: 900}, {Name: DOCA, Version: "2.9.1-0.1.7", From: "doca-host",
		Needs: []string{"dkms"}, KB: 20}}
}

// daemon returns the unit of nvidia-persistenced as Ubuntu packages it: without persistence mode, and static, so that it cannot
// be enabled (documented with the output of systemctl status and cat in several public notes on Ubuntu 20.04 to 24.04).
func daemon() map[string]string {
	return map[string]string{"/lib/systemd/system/nvidia-persistenced.service": `[Unit]
Description=NVIDIA Persistence Daemon
Wants=syslog.target
StopWhenUnneeded=true

[Service]
Type=forking
ExecStart=/usr/bin/nvidia-persistenced --user nvidia-persistenced --no-persistence-mode --verbose
ExecStopPost=/bin/rm -rf /var/run/nvidia-persistenced
`}
}

func blacklist() map[string]string {
	return map[string]string{"/etc/modprobe.d/nvidia-graphics-drivers-kms.conf": strings.Join([]string{"blacklist nouveau",
		"options nvidia_drm modeset=0", ""}, "\n")}
}

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
