package linux

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// ramdisk is the content of an initial RAM disk: a line that differs each time, then what it holds of /etc/modprobe.d,
// which mkinitramfs(8) copies whole; of /etc/modules-load.d and of systemd's units it takes nothing.
func (m *Machine) ramdisk() []byte {
	var b strings.Builder
	b.WriteString("initrd " + uuid4() + "\n")
	list, err := m.sys.FS.ReadDir(vfs.Root(), "/etc/modprobe.d")
	if err != nil {
		return []byte(b.String())
	}
	for _, i := range list {
		if strings.HasSuffix(i.Name(), ".conf") {
			fmt.Fprintf(&b, "-rw-r--r--   1 root     root     %8d Jan  1 00:00 %s\n", i.Size(), path.Join("etc/modprobe.d", i.Name()))
		}
	}
	return []byte(b.String())
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
