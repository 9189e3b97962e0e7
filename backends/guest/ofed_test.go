package guest_test

import (
	"errors"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest"
	"github.com/rdma-setup/rdma-setup/backends/settertest"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

const (
	ofedNow  = "MLNX_OFED_LINUX-24.10-1.1.4.0"
	ofedPast = "MLNX_OFED_LINUX-23.10-3.2.2.0"
)

// ofedOf is what a plan asks of a guest for which the lab's share has an archive.
func ofedOf(version, system, arch string) backends.Value {
	return backends.ValueOf(backends.OFEDSpec{Version: version, Archive: "/mnt/share/ofed/" + version + "-" + system + "-" + arch + ".tgz"})
}

// readBack is the value as it is read: where MLNX_OFED came from is not known.
func readBack(v backends.Value) backends.Value {
	var o backends.OFEDSpec
	if v.Decode(&o) != nil || o.Version == "" {
		return v
	}
	o.Archive = ""
	return backends.ValueOf(o)
}

// builtWith is what the table of distributions has for MLNX_OFED, as far as the installer insists on it.
func builtWith(os, kernel string) []string {
	if strings.HasPrefix(os, "rhel") || strings.HasPrefix(os, "rocky") {
		return []string{"createrepo_c", "gcc", "gcc-gfortran", "kernel-devel-" + kernel, "kernel-modules-extra-" + kernel, "make", "rpm-build",
			"tcl", "tcsh", "tk"}
	}
	return []string{"autoconf", "automake", "autotools-dev", "chrpath", "debhelper", "dkms", "gcc", "gfortran", "libltdl-dev",
		"linux-headers-" + kernel, "m4", "make", "quilt", "swig", "tcl", "tk"}
}

// RoCE SR-IOV Setup and Performance Study on vSphere 7.x (VMware, 2022), section 2.4:
// MLNX_OFED in a guest with a VF, and all the rest on top of it; then back to the distribution's packages.
func TestSetupAndRollbackWithOFED(t *testing.T) {
	testclass.Plain(t)
	for os, system := range fewer(map[string]string{"ubuntu-22.04": "ubuntu22.04", "debian-12": "debian12.1", "rhel-8": "rhel8.8",
		"rocky-9": "rhel9.2"}, "ubuntu-22.04", "rocky-9") {
		t.Run(os, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, config{os: os, vf: true})
			m.root(t,
				"command -v apt-get >/dev/null && apt-get install -y rdma-core ibverbs-utils || dnf install -y rdma-core libibverbs-utils; "+
					"modprobe mlx5_ib")
			m.reboot(t)
			names := builtWith(os, m.Survey(t.Context(), m.vm).Kernel)
			slices.Sort(names)
			all := slices.DeleteFunc(wanted(m, os), func(a backends.Assignment) bool {
				return a.Kind == backends.KindModules || a.Kind == backends.KindPersist || a.Kind == backends.KindPackages
			})
			all = append([]backends.Assignment{
				{Setting: m.setting(backends.KindPackages, "ofed"), To: backends.ValueOf(backends.PackageSpec{Installed: names})},
				{Setting: m.setting(backends.KindOFED, ""), To: ofedOf(ofedNow, system, "x86_64")},
				{Setting: m.setting(backends.KindModules, "rdma"), To: backends.ValueOf([]string{"mlx5_ib", "ib_umad", "rdma_cm", "rdma_ucm"})},
				{Setting: m.setting(backends.KindPersist, ""),
					To: backends.ValueOf(backends.Persist{Modules: []string{"ib_umad", "rdma_cm", "rdma_ucm"}})},
			}, all...)
			m.thereAndBack(t, all, "mlx5_core")
		})
	}
}

// DOCA-OFED from its local repository: what it upgrades comes back as the distribution has it.
func TestSetupAndRollbackWithDOCA(t *testing.T) {
	testclass.Plain(t)
	for os, file := range map[string]string{"ubuntu-22.04": "doca-host_2.9.1-018000-24.10-ubuntu2204_amd64.deb",
		"rhel-9": "doca-host-2.9.1-018000_24.10_rhel92.x86_64.rpm"} {
		t.Run(os, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, config{os: os, vf: true})
			m.root(t,
				"command -v apt-get >/dev/null && apt-get install -y rdma-core ibverbs-utils dkms || dnf install -y rdma-core libibverbs-utils dkms; "+
					"modprobe mlx5_ib")
			m.reboot(t)
			all := slices.DeleteFunc(wanted(m, os), func(a backends.Assignment) bool {
				return a.Kind == backends.KindModules || a.Kind == backends.KindPersist || a.Kind == backends.KindPackages
			})
			all = append([]backends.Assignment{
				{Setting: m.setting(backends.KindOFED, ""),
					To: backends.ValueOf(backends.OFEDSpec{Version: "DOCA-OFED-2.9.1-018000", Archive: "/mnt/share/ofed/" + file})},
				{Setting: m.setting(backends.KindModules, "rdma"), To: backends.ValueOf([]string{"mlx5_ib", "ib_umad", "rdma_cm", "rdma_ucm"})},
				{Setting: m.setting(backends.KindPersist, ""),
					To: backends.ValueOf(backends.Persist{Modules: []string{"ib_umad", "rdma_cm", "rdma_ucm"}})},
			}, all...)
			m.thereAndBack(t, all, "mlx5_core")
		})
	}
}

func TestOFEDContract(t *testing.T) {
	m := newMachine(t, config{os: "ubuntu-22.04", vf: true})
	missing := m.setting(backends.KindOFED, "")
	missing.Target = backends.GuestRef("no-such-vm")
	settertest.Run(t, settertest.Case{Setter: m.Setters()[backends.KindOFED], Setting: m.setting(backends.KindOFED, ""), Removes: true,
		Missing: missing,
		Values:  []backends.Value{ofedOf(ofedPast, "ubuntu22.04", "x86_64"), ofedOf(ofedNow, "ubuntu22.04", "x86_64")},
		Same:    func(got, want backends.Value) bool { return got == readBack(want) }})
}

// Each way in which an installation ends early, in words that fit; what was touched is marked, and nothing where nothing was.
func TestOFEDThatIsNotInstalled(t *testing.T) {
	testclass.Plain(t)
	for _, test := range []struct {
		name, os   string
		before     string // run as root
		to         backends.Value
		fault      string
		kind       backends.ErrorKind
		says, hint string
		unfinished bool // the guest is rebooted then: that is not forgotten
	}{
		{"another system", "ubuntu-22.04", "", ofedOf(ofedNow, "debian12.1", "x86_64"), "", backends.KindPermanent, "is intended for debian12.1",
			"archive that is made for this guest", false},
		{"another machine", "ubuntu-22.04", "", ofedOf(ofedNow, "ubuntu22.04", "aarch64"), "", backends.KindPermanent, "aarch64 architecture", "",
			false},
		{"no archive", "ubuntu-22.04", "",
			backends.ValueOf(backends.OFEDSpec{Version: ofedNow, Archive: "/none/" + ofedNow + "-ubuntu22.04-x86_64.tgz"}), "",
			backends.KindPermanent, "No such file", "", false},
		{"a broken archive", "ubuntu-22.04", "echo '<html>' >/mnt/share/ofed/" + ofedNow + "-ubuntu22.04-x86_64.tgz",
			ofedOf(ofedNow, "ubuntu22.04", "x86_64"), "", backends.KindPermanent, "not look like a tar archive", "checksum", false},
		{"no space", "ubuntu-22.04", "", ofedOf(ofedNow, "ubuntu22.04", "x86_64"),
			"command=tar,do=fail:tar: x: Cannot write: No space left on device", backends.KindPermanent, "No space left", "5 GB", false},
		{"packages are missing", "rhel-9", "", ofedOf(ofedNow, "rhel9.2", "x86_64"), "", backends.KindPermanent,
			"packages that are missing: tcsh tcl tk", "CodeReady", false},
		{"the lock is taken", "ubuntu-22.04", "", ofedOf(ofedNow, "ubuntu22.04", "x86_64"),
			"command=/usr/bin/apt-get,do=fail:E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 (unattended-upgr)",
			backends.KindTransient, "another package manager", "unattended-upgrades", true},
		{"the modules do not build", "ubuntu-22.04", "", ofedOf(ofedNow, "ubuntu22.04", "x86_64"),
			"command=./mlnxofedinstall,do=fail:Error: mlnx-ofed-kernel-dkms installation failed!", backends.KindPermanent, "installation failed",
			"MLNX_OFED_LINUX.*.logs", true},
		{"something uses RDMA", "ubuntu-22.04", "", ofedOf(ofedNow, "ubuntu22.04", "x86_64"),
			"command=/etc/init.d/openibd,do=fail:rmmod: ERROR: Module mlx5_ib is in use", backends.KindTransient, "mlx5_ib is in use",
			"reboot it, then run rdma-setup resume", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, config{os: test.os, vf: true, options: guest.Options{AptLock: 50 * time.Millisecond}})
			s, set := m.setting(backends.KindOFED, ""), m.Setters()[backends.KindOFED]
			if test.before != "" {
				m.root(t, test.before)
			}
			kept, err := set.(backends.Keeper).Keep(t.Context(), s, test.to)
			testclass.OK(t, err)
			if test.fault != "" {
				m.fault(t, test.fault)
			}
			err = set.Set(t.Context(), s, test.to, nil)
			if backends.KindOf(err) != test.kind || !strings.Contains(err.Error(), test.says) || !strings.Contains(backends.HintOf(err), test.hint) {
				t.Errorf("error %v of kind %q, hint %q", err, backends.KindOf(err), backends.HintOf(err))
			}
			m.world.Faults.Clear()
			if test.unfinished {
				m.reboot(t)
			}
			now, err := set.Read(t.Context(), s)
			if err != nil || now.IsPartial() != test.unfinished || now.IsAbsent() == test.unfinished {
				t.Errorf("it reads as %s, %v", now, err)
			}
			if g := m.Survey(t.Context(), m.vm); g.OFEDUnfinished != test.unfinished {
				t.Errorf("the survey says unfinished: %t", g.OFEDUnfinished)
			}
			if !test.unfinished {
				return
			}
			if err := set.Set(t.Context(), s, test.to, nil); err != nil {
				t.Fatalf("it cannot be finished: %v", err)
			}
			if now, err := set.Read(t.Context(), s); err != nil || now != readBack(test.to) {
				t.Errorf("finished it is %s, %v", now, err)
			}
			testclass.OK(t, set.(backends.Keeper).Restore(t.Context(), s, kept, nil))
			if now, err := set.Read(t.Context(), s); err != nil || !now.IsAbsent() {
				t.Errorf("taken back it is %s, %v", now, err)
			}
		})
	}
}

// Any user of the guest can name a process mlnxofedinstall and create directories in /var/tmp: root does not wait for it,
// trust it or run anything from it.
func TestOFEDTrustsNoOtherUser(t *testing.T) {
	for _, os := range []string{"ubuntu-22.04", "ubuntu-20.04"} {
		t.Run(os, func(t *testing.T) {
			m := newMachine(t, config{os: os, vf: true})
			s, to := m.setting(backends.KindOFED, ""), ofedOf(ofedNow, strings.Replace(os, "-", "", 1), "x86_64")
			var spec backends.OFEDSpec
			testclass.OK(t, to.Decode(&spec))
			name := strings.TrimSuffix(path.Base(spec.Archive), ".tgz")
			user := func(script string) {
				if r, err := m.Run(t.Context(), m.vm, ssh.Command{Script: script}); err != nil || r.ExitCode != 0 {
					t.Fatalf("%s: %+v, %v", script, r, err)
				}
			}
			user("mkdir -p /var/tmp/rdma-setup-ofed/" + name + " && echo " + spec.Version +
				" >/var/tmp/rdma-setup-ofed/installed && cd /var/tmp/rdma-setup-ofed/" + name +
				" && printf '#!/bin/sh\\ntouch /root/owned\\n' >mlnxofedinstall && chmod 755 mlnxofedinstall && cp /usr/bin/sleep " +
				"/home/ops/mlnxofedinstall")
			user("! mkdir /var/lib/rdma-setup 2>/dev/null && ! ln -s /home/ops /var/lib/rdma-setup 2>/dev/null && ! mkdir /run/rdma-setup " +
				"2>/dev/null")
			other := make(chan error, 1)
			go func() {
				_, err := m.Run(t.Context(), m.vm, ssh.Command{Script: "/home/ops/mlnxofedinstall 600", Limit: time.Hour})
				other <- err
			}()
			m.root(t, "until pgrep -x mlnxofedinstall; do sleep 0.05; done")
			testclass.OK(t, m.Setters()[backends.KindOFED].Set(t.Context(), s, to, nil))
			if now, err := m.Setters()[backends.KindOFED].Read(t.Context(), s); err != nil || now != readBack(to) {
				t.Errorf("it is %s, %v", now, err)
			}
			if got := m.root(t, "ls -d /root/owned /var/tmp/rdma-setup-ofed/"+name+" 2>/dev/null; pkill mlnxofedinstall; ps"); !strings.HasPrefix(
				got, "/var/tmp/rdma-setup-ofed/"+name+"\n") {
				t.Errorf("there are: %s", got)
			}
			<-other
			if left := m.root(t, "ls -d /run/rdma-setup /var/lib/rdma-setup 2>/dev/null || :"); left != "" {
				t.Errorf("left: %s", left)
			}
		})
	}
}

// mlnxofedinstall --force would also remove packages that depend on the distribution's: it is not started in that case.
func TestOFEDRemovesNothingElse(t *testing.T) {
	m := newMachine(t, config{os: "ubuntu-22.04", vf: true})
	m.root(t, "apt-get install -y rdma-core nfs-rdma-tools")
	_, err := m.Setters()[backends.KindOFED].(backends.Keeper).Keep(t.Context(), m.setting(backends.KindOFED, ""),
		ofedOf(ofedNow, "ubuntu22.04", "x86_64"))
	if backends.KindOf(err) != backends.KindConflict || !strings.Contains(err.Error(), "nfs-rdma-tools") {
		t.Errorf("%v", err)
	}
}

func TestSurveyReportsArchives(t *testing.T) {
	files := []string{"/mnt/share/ofed/" + ofedNow + "-ubuntu22.04-x86_64.tgz", "/mnt/share/ofed", "/mnt/it's not $HOME"}
	m := newMachine(t,
		config{os: "ubuntu-22.04", options: guest.Options{Archives: func() []string { return files },
			Packages: []string{"linux-headers-KERNEL", "linux-modules-KERNEL"}}})
	g := m.Survey(t.Context(), m.vm)
	if !g.Archives[files[0]] || g.Archives[files[1]] || g.Archives[files[2]] || len(g.Archives) != 3 {
		t.Errorf("%v", g.Archives)
	}
	if len(g.Packages) != 1 || g.Packages["linux-modules-"+g.Kernel] == "" {
		t.Errorf("%v", g.Packages)
	}
}

// The distribution's packages are restored in their earlier versions, if the repositories still have them.
func TestOFEDRestoresVersions(t *testing.T) {
	m := newMachine(t, config{os: "ubuntu-22.04", vf: true, older: map[string]string{"libibverbs1": "38.0-1"}})
	m.root(t, "apt-mark hold libibverbs1; apt-mark auto libibverbs1")
	set, s := m.Setters()[backends.KindOFED], m.setting(backends.KindOFED, "")
	to := ofedOf(ofedNow, "ubuntu22.04", "x86_64")
	k, _ := backends.As[backends.Keeper](set)
	kept, err := k.Keep(t.Context(), s, to)
	if err == nil {
		err = set.Set(t.Context(), s, to, nil)
	}
	testclass.OK(t, err)
	// As long as no repository has it, that is named, and all else is put back.
	kept = throughJSON(t, kept)
	m.fault(t, "command=apt-cache madison libibverbs1,do=fail:N: Unable to locate package libibverbs1")
	var lost backends.Unobtainable
	err = k.Restore(t.Context(), s, kept, nil)
	if d := m.differs(t, backends.Assignment{Setting: s, To: to}, kept); !errors.As(err, &lost) ||
		!slices.Equal(lost.Names, []string{"libibverbs1"}) || !lost.Only(d) || len(d) != 1 {
		t.Errorf("%v; there differ %v", err, d)
	}
	m.world.Faults.Clear()
	testclass.OK(t, k.Restore(t.Context(), s, kept, nil))
	if got := m.root(t, "dpkg-query -W -f '${Version}' libibverbs1"); got != "38.0-1" {
		t.Errorf("libibverbs1 is %s", got)
	}
	if got := m.root(t, "apt-mark showhold; apt-mark showauto"); got != "libibverbs1\nlibibverbs1\n" && got != "libibverbs1\nlibibverbs1" {
		t.Errorf("held and automatically installed: %q", got)
	}
	if d := m.differs(t, backends.Assignment{Setting: s, To: to}, kept); len(d) > 0 {
		t.Errorf("there differ %v", d)
	}
}
