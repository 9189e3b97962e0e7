package linux

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/coreutils"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/fault"
)

// programs registers all programs of a guest. Which of them exist depends on the installed packages.
func (m *Machine) programs() {
	all := coreutils.Programs()
	groups := []map[string]sh.Program{m.kernel.Programs(), m.net.Programs(), m.verbs().Programs(), m.tool().Programs(), m.nvidia.Programs(),
		m.mofed.Programs(), m.engine.Programs(), m.source().SourcePrograms(), {
			"sudo": m.sudo, "systemctl": m.systemd.Systemctl(m.power), "systemd-run": m.systemd.Run, "reboot": m.powerProgram, "shutdown": m.powerProgram, "poweroff": m.powerProgram,
			"halt": m.powerProgram, "journalctl": m.journalctl, "nproc": m.nproc, "sysctl": m.sysctl, "lspci": m.lspci,
			"nvidia-installer": m.nvidia.Installer(m.toolchain()), "nvidia-uninstall": m.nvidia.Uninstall,
			"update-initramfs": m.updateInitramfs, "lsinitramfs": m.lsinitramfs, "dracut": m.dracut, "lsinitrd": m.lsinitrd, "udevadm": m.udevadm,
			"ofed_info": m.ofedInfo,
		}}
	if m.distro.deb {
		groups = append(groups, m.pkgs.DebPrograms())
	} else {
		groups = append(groups, m.pkgs.RPMPrograms())
	}
	for _, g := range groups {
		maps.Copy(all, g)
	}
	m.sys.Programs = all
}

// powerDelay is the delay before the guest goes down, so that the client receives the exit status of the command.
const powerDelay = 30 * time.Millisecond

func (m *Machine) power(_ context.Context, p *sh.Proc, verb string) int {
	if !p.Root() {
		fmt.Fprintf(p.Stderr, "Failed to set wall message, ignoring: Interactive authentication required.\nFailed to %s system via logind: Interactive authentication required.\n", verb)
		return 1
	}
	if verb == "reboot" {
		if f, ok := m.site.World.Faults.NeverBack(fault.Target{VM: m.cfg.VM}); ok {
			m.site.note(m.cfg.VM, f)
			m.lose()
		}
	}
	w, vm := m.site.World, m.cfg.VM
	w.After(powerDelay, func() {
		// A guest that is already going down ignores another request.
		if verb == "reboot" {
			_ = w.RebootGuest(vm)
		} else {
			_ = w.ShutdownGuest(vm)
		}
	})
	return 0
}

func (m *Machine) powerProgram(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("r h P H f k c n p w reboot poweroff no-wall force")
	if err != nil {
		return p.Usage(1, err)
	}
	verb := p.Name()
	if verb == "shutdown" {
		if o.Has("c") {
			return 0
		}
		verb = "poweroff"
		if o.Has("r", "reboot") {
			verb = "reboot"
		}
		if len(o.Args) > 0 && o.Args[0] != "now" && o.Args[0] != "+0" {
			if _, err := strconv.Atoi(strings.TrimPrefix(o.Args[0], "+")); err != nil {
				fmt.Fprintf(p.Stderr, "Failed to parse time specification: %s\n", o.Args[0])
				return 1
			}
		}
	}
	if verb == "halt" {
		verb = "poweroff"
	}
	return m.power(ctx, p, verb)
}

func (m *Machine) journalctl(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("u: b x e n: k f no-pager o: q p: unit: lines: S: since:")
	if err != nil {
		return p.Usage(1, err)
	}
	unit := o.Value("u", "unit")
	m.mu.Lock()
	lines := append([]string(nil), m.journal...)
	m.mu.Unlock()
	if o.Has("k") {
		lines = m.kernel.Log()
	}
	shown := 0
	for _, l := range lines {
		if unit == "" || strings.Contains(l, " "+strings.TrimSuffix(unit, ".service")) {
			p.Printf("%s\n", l)
			shown++
		}
	}
	if shown == 0 {
		p.Printf("-- No entries --\n")
	}
	return 0
}

func (m *Machine) nproc(_ context.Context, p *sh.Proc) int {
	p.Printf("%d\n", m.cfg.CPUs)
	return 0
}

func (m *Machine) sysctl(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("n a w p q system")
	if err != nil {
		return p.Usage(1, err)
	}
	status := 0
	for _, name := range o.Args {
		key, value, set := strings.Cut(name, "=")
		data, err := p.Sys.FS.ReadFile(p.User.Cred(), "/proc/sys/"+strings.ReplaceAll(key, ".", "/"))
		switch {
		case err != nil:
			status = p.Fail(255, "cannot stat /proc/sys/%s: %s", strings.ReplaceAll(key, ".", "/"), vfs.Reason(err))
		case set && !p.Root():
			status = p.Fail(255, "permission denied on key \"%s\"", key)
		case set:
			if err := p.Sys.FS.WriteFile(p.User.Cred(), "/proc/sys/"+strings.ReplaceAll(key, ".", "/"), []byte(value+"\n"), 0o644); err != nil {
				status = p.Fail(255, "setting key \"%s\": %s", key, vfs.Reason(err))
				continue
			}
			p.Printf("%s = %s\n", key, value)
		case o.Has("n"):
			p.Printf("%s", data)
		default:
			p.Printf("%s = %s", key, data)
		}
	}
	return status
}

// memlock returns the memory lock limit that pam_limits sets for a session, in KiB; -1 means unlimited.
func (m *Machine) memlock(u sh.User) int64 {
	limit := m.distro.memlock
	if data, err := m.sys.FS.ReadFile(vfs.Root(), "/etc/security/limits.conf"); err == nil {
		for l := range strings.Lines(string(data)) {
			limit = limitLine(limit, u, l)
		}
	}
	for _, l := range m.conf("/etc/security/limits.d") {
		limit = limitLine(limit, u, l)
	}
	return limit
}

func limitLine(have int64, u sh.User, text string) int64 {
	f := strings.Fields(text)
	if len(f) != 4 || f[2] != "memlock" || f[1] == "hard" || f[0] == "*" && u.UID == 0 || f[0] != "*" && f[0] != u.Name {
		return have
	}
	if f[3] == "unlimited" || f[3] == "infinity" || f[3] == "-1" {
		return -1
	}
	if n, err := strconv.ParseInt(f[3], 10, 64); err == nil {
		return n
	}
	return have
}
