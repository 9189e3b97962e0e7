package linux

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/linux/netif"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// ramdisk is the content of an initial RAM disk: a line that differs each time, then what it holds of /etc/modprobe.d,
// which mkinitramfs(8) copies whole, and of the .link files, which the hook of udev copies; of /etc/modules-load.d and of systemd's units it takes nothing.
func (m *Machine) ramdisk() []byte {
	var b strings.Builder
	b.WriteString("initrd " + uuid4() + "\n")
	for _, dir := range []string{"etc/modprobe.d", linkDir} {
		ending := map[string]string{"etc/modprobe.d": ".conf", linkDir: ".link"}[dir]
		list, _ := m.sys.FS.ReadDir(vfs.Root(), "/"+dir) // none is an empty one
		for _, i := range list {
			if strings.HasSuffix(i.Name(), ending) {
				fmt.Fprintf(&b, "-rw-r--r--   1 root     root     %8d Jan  1 00:00 %s\n", i.Size(), path.Join(dir, i.Name()))
			}
		}
	}
	return []byte(b.String())
}

// linkDir holds the files by which udev names interfaces.
const linkDir = "etc/systemd/network"

// linkName returns the name that the first matching .link file gives an adapter by its MAC (systemd.link(5)), "" for none. Where there
// is update-initramfs udev names interfaces in the initial RAM disk, so that a file counts from its next renewal on (README.Debian
// of udev, "Network interface naming").
func (m *Machine) linkName(p netif.Port) string {
	list, _ := m.sys.FS.ReadDir(vfs.Root(), "/"+linkDir)                            // none is an empty one
	disk, err := m.sys.FS.ReadFile(vfs.Root(), "/boot/initrd.img-"+m.distro.kernel) // Debian and Ubuntu alone have one
	for _, i := range list {
		name := path.Join(linkDir, i.Name())
		if !strings.HasSuffix(name, ".link") || err == nil && !strings.Contains(string(disk), " "+name+"\n") {
			continue
		}
		data, _ := m.sys.FS.ReadFile(vfs.Root(), "/"+name)
		keys := map[string]string{}
		for line := range strings.Lines(string(data)) {
			if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
				keys[key] = value
			}
		}
		driver := "vmxnet3"
		if p.HCA != nil {
			driver = "mlx5_core"
		}
		if d := keys["Driver"]; strings.EqualFold(keys["MACAddress"], p.MAC) && (d == "" || d == driver) {
			return keys["Name"]
		}
	}
	return ""
}

// lsinitramfs lists what an initial RAM disk holds: lsinitramfs [-l] FILE...
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
