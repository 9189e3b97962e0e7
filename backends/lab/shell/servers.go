// Package shell runs the shells of the lab: one SSH server for each ESXi host and each guest, on a loopback port or in a network inside
// the process. They use the same world as the simulated vCenter.
package shell

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends/lab/esxi"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux"
	"github.com/rdma-setup/rdma-setup/backends/lab/memnet"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sshd"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// Options configure the servers.
type Options struct {
	Listen  string          // address without port; default: 127.0.0.1
	Inside  *memnet.Network // listen there instead; nil: a network of this machine
	AtStart int             // maximum number of machines for which servers listen at start; others listen on demand; default: 4096
}

// Servers are the SSH servers of a lab. A machine is created at the first connection.
type Servers struct {
	world  *world.World
	listen string
	inside *memnet.Network // nil: the network of this machine
	site   *linux.Site

	mu     sync.Mutex
	closed bool
	guests map[string]*endpoint
	hosts  map[string]*endpoint
}

// endpoint is the SSH server of one machine.
type endpoint struct {
	server  *sshd.Server
	machine *machine
	key     ssh.PublicKey
}

// Start starts the SSH servers of w and stores their addresses in the world. They accept the passwords and the key of
// w.Secrets. ctx applies to the start only.
func Start(ctx context.Context, w *world.World, o Options) (*Servers, error) {
	s := &Servers{world: w, listen: o.Listen, inside: o.Inside, guests: map[string]*endpoint{}, hosts: map[string]*endpoint{}}
	if s.listen == "" {
		s.listen = "127.0.0.1"
	}
	s.site = &linux.Site{World: w, Scripts: sh.NewScripts()}
	w.Watch(s.follow)
	var hosts, vms []string
	w.View(func(st *world.State) {
		for _, h := range st.Hosts {
			hosts = append(hosts, h.Name)
		}
		for _, v := range st.VMs {
			vms = append(vms, v.Name)
		}
	})
	limit := o.AtStart
	if limit == 0 {
		limit = 4096
	}
	if len(hosts)+len(vms) > limit {
		return s, nil
	}
	for _, h := range hosts {
		if _, err := s.Host(h); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	for _, v := range vms {
		if _, err := s.Guest(v); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, ctx.Err()
}

// Guest returns the loopback address, with its port, of a guest's SSH server, and starts it if necessary.
func (s *Servers) Guest(vm string) (string, error) {
	addr, fresh, err := s.open(s.guests, vm, s.newGuest)
	if err != nil || !fresh {
		return addr, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return "", err
	}
	return addr, s.world.SetGuestAddr(vm, host, n)
}

// Host returns the address of a host's SSH server, and starts it if necessary.
func (s *Servers) Host(name string) (string, error) {
	addr, fresh, err := s.open(s.hosts, name, s.newHost)
	if err != nil || !fresh {
		return addr, err
	}
	return addr, s.world.SetShellAddr(name, addr)
}

func (s *Servers) open(endpoints map[string]*endpoint, name string,
	build func(string) (inner, error)) (addr string, fresh bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := endpoints[name]; d != nil {
		return d.server.Addr(), false, nil
	}
	if s.closed {
		return "", false, errors.New("lab: the shells are closed")
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", false, fmt.Errorf("lab: host key of %s: %w", name, err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return "", false, fmt.Errorf("lab: host key of %s: %w", name, err)
	}
	m := &machine{build: func() (inner, error) { return build(name) }}
	var server *sshd.Server
	if s.inside != nil {
		server = sshd.Serve(s.inside.Listen(), m, signer)
	} else if server, err = sshd.Listen(net.JoinHostPort(s.listen, "0"), m, signer); err != nil {
		return "", false, err
	}
	endpoints[name] = &endpoint{server: server, machine: m, key: signer.PublicKey()}
	return server.Addr(), true, nil
}

func (s *Servers) newGuest(vm string) (inner, error) {
	cfg, found := linux.Config{VM: vm}, false
	s.world.View(func(st *world.State) {
		v := st.VM(vm)
		if v == nil {
			return
		}
		found = true
		g := v.Guest
		cfg = linux.Config{VM: vm, OS: g.OS, Hostname: g.Hostname, User: g.User, SudoAsks: g.SudoAsks, Preset: g.Preset, Defects: g.Defects,
			RDMAAddr: g.RDMAAddr,
			CPUs:     v.CPUs, MemoryMB: v.MemoryMB, UUID: v.UUID, Index: v.Index, Lease: v.Management(),
			Packages: g.Packages, Files: g.Files, Leases: g.Leases, BuiltIn: g.BuiltIn, Names: g.Names, Entered: g.Entered,
			Password: s.world.Secrets.Guest, Sudo: s.world.Secrets.Sudo, AuthorizedKey: s.world.Secrets.AuthorizedKey}
	})
	if !found {
		return nil, fmt.Errorf("lab: no VM %q", vm)
	}
	m, err := linux.New(s.site, cfg)
	if err != nil {
		return nil, err
	}
	s.world.OnPower(vm, m.Power)
	up := false
	s.world.View(func(st *world.State) {
		v := st.VM(vm)
		up = v != nil && v.On && v.Guest.Up
	})
	if up {
		m.Power(true)
	}
	return m, nil
}

func (s *Servers) newHost(name string) (inner, error) {
	return esxi.New(s.world, name, s.world.Secrets.AuthorizedKey)
}

// follow passes an event of the world to the machines that it concerns.
func (s *Servers) follow(e world.Event) {
	switch e.What {
	case world.VMDevices, world.HostDown, world.HostUp, world.HostService, world.HostFirewall, world.SwitchChanged:
	default:
		return
	}
	s.mu.Lock()
	var concerned []*machine
	if e.What == world.VMDevices {
		if d := s.guests[e.VM]; d != nil {
			concerned = append(concerned, d.machine)
		}
	} else if d := s.hosts[e.Host]; d != nil {
		concerned = append(concerned, d.machine)
	}
	s.mu.Unlock()
	for _, m := range concerned {
		m.update()
	}
}

// Dial connects to the address of a server.
func (s *Servers) Dial(ctx context.Context, addr string) (net.Conn, error) {
	if s.inside != nil {
		return s.inside.Dial(ctx, addr)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}

// KnownHosts returns the host keys of all listening servers in known_hosts format.
func (s *Servers) KnownHosts() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out bytes.Buffer
	for _, endpoints := range []map[string]*endpoint{s.hosts, s.guests} {
		for _, d := range endpoints {
			host, port, err := net.SplitHostPort(d.server.Addr())
			if err != nil {
				continue
			}
			fmt.Fprintf(&out, "[%s]:%s %s", host, port, ssh.MarshalAuthorizedKey(d.key))
		}
	}
	return out.Bytes()
}

// Close stops all servers and everything that runs on their machines.
func (s *Servers) Close() error {
	s.mu.Lock()
	s.closed = true
	var all []*endpoint
	for _, endpoints := range []map[string]*endpoint{s.guests, s.hosts} {
		for _, d := range endpoints {
			all = append(all, d)
		}
	}
	s.mu.Unlock()
	var wg sync.WaitGroup
	errs := make([]error, len(all))
	for i, d := range all {
		wg.Go(func() {
			d.machine.close()
			errs[i] = d.server.Close()
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
