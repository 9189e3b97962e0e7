package containers_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/wizard/generate/containers"
)

// A machine is a guest in a directory: its files, and commands that behave like those of a package manager.
type machine struct {
	t    *testing.T
	root string
}

// fakes are the commands; $W is the machine. Packages are files in $W/installed.
var fakes = map[string]string{
	"id": `echo 0`,
	// Docker installs a dependency as well.
	"apt-get": `cmd=; for a in "$@"; do case $a in -*) ;; update|install|purge|remove) cmd=$a ;; *)
		case $cmd in install) touch "$W/installed/$a" "$W/installed/iptables" ;; purge|remove) rm "$W/installed/$a" || exit 100 ;; esac ;; esac; done`,
	"dnf":        `cmd=; for a in "$@"; do case $a in -*) ;; info) exit 1 ;; install|remove) cmd=$a ;; *) case $cmd in install) touch "$W/installed/$a" "$W/installed/iptables" ;; remove) rm "$W/installed/$a" || exit 1 ;; esac ;; esac; done`,
	"apt-cache":  `[ -f "$W/offered/$2" ]`,
	"dpkg-query": `case "$*" in *Abbrev*) for a in $(ls "$W/installed"); do echo "ii  $a"; done; exit ;; esac; for a in "$@"; do :; done; [ -f "$W/installed/$a" ] && printf 'install ok installed'`,
	"rpm": `case $1 in -qa) ls "$W/installed" ;; -e) shift; for a in "$@"; do rm "$W/installed/$a" || exit 1; done ;;
		*) for a in "$@"; do case $a in -* | *NAME*) ;; *) if [ -f "$W/installed/$a" ]; then echo "$a"; else echo "package $a is not installed"; bad=1; fi ;; esac; done; [ -z "$bad" ] ;; esac`,
	"dpkg":       `case $1 in --purge) shift; for a in "$@"; do rm -f "$W/installed/$a"; done ;; *) echo amd64 ;; esac`,
	"curl":       `while [ $# -gt 0 ]; do case $1 in -o) echo "from $url" >"$2"; shift ;; -*) ;; *) url=$1 ;; esac; shift; done`,
	"gpg":        `printf 'pub:-:\nfpr:::::::::%s:\n' "$(cat "$W/fingerprint")"`,
	"systemctl":  `case $1 in is-active) [ -f "$W/active/$3" ] ;; is-enabled) [ -f "$W/active/$3" ] ;; enable) touch "$W/active/docker" ;; esac`,
	"nvidia-ctk": `mkdir -p "$W/etc/docker"; echo '{"runtimes": {"nvidia": {"args": [], "path": "nvidia-container-runtime"}}}' >"$W/etc/docker/daemon.json"`,
	"docker":     `case "$1 $2" in "volume ls") echo nv1 ;; "ps -q") echo c1 ;; esac`,
}

func newMachine(t *testing.T, release string, installed ...string) *machine {
	t.Helper()
	m := &machine{t, t.TempDir()}
	for _, d := range []string{"installed", "offered", "active", "bin", "etc/apt/sources.list.d", "etc/yum.repos.d", "var/lib"} {
		testclass.OK(t, os.MkdirAll(filepath.Join(m.root, d), 0o755))
	}
	m.write("etc/os-release", release)
	m.write("etc/group", "root:x:0:\n")
	m.write("fingerprint", containers.DockerKey)
	for _, p := range installed {
		m.write("installed/"+p, "")
	}
	for name, body := range fakes {
		m.write("bin/"+name, "#!/bin/sh\necho \"$(basename \"$0\") $*\" >>\"$W/log\"\n"+body+"\n")
		testclass.OK(t, os.Chmod(filepath.Join(m.root, "bin", name), 0o755))
	}
	return m
}

func (m *machine) write(name, text string) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.root, name), []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) log() string {
	m.t.Helper()
	b, err := os.ReadFile(filepath.Join(m.root, "log"))
	if err != nil {
		m.t.Fatal(err)
	}
	return string(b)
}

func (m *machine) run(d containers.Setup, args ...string) (string, error) {
	m.t.Helper()
	script := strings.NewReplacer("/etc/", m.root+"/etc/", "/var/lib/", m.root+"/var/lib/", "/sys/", m.root+"/sys/").Replace(d.Script(origin))
	cmd := exec.Command("/bin/sh", append([]string{"-s", "--"}, args...)...)
	cmd.Stdin = strings.NewReader(script)
	cmd.Env = []string{"PATH=" + m.root + "/bin:/usr/bin:/bin", "W=" + m.root}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// state is every package and every file below etc and var.
func (m *machine) state() []string {
	m.t.Helper()
	var out []string
	for _, d := range []string{"installed", "etc", "var"} {
		err := filepath.WalkDir(filepath.Join(m.root, d), func(p string, e os.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				out = append(out, strings.TrimPrefix(p, m.root+"/"))
			}
			return err
		})
		if err != nil {
			m.t.Fatal(err)
		}
	}
	return out
}

const (
	ubuntu = "ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=jammy\nUBUNTU_CODENAME=jammy\n"
	debian = "ID=debian\nVERSION_CODENAME=bookworm\n"
	rocky  = "ID=rocky\nID_LIKE=\"rhel centos fedora\"\n"
)

// The script undoes all its changes and nothing else; a second run changes nothing.
func TestDockerSetupAndBack(t *testing.T) {
	for name, release := range map[string]string{"ubuntu": ubuntu, "debian": debian, "rocky": rocky} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, release, "curl")
			before := m.state()
			d := containers.Setup{NVIDIA: true}
			if out, err := m.run(d); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			after := m.state()
			for _, want := range []string{"installed/docker-ce", "installed/containerd.io", "installed/nvidia-container-toolkit"} {
				if !slices.Contains(after, want) {
					t.Errorf("no %s in %v", want, after)
				}
			}
			if out, err := m.run(d); err != nil || !slices.Equal(m.state(), after) {
				t.Errorf("run again: %v %s %v", err, out, m.state())
			}
			if n := strings.Count(m.log(), "systemctl restart docker"); n != 1 {
				t.Errorf("Docker was restarted %d times by two runs, of which one changed its configuration", n)
			}
			if out, err := m.run(d, "undo"); err != nil || !slices.Equal(m.state(), before) {
				t.Errorf("undo: %v %s\n%v\n%v", err, out, before, m.state())
			}
			if out, err := m.run(d, "undo"); err != nil || !slices.Equal(m.state(), before) {
				t.Errorf("undo again: %v %s", err, out)
			}
		})
	}
}

// The distribution's Docker comes from the guest's own repositories, and so does the toolkit if they have it.
func TestDockerSetupOfTheDistribution(t *testing.T) {
	m := newMachine(t, debian)
	m.write("offered/nvidia-container-toolkit", "")
	before := m.state()
	d := containers.Setup{Distribution: true, NVIDIA: true}
	if out, err := m.run(d); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if s := m.state(); !slices.Contains(s, "installed/docker.io") || !slices.Contains(s, "installed/nvidia-container-toolkit") ||
		strings.Contains(m.log(), "curl") {
		t.Errorf("%v\n%s", s, m.log())
	}
	if out, err := m.run(d, "undo"); err != nil || !slices.Equal(m.state(), before) {
		t.Errorf("undo: %v %s\n%v\n%v", err, out, before, m.state())
	}
}

// If AppArmor is enabled, Docker starts no container without apparmor_parser, whose package it only recommends (seen with docker.io
// 20.10.24 of Debian 12, installed without recommended packages).
func TestDockerSetupBringsWhatAppArmorNeeds(t *testing.T) {
	for _, on := range []bool{true, false} {
		m := newMachine(t, debian)
		testclass.OK(t, os.MkdirAll(filepath.Join(m.root, "sys/module/apparmor/parameters"), 0o755))
		m.write("sys/module/apparmor/parameters/enabled", map[bool]string{true: "Y\n", false: "N\n"}[on])
		out, err := m.run(containers.Setup{Distribution: true})
		if err != nil || slices.Contains(m.state(), "installed/apparmor") != on {
			t.Errorf("AppArmor %v: %v %s %v", on, err, out, m.state())
		}
	}
}

// Docker looks for the toolkit when it starts: it is restarted if its configuration is right already and the toolkit is new, and if
// a run was interrupted in between.
func TestDockerSetupRestartsForANewToolkit(t *testing.T) {
	for _, cut := range []bool{false, true} {
		m := newMachine(t, ubuntu, "curl", "docker-ce", "docker-ce-cli", "containerd.io")
		m.write("active/docker", "")
		testclass.OK(t, os.MkdirAll(filepath.Join(m.root, "etc/docker"), 0o755))
		m.write("etc/docker/daemon.json", "{\"runtimes\": {\"nvidia\": {\"args\": [], \"path\": \"nvidia-container-runtime\"}}}\n")
		if cut {
			m.write("fingerprint", "cut")
			m.write("bin/nvidia-ctk", "#!/bin/sh\n[ \"$(cat \"$W/fingerprint\")\" != cut ]\n")
			if out, err := m.run(containers.Setup{NVIDIA: true}); err == nil || strings.Contains(m.log(), "restart docker") {
				t.Fatalf("nothing was cut off: %s", out)
			}
			m.write("fingerprint", "")
		}
		if out, err := m.run(containers.Setup{NVIDIA: true}); err != nil || strings.Count(m.log(), "systemctl restart docker") != 1 {
			t.Errorf("cut off: %v: %v %s\n%s", cut, err, out, m.log())
		}
	}
}

// Docker is configured for the toolkit and restarted; an earlier configuration is restored.
func TestDockerSetupConfiguresTheToolkit(t *testing.T) {
	m := newMachine(t, ubuntu, "curl")
	testclass.OK(t, os.MkdirAll(filepath.Join(m.root, "etc/docker"), 0o755))
	const own = "{\"mtu\": 9000}\n"
	m.write("etc/docker/daemon.json", own)
	if out, err := m.run(containers.Setup{NVIDIA: true}); err != nil ||
		!strings.Contains(m.log(), "nvidia-ctk runtime configure --runtime=docker") || !strings.Contains(m.log(), "systemctl restart docker") {
		t.Fatalf("%v: %s\n%s", err, out, m.log())
	}
	if out, err := m.run(containers.Setup{NVIDIA: true}, "undo"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if b, err := os.ReadFile(filepath.Join(m.root, "etc/docker/daemon.json")); err != nil || string(b) != own {
		t.Errorf("%q, %v", b, err)
	}
}

// Release 7 has yum and no dnf.
func TestDockerSetupOnRelease7(t *testing.T) {
	m := newMachine(t, "ID=centos\nID_LIKE=\"rhel fedora\"\nVERSION_ID=7\n")
	testclass.OK(t, os.Rename(filepath.Join(m.root, "bin/dnf"), filepath.Join(m.root, "bin/yum")))
	if out, err := m.run(containers.Setup{NVIDIA: true}); err != nil || !strings.Contains(m.log(), "yum install -y docker-ce") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestDockerSetupUsesTheRepositoryOfTheGuest(t *testing.T) {
	m := newMachine(t, ubuntu)
	if out, err := m.run(containers.Setup{}); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(filepath.Join(m.root, "etc/apt/sources.list.d/rdma-setup-docker.list"))
	if err != nil || !strings.Contains(string(b), "https://download.docker.com/linux/ubuntu jammy stable") ||
		!strings.Contains(string(b), "signed-by=") {
		t.Errorf("%s (%v)", b, err)
	}
	if slices.Contains(m.state(), "installed/nvidia-container-toolkit") {
		t.Error("the NVIDIA toolkit was not asked for")
	}
}

// Nothing is removed, and no key is trusted, that was not requested.
func TestDockerSetupRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		d      containers.Setup
		change func(*machine)
		want   string
	}{
		{"the distribution's Docker", containers.Setup{}, func(m *machine) { m.write("installed/docker.io", "") }, "docker.io is installed"},
		{"GPUDirect RDMA on vSphere 6.7: a key of somebody else", containers.Setup{},
			func(m *machine) { m.write("fingerprint", strings.Repeat("A", 40)) }, "fingerprint"},
		{"a node of Kubernetes", containers.Setup{}, func(m *machine) {
			m.write("active/kubelet", "")
		}, "kubelet runs here: its container runtime is left alone"},
		{"containerd of the distribution", containers.Setup{}, func(m *machine) { m.write("installed/containerd", "") },
			"containerd of the distribution is installed"},
		{"a distribution without a Docker of its own", containers.Setup{Distribution: true},
			func(m *machine) { m.write("etc/os-release", rocky) }, "rocky has no Docker of its own"},
		{"Docker's own package, and the distribution's is wanted", containers.Setup{Distribution: true},
			func(m *machine) { m.write("installed/docker-ce", "") }, "docker-ce is installed"},
		{"a distribution nobody packs for", containers.Setup{}, func(m *machine) { m.write("etc/os-release", "ID=alpine\n") },
			"no repository is known for alpine"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMachine(t, ubuntu)
			tt.change(m)
			before := m.state()
			out, err := m.run(tt.d)
			if err == nil || !strings.Contains(out, tt.want) {
				t.Errorf("%v: %s", err, out)
			}
			if s := m.state(); slices.Contains(s, "installed/docker-ce") != slices.Contains(before, "installed/docker-ce") ||
				slices.Contains(s, "installed/docker.io") != slices.Contains(before, "installed/docker.io") ||
				slices.Contains(s, "etc/apt/keyrings/rdma-setup-docker.asc") {
				t.Errorf("it went on: %v", s)
			}
		})
	}
}

func TestDockerSetupRemovesWhatWasAgreed(t *testing.T) {
	m := newMachine(t, ubuntu, "docker.io", "nvidia-docker")
	out, err := m.run(containers.Setup{RemoveOld: true, RemoveNVIDIA1: true})
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if s := m.state(); slices.Contains(s, "installed/docker.io") || slices.Contains(s, "installed/nvidia-docker") {
		t.Errorf("%v", s)
	}
	log, err := os.ReadFile(filepath.Join(m.root, "log"))
	if err != nil || !strings.Contains(string(log), "docker rm -f c1") {
		t.Errorf("the containers of nvidia-docker 1 stay: %s", log)
	}
	keep := newMachine(t, ubuntu, "nvidia-docker")
	if out, err := keep.run(containers.Setup{}); err != nil || !slices.Contains(keep.state(), "installed/nvidia-docker") {
		t.Errorf("nvidia-docker 1 goes unasked: %v %s", err, out)
	}
}

func TestDockerSetupIsPOSIX(t *testing.T) {
	o := origin
	o.From = []string{"x\nreboot"}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(containers.Setup{NVIDIA: true}.Script(o)), "setup")
	testclass.OK(t, err)
	syntax.Walk(f, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 && (c.Args[0].Lit() == "reboot" || c.Args[0].Lit() == "apt-key") {
			t.Errorf("line %d runs %s", c.Pos().Line(), c.Args[0].Lit())
		}
		return true
	})
}
