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
	ofedAtWork      = 63
)

// workScript waits for the installer of an attempt whose connection broke, makes the directory that marks an installation
// as begun, and says how one ends early: ended CODE.
func workScript(version string) string {
	return `n=0
while pgrep -x mlnxofedinstall >/dev/null 2>&1; do
	n=$((n+1))
	[ $n -lt 1800 ] || { echo 'mlnxofedinstall is still at work, started before' >&2; exit 63; }
	sleep 1
done
w=` + ofedWork + `
[ "$(cat $w/installed 2>/dev/null)" = ` + ssh.Quote(version) + ` ] && exit 0
fresh=yes
[ -d $w ] && fresh=
ended() {
	cd /
	rm -rf $w/*
	case $fresh$1 in yes22|yes28|yes61|yes62|yes172) rmdir $w ;; esac
	exit $1
}
mkdir -p $w && chmod 700 $w || exit 1
rm -rf $w/*
`
}

// docaScript installs DOCA-OFED from the repository that the package doca-host holds (NVIDIA, DOCA-Host Installation and
// Upgrade), after an earlier MLNX_OFED has gone.
func docaScript(file, version string) string {
	return workScript(version) + `[ -r ` + ssh.Quote(file) + ` ] || { echo "cannot read it" >&2; ended 61; }
(
` + uninstallScript + `) || ended 1
if command -v dpkg >/dev/null; then
	export DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l
	dpkg -i ` + ssh.Quote(file) + ` && apt-get -q update && apt-get -q -y -o DPkg::Lock::Timeout=60 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold install doca-ofed </dev/null || ended 1
else
	rpm -i ` + ssh.Quote(file) + ` && dnf -q clean all && dnf -y install doca-ofed </dev/null || ended 1
fi
echo ` + ssh.Quote(version) + ` >$w/installed
`
}

// uninstallScript takes DOCA's packages away, where there are any, and what MLNX_OFED and DOCA-OFED have in common.
const uninstallScript = `if command -v dpkg-query >/dev/null; then
	for p in $(dpkg-query -W -f '${Package}\n' | grep -E '^(doca|flexio|dpa-)'); do DEBIAN_FRONTEND=noninteractive apt-get -q -y purge $p </dev/null || exit 1; done
else
	for p in $(rpm -qa --qf '%{NAME}\n' | grep -E '^(doca|flexio|dpa-)'); do dnf -y --setopt=clean_requirements_on_remove=0 remove $p </dev/null || exit 1; done
fi
[ ! -x /usr/sbin/ofed_uninstall.sh ] || /usr/sbin/ofed_uninstall.sh --force </dev/null
`

// installScript unpacks an archive and runs its installer. What an earlier try has installed whole is not installed again.
// Where the installer ends before it has touched anything, no trace is left; else the directory stays behind, empty.
func installScript(archive, version string) string {
	dir := strings.TrimSuffix(strings.TrimSuffix(path.Base(archive), ".tgz"), ".tar.gz")
	return workScript(version) + `tar xf ` + ssh.Quote(archive) + ` -C $w || ended 61
cd $w/` + ssh.Quote(dir) + ` && [ -x ./mlnxofedinstall ] || ended 62
./mlnxofedinstall --force --add-kernel-support --without-fw-update </dev/null || ended $?
cd /
rm -rf $w/*
echo ` + ssh.Quote(version) + ` >$w/installed
`
}

var wantsPackages = regexp.MustCompile(`(?m)^(?:yum|dnf|apt-get|zypper) install (.+)$`)

// installError says why an installation ended early.
func installError(vm string, want backends.OFEDSpec, r ssh.Result) error {
	what, said := "install "+want.Version, r.Stdout+"\n"+r.Stderr
	fail := func(kind backends.ErrorKind, hint, format string, args ...any) error {
		return backends.Errorf(kind, label(vm), hint, what+": %s", fmt.Sprintf(format, args...))
	}
	missing := wantsPackages.FindStringSubmatch(said)
	switch {
	case r.ExitCode == ofedNotUnpacked && strings.Contains(said, "No space left"), r.ExitCode == ofedNoSpace:
		return fail(backends.KindPermanent, "Free some space in /var/tmp, /tmp and /usr of the guest: it takes about 5 GB while it is built.", "%s", lastLines(said, 2))
	case r.ExitCode == ofedNotUnpacked:
		return fail(backends.KindPermanent, "Fetch the archive again, and compare its checksum with the one on NVIDIA's page.", "%s cannot be unpacked: %s", want.Archive, lastLines(r.Stderr, 3))
	case r.ExitCode == ofedAtWork:
		return fail(backends.KindTransient, "See what keeps it (ps ax), then resume.", "%s", lastLines(r.Stderr, 1))
	case r.ExitCode == ofedNoInstaller:
		return fail(backends.KindPermanent, "Name the archive as NVIDIA gave it.", "%s has no mlnxofedinstall in a directory of its own name", want.Archive)
	case missing != nil:
		return fail(backends.KindPermanent, "Install them, from CodeReady Builder or EPEL for instance, then resume.", "it asks for packages that are missing: %s", strings.TrimSpace(missing[1]))
	case r.ExitCode == ofedNotReady:
		return fail(backends.KindPermanent, "Name the archive that is made for this guest under guest.ofed.", "%s", lastLines(said, 2))
	case r.ExitCode == ofedBadOption:
		return fail(backends.KindPermanent, "This release of mlnxofedinstall is not known: install it by hand.", "%s", lastLines(said, 2))
	}
	return fail(backends.KindPermanent, "Its logs are in the directories /tmp/MLNX_OFED_LINUX.*.logs of the guest; mend what they tell, then resume, or roll back: the distribution's packages are written down.", "%s", lastLines(said, 3))
}
