package answers_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

func TestParseOFED(t *testing.T) {
	for file, want := range map[string]answers.OFEDArchive{
		"/mnt/share/MLNX_OFED_LINUX-24.10-1.1.4.0-ubuntu22.04-x86_64.tgz": {Version: "MLNX_OFED_LINUX-24.10-1.1.4.0", Distro: "ubuntu22.04",
			Arch: "x86_64"},
		"/srv/MLNX_OFED_LINUX-5.4-3.0.3.0-rhel8.1-x86_64.tgz": {Version: "MLNX_OFED_LINUX-5.4-3.0.3.0", Distro: "rhel8.1",
			Arch: "x86_64"},
		"/srv/MLNX_OFED_LINUX-4.5-1.0.1.0-rhel7.6alternate-aarch64-ext.tgz": {Version: "MLNX_OFED_LINUX-4.5-1.0.1.0",
			Distro: "rhel7.6alternate", Arch: "aarch64"},
		"/srv/a b/MLNX_OFED_LINUX-23.10-3.2.2.0-debian12.1-x86_64.tar.gz": {Version: "MLNX_OFED_LINUX-23.10-3.2.2.0", Distro: "debian12.1",
			Arch: "x86_64"},
		"/opt/ofed/MLNX_OFED_LINUX-5.8-1.1.2.1-sles15sp4-x86_64.tgz": {Version: "MLNX_OFED_LINUX-5.8-1.1.2.1", Distro: "sles15sp4",
			Arch: "x86_64"},
		"/opt/ofed/MLNX_OFED_LINUX-24.04-0.7.0.0-openeuler22.03-aarch64.tgz": {Version: "MLNX_OFED_LINUX-24.04-0.7.0.0",
			Distro: "openeuler22.03", Arch: "aarch64"},
		"/opt/ofed/MLNX_OFED_LINUX-4.9-4.1.7.0-ubuntu20.04-x86_64.tgz": {Version: "MLNX_OFED_LINUX-4.9-4.1.7.0", Distro: "ubuntu20.04",
			Arch: "x86_64"},
		"/opt/ofed/MLNX_OFED_LINUX-24.10-0.7.0.0-rhel8.10-x86_64.tgz": {Version: "MLNX_OFED_LINUX-24.10-0.7.0.0", Distro: "rhel8.10",
			Arch: "x86_64"},
		"/opt/ofed/MLNX_OFED_LINUX-5.0-2.1.8.0-fedora30-x86_64.tgz": {Version: "MLNX_OFED_LINUX-5.0-2.1.8.0", Distro: "fedora30",
			Arch: "x86_64"},
		"/opt/ofed/MLNX_OFED_LINUX-23.10-1.1.9.0-rhel9.3-ppc64le.tgz": {Version: "MLNX_OFED_LINUX-23.10-1.1.9.0", Distro: "rhel9.3",
			Arch: "ppc64le"},
		"/opt/ofed/MLNX_OFED_LINUX-5.9-0.5.6.0.127-ubuntu22.04-x86_64.tgz": {}, // five numbers
		"MLNX_OFED_LINUX-24.10-1.1.4.0-ubuntu22.04-x86_64.tgz":             {},
		"/srv/../MLNX_OFED_LINUX-24.10-1.1.4.0-ubuntu22.04-x86_64.tgz":     {},
		"/srv/MLNX_OFED_LINUX-24.10-1.1.4.0-ubuntu22.04-x86_64.iso":        {},
		"/srv/MLNX_OFED_LINUX-25.01-0.6.0.0-ubuntu22.04-x86_64.tgz":        {},
		"/srv/MLNX_OFED_LINUX-24.11-0.6.0.0-ubuntu22.04-x86_64.tgz":        {},
		"/srv/MLNX_OFED_SRC-24.10-1.1.4.0.tgz":                             {},
		"/srv/doca-host_2.9.1-018000-24.10-ubuntu2204_amd64.deb": {Version: "DOCA-OFED-2.9.1-018000", Distro: "ubuntu22.04",
			Arch: "x86_64", DOCA: true},
		"/srv/doca-host_2.10.0-093000-25.01-debian125_arm64.deb": {Version: "DOCA-OFED-2.10.0-093000", Distro: "debian12.5",
			Arch: "aarch64", DOCA: true},
		"/srv/doca-host-3.1.0-091000_25.07_ol96.x86_64.rpm": {Version: "DOCA-OFED-3.1.0-091000", Distro: "ol9.6",
			Arch: "x86_64", DOCA: true},
		"/srv/doca-host-3.1.0-091000_25.07_rhel810.x86_64.rpm": {Version: "DOCA-OFED-3.1.0-091000", Distro: "rhel8.10",
			Arch: "x86_64", DOCA: true},
		"/srv/doca-host-3.1.0-091000_25.07_rhel100.aarch64.rpm": {Version: "DOCA-OFED-3.1.0-091000", Distro: "rhel10.0",
			Arch: "aarch64", DOCA: true},
		"/srv/doca-ofed-2.9.1.deb": {},
		"/srv/MLNX_OFED_LINUX-24.10-1.1.4.0-ubuntu22.04-x86_64.tgz; rm -rf /": {},
		"": {},
	} {
		got, err := answers.ParseOFED(file)
		if got != want || (err == nil) != (want != answers.OFEDArchive{}) {
			t.Errorf("%s: %+v, %v", file, got, err)
		}
	}
	for file, says := range map[string]string{
		"/srv/MLNX_OFED_LINUX-25.01-0.6.0.0-ubuntu22.04-x86_64.tgz": "ended with 24.10, what came after is DOCA-OFED",
		"/srv/doca-ofed-2.9.1.deb":                                  "package doca-host",
		"/srv/MLNX_OFED_LINUX-24.10-1.1.4.0-ubuntu22.04-x86_64.iso": ".tgz",
		"x.tgz": "absolute",
	} {
		if _, err := answers.ParseOFED(file); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestOFEDFits(t *testing.T) {
	for _, c := range []struct {
		distro, arch      string
		id, release, unix string
		says              string // "" if it fits
	}{
		{"ubuntu22.04", "x86_64", "ubuntu", "22.04", "x86_64", ""},
		{"ubuntu22.04", "x86_64", "debian", "12", "x86_64", "it is for ubuntu22.04, the guest is debian12"},
		{"ubuntu22.04", "x86_64", "ubuntu", "20.04", "x86_64", "the guest is ubuntu20.04"},
		{"ubuntu22.04", "aarch64", "ubuntu", "22.04", "x86_64", "for aarch64 machines, the guest is x86_64"},
		{"debian12.1", "x86_64", "debian", "12", "x86_64", ""},
		{"debian11.3", "x86_64", "debian", "12", "x86_64", "debian11.3"},
		{"rhel8.10", "x86_64", "rhel", "8.10", "x86_64", ""},
		{"rhel8.1", "x86_64", "rhel", "8.10", "x86_64", "it is for rhel8.1, the guest is rhel8.10"},
		{"rhel9.4", "x86_64", "rocky", "9.4", "x86_64", ""},
		{"rhel9.4", "x86_64", "almalinux", "9.5", "x86_64", "almalinux9.5"},
		{"rhel8.5", "x86_64", "centos", "8", "x86_64", ""},
		{"rhel9.4", "x86_64", "ol", "9.4", "x86_64", "ol9.4"}, // UEK is another kernel
		{"ol9.4", "x86_64", "ol", "9.4", "x86_64", ""},
		{"rhel7.6alternate", "aarch64", "rhel", "7.6", "aarch64", "rhel7.6alternate"},
		{"rhel9.4", "x86_64", "", "", "", "the guest is"},
	} {
		err := answers.OFEDArchive{Distro: c.distro, Arch: c.arch}.Fits(c.id, c.release, c.unix)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %s in %s %s %s: %v", c.distro, c.arch, c.id, c.release, c.unix, err)
		}
	}
}

func TestNewerOFED(t *testing.T) {
	const old, now = "MLNX_OFED_LINUX-5.8-4.1.5.0", "MLNX_OFED_LINUX-24.10-1.1.4.0"
	for _, c := range []struct {
		a, b string
		want bool
	}{{now, old, true}, {old, now, false}, {now, now, false}, {"MLNX_OFED_LINUX-24.10-2.1.8.0", now, true},
		{"OFED-internal-24.10-0.7.0", old, false}, {"", now, false}} {
		if got := answers.NewerOFED(c.a, c.b); got != c.want {
			t.Errorf("%s newer than %s: %t", c.a, c.b, got)
		}
	}
}
