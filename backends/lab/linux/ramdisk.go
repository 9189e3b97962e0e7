package linux

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/linux/netif"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// ramdisk returns the content of an initial RAM disk: a line that differs each time, then the files that it contains: all of
// /etc/modprobe.d, which mkinitramfs(8) copies, and the .link files, which udev's hook copies. It contains nothing from
// /etc/modules-load.d and no systemd units.
func (m *Machine) ramdisk() []byte {
	var b strings.Builder
	b.WriteString("initrd " + uuid4() + "\n")
	dirs := []string{"etc/modprobe.d", linkDir}
	if !m.distro.deb { // a generic image of dracut: see dracutModules
		b.WriteString(m.dracutModules())
		dirs = dirs[1:]
	}
	for _, dir := range dirs {
		ending := map[string]string{"etc/modprobe.d": ".conf", linkDir: ".link"}[dir]
		list, _ := m.sys.FS.ReadDir(vfs.Root(), "/"+dir) // a missing image counts as empty
		for _, i := range list {
			if strings.HasSuffix(i.Name(), ending) {
				fmt.Fprintf(&b, "-rw-r--r--   1 root     root     %8d Jan  1 00:00 %s\n", i.Size(), path.Join(dir, i.Name()))
			}
		}
	}
	return []byte(b.String())
}

// dracutModules returns the line of nouveau in an image of dracut, unless /etc/dracut.conf.d omits it (dracut.conf(5),
// omit_drivers). The image is a generic one, as in guests made from cloud images: it contains the drivers of all displays, and
// nothing of /etc/modprobe.d (dracut, modules.d/90kernel-modules and 50drm; package dracut-config-generic).
func (m *Machine) dracutModules() string {
	if !m.hasDefect(world.Nouveau) {
		return ""
	}
	for _, line := range m.conf("/etc/dracut.conf.d") {
		if words, is := strings.CutPrefix(line, "omit_drivers+="); is && slices.Contains(strings.Fields(strings.Trim(words, `"`)), "nouveau") {
			return ""
		}
	}
	return "-rw-r--r--   1 root     root       912384 Jan  1 00:00 usr/lib/modules/" + m.distro.kernel +
		"/kernel/drivers/gpu/drm/nouveau/nouveau.ko.xz\n"
}

// linkDir is the directory of the files by which udev names interfaces.
const linkDir = "etc/systemd/network"

// linkFile returns the first .link file that fits an adapter, and the name that it assigns (systemd.link(5)); "" for none. On systems
// with update-initramfs, udev names interfaces in the initial RAM disk, so a file in /etc takes effect after the next update of the
// RAM disk (README.Debian of udev, "Network interface naming"). The same applies if an image of dracut contains the driver (systemd
// issue 9006). netplan's files, which are written after that, take effect when udev sees the device again.
func (m *Machine) linkFile(p netif.Port) (file, name string) {
	disk, err := m.sys.FS.ReadFile(vfs.Root(), "/boot/initrd.img-"+m.distro.kernel)
	early := err == nil
	if !early {
		disk, _ = m.sys.FS.ReadFile(vfs.Root(), m.dracutImage())
		early = strings.Contains(string(disk), "/"+p.Driver()+".ko")
	}
	return netif.LinkFile(m.sys.FS, p, p.Name(), m.cfg.Hostname, func(file string) bool {
		return !early || !strings.HasPrefix(file, "/"+linkDir) || strings.Contains(string(disk), " "+strings.TrimPrefix(file, "/")+"\n")
	})
}

func (m *Machine) linkName(p netif.Port) string {
	_, name := m.linkFile(p)
	return name
}

// udevadm implements udevadm info -q property -p PATH for interfaces. It uses the .link file that matches now.
func (m *Machine) udevadm(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("q: query: p: path:")
	if err != nil {
		return p.Usage(1, err)
	}
	if len(o.Args) == 0 || o.Args[0] != "info" {
		return p.Errorf("only info is there")
	}
	l, there := m.net.Stack.Link(path.Base(o.Value("p", "path")))
	if !there {
		return p.Errorf("Unknown device \"%s\": No such device", o.Value("p", "path"))
	}
	file, _ := m.linkFile(l.Port)
	file = cmp.Or(file, "/usr/lib/systemd/network/99-default.link")
	p.Printf("INTERFACE=%s\nID_NET_DRIVER=%s\nID_NET_LINK_FILE=%s\nSUBSYSTEM=net\n", l.Name, l.Driver(), file)
	return 0
}

func (m *Machine) dracutImage() string { return "/boot/initramfs-" + m.distro.kernel + ".img" }

// lsinitrd lists the content of dracut's image for the running kernel. Only root can read it.
func (m *Machine) lsinitrd(_ context.Context, p *sh.Proc) int {
	data, err := m.sys.FS.ReadFile(p.User.Cred(), m.dracutImage())
	if err != nil {
		return p.Errorf("%s: %s", m.dracutImage(), vfs.Reason(err))
	}
	p.Printf("%s", data)
	return 0
}

// lsinitramfs lists the content of an initial RAM disk: lsinitramfs [-l] FILE...
func (m *Machine) lsinitramfs(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("l long")
	if err != nil {
		return p.Usage(1, err)
	}
	return p.EachInput(o.Args, func(name string, r io.Reader) int {
		data, err := io.ReadAll(r)
		if err != nil {
			return p.Errorf("%s: %s", name, vfs.Reason(err))
		}
		for line := range strings.Lines(string(data)) {
			switch w := strings.Fields(line); {
			case len(w) < 9:
			case o.Has("l", "long"):
				p.Printf("%s", line)
			default:
				p.Printf("%s\n", w[8])
			}
		}
		return 0
	})
}
