package mofed

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/linux/pkgs"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// Exit codes of mlnxofedinstall.
const (
	noFirmware   = 2
	badParameter = 22
	notReady     = 172
	inTheWay     = 174
)

// install implements mlnxofedinstall.
func (s *Software) install(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("q force add-kernel-support without-fw-update skip-repo without-dkms skip-distro-check")
	if err != nil {
		p.Printf("Unsupported installation option: %s\n", err)
		return badParameter
	}
	if !p.Root() {
		p.Printf("You must be root to run mlnxofedinstall\n")
		return 1
	}
	dir := path.Dir(p.Path(p.Args[0]))
	system, arch, name := s.line(dir, "distro"), s.line(dir, ".arch"), s.line(dir, ".mlnx")
	switch {
	case arch != "x86_64":
		p.Printf("Error: The current MLNX_OFED_LINUX is intended for a %s architecture\n", arch)
		return notReady
	case !s.accepts(system) && !o.Has("skip-distro-check"):
		p.Printf("Error: The current MLNX_OFED_LINUX is intended for %s\n", system)
		return notReady
	}
	release := strings.Join(strings.Split(name, "-")[:3], "-") // MLNX_OFED_LINUX-24.10-1.1.4.0
	if o.Has("add-kernel-support") {
		p.Printf(
			"Note: This program will create MLNX_OFED_LINUX TGZ for %s under /tmp/%s-%s directory.\n\nChecking if all needed packages are "+
				"installed...\n", system, release, s.Kernel.Release)
	}
	p.Printf("Logs dir: /tmp/MLNX_OFED_LINUX.4711.logs\nGeneral log file: /tmp/MLNX_OFED_LINUX.4711.logs/general.log\n\n" +
		"This program will install the MLNX_OFED_LINUX package on your machine.\nNote that all other Mellanox, OEM, OFED, RDMA or Distribution " +
		"IB packages will be removed.\n" +
		"Those packages are removed due to conflicts with MLNX_OFED_LINUX, do not reinstall them.\n\n")
	if !o.Has("force") && !agreed(p) {
		return 1
	}
	if status := s.requirements(ctx, p); status != 0 {
		return status
	}
	p.Printf("Removing old packages...\n")
	old := slices.DeleteFunc(s.DB.List(), func(pkg pkgs.Package) bool { return !replaces(pkg.Name) })
	var names, others []string
	for _, pkg := range old {
		names = append(names, pkg.Name)
	}
	gone := s.DB.Removal(names)
	for _, pkg := range gone {
		if !slices.Contains(names, pkg.Name) {
			others = append(others, pkg.Name)
		}
	}
	if others != nil && !o.Has("force") {
		p.Printf(
			"\nError: One or more packages depends on MLNX_OFED_LINUX.\nThose packages should be removed before uninstalling "+
				"MLNX_OFED_LINUX:\n\n%s\n\n"+
				"To force uninstallation use '--force' flag.\n", strings.Join(others, " "))
		return inTheWay
	}
	for _, pkg := range gone {
		if !p.Spend(ctx, "dpkg remove") {
			return 1
		}
		s.DB.Remove([]pkgs.Package{pkg}, true)
	}
	p.Printf("Installing new packages\n")
	if err := s.bring(ctx, p, release); err != nil {
		p.Printf(
			"Error: mlnx-ofed-kernel-dkms installation failed!\nCollecting debug "+
				"info...\n\nSee:\n\t/tmp/MLNX_OFED_LINUX.4711.logs/mlnx-ofed-kernel-dkms.debinstall.log\n%v\n", err)
		return 1
	}
	if !o.Has("without-fw-update") {
		p.Printf("Attempting to perform Firmware update...\nFailed to update Firmware.\nSee /tmp/MLNX_OFED_LINUX.4711.logs/fw_update.log\n")
		return noFirmware
	}
	p.Printf("Skipping FW update.\nInstallation passed successfully\nTo load the new driver, run:\n/etc/init.d/openibd restart\n")
	return 0
}

// accepts reports whether an archive for system is suitable for this guest. If os-release does not contain a minor release, any
// minor release is accepted.
func (s *Software) accepts(system string) bool {
	return system == s.System || !strings.Contains(s.System, ".") && strings.HasPrefix(system, s.System+".")
}

func agreed(p *sh.Proc) bool {
	p.Printf("Do you want to continue?[y/N]:")
	b := make([]byte, 1)
	n, err := p.Stdin.Read(b)
	p.Printf("\n")
	return err == nil && n == 1 && (b[0] == 'y' || b[0] == 'Y')
}

// requirements checks for the packages required to build modules. On Debian and Ubuntu the installer installs them itself.
func (s *Software) requirements(ctx context.Context, p *sh.Proc) int {
	wanted := []string{"tcsh", "tcl", "tk", "gcc", "gcc-gfortran", "make", "rpm-build", "createrepo_c", "kernel-modules-extra",
		"kernel-devel-" + s.Kernel.Release}
	if s.Deb {
		wanted = []string{"autoconf", "automake", "autotools-dev", "chrpath", "debhelper", "dkms", "gcc", "gfortran", "libltdl-dev",
			"linux-headers-" +
				s.Kernel.Release, "m4", "make", "quilt", "swig", "tcl", "tk"}
	}
	missing := slices.DeleteFunc(wanted, s.DB.Installed)
	p.Printf("Checking SW Requirements...\n")
	if len(missing) == 0 {
		return 0
	}
	if !s.Deb {
		p.Printf("Error: One or more required packages for installing MLNX_OFED_LINUX are missing.\n"+
			"Please install the missing packages using your Linux distribution Package Management tool.\nRun:\nyum install %s\n",
			strings.Join(missing, " "))
		return notReady
	}
	p.Printf(
		"One or more required packages for installing MLNX_OFED_LINUX are missing.\nAttempting to install the following missing packages:\n%s\n",
		strings.Join(missing, " "))
	status, err := p.Sys.Exec(ctx, p.With(append([]string{"/usr/bin/apt-get", "install", "-y"}, missing...)...))
	if err != nil || status != 0 {
		p.Printf("Error: apt-get install -y %s failed\n", strings.Join(missing, " "))
		return 1
	}
	return 0
}

// replaces reports whether the installer removes a package of the distribution or of an earlier MLNX_OFED.
func replaces(name string) bool {
	for _, p := range []string{"rdma-core", "libibverbs", "ibverbs-", "librdmacm", "rdmacm-", "libibumad", "libibmad", "libibnetdisc",
		"infiniband-diags", "perftest", "ibutils",
		"ofed-scripts", "mlnx-", "kmod-mlnx-"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// bring installs the packages of the archive and does the rest of the installer's work.
func (s *Software) bring(ctx context.Context, p *sh.Proc, release string) error {
	parts := strings.Split(release, "-")
	for _, pkg := range s.contents(release, parts[1], parts[2]) {
		p.Printf("Installing %s-%s...\n", pkg.Name, pkg.Version)
		if !p.Spend(ctx, "mlnxofed part") {
			return context.Canceled
		}
		if err := s.DB.InstallForeign([]pkgs.Package{pkg}); err != nil {
			return err
		}
	}
	if err := s.FS.Chmod(vfs.Root(), "/usr/bin/ofed_info", 0o755); err != nil {
		return err
	}
	const limits = "/etc/security/limits.conf"
	data, err := s.FS.ReadFile(vfs.Root(), limits)
	if err != nil {
		return err
	}
	if !strings.Contains(string(data), "memlock") {
		p.Printf("Configuring /etc/security/limits.conf.\n")
		err = s.FS.WriteFile(vfs.Root(), limits, append(data, "* soft memlock unlimited\n* hard memlock unlimited\n"...), 0o644)
	}
	return err
}

// FromDOCA installs the packages of doca-ofed. They replace the distribution's packages with the same names.
func (s *Software) FromDOCA() {
	_ = s.DB.InstallForeign(s.contents("OFED-internal-24.10-1.1.4", "24.10", "1.1.4")) // a full disk causes an earlier error
	_ = s.FS.Chmod(vfs.Root(), "/usr/bin/ofed_info", 0o755)
}

// uninstall implements /usr/sbin/ofed_uninstall.sh.
func (s *Software) uninstall(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("q s force unload-modules keep-mft")
	if err != nil {
		return p.Usage(1, err)
	}
	if !p.Root() {
		p.Printf("You must be root to run %s\n", p.Args[0])
		return 1
	}
	p.Printf("\nThis program will uninstall all OFED-internal packages on your machine.\n\n")
	if !o.Has("force") && !agreed(p) {
		return 1
	}
	list := slices.DeleteFunc(s.DB.List(), func(pkg pkgs.Package) bool { return !s.DB.Foreign(pkg.Name) })
	p.Printf("Removing MLNX_OFED packages\n")
	s.DB.Remove(list, true)
	p.Printf("Uninstall finished successfully\n")
	return 0
}

// contents returns the packages of an archive. Its verbs library does not support vmw_pvrdma.
func (s *Software) contents(release, major, build string) []pkgs.Package {
	short := strings.ReplaceAll(major, ".", "") + "mlnx54-1." + strings.ReplaceAll(major, ".", "") + "068"
	own := major + ".OFED." + major + "." + strings.TrimSuffix(build, ".0")
	info := fmt.Sprintf(
		"#!/bin/bash\ncase \"$1\" in\n-s) echo %[1]s: ;;\n-n) echo %[2]s-%[3]s ;;\n*) echo '%[1]s (OFED-%[2]s-%[4]s):' ;;\nesac\n",
		release, major, build, strings.TrimSuffix(build, ".0"))
	bin := func(dir string, names ...string) map[string]string {
		m := map[string]string{}
		for _, n := range names {
			m[dir+"/"+n] = n
		}
		return m
	}
	driver := map[string]string{"/etc/libibverbs.d/mlx5.driver": "driver mlx5\n"}
	rules := map[string]string{"/etc/rdma/modules/rdma.conf": "rdma_ucm\n",
		"/lib/udev/rules.d/60-rdma-persistent-naming.rules": "# NAME_FALLBACK\n"}
	tests := bin("/usr/bin", "ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_send_lat", "ib_write_lat", "ib_read_lat")
	verbs := bin("/usr/bin", "ibv_devinfo")
	list := []pkgs.Package{
		{Name: "ofed-scripts", Version: own, Bin: map[string]string{"/usr/sbin/ofed_uninstall.sh": "ofed_uninstall.sh"},
			Files: map[string]string{"/usr/bin/ofed_info": info}},
		{Name: "mlnx-tools", Version: own, Bin: bin("/usr/bin", "mlnx_qos")},
	}
	conf := map[string]string{
		"/etc/infiniband/openib.conf": "ONBOOT=yes\nRUN_FW_UPDATER_ONBOOT=no\nUMAD_LOAD=yes\nRDMA_UCM_LOAD=yes\nIPOIB_LOAD=yes\n"}
	script := map[string]string{"/etc/init.d/openibd": "openibd"}
	if s.Deb {
		return append(list, []pkgs.Package{
			{Name: "mlnx-ofed-kernel-utils", Version: own + ".1", Bin: script, Files: conf},
			{Name: "mlnx-ofed-kernel-modules", Version: own + ".1.kver." + s.Kernel.Release},
			{Name: "rdma-core", Version: short, Files: rules}, {Name: "libibverbs1", Version: short},
			{Name: "ibverbs-providers", Version: short, Files: driver, Provides: []string{"libmlx5-1"}},
			{Name: "ibverbs-utils", Version: short, Bin: verbs}, {Name: "libibumad3", Version: short}, {Name: "librdmacm1", Version: short},
			{Name: "rdmacm-utils", Version: short},
			{Name: "libibmad5", Version: short}, {Name: "libibnetdisc5", Version: short}, {Name: "infiniband-diags", Version: short},
			{Name: "perftest", Version: "24.10.0-0.65.g9093bae." + short, Bin: tests},
		}...)
	}
	return append(list, []pkgs.Package{
		{Name: "mlnx-ofa_kernel", Version: own + ".1-1", Bin: script, Files: conf}, {Name: "kmod-mlnx-ofa_kernel", Version: own + ".1-1"},
		{Name: "rdma-core", Version: short, Files: rules}, {Name: "libibverbs", Version: short, Files: driver},
		{Name: "libibverbs-utils", Version: short, Bin: verbs},
		{Name: "libibumad", Version: short}, {Name: "librdmacm", Version: short}, {Name: "librdmacm-utils", Version: short},
		{Name: "infiniband-diags", Version: short},
		{Name: "perftest", Version: "24.10.0-0.65.g9093bae." + short, Bin: tests},
	}...)
}
