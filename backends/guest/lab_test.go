package guest_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	xssh "golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sshd"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A machine is one guest of the lab behind a proxy that can be closed, and the Guests that know it.
type machine struct {
	*guest.Guests
	vm    string
	mac   string // of the RDMA adapter
	group string // its port group
	asked func() // called when the MAC of an adapter is looked up; may be nil
	world *world.World
	proxy *proxy

	ssh     ssh.Config
	targets func(vm string) (ssh.Target, bool)
}

type config struct {
	os         string
	sudo       string            // "": without a password
	user       string            // "": ops
	vf         bool              // has a VF, not a PVRDMA adapter
	card       bool              // was given a ConnectX whole
	preset     bool              // somebody has set it up by the guides
	driver     bool              // has GPUs and NVIDIA's driver
	vgpu       bool              // has the driver and a client configuration token for vGPUs
	unlicensed bool              // its network does not reach the license server
	nouveau    bool              // its kernel has nouveau
	source     bool              // it has what NVIDIA's driver and perftest are built with, and a share with their files
	builtIn    []string          // modules that are built into its kernel
	older      map[string]string // packages that are installed in another version than the one offered first
	options    guest.Options
}

func newMachine(t *testing.T, c config) *machine {
	t.Helper()
	name := "done"
	if c.vf {
		name = "sriov-ready"
	}
	if c.card {
		name = "gpudirect-done"
	}
	w, err := scenario.New(scenario.Spec{Hosts: 2, VMs: 2, Scenario: name, Timing: world.Timing{VMBoot: 50 * time.Millisecond,
		Shutdown: 20 * time.Millisecond}})
	testclass.OK(t, err)
	t.Cleanup(w.Close)
	m := &machine{world: w}
	w.View(func(s *world.State) {
		v := s.VMs[0]
		if c.card {
			m.vm, m.group = v.Name, backends.WholeHCA
			for _, d := range v.Devices {
				if p := s.Host(v.Host).Whole(d.PCI); p != nil {
					m.mac = p.MAC
				}
			}
			return
		}
		if c.vf {
			v.Adapters = append(v.Adapters, virtualFunction(s, v))
			m.vm, m.mac, m.group = v.Name, v.Adapters[1].MAC, v.Adapters[1].PortGroup
			return
		}
		m.vm, m.mac, m.group = v.Name, v.RDMA()[0].MAC, v.RDMA()[0].PortGroup
	})
	if c.user == "" {
		c.user = "ops"
	}
	lc := linux.Config{VM: m.vm, OS: c.os, Hostname: m.vm, User: "ops", Password: "let me in", Sudo: c.sudo, SudoAsks: c.sudo != "", CPUs: 2,
		MemoryMB: 4096, Older: c.older, BuiltIn: c.builtIn, Lease: "10.20.0.11/16"}
	if c.preset {
		lc.Preset, lc.RDMAAddr = "pvrdma", "192.168.50.21/24"
	}
	if c.driver {
		lc.Preset = "gpudirect"
	}
	if c.vgpu {
		lc.Preset = "vgpu"
	}
	if c.unlicensed {
		lc.Defects = append(lc.Defects, world.NoLicenseServer)
	}
	if c.source {
		lc.Preset = "gpu-source"
	}
	if c.nouveau {
		lc.Defects = []world.Defect{world.Nouveau}
		w.View(func(s *world.State) { // before the guest is switched on
			v := s.VMs[0]
			for _, d := range s.Host(v.Host).PCI {
				if d.GPU != nil && len(v.Devices) == 0 {
					v.Devices = append(v.Devices, &world.Passthrough{Key: 13000, PCI: d.Address, Vendor: d.Vendor, Device: d.Device, Slot: v.NextSlot()})
				}
			}
		})
	}
	lm, err := linux.New(&linux.Site{World: w, Scripts: sh.NewScripts()}, lc)
	testclass.OK(t, err)
	w.OnPower(m.vm, lm.Power)
	lm.Power(true)
	t.Cleanup(lm.Close)
	_, private, err := ed25519.GenerateKey(rand.Reader)
	testclass.OK(t, err)
	key, err := xssh.NewSignerFromKey(private)
	testclass.OK(t, err)
	server, err := sshd.Listen("127.0.0.1:0", lm, key)
	testclass.OK(t, err)
	t.Cleanup(func() { server.Close() })
	m.proxy = openProxy(t, server.Addr())

	host, port, _ := net.SplitHostPort(m.proxy.listener.Addr().String())
	known := filepath.Join(t.TempDir(), "known_hosts")
	testclass.Write(t, known, "["+host+"]:"+port+" "+string(xssh.MarshalAuthorizedKey(key.PublicKey())))
	m.ssh = ssh.Config{
		KnownHosts:   []string{known},
		Password:     func(context.Context, ssh.Target) (string, error) { return "let me in", nil },
		SudoPassword: func(context.Context, ssh.Target) (string, error) { return c.sudo, nil },
		DialTimeout:  10 * time.Second,
	}
	pool, err := ssh.NewPool(m.ssh)
	testclass.OK(t, err)
	t.Cleanup(func() { pool.Close() })
	number, _ := strconv.Atoi(port)
	c.options.Poll = 20 * time.Millisecond
	if c.options.TakeBack == 0 {
		c.options.TakeBack = 20 * time.Second
	}
	if c.options.Settle == 0 {
		c.options.Settle = 4 * time.Second
	}
	m.targets = func(vm string) (ssh.Target, bool) {
		return ssh.Target{Class: "guest", Host: host, Port: number, User: c.user}, vm == m.vm
	}
	m.Guests = guest.New(pool, m.targets, m, c.options)
	t.Cleanup(func() { m.Guests.Close() })
	return m
}

// virtualFunction is an adapter with a VF of the host's ConnectX-5, on a switch of its own.
func virtualFunction(s *world.State, v *world.VM) *world.Adapter {
	s.Switches = append(s.Switches, &world.DVS{Name: "D", MTU: 9000, Uplinks: []string{"u1"},
		PortGroups: []*world.PortGroup{{Name: "P", Active: []string{"u1"}}},
		Members:    []*world.Member{{Host: v.Host, PNICs: []string{"vmnic2"}}}})
	h := s.Host(v.Host)
	return &world.Adapter{Type: world.SRIOV, MAC: world.MAC(v.Index, 1), DVS: "D", PortGroup: "P", Connected: true, Start: true, Slot: 224,
		GuestMTU: true,
		PF:       "0000:3b:00.0", VF: h.VFs(h.PNICAt("0000:3b:00.0"))[0].Address}
}

// Devices makes the machine a guest.MACs.
func (m *machine) Devices(context.Context, string) ([]backends.AssignedDevice, error) {
	return nil, nil
}

// AdapterMAC makes the machine a guest.MACs.
func (m *machine) AdapterMAC(_ context.Context, _, portGroup string) (string, error) {
	if portGroup != m.group {
		return "", backends.Errorf(backends.KindPermanent, m.vm, "", "no adapter on %s", portGroup)
	}
	if m.asked != nil {
		m.asked()
	}
	return strings.ToUpper(m.mac), nil
}

func (m *machine) setting(kind backends.Kind, name string) backends.Setting {
	return backends.Setting{Target: backends.GuestRef(m.vm), Kind: kind, Name: name}
}

// root runs a script in the guest as root and gives what it printed.
func (m *machine) root(t *testing.T, script string) string {
	t.Helper()
	r, err := m.Run(t.Context(), m.vm, ssh.Command{Script: script, Sudo: true, MaxOutput: 8 << 20})
	testclass.OK(t, err)
	if r.ExitCode != 0 {
		t.Fatalf("%s: exit code %d: %s", script, r.ExitCode, r.Stderr)
	}
	return r.Stdout
}

// disk is every file below /etc with its mode, owner and content.
func (m *machine) disk(t *testing.T) string {
	t.Helper()
	return m.root(t,
		`find /etc /usr/local -type f | sort | while read -r f; do stat -c '== %n %a %u:%g' "$f"; cat "$f"; done; find /etc -type l | sort`)
}

func (m *machine) reboot(t *testing.T) {
	t.Helper()
	before, err := m.BootID(t.Context(), m.vm)
	testclass.OK(t, err)
	testclass.OK(t, m.world.RebootGuest(m.vm))
	testclass.OK(t, m.Boot(t.Context(), m.vm, before))
}

// A proxy is a TCP proxy that can be closed: open connections are cut, and new ones are refused.
type proxy struct {
	listener net.Listener
	mu       sync.Mutex
	closed   bool
	open     []net.Conn
	done     sync.WaitGroup
}

func openProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testclass.OK(t, err)
	d := &proxy{listener: l}
	d.done.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			d.mu.Lock()
			if err != nil || d.closed {
				in.Close()
				if err == nil {
					out.Close()
				}
				d.mu.Unlock()
				continue
			}
			d.open = append(d.open, in, out)
			d.mu.Unlock()
			d.pass(in, out)
			d.pass(out, in)
		}
	})
	t.Cleanup(func() { l.Close(); d.close(); d.done.Wait() })
	return d
}

func (d *proxy) pass(to, from net.Conn) {
	d.done.Go(func() {
		defer to.Close()
		buf := make([]byte, 32<<10)
		for {
			n, err := from.Read(buf)
			if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
				return
			}
		}
	})
}

func (d *proxy) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for _, c := range d.open {
		c.Close()
	}
	d.open = nil
}

// refuse refuses new connections; what is open stays.
func (d *proxy) refuse() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
}

func (d *proxy) reopen() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = false
}
