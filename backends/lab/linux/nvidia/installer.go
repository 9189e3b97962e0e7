package nvidia

import (
	"context"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

const installerLog = "/var/log/nvidia-installer.log"

// A Toolchain describes the build tools of a guest.
type Toolchain struct {
	Tool    func(name string) bool // reports whether gcc, make or dkms is installed
	Headers func() bool            // reports whether the headers of the running kernel are installed
}

// Installer returns NVIDIA's installer, which a .run file unpacks and starts. Its first argument is the version to install.
func (d *Driver) Installer(t Toolchain) sh.Program {
	return func(_ context.Context, p *sh.Proc) int {
		fail := func(text string) int {
			text = "ERROR: " + text
			d.installed(p, text)
			return p.Fail(1, "\n%s\n\nERROR: Installation has failed.  Please see the file '%s' for details.", text, installerLog)
		}
		if len(p.Args) < 2 {
			return p.Fail(1, "ERROR: Unable to open the driver package.")
		}
		version, options := p.Args[1], p.Args[2:]
		for _, o := range options {
			if !slices.Contains([]string{"--silent", "-s", "--dkms", "--no-questions", "-q", "--ui=none"}, o) {
				return p.Fail(1, "nvidia-installer: unrecognized option: %q\n\nERROR: Invalid commandline, please run `nvidia-installer --help` for usage information.", o)
			}
		}
		dkms := slices.Contains(options, "--dkms")
		switch {
		case !p.Root():
			return p.Fail(1, "\nERROR: nvidia-installer must be run as root.\n")
		case !slices.Contains(options, "--silent") && !slices.Contains(options, "-s"):
			return fail("Unable to initialize the user interface: there is no terminal.") // the real installer would prompt
		case d.Kernel.Loaded("nouveau"):
			return fail("The Nouveau kernel driver is currently in use by your system.  This driver is incompatible with the NVIDIA driver, and must be disabled before proceeding.")
		case d.Kernel.Loaded("nvidia"):
			return fail("An NVIDIA kernel module 'nvidia' appears to be already loaded in your kernel.")
		case !t.Tool("gcc"):
			return fail("Unable to find the development tool `cc` in your path; please make sure that you have the package 'gcc' installed.")
		case !t.Tool("make"):
			return fail("Unable to find the development tool `make` in your path; please make sure that you have the package 'make' installed.")
		case !t.Headers():
			return fail("Unable to find the kernel source tree for the currently running kernel.  Please make sure you have installed the kernel source files " +
				"for your kernel and that they are properly configured.")
		case dkms && !t.Tool("dkms"):
			return fail("Failed to find dkms on the system!")
		}
		open := !slices.ContainsFunc(d.GPUs(), func(g GPU) bool { return !g.Open })
		for program, file := range installerPrograms {
			if err := p.Sys.Install(program, file); err != nil {
				return fail("Unable to create '" + file + "'.")
			}
		}
		d.Install(version, open, false)
		d.installed(p, "Installation of the NVIDIA Accelerated Graphics Driver for Linux-x86_64 (version: "+version+") is now complete.")
		return 0
	}
}

var installerPrograms = map[string]string{"nvidia-smi": "/usr/bin/nvidia-smi", "nvidia-uninstall": "/usr/bin/nvidia-uninstall"}

func (d *Driver) installed(p *sh.Proc, text string) {
	_ = p.Sys.FS.WriteFile(vfs.Root(), installerLog, []byte("nvidia-installer log file '"+installerLog+"'\n"+text+"\n"), 0o644) // errors are ignored
}

// Uninstall removes the files that the installer installed.
func (d *Driver) Uninstall(_ context.Context, p *sh.Proc) int {
	switch {
	case !p.Root():
		return p.Fail(1, "\nERROR: nvidia-installer must be run as root.\n")
	case !slices.Contains(p.Args, "--silent") && !slices.Contains(p.Args, "-s"):
		return p.Fail(1, "ERROR: Unable to initialize the user interface: there is no terminal.")
	}
	for _, file := range installerPrograms {
		if err := p.Sys.FS.Remove(vfs.Root(), file); err != nil {
			return p.Fail(1, "ERROR: Unable to remove '%s'.", file)
		}
	}
	d.Remove()
	d.installed(p, strings.TrimSpace("Uninstallation of existing driver: NVIDIA Accelerated Graphics Driver for Linux-x86_64 is complete."))
	return 0
}
