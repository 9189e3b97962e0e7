// Package mofed implements MLNX_OFED in the lab's guests: the archives on a share, and the scripts that install, load and
// uninstall it. Texts and exit codes are those of the original scripts (MLNX_OFED manual, return codes; logs of 4.9, 5.6, 23.10
// and 24.01; the text of install.pl).
package mofed

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/rdma-setup/rdma-setup/backends/lab/linux/kernel"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/pkgs"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// Share is the directory of the archives in every guest.
const Share = "/mnt/share/ofed"

// Perftest is the protocol version of MLNX_OFED's perftest.
const Perftest = "6.23"

// Software is the state of MLNX_OFED in one guest.
type Software struct {
	FS     *vfs.FS
	DB     *pkgs.DB
	Kernel *kernel.Kernel
	System string // ubuntu22.04, debian12, rhel8.8
	Deb    bool
}

// Archives returns the file names on the share.
func Archives() []string {
	var list []string
	for _, system := range []string{"ubuntu20.04", "ubuntu22.04", "debian12.1", "rhel8.8", "rhel9.2", "rhel10.0"} {
		list = append(list, "MLNX_OFED_LINUX-24.10-1.1.4.0-"+system+"-x86_64.tgz")
	}
	return append(list, "MLNX_OFED_LINUX-23.10-3.2.2.0-ubuntu22.04-x86_64.tgz", "MLNX_OFED_LINUX-24.10-1.1.4.0-ubuntu22.04-aarch64.tgz")
}

// Mount adds the archives to the share.
func (s *Software) Mount() error {
	if err := s.FS.MkdirAll(vfs.Root(), Share, 0o755); err != nil {
		return err
	}
	for name, data := range packed() {
		if err := s.FS.WriteFile(vfs.Root(), path.Join(Share, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// packed contains the archives with the content that the installer reads. All guests share them.
var packed = sync.OnceValue(func() map[string][]byte {
	all := map[string][]byte{}
	for _, name := range Archives() {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		t := tar.NewWriter(z)
		dir := strings.TrimSuffix(name, ".tgz")
		parts := strings.Split(dir, "-") // MLNX_OFED_LINUX-VERSION-BUILD-SYSTEM-ARCH
		add := func(file string, mode int64, text []byte) {
			// A buffer collects everything written to it.
			_ = t.WriteHeader(&tar.Header{Name: dir + "/" + file, Mode: mode, Size: int64(len(text)), Typeflag: tar.TypeReg})
			_, _ = t.Write(text)
		}
		add("distro", 0o644, []byte(parts[len(parts)-2]+"\n"))
		add(".arch", 0o644, []byte(parts[len(parts)-1]+"\n"))
		add(".mlnx", 0o644, []byte(dir+"\n"))
		add("mlnxofedinstall", 0o755, sh.Binary("mlnxofedinstall"))
		_, _ = t.Close(), z.Close()
		all[name] = b.Bytes()
	}
	all["doca-host_2.9.1-018000-24.10-ubuntu2204_amd64.deb"] = []byte("!<arch>\n")
	all["doca-host-2.9.1-018000_24.10_rhel92.x86_64.rpm"] = []byte("\xed\xab\xee\xdb")
	return all
})

// Programs returns the scripts of MLNX_OFED.
func (s *Software) Programs() map[string]sh.Program {
	return map[string]sh.Program{"mlnxofedinstall": s.install, "openibd": s.openibd, "ofed_uninstall.sh": s.uninstall}
}

// line reads a one-line file in the directory of a script.
func (s *Software) line(dir, name string) string {
	data, err := s.FS.ReadFile(vfs.Root(), path.Join(dir, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// modules are the modules that openibd loads, in its order.
var modules = []string{"mlx5_core", "mlx5_ib", "ib_uverbs", "ib_umad", "rdma_cm", "rdma_ucm", "ib_ipoib"}

// openibd implements /etc/init.d/openibd.
func (s *Software) openibd(_ context.Context, p *sh.Proc) int {
	verb := ""
	if len(p.Args) == 2 {
		verb = strings.TrimPrefix(p.Args[1], "force-")
	}
	if !slices.Contains([]string{"start", "stop", "restart"}, verb) {
		p.Printf("Usage: %s {start|force-start|stop|force-stop|restart|force-restart|status}\n", p.Args[0])
		return 1
	}
	if !p.Root() {
		p.Printf("openibd: Only root can run it\n")
		return 1
	}
	if verb != "start" {
		if left := s.unload(); left != "" {
			p.Printf("Unloading %-55s[FAILED]\n", left)
			fmt.Fprintf(p.Stderr, "rmmod: ERROR: Module %s is in use\n", left)
			return 1
		}
		p.Printf("%-59s[  OK  ]\n", "Unloading HCA driver:")
	}
	if verb != "stop" {
		for _, m := range modules {
			if err := s.Kernel.Load(m); err != nil {
				p.Printf("%-59s[FAILED]\n", "Loading "+m)
				return 1
			}
		}
		p.Printf("%-59s[  OK  ]\n", "Loading HCA driver and Access Layer:")
	}
	return 0
}

// unload unloads the RDMA modules. It returns the first module that is in use, or "" on success.
func (s *Software) unload() string {
	for {
		left, went := "", false
		for _, l := range s.Kernel.List() {
			if !strings.HasPrefix(l.Name, "mlx5_") && !strings.HasPrefix(l.Name, "ib_") && !strings.HasPrefix(l.Name, "rdma_") &&
				!strings.HasPrefix(l.Name, "iw_") && l.Name != "rpcrdma" {
				continue
			}
			if s.Kernel.Unload(l.Name, false) == nil {
				went = true
			} else if left == "" {
				left = l.Name
			}
		}
		if !went || left == "" {
			return left
		}
	}
}
