package pkgman_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/guest/pkgman"
)

const aptOut = `Reading package lists...
Building dependency tree...
The following NEW packages will be installed:
  librdmacm1 perftest
The following packages will be upgraded:
  libibverbs1
Inst libibverbs1 [39.0-1] (39.0-1ubuntu0.1 Ubuntu:22.04/jammy-updates [amd64])
Inst librdmacm1 (39.0-1ubuntu0.1 Ubuntu:22.04/jammy-updates [amd64])
Inst perftest (4.5+0.11-1 Ubuntu:22.04/jammy [amd64])
Conf librdmacm1 (39.0-1ubuntu0.1 Ubuntu:22.04/jammy-updates [amd64])
`

const dnfOut = `Last metadata expiration check: 0:01:12 ago on Tue 04 Nov 2025 10:11:12 AM UTC.
Dependencies resolved.
================================================================================
 Package                  Arch     Version             Repository          Size
================================================================================
Installing:
 perftest                 x86_64   4.5.0.20-4.el9      appstream          245 k
Upgrading:
 libibverbs               x86_64   48.0-1.el9          baseos             418 k
Installing dependencies:
 a-package-whose-name-is-too-long-for-its-column
                          noarch   1.0-1.el9           appstream           13 k
 librdmacm                x86_64   48.0-1.el9          baseos              73 k
Installing weak dependencies:
 pciutils                 x86_64   3.7.0-5.el9         baseos              93 k

Transaction Summary
================================================================================
Install  4 Packages
Upgrade  1 Package

Total download size: 842 k
Operation aborted.
`

const dnfRemove = `Dependencies resolved.
================================================================================
 Package          Arch          Version              Repository            Size
================================================================================
Removing:
 rdma-core        x86_64        48.0-1.el9           @baseos              112 k
Removing dependent packages:
 nfs-rdma-tools   x86_64        1.0-1.el9            @extras               10 k

Transaction Summary
`

// A simulation also names what is there and would come in another version: a rollback must know its old one.
func TestMovedVersions(t *testing.T) {
	for program, c := range map[string]struct{ out, moved, exact string }{
		"apt-get": {aptOut, "libibverbs1", "libibverbs1=39.0-1"},
		"dnf":     {dnfOut, "libibverbs", "libibverbs-39.0-1"},
		"yum":     {strings.Replace(dnfOut, "Upgrading:", "Updating:", 1), "libibverbs", "libibverbs-39.0-1"},
	} {
		m, _ := pkgman.For(program)
		if got := m.WouldMove(c.out); !slices.Equal(got, []string{c.moved}) {
			t.Errorf("%s: %q", program, got)
		}
		if got, _, _ := strings.Cut(m.Exact(map[string]string{c.moved: "39.0-1"}), "\n"); !strings.HasSuffix(strings.Trim(got, "'"), c.exact) {
			t.Errorf("%s: %s", program, got)
		}
	}
}

func TestSimulations(t *testing.T) {
	for _, test := range []struct {
		name, program, out string
		remove             bool
		want               []string
	}{
		{"apt: upgrades are not new", "apt-get", aptOut, false, []string{"librdmacm1", "perftest"}},
		{"apt: removal", "apt-get", "Purg perftest [4.5]\nRemv infiniband-diags [39.0]\n", true, []string{"perftest", "infiniband-diags"}},
		{"dnf: a long name has a line of its own", "dnf", dnfOut, false, []string{"perftest", "a-package-whose-name-is-too-long-for-its-column",
			"librdmacm", "pciutils"}},
		{"dnf: what goes along", "dnf", dnfRemove, true, []string{"rdma-core", "nfs-rdma-tools"}},
		{"yum answers like dnf", "yum", dnfRemove, true, []string{"rdma-core", "nfs-rdma-tools"}},
		{"nothing", "dnf", "", false, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, ok := pkgman.For(test.program)
			if !ok {
				t.Fatal("not known")
			}
			read := m.WouldInstall
			if test.remove {
				read = m.WouldRemove
			}
			if got := read(test.out); !slices.Equal(got, test.want) {
				t.Errorf("%q", got)
			}
		})
	}
	if _, ok := pkgman.For("zypper"); ok {
		t.Error("zypper is known")
	}
}

func TestPackageManagerErrorsAreClassified(t *testing.T) {
	for _, test := range []struct {
		said                                            string
		locked, unreachable, only, complaints, helpless bool
	}{
		{"E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 (unattended-upgr)", true, false, false, true, true},
		{"Waiting for process with pid 4711 to finish.", true, false, false, false, false},
		{"W: Failed to fetch http://deb.debian.org/debian/dists/bookworm/InRelease  Temporary failure resolving 'deb.debian.org'", false, true,
			false, false, false},
		{"Error: Failed to download metadata for repo 'appstream': Cannot prepare internal mirrorlist", false, true, false, true, true},
		{"E: Unable to locate package ibutils", false, false, true, false, true},
		{"E: Package 'libmlx4-1' has no installation candidate", false, false, true, false, true},
		{"No match for argument: ibutils\nError: Unable to find a match: ibutils", false, false, true, false, true},
		{"E: Unable to locate package ibutils\nE: dpkg was interrupted, you must manually run 'dpkg --configure -a'", false, false, false, true,
			false},
		{"E: Write error - write (28: No space left on device)\nE: The package lists or status file could not be parsed or opened.", false, false,
			false, true, true},
		{"E: Unmet dependencies. Try 'apt --fix-broken install' with no packages (or specify a solution).", false, false, false, true, false},
	} {
		if pkgman.Locked(test.said) != test.locked || pkgman.Unreachable(test.said) != test.unreachable ||
			pkgman.OnlyUnknown(test.said) != test.only || pkgman.HasOtherError(test.said) != test.complaints ||
			pkgman.Undetermined(test.said) != test.helpless {
			t.Errorf("%q: locked %v, unreachable %v, only unknown %v, complains %v, helpless %v", test.said, pkgman.Locked(test.said),
				pkgman.Unreachable(test.said), pkgman.OnlyUnknown(test.said), pkgman.HasOtherError(test.said), pkgman.Undetermined(test.said))
		}
	}
}

// What Debian 12's dpkg 1.21.22 prints beneath apt-get for a package whose unpacking was cut off.
func TestReasonOfDpkg(t *testing.T) {
	const said = "debconf: delaying package configuration, since apt-utils is not installed\r\n" +
		"dpkg: error processing package libnl-3-200:amd64 (--configure):\r\n package is in a very bad inconsistent state; you should\r\n " +
		"reinstall it before attempting configuration\r\n" +
		"dpkg: dependency problems prevent configuration of rdma-core:\n rdma-core depends on libnl-3-200 (>= 3.2.7); however:\n" +
		"dpkg: error processing package rdma-core (--configure):\n dependency problems - leaving unconfigured\nErrors were encountered while " +
		"processing:\n libnl-3-200:amd64\n"
	for text, want := range map[string]string{
		said: "libnl-3-200:amd64: package is in a very bad inconsistent state; you should reinstall it before attempting configuration",
		"dpkg: error processing archive /srv/a_1_amd64.deb (--unpack):\n cannot copy extracted data for './usr/a' to '/usr/a.dpkg-new': failed " +
			"to write (No space left on device)\n": "/srv/a_1_amd64.deb: " +
			"cannot copy extracted data for './usr/a' to '/usr/a.dpkg-new': failed to write (No space left on device)",
		"E: Unable to locate package perftest\n": "",
	} {
		if got := pkgman.Reason(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
