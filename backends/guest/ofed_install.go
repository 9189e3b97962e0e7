package guest

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// Exit codes of mlnxofedinstall (MLNX_OFED manual, return codes), and those of installScript.
const (
	ofedBadOption   = 22
	ofedNoSpace     = 28
	ofedNotReady    = 172
	ofedNotUnpacked = 61
	ofedNoInstaller = 62
)

// installScript installs from an archive; for DOCA that is the package doca-host.
func installScript(archive, version string) string {
	kind, name := "archive", strings.TrimSuffix(strings.TrimSuffix(path.Base(archive), ".tgz"), ".tar.gz")
	if strings.HasPrefix(version, "DOCA-") {
		kind = "doca"
	}
	return script("ofed-install.sh", ofedWork, kind, archive, version, name, script("ofed-uninstall.sh"))
}

var wantsPackages = regexp.MustCompile(`(?m)^(?:yum|dnf|apt-get|zypper) install (.+)$`)

// installError returns why an installation failed.
func installError(vm string, want backends.OFEDSpec, r ssh.Result) error {
	what, said := "install "+want.Version, r.Stdout+"\n"+r.Stderr
	fail := func(kind backends.ErrorKind, hint, format string, args ...any) error {
		return backends.Errorf(kind, label(vm), hint, what+": %s", fmt.Sprintf(format, args...))
	}
	missing := wantsPackages.FindStringSubmatch(said)
	switch {
	case r.ExitCode == ofedNotUnpacked && strings.Contains(said, "No space left"), r.ExitCode == ofedNoSpace:
		return fail(backends.KindPermanent, "Free some space in /var/lib, /tmp and /usr of the guest: the build needs about 5 GB.", "%s",
			lastLines(said, 2))
	case r.ExitCode == ofedNotUnpacked:
		return fail(backends.KindPermanent, "Download the archive again, and compare its checksum with the one on NVIDIA's page.",
			"%s cannot be unpacked: %s", want.Archive, lastLines(r.Stderr, 3))
	case r.ExitCode == ofedNoInstaller:
		return fail(backends.KindPermanent, "Use the archive exactly as NVIDIA offers it.",
			"%s contains no mlnxofedinstall in a directory with the archive's name", want.Archive)
	case missing != nil:
		return fail(backends.KindPermanent, "Install them, from CodeReady Builder or EPEL for instance, then run rdma-setup resume.",
			"it needs packages that are missing: %s", strings.TrimSpace(missing[1]))
	case r.ExitCode == ofedNotReady:
		return fail(backends.KindPermanent, "Set the archive that is made for this guest's release under guest.ofed.", "%s", lastLines(said, 2))
	case r.ExitCode == ofedBadOption:
		return fail(backends.KindPermanent, "This release of mlnxofedinstall is not supported. Install it by hand.", "%s", lastLines(said, 2))
	}
	return fail(backends.KindPermanent,
		"Its logs are in the directories /tmp/MLNX_OFED_LINUX.*.logs of the guest; fix what they report, then run rdma-setup resume, or "+
			"roll back: the distribution's packages are recorded.", "%s", lastLines(said, 3))
}
