package linux

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/linux/netif"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/rdma"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// unitsTime is how long the boot waits for systemd units before logins are allowed.
const unitsTime = 2 * time.Second

// Power powers the guest on or off. On starts the boot immediately; off ends all processes of the guest and returns when they
// have ended.
func (m *Machine) Power(on bool) {
	m.turn.Lock()
	defer m.turn.Unlock()
	if !on {
		m.halt()
		return
	}
	m.mu.Lock()
	lost := m.lost
	m.lost = false
	m.mu.Unlock()
	if lost {
		_ = m.site.World.Update(func(s *world.State) ([]world.Event, error) {
			if v := s.VM(m.cfg.VM); v != nil {
				v.Guest.Up, v.Guest.NICs = false, nil
			}
			return []world.Event{{What: world.VMGuest, VM: m.cfg.VM, Detail: "down"}}, nil
		})
		return
	}
	m.start()
}

func (m *Machine) halt() {
	m.mu.Lock()
	s := m.session
	m.session.up = false
	m.mu.Unlock()
	if s.stop == nil {
		return
	}
	s.stop()
	ctx, cancel := context.WithTimeout(context.Background(), unitsTime)
	defer cancel()
	m.sys.Procs.KillAll(ctx)
	m.rdma.Detach("")
}

func (m *Machine) start() {
	ctx, stop := context.WithCancel(context.Background())
	m.mu.Lock()
	if m.session.stop != nil {
		m.session.stop()
	}
	m.session = bootSession{id: uuid4(), ctx: ctx, stop: stop}
	m.names, m.cfg.Names = m.cfg.Names, nil
	m.mu.Unlock()

	m.kernel.Boot()
	m.nvidia.Boot()
	m.kernel.Logf("Linux version %s", m.distro.kernel)
	for _, dir := range []string{"/tmp", "/run"} {
		_ = m.sys.FS.RemoveAll(vfs.Root(), dir) // both are created again
	}
	b := &builder{fs: m.sys.FS}
	b.dir(0o777, "/tmp")
	b.dir(0o755, "/run", "/run/systemd/system") // sd_booted(3)
	if b.err == nil {
		b.err = m.sys.FS.Chmod(vfs.Root(), "/tmp", 0o777|fs.ModeSticky)
	}
	if b.err != nil {
		m.kernel.Logf("%v", b.err)
	}
	ports := m.site.ports(m.cfg.VM)
	for _, p := range ports {
		if p.HCA != nil && p.HCA.SetDCB != nil {
			p.HCA.SetDCB(netif.DCB{}) // these settings are not persistent (NVIDIA, "Quality of Service (QoS)")
		}
	}
	m.net.Generate()
	m.net.Stack.Boot(ports)
	m.rdma.Plug(m.site.rdmaAdapters(m.cfg.VM))
	m.autoload()
	m.loadModules()
	m.net.Boot()
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.systemd.Boot(ctx)
	}()
	t := time.NewTimer(unitsTime)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
	m.applyDefects()
	m.enter(ctx)
	m.mu.Lock()
	if m.session.ctx == ctx {
		m.session.up = true
	}
	m.mu.Unlock()
	m.report()
}

// autoload loads the drivers of existing devices, as udev does early in the boot.
func (m *Machine) autoload() {
	for _, module := range []string{"ext4", "vmw_vmci", "vmw_balloon", "vmxnet3"} {
		_ = m.kernel.Load(module) // always present
	}
	for _, driver := range m.rdma.Drivers() {
		switch {
		case m.kernel.BuiltIn(driver):
			m.probed(driver) // whatever modprobe.d says
		case !m.blacklisted(driver):
			_ = m.kernel.Load(driver) // not an error if the kernel does not have it
		}
	}
	if len(m.site.gpus(m.cfg.VM)) > 0 {
		_ = m.kernel.Load("nvidia_drm") // if the driver is installed
		_ = m.kernel.Load("nvidia_uvm")
		if !m.kernel.Loaded("nvidia") && !m.keptOut("nouveau") {
			_ = m.kernel.Load("nouveau") // not an error if the kernel does not have it
		}
	}
}

// keptOut reports whether the initial RAM disk blacklists a driver. udev detects devices there first, so a file in
// /etc/modprobe.d takes effect only after update-initramfs or dracut has run (NVIDIA Driver Installation Guide, "Disabling
// Nouveau": the RAM disk has to be regenerated). If the image does not contain the driver, udev detects the device after the root
// file system is mounted, where the file takes effect.
func (m *Machine) keptOut(module string) bool {
	image := "/boot/initrd.img-" + m.distro.kernel
	if !m.distro.deb {
		image = m.dracutImage()
	}
	held, _ := m.sys.FS.ReadFile(vfs.Root(), image) // a missing image counts as empty
	late := !m.distro.deb && !strings.Contains(string(held), "/"+module+".ko")
	list, _ := m.sys.FS.ReadDir(vfs.Root(), "/etc/modprobe.d") // a missing image counts as empty
	for _, i := range list {
		data, err := m.sys.FS.ReadFile(vfs.Root(), path.Join("/etc/modprobe.d", i.Name()))
		if err != nil || !strings.HasSuffix(i.Name(), ".conf") || !slices.Contains(strings.Split(string(data), "\n"), "blacklist "+module) {
			continue
		}
		if late || strings.Contains(string(held), " etc/modprobe.d/"+i.Name()+"\n") {
			return true
		}
	}
	return false
}

// conf returns the lines of all NAME.conf files in the directories, without comments.
func (m *Machine) conf(dirs ...string) []string {
	var lines []string
	for _, dir := range dirs {
		list, err := m.sys.FS.ReadDir(vfs.Root(), dir)
		if err != nil {
			continue
		}
		for _, i := range list {
			if !strings.HasSuffix(i.Name(), ".conf") {
				continue
			}
			data, err := m.sys.FS.ReadFile(vfs.Root(), path.Join(dir, i.Name()))
			if err != nil {
				continue
			}
			for line := range strings.Lines(string(data)) {
				if line = strings.TrimSpace(line); line != "" && line[0] != '#' && line[0] != ';' {
					lines = append(lines, line)
				}
			}
		}
	}
	return lines
}

func (m *Machine) blacklisted(module string) bool {
	return slices.ContainsFunc(m.conf("/lib/modprobe.d", "/etc/modprobe.d"), func(line string) bool {
		f := strings.Fields(line)
		return len(f) == 2 && f[0] == "blacklist" && f[1] == module
	})
}

// loadModules loads modules as systemd-modules-load does.
func (m *Machine) loadModules() {
	for _, name := range m.conf("/lib/modules-load.d", "/etc/modules-load.d") {
		if err := m.kernel.Load(name); err != nil {
			m.kernel.Logf("systemd-modules-load: Failed to find module '%s'", name)
		}
	}
}

// probed handles the loading of a driver: its devices appear, and rdma-core's udev rules load the modules that programs
// require.
func (m *Machine) probed(module string) {
	if module != rdma.Driver && module != rdma.HCADriver {
		return
	}
	m.mu.Lock()
	booting := !m.session.up
	m.mu.Unlock()
	// Units run before logins are allowed, but after the network is up, so a driver that they load receives its events.
	m.rdma.Attach(module, booting && !m.networkUp())
	if len(m.rdma.List()) > 0 && m.pkgs.Installed("rdma-core") {
		_ = m.kernel.Load("rdma_ucm") // as configured in /etc/rdma/modules/rdma.conf
		_ = m.kernel.Load("rpcrdma")
	}
}

func (m *Machine) networkUp() bool {
	for _, l := range m.net.Stack.Links() {
		if l.Up {
			return true
		}
	}
	return false
}

// report sends the active interfaces to VMware Tools and so to vCenter.
func (m *Machine) report() {
	m.mu.Lock()
	up := m.session.up
	m.mu.Unlock()
	if !up {
		return
	}
	var nics []world.GuestNIC
	for _, l := range m.net.Stack.Links() {
		if !l.Up {
			continue
		}
		n := world.GuestNIC{MAC: l.MAC, Name: l.Name, MTU: l.MTU, OwnARP: l.Conf.Ignore > 0}
		for _, a := range l.Addrs {
			n.Addrs = append(n.Addrs, a.String())
		}
		nics = append(nics, n)
	}
	_ = m.site.World.SetGuestNICs(m.cfg.VM, nics) // not an error if the VM was deleted
}

// Replug applies changes of the VM's adapters while the VM is running.
func (m *Machine) Replug() {
	if _, up := m.Up(); !up {
		return
	}
	m.net.Stack.Plug(m.site.ports(m.cfg.VM))
	m.rdma.Plug(m.site.rdmaAdapters(m.cfg.VM))
	for _, driver := range m.rdma.Drivers() {
		if m.kernel.Loaded(driver) {
			m.rdma.Attach(driver, false)
		} else if !m.blacklisted(driver) {
			_ = m.kernel.Load(driver) // as udev does when the device appears
		}
	}
}

// lose prevents the guest from booting after the next reboot.
func (m *Machine) lose() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost = true
}

// Close ends all processes of the guest.
func (m *Machine) Close() { m.halt() }
