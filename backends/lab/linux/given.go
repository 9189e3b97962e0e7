package linux

import (
	"cmp"
	"context"
	"io/fs"
	"path"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sshd"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
	"github.com/rdma-setup/rdma-setup/backends/lab/timing"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/fault"
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
		b.file(0o644, "/usr/lib/NetworkManager/conf.d/10-globally-managed-devices.conf",
			"[keyfile]\nunmanaged-devices=*,except:type:wifi,except:type:gsm,except:type:cdma\n")
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

// connect applies the fault rules to a new connection.
func (s *Site) connect(vm string) sshd.Verdict {
	f, ok := s.World.Faults.Take(fault.Target{VM: vm}, "", "")
	if !ok {
		return sshd.Verdict{}
	}
	s.note(vm, f)
	return sshd.Verdict{Drop: f.Do == fault.DoDrop, Hang: f.Do == fault.DoHang, Wait: f.Wait}
}

func (s *Site) note(vm string, f fault.Rule) {
	s.World.Log.Note(world.Event{What: world.FaultApplied, VM: vm, Detail: f.Rule})
}

// wrap logs every program that a guest runs and applies fault rules to it.
func (s *Site) wrap(vm string) func(ctx context.Context, p *sh.Proc, run func() int) int {
	return func(ctx context.Context, p *sh.Proc, run func() int) int {
		if ctx.Value(enteredKey{}) != nil {
			return run()
		}
		long := timing.Long(p.Args)
		if !long && s.World.Log.Unlogged() && s.World.Faults.None() {
			return run()
		}
		argv := strings.Join(p.Args, " ")
		s.World.Log.Note(world.Event{What: world.Process, VM: vm, Detail: argv})
		if long {
			defer s.World.Begin("", vm, argv)()
		}
		f, ok := s.World.Faults.Take(fault.Target{VM: vm}, "", argv)
		if !ok {
			return run()
		}
		failure := 1
		if strings.HasPrefix(p.Name(), "apt") {
			failure = 100
		}
		return f.Run(ctx, p, failure, run, func(f fault.Rule) { s.note(vm, f) }, func() {
			s.World.After(0, func() { _ = s.World.Reset(vm) }) // fails if the guest is already going down
		})
	}
}
