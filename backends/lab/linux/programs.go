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
			"sudo": m.sudo, "systemctl": m.systemd.Systemctl(m.power), "systemd-run": m.systemd.Run, "nproc": m.nproc, "lspci": m.lspci,
			"reboot":           func(ctx context.Context, p *sh.Proc) int { return m.power(ctx, p, "reboot") },
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
		fmt.Fprintf(p.Stderr,
			"Failed to set wall message, ignoring: Interactive authentication required.\nFailed to %s system via logind: Interactive "+
				"authentication required.\n", verb)
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

func (m *Machine) nproc(_ context.Context, p *sh.Proc) int {
	p.Printf("%d\n", m.cfg.CPUs)
	return 0
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
