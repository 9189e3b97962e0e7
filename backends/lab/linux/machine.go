package linux

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends/lab/fabric"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/engine"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/kernel"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/mofed"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/netif"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/nvidia"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/perftest"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/pkgs"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/rdma"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/systemd"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sshd"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// Config describes the guest to create.
type Config struct {
	VM, OS, Hostname string
	User             string // can log in with a key and with the password
	Password         string
	Sudo             string // password for sudo
	SudoAsks         bool
	AuthorizedKey    string
	Preset           string // what is already set up, for example "pvrdma"
	RDMAAddr         string // address/prefix of the preset
	Defects          []world.Defect
	CPUs             int
	MemoryMB         int64
	UUID             string
	Index            int    // index of the VM; DHCP on the RDMA network derives the address from it
	Lease            string // address/prefix that DHCP assigns to the first adapter
	// Older lists packages that are installed in a version other than the latest one that the distribution offers; it offers both.
	Older map[string]string
	// BuiltIn lists modules that are built into the kernel. All that they need is built in too.
	BuiltIn []string

	Packages []string          // in addition to those of a new installation and of the preset; KERNEL is replaced by the kernel's release
	Files    []world.File      // in addition to those
	Leases   map[string]string // address/prefix that DHCP assigns to other adapters, by MAC
	Names    map[string]string // names of RDMA devices until the second boot, by the MAC of the interface
	Entered  string            // shell script that root runs after the first boot
}

// Machine is one guest. New creates it powered off. It implements sshd.Machine.
type Machine struct {
	cfg     Config
	site    *Site
	distro  distro
	people  []person
	keys    []ssh.PublicKey
	sys     *sh.System
	kernel  *kernel.Kernel
	net     *netif.Config
	pkgs    *pkgs.DB
	rdma    *rdma.Devices
	systemd *systemd.Manager
	nvidia  *nvidia.Driver
	engine  *engine.Engine
	mofed   *mofed.Software

	turn    sync.Mutex // serialises power changes
	mu      sync.Mutex
	session bootSession
	names   map[string]string // of RDMA devices, by MAC
	lost    bool              // a fault prevents the next boot
}

// bootSession is the state that lasts from boot to shutdown.
type bootSession struct {
	id   string
	ctx  context.Context
	stop context.CancelFunc
	up   bool // responds
}

// New creates a guest with a freshly installed disk. If cfg.Preset is set, the guest is already set up.
func New(site *Site, cfg Config) (*Machine, error) {
	m := &Machine{cfg: cfg, site: site, distro: site.distro(cfg.OS), people: people(cfg)}
	if m.hasDefect(world.NoDriver) {
		m.distro.modules = kernel.Without(m.distro.modules, rdma.Driver)
	}
	if m.hasDefect(world.Nouveau) {
		m.distro.modules = append(slices.Clone(m.distro.modules), kernel.Nouveau())
	}
	m.distro.modules = kernel.WithBuiltIn(m.distro.modules, cfg.BuiltIn...)
	if cfg.AuthorizedKey != "" {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(cfg.AuthorizedKey))
		if err != nil {
			return nil, fmt.Errorf("lab: guest %s: authorized key: %w", cfg.VM, err)
		}
		m.keys = []ssh.PublicKey{key}
	}
	m.sys = &sh.System{FS: vfs.New(time.Now), Now: time.Now, Dash: m.distro.deb, Clock: site.World.Timing.Commands, Wrap: site.wrap(cfg.VM),
		Scripts: site.Scripts}
	m.sys.Dial = m.dial
	m.kernel = kernel.New(m.distro.kernel, m.distro.modules, time.Now)
	m.kernel.Private = m.distro.private
	stack := &netif.Stack{Named: m.linkName, Fresh: func(name string) netif.Conf { return netif.Sysctls(m.sys.FS, name) }}
	m.net = &netif.Config{Stack: stack, FS: m.sys.FS, Wire: wire{m}, Netplan: m.distro.deb,
		Strict: m.distro.deb && m.distro.version != "20.04", DHCP: m.dhcp, Now: time.Now,
		Listening: func() []int { return site.meeting.Listening(cfg.VM) }}
	m.rdma = &rdma.Devices{Stack: stack, Modules: m.kernel.Version, Quirks: m.distro.quirks, Logf: m.kernel.Logf,
		Named: func() bool { return m.pkgs.Installed("rdma-core") }, Umad: func() bool { return m.kernel.Loaded("ib_umad") },
		Known: m.named, ECN: func() bool { return m.pkgs.Installed("mlnx-tools") }}
	m.pkgs = pkgs.New(m.sys.FS, m.sys, m.distro.packages)
	m.nvidia = &nvidia.Driver{GPUs: func() []nvidia.GPU { return site.gpus(cfg.VM) }, Kernel: m.kernel, API: m.peerAPI, Logf: m.kernel.Logf,
		NICs: m.smiNICs,
		Token: func() bool {
			_, err := m.sys.FS.ReadFile(vfs.Root(), tokenFile)
			return err == nil
		}}
	m.kernel.Extra, m.kernel.Init, m.pkgs.Changed = m.nvidia.Modules, m.nvidia.Init, m.packageChanged
	m.engine = &engine.Engine{Verbs: m.verbsBy, Tool: m.toolWith}
	m.systemd = &systemd.Manager{FS: m.sys.FS, Sys: m.sys, BuiltIn: m.builtIn(), Root: m.root,
		Restart: map[string]func(){"systemd-networkd.service": m.net.Networkd, "NetworkManager.service": m.net.NetworkManager,
			"systemd-modules-load.service": m.loadModules}}
	m.mofed = &mofed.Software{FS: m.sys.FS, DB: m.pkgs, Kernel: m.kernel, System: m.distro.ofed(), Deb: m.distro.deb}
	m.programs()
	if err := m.image(); err != nil {
		return nil, fmt.Errorf("lab: guest %s: %w", cfg.VM, err)
	}
	if err := m.preset(); err != nil {
		return nil, fmt.Errorf("lab: guest %s: %w", cfg.VM, err)
	}
	if err := m.given(); err != nil {
		return nil, fmt.Errorf("lab: guest %s: %w", cfg.VM, err)
	}
	for name, version := range cfg.Older {
		if err := m.pkgs.Outdate(name, version); err != nil {
			return nil, fmt.Errorf("lab: guest %s: %w", cfg.VM, err)
		}
	}
	stack.Changed = m.report
	stack.WentUp = func(name string) {
		m.linkWent(name, "Up 10000 Mbps")
		m.rdma.NetdevUp(name)
	}
	stack.WentDown = func(name string) { m.linkWent(name, "Down") }
	m.kernel.Probed = m.probed
	m.kernel.Removed = func(module string) {
		if module == rdma.Driver || module == rdma.HCADriver {
			m.rdma.Detach(module)
		}
	}
	return m, nil
}

func (m *Machine) builtIn() map[string]bool {
	list := map[string]bool{"ssh.service": true, "sshd.service": true, "systemd-modules-load.service": true, "network-online.target": true,
		"network.target": true, "multi-user.target": true, "sysinit.target": true, "basic.target": true, "open-vm-tools.service": true,
		"vmtoolsd.service":      true,
		"systemd-udevd.service": true, "dbus.service": true, "cron.service": true, "chronyd.service": true}
	if m.distro.deb {
		list["systemd-networkd.service"], list["ufw.service"], list["systemd-networkd-wait-online.service"] = true, true, true
	} else {
		list["NetworkManager.service"], list["NetworkManager-wait-online.service"], list["crond.service"] = true, true, true
	}
	return list
}

// root returns a process of root on the console.
func (m *Machine) root() *sh.Proc {
	return &sh.Proc{User: m.people[0].user(), Dir: "/", Env: []string{"PATH=" + rootPath, "HOME=/root", "LANG=C.UTF-8"},
		Session: &sh.Session{Memlock: -1}, Sys: m.sys}
}

// dhcp returns the address that a DHCP server assigns to a MAC. The first adapter is on the management network, the others are
// on the RDMA network, which may have no server.
func (m *Machine) dhcp(mac string) (netip.Prefix, bool) {
	list := m.Adapters()
	if len(list) == 0 {
		return netip.Prefix{}, false
	}
	if lease, err := netip.ParsePrefix(m.cfg.Leases[mac]); err == nil {
		return lease, true
	}
	if list[0].MAC != mac {
		network := ""
		m.site.World.View(func(s *world.State) { network = s.DHCP })
		p, err := netip.ParsePrefix(network)
		if err != nil || !p.Addr().Is4() || m.cfg.Index > 99 {
			return netip.Prefix{}, false // no server, or no free address
		}
		a := p.Addr().As4()
		a[3] = byte(151 + m.cfg.Index)
		return netip.PrefixFrom(netip.AddrFrom4(a), p.Bits()), true
	}
	p, err := netip.ParsePrefix(m.cfg.Lease)
	return p, err == nil
}

func (m *Machine) boot() bootSession {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.session
}

// Up implements sshd.Machine.
func (m *Machine) Up() (context.Context, bool) {
	s := m.boot()
	return s.ctx, s.up
}

// Account implements sshd.Machine. It reads the current authorized_keys.
func (m *Machine) Account(name string) (sshd.Account, bool) {
	if m.hasDefect(world.NoLogin) {
		return sshd.Account{}, false
	}
	for _, p := range m.people {
		if p.name != name {
			continue
		}
		a := sshd.Account{User: p.user(), Password: p.secret, Keys: m.authorized(p.user())}
		if p.uid == 0 {
			a.Password = "" // PermitRootLogin prohibit-password
		}
		return a, true
	}
	return sshd.Account{}, false
}

func (m *Machine) authorized(u sh.User) []ssh.PublicKey {
	data, err := m.sys.FS.ReadFile(vfs.Root(), u.Home+"/.ssh/authorized_keys")
	if err != nil {
		return nil
	}
	var keys []ssh.PublicKey
	for len(data) > 0 {
		key, _, _, rest, err := ssh.ParseAuthorizedKey(data)
		if err != nil {
			break
		}
		keys, data = append(keys, key), rest
	}
	return keys
}

// Login implements sshd.Machine.
func (m *Machine) Login(u sh.User, s *sh.Session) *sh.Proc {
	s.Memlock = m.memlock(u)
	path := m.distro.path
	if u.UID == 0 {
		path = rootPath
	}
	return &sh.Proc{User: u, Dir: u.Home, Session: s, Sys: m.sys,
		Env: []string{"PATH=" + path, "HOME=" + u.Home, "USER=" + u.Name, "LOGNAME=" + u.Name, "SHELL=" + u.Shell, "LANG=C.UTF-8",
			"SSH_CONNECTION=" + strings.ReplaceAll(s.Peer, ":", " ") + " " + m.address() + " 22"}}
}

// address returns the address of the first interface, at which the guest can be reached.
func (m *Machine) address() string {
	if links := m.net.Stack.Links(); len(links) > 0 && len(links[0].Addrs) > 0 {
		return links[0].Addrs[0].Addr().String()
	}
	return "127.0.0.1"
}

// Connect implements sshd.Machine.
func (m *Machine) Connect() sshd.Verdict { return m.site.connect(m.cfg.VM) }

// Banner implements sshd.Machine.
func (m *Machine) Banner() string { return m.distro.banner }

func (m *Machine) tool() perftest.Tool { return m.toolWith(m.verbs()) }

func (m *Machine) toolWith(v *rdma.Verbs) perftest.Tool {
	version := func() string {
		if m.pkgs.Foreign("perftest") {
			return mofed.Perftest
		}
		return m.distro.perftest
	}
	return perftest.Tool{
		VM: m.cfg.VM, Version: version, Relaxed: m.distro.relaxed, Meeting: &m.site.meeting, Load: &m.site.load, Net: wire{m},
		Verbs: v, Use: m.useDrivers, CUDA: m.cuda(),
	}
}

// useDrivers prevents the RDMA drivers from being unloaded until the returned function is called.
func (m *Machine) useDrivers() func() {
	var release []func()
	for _, driver := range m.rdma.Drivers() {
		release = append(release, m.kernel.Use(driver))
	}
	return func() {
		for _, f := range release {
			f()
		}
	}
}

// linkWent returns the driver's line in the kernel log for a change of the link.
func (m *Machine) linkWent(name, state string) {
	if l, ok := m.net.Stack.Link(name); ok && l.HCA != nil {
		m.kernel.Logf("mlx5_core %s %s: Link %s", l.PCI(), name, strings.ToLower(strings.Fields(state)[0]))
		return
	}
	m.kernel.Logf("vmxnet3 %s: NIC Link is %s", name, state)
}

func (m *Machine) verbs() *rdma.Verbs {
	return m.verbsBy(func(driver string) bool { return rdma.HasProvider(m.sys.FS, driver) })
}

func (m *Machine) verbsBy(provider func(driver string) bool) *rdma.Verbs {
	return &rdma.Verbs{Devices: m.rdma, Provider: provider,
		Uverbs: func() bool { return m.kernel.Loaded("ib_uverbs") }}
}

// uuid4 returns a random UUID, like the kernel's boot ID.
func uuid4() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

var _ sshd.Machine = (*Machine)(nil)

// end returns the fabric endpoint of an interface.
func (m *Machine) end(l netif.Link) fabric.End {
	return fabric.End{VM: m.cfg.VM, MAC: l.MAC, MTU: l.MTU, Up: l.Up}
}

// Adapters returns the VM's current adapters.
func (m *Machine) Adapters() []world.Adapter { return m.site.adapters(m.cfg.VM) }
