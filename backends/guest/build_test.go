package guest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

const (
	driverFile     = "/mnt/share/NVIDIA-Linux-x86_64-570.133.20.run"
	perftestSource = "/mnt/share/perftest-24.10.0-0.65.tar.gz"
)

// The driver and a perftest with CUDA are built from their files, told by the survey, and leave nothing behind when they are
// taken away; what was cut short is told from both.
func TestBuildFromFiles(t *testing.T) {
	for _, os := range []string{"ubuntu-22.04", "rhel-9"} {
		t.Run(os, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t,
				config{os: os, source: true, options: guest.Options{Archives: func() []string { return []string{driverFile, "/mnt/share/none.run"} }}})
			set := m.Setters()[backends.KindBuild]
			try := func(name string, to backends.Value) {
				t.Helper()
				s := m.setting(backends.KindBuild, name)
				testclass.OK(t, set.Set(t.Context(), s, to, nil))
				if now, err := set.Read(t.Context(), s); err != nil || now != to {
					t.Fatalf("%s is %s, want %s: %v", name, now, to, err)
				}
			}
			// Ubuntu 24.04 and Debian 13 have the headers of libpci-dev there.
			m.root(t, "mkdir -p /usr/include/x86_64-linux-gnu && mv /usr/include/pci /usr/include/x86_64-linux-gnu/pci")
			before := m.Survey(t.Context(), m.vm)
			if !before.Archives[driverFile] || before.Archives["/mnt/share/none.run"] || len(before.BuildTools) != 7 ||
				before.CUDAHeader != "/usr/local/cuda/include/cuda.h" || len(before.Built) != 0 || before.NVIDIA != nil {
				t.Fatalf("%+v", before)
			}
			try(backends.BuildDriver, backends.ValueOf(driverFile))
			try(backends.BuildPerftest, backends.ValueOf(perftestSource))
			try(backends.BuildPerftest, backends.ValueOf(perftestSource))
			g := m.Survey(t.Context(), m.vm)
			if g.NVIDIA == nil || g.NVIDIA.Driver != "570.133.20" || g.CUDATests == nil || g.CUDATests.Dir != "/opt/perftest/bin" ||
				g.Built[backends.BuildDriver] != backends.ValueOf(driverFile) {
				t.Fatalf("%+v %+v %v", g.NVIDIA, g.CUDATests, g.Built)
			}
			m.root(t, "echo 'begun "+perftestSource+"' >/var/lib/rdma-setup/built/perftest; rm /opt/perftest/bin/ib_write_bw")
			if g = m.Survey(t.Context(), m.vm); g.Built[backends.BuildPerftest] != backends.Partial(perftestSource) {
				t.Fatalf("cut short: %v", g.Built)
			}
			try(backends.BuildPerftest, backends.ValueOf(perftestSource)) // on top of the half of it
			keeper, _ := backends.As[backends.Keeper](set)
			s := m.setting(backends.KindBuild, backends.BuildPerftest)
			kept, err := keeper.Keep(t.Context(), s, backends.Absent)
			testclass.OK(t, err)
			kept = throughJSON(t, kept)
			differs := func(want int) {
				t.Helper()
				if d := m.differs(t, backends.Assignment{Setting: s}, kept); len(d) != want {
					t.Errorf("%d differences are wanted: %v", want, d)
				}
			}
			differs(0)
			m.root(t, "cp "+perftestSource+" /mnt/share/perftest-other.tar.gz")
			try(backends.BuildPerftest, backends.ValueOf("/mnt/share/perftest-other.tar.gz"))
			differs(1)
			m.root(t, "mv "+perftestSource+" /mnt/share/away")
			var lost backends.Unobtainable
			if err := keeper.Restore(t.Context(), s, kept, nil); !errors.As(err, &lost) || !strings.Contains(err.Error(), perftestSource) {
				t.Errorf("its file is gone: %v", err)
			}
			m.root(t, "mv /mnt/share/away "+perftestSource)
			if err := keeper.Restore(t.Context(), s, kept, nil); err != nil {
				t.Error(err)
			}
			differs(0)
			try(backends.BuildPerftest, backends.Absent)
			differs(2)
			if kept, err = keeper.Keep(t.Context(), s, backends.Absent); err != nil {
				t.Fatal(err)
			}
			try(backends.BuildPerftest, backends.ValueOf(perftestSource))
			m.root(t, "echo 'begun "+perftestSource+"' >/var/lib/rdma-setup/built/perftest; rm /opt/perftest/bin/ib_write_bw")
			differs(2)
			if err := keeper.Restore(t.Context(), s, kept, nil); err != nil {
				t.Error(err)
			}
			differs(0)
			try(backends.BuildDriver, backends.Absent)
			after := m.Survey(t.Context(), m.vm)
			if after.NVIDIA != nil || after.CUDATests != nil || len(after.Built) != 0 {
				t.Errorf("left: %+v %+v %v", after.NVIDIA, after.CUDATests, after.Built)
			}
			m.root(t, "! [ -e /opt/perftest ] && ! [ -e /var/lib/rdma-setup/built ] && [ -z \"$(ls /var/tmp)\" ]")
		})
	}
}

// One release of perftest is built beside the distribution's and beside one with CUDA, and taken away without touching either.
func TestSamePerftest(t *testing.T) {
	for _, os := range []string{"ubuntu-22.04", "rhel-9"} {
		t.Run(os, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, config{os: os, source: true})
			set, s := m.Setters()[backends.KindBuild], m.setting(backends.KindBuild, backends.BuildSamePerftest)
			m.root(t, "mkdir -p /opt/perftest && echo theirs >/opt/perftest/file && rm /usr/local/cuda/include/cuda.h")
			testclass.OK(t, set.Set(t.Context(), s, backends.ValueOf(perftestSource), nil))
			if g := m.Survey(t.Context(), m.vm); g.OwnTests != "6.24" || g.Tests() != "6.24" ||
				g.Built[backends.BuildSamePerftest] != backends.ValueOf(perftestSource) {
				t.Errorf("%q %q %v", g.OwnTests, g.Perftest, g.Built)
			}
			m.root(t, "echo 'begun "+perftestSource+"' >/var/lib/rdma-setup/built/perftest-same")
			if g := m.Survey(t.Context(), m.vm); g.OwnTests != "" || !g.Built[backends.BuildSamePerftest].IsPartial() {
				t.Errorf("cut short: %q %v", g.OwnTests, g.Built)
			}
			m.root(t, ": >/var/lib/rdma-setup/built/perftest-same")
			if now, err := set.Read(t.Context(), s); err != nil || !now.IsPartial() {
				t.Errorf("its note was cut off: %s, %v", now, err)
			}
			testclass.OK(t, set.Set(t.Context(), s, backends.Absent, nil))
			m.root(t, "[ -e /opt/perftest/file ] && ! [ -e /opt/perftest-same ] && ! [ -e /var/lib/rdma-setup/built ]")
			m.root(t, "mkdir /opt/perftest-same")
			if err := set.Set(t.Context(), s, backends.ValueOf(perftestSource), nil); err == nil ||
				!strings.Contains(backends.HintOf(err), "measure.perftest") {
				t.Errorf("somebody's own: %v; %s", err, backends.HintOf(err))
			}
		})
	}
}

// What keeps a build from its end is said with what to do about it.
func TestBuildIsRefused(t *testing.T) {
	m := newMachine(t, config{os: "ubuntu-22.04", source: true})
	for _, c := range []struct{ before, name, file, says, hint string }{
		{"", backends.BuildDriver, "/mnt/share/other.run", "no such file", "Copy the file there"},
		{"apt-get -y purge gcc", backends.BuildDriver, driverFile, "development tool `cc`", "/var/log/nvidia-installer.log"},
		{"apt-get -y install gcc && rm -r /lib/modules/$(uname -r)/build", backends.BuildDriver, driverFile,
			"Unable to find the kernel source tree", "linux-headers-"},
		{"mkdir /opt/perftest", backends.BuildPerftest, perftestSource, "not by this program", "remove gpudirect.perftest from"},
		{"rmdir /opt/perftest", backends.BuildPerftest, perftestSource, "cannot find -lcuda", "Install NVIDIA's driver first"},
		{"apt-get -y purge libpci-dev", backends.BuildPerftest, perftestSource, "pciutils", "headers"},
		{"rm /usr/local/cuda/include/cuda.h", backends.BuildPerftest, perftestSource, "cuda.h is not there", "Install the headers of CUDA"},
		{"echo no archive >" + perftestSource + "; touch /usr/include/cuda.h", backends.BuildPerftest, perftestSource,
			"not look like a tar archive", "./configure"},
	} {
		if c.before != "" {
			m.root(t, c.before)
		}
		s := m.setting(backends.KindBuild, c.name)
		err := m.Setters()[backends.KindBuild].Set(t.Context(), s, backends.ValueOf(c.file), nil)
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(backends.HintOf(err), c.hint) {
			t.Errorf("%s: %v; %s", c.before, err, backends.HintOf(err))
		}
	}
}
