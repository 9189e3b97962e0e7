package linux

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// updateInitramfs implements update-initramfs of initramfs-tools 0.142. mkinitramfs writes FILE.new, with working files in
// /var/tmp, and update-initramfs renames it. mkinitramfs removes its files on EXIT, INT and TERM; after SIGKILL all of them
// remain.
func (m *Machine) updateInitramfs(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("u c k: d v b:")
	if err != nil {
		return p.Usage(1, err)
	}
	if !p.Root() {
		fmt.Fprintf(p.Stderr, "update-initramfs: You must be root to do this.\n")
		return 1
	}
	if !o.Has("u", "c", "d") {
		fmt.Fprintf(p.Stderr, "Usage: update-initramfs {-c|-d|-u} [-k version] [-v] [-b directory]\n")
		return 1
	}
	file := "/boot/initrd.img-" + m.distro.kernel
	p.Printf("update-initramfs: Generating %s\n", file)
	tmp := fmt.Sprintf("%06X", p.PID)
	dir := "/var/tmp/mkinitramfs_" + tmp
	left := []string{dir, "/var/tmp/mkinitramfs-OL_" + tmp, "/var/tmp/mkinitramfs-MAIN_" + tmp, "/var/tmp/mkinitramfs-FW_" + tmp}
	w := work{m: m, p: p}
	w.write(file+".new", "")
	w.dir(dir)
	for _, name := range left[1:] {
		w.write(name, "")
	}
	w.spend(ctx, "mkinitramfs copy")
	w.write(file+".new", "init")
	w.spend(ctx, "mkinitramfs pack")
	w.write(file+".new", string(m.ramdisk()))
	if w.killed {
		if sh.Cause(ctx) != sh.SIGKILL {
			w.clear(left...)
		}
		return 1
	}
	w.clear(left...)
	if w.err == nil {
		w.err = m.sys.FS.Rename(vfs.Root(), file+".new", file)
	}
	if w.err != nil {
		w.clear(file + ".new")
		return p.Fail(1, "failed for %s with 1: %s", file, vfs.Reason(w.err))
	}
	return 0
}

// dracut implements dracut. It builds the image in a directory below /var/tmp and finally copies it over the old one. If it is
// killed during the copy, the image is incomplete (dracut.sh: cp --reflink=auto "$DRACUT_TMPDIR/initramfs.img" "$outfile").
func (m *Machine) dracut(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("v f q H force regenerate-all kver: add-drivers: no-hostonly hostonly")
	if err != nil {
		return p.Usage(1, err)
	}
	if !p.Root() {
		fmt.Fprintf(p.Stderr, "dracut: No permission to write to /boot.\n")
		return 1
	}
	file := m.dracutImage()
	if len(o.Args) > 0 {
		file = o.Args[0] // dracut(8): dracut [OPTION...] [<image> [<kernel version>]]
	}
	dir := fmt.Sprintf("/var/tmp/dracut.%06X", p.PID)
	w := work{m: m, p: p}
	w.dir(dir)
	w.spend(ctx, "dracut modules")
	w.write(dir+"/initramfs.img", "init")
	w.spend(ctx, "dracut pack")
	image := string(m.ramdisk())
	w.write(dir+"/initramfs.img", image)
	w.write(file, "init")
	w.spend(ctx, "dracut copy")
	w.write(file, image)
	if !w.killed || sh.Cause(ctx) != sh.SIGKILL {
		w.clear(dir)
	}
	switch {
	case w.killed:
		return 1
	case w.err != nil:
		w.clear(file)
		return p.Fail(1, "creation of %s failed: %s", file, vfs.Reason(w.err))
	}
	return 0
}

// work runs a program that writes files in steps. It ends early if the program is killed or a step fails.
type work struct {
	m      *Machine
	p      *sh.Proc
	killed bool
	err    error
}

func (w *work) on() bool { return !w.killed && w.err == nil }

func (w *work) spend(ctx context.Context, row string) {
	if w.on() {
		w.killed = !w.p.Spend(ctx, row)
	}
}

func (w *work) write(name, text string) {
	mode := fs.FileMode(0o600)
	if strings.HasSuffix(name, ".new") {
		mode = 0o644 // mkinitramfs: umask 0022
	}
	if w.on() {
		w.err = w.m.sys.FS.WriteFile(vfs.Root(), name, []byte(text), mode)
	}
}

func (w *work) dir(name string) {
	if w.on() {
		w.err = w.m.sys.FS.Mkdir(vfs.Root(), name, 0o700)
	}
}

func (w *work) clear(names ...string) {
	for _, n := range names {
		_ = w.m.sys.FS.RemoveAll(vfs.Root(), n) // already removed
	}
}
