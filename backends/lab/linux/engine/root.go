package engine

import (
	"io/fs"
	"maps"
	"net/netip"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/fabric"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/perftest"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/pkgs"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/rdma"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/coreutils"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// A base is an image in a registry.
type base struct {
	release    string // Ubuntu release
	codename   string
	mofed      []pkgs.Package // installed instead of the distribution's
	debs       []string       // directories below /opt/mellanox/DEBS
	entrypoint string
}

// bases returns the available images, by name and tag.
func bases() map[string]base {
	const banner = "\n=====================\n== NVIDIA TensorRT ==\n=====================\n\nNVIDIA Release 20.12 (build 18397034)\n\n"
	ngc := base{release: "20.04", codename: "focal", mofed: mofed("51mlnx1-1.51246"), entrypoint: banner,
		debs: []string{"ibverbs-providers", "ibverbs-utils", "libibverbs-dev", "libibverbs1"}}
	newer := base{release: "22.04", codename: "jammy", mofed: mofed("2307mlnx47-1.2310063"), entrypoint: banner}
	return map[string]base{
		"nvcr.io/nvidia/tensorrt:20.12-py3": ngc, "nvcr.io/nvidia/tensorflow:20.12-tf2-py3": ngc, "nvcr.io/nvidia/pytorch:24.01-py3": newer,
		"ubuntu:22.04": {release: "22.04", codename: "jammy"}, "ubuntu:20.04": {release: "20.04", codename: "focal"},
	}
}

// mofed returns MLNX_OFED's verbs libraries, which have no provider for PVRDMA, and its perftest.
func mofed(version string) []pkgs.Package {
	return []pkgs.Package{
		{Name: "libibverbs1", Version: version, Arch: "amd64"}, {Name: "ibverbs-providers", Version: version, Arch: "amd64"},
		{Name: "libibverbs-dev", Version: version, Arch: "amd64"},
		{Name: "ibverbs-utils", Version: version, Arch: "amd64", Bin: map[string]string{"/usr/bin/ibv_devinfo": "ibv_devinfo"}},
	}
}

// A root is the root file system of an image, with its packages.
type root struct {
	sys *sh.System
	db  *pkgs.DB
}

func newRoot(now func() time.Time, b base) (*root, error) {
	files := vfs.New(now)
	r := &root{sys: &sh.System{FS: files, Now: now, Dash: true}}
	r.db = pkgs.New(files, r.sys, pkgs.NewOffer(pkgs.Ubuntu(b.release, "none")))
	var err error
	step := func(f func() error) {
		if err == nil {
			err = f()
		}
	}
	for _, d := range []string{"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/local/bin", "/etc", "/root", "/tmp", "/var/lib", "/var/log",
		"/opt/mellanox/DEBS/current", "/dev", "/proc"} {
		step(func() error { return files.MkdirAll(vfs.Root(), d, 0o755) })
	}
	for name, to := range map[string]string{"/bin": "usr/bin", "/sbin": "usr/sbin", "/lib": "usr/lib"} {
		step(func() error { return files.Symlink(vfs.Root(), to, name) })
	}
	file := func(name, text string, mode fs.FileMode) {
		step(func() error { return files.WriteFile(vfs.Root(), name, []byte(text), mode) })
	}
	file("/etc/os-release", "NAME=\"Ubuntu\"\nID=ubuntu\nID_LIKE=debian\nVERSION_ID=\""+b.release+"\"\nVERSION_CODENAME="+b.codename+
		"\nUBUNTU_CODENAME="+b.codename+"\n", 0o644)
	file("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\n", 0o644)
	for _, d := range b.debs {
		file("/opt/mellanox/DEBS/current/"+d+"_51mlnx1-1.51246_amd64.deb", "!<arch>\n", 0o644)
	}
	step(func() error {
		return r.db.Install(r.db.Plan([]string{"coreutils", "bash", "dash", "grep", "sed", "mawk", "findutils", "diffutils", "debianutils",
			"hostname", "apt", "dpkg", "util-linux"}))
	})
	step(func() error { return r.db.InstallForeign(b.mofed) })
	return r, err
}

// programs returns the programs of the packages that are installed in the image.
func (r *root) programs(verbs *rdma.Verbs, tool perftest.Tool) map[string]sh.Program {
	all := coreutils.Programs()
	for _, g := range []map[string]sh.Program{r.db.DebPrograms(), verbs.Programs(), tool.Programs()} {
		maps.Copy(all, g)
	}
	return all
}

// alone is the network of a container that does not use the host's network: its listening ports are behind the guest's address
// translation.
type alone struct{}

func (alone) Reach(netip.Addr) (string, bool)                 { return "", false }
func (alone) Path(fabric.End, fabric.End) fabric.Path         { return fabric.Path{} }
func (alone) Transmit(fabric.Path, fabric.Flow) fabric.Effect { return fabric.Effect{Left: 1} }
