package linux

import (
	"cmp"
	"context"
	"io/fs"
	"path"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// given installs the packages and creates the files of the configuration. Packages that the distribution does not offer are left out. A
// file replaces one of the new installation. A guest of netplan with files of or for
// NetworkManager has that too.
func (m *Machine) given() error {
	var names []string
	for _, name := range m.cfg.Packages {
		names = append(names, strings.ReplaceAll(name, "KERNEL", m.distro.kernel))
	}
	if err := m.pkgs.Install(m.pkgs.Plan(names)); err != nil || len(m.cfg.Files) == 0 {
		return err
	}
	b := &builder{fs: m.sys.FS}
	for _, f := range m.cfg.Files {
		if _, err := m.sys.FS.Stat(vfs.Root(), path.Dir(f.Path)); err != nil {
			b.dir(0o755, path.Dir(f.Path))
		}
		_ = m.sys.FS.Remove(vfs.Root(), f.Path) // often there is none
		if strings.Contains(f.Path, "/netplan/") && strings.Contains(f.Text, "NetworkManager") {
			b.dir(0o755, "/etc/NetworkManager")
		}
		switch {
		case b.err != nil:
		case f.Program != "":
			b.err = m.sys.Install(f.Program, f.Path)
		case f.Link != "":
			b.link(f.Link, f.Path)
		default:
			b.file(f.Mode, f.Path, f.Text)
		}
	}
	if _, err := m.sys.FS.Stat(vfs.Root(), "/etc/NetworkManager"); m.distro.deb && err == nil {
		b.err = cmp.Or(b.err, m.pkgs.Install(m.pkgs.Plan([]string{"network-manager"})))
		m.systemd.BuiltIn["NetworkManager.service"] = true
		b.dir(0o755, "/usr/lib/NetworkManager/conf.d")
		b.file(0o644, "/usr/lib/NetworkManager/conf.d/10-globally-managed-devices.conf", "[keyfile]\nunmanaged-devices=*,except:type:wifi,except:type:gsm,except:type:cdma\n")
	}
	image, mode := "/boot/initrd.img-"+m.distro.kernel, fs.FileMode(0o644)
	if !m.distro.deb {
		image, mode = m.dracutImage(), 0o600
	}
	b.file(mode, image, string(m.ramdisk()))
	return b.err
}

// named returns the name that the RDMA device of an interface has until the second boot, "" for that of udev or of the kernel.
func (m *Machine) named(mac string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.names[mac]
}

// enteredKey marks the context of commands that were entered before the lab began: fault rules and logs are about later ones.
type enteredKey struct{}

// enter runs the commands that someone entered since the last boot: only once.
func (m *Machine) enter(ctx context.Context) {
	script := m.cfg.Entered
	if m.cfg.Entered = ""; script == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, enteredKey{}, true), unitsTime)
	defer cancel()
	p := m.root().With("/bin/sh", "-c", script)
	p.Stdin, p.Stdout, p.Stderr = strings.NewReader(""), &strings.Builder{}, &strings.Builder{}
	_, _ = m.sys.Exec(ctx, p) // a command may fail, as for someone who enters it
}
