package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/esxi"
	"github.com/rdma-setup/rdma-setup/backends/guest"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/system"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// reachGuests creates the pool of SSH connections for the guests that the answers name.
func (s *Session) reachGuests() error {
	if s.Guests != nil {
		return nil
	}
	home := s.Env.Getenv("HOME")
	// Guests with a longer time limit for their facts get one for logins, and for network changes, too.
	cfg := ssh.Config{
		User: s.Set.SSHUser, CommandLimit: s.Env.CallLimit, AgentSocket: s.Env.Getenv("SSH_AUTH_SOCK"), WeakAlgorithms: s.Set.WeakSSH,
		Warn:  func(line string) { fmt.Fprintln(s.Env.Stderr, "WARNING: "+line) },
		Trace: s.Trace.Call, DialTimeout: max(10*time.Second, s.Set.GuestTimeout/4),
	}
	if s.Set.SSHKey != "" {
		cfg.Keys = []string{s.Set.SSHKey}
	} else if home != "" {
		for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
			if _, err := os.Stat(filepath.Join(home, ".ssh", name)); err == nil {
				cfg.Keys = append(cfg.Keys, filepath.Join(home, ".ssh", name))
			}
		}
	}
	if s.Set.KnownHosts != "" {
		cfg.KnownHosts = []string{s.Set.KnownHosts}
	} else if home != "" {
		cfg.KnownHosts = []string{filepath.Join(home, ".ssh", "known_hosts"), "/etc/ssh/ssh_known_hosts"}
	}
	if !s.Set.Lab && home != "" {
		cfg.SSHConfig = []string{filepath.Join(home, ".ssh", "config"), "/etc/ssh/ssh_config"}
	}
	if s.Set.Jump != "" {
		cfg.Jump = strings.Split(s.Set.Jump, ",")
	}
	cfg.Sources = map[string]ssh.Source{
		"guest": {User: "vms[].guest.user, --ssh-user", Password: "RDMA_SETUP_GUEST_PASSWORD, --guest-password-command"},
		"esxi":  {User: "esxi.user", Password: "RDMA_SETUP_ESXI_PASSWORD, --esxi-password-command, --esxi-passwords"},
	}
	cfg.Password = func(ctx context.Context, t ssh.Target) (string, error) {
		switch t.Class {
		case "esxi":
			return s.esxiPassword(ctx, t.Name)
		case "guest":
			return s.secret(ctx, &s.Set.GuestPassword, "log-in password in the guests")
		}
		return "", nil
	}
	cfg.SudoPassword = func(ctx context.Context, _ ssh.Target) (string, error) {
		return s.secret(ctx, &s.Set.SudoPassword, "sudo password in the guests")
	}
	cfg.SudoRefused = func(t ssh.Target, password string) { s.forget(&s.Set.SudoPassword, t, password) }
	cfg.PasswordRefused = func(t ssh.Target, password string) {
		if t.Class == "esxi" {
			s.forgetESXi(t.Name)
		} else {
			s.forget(&s.Set.GuestPassword, t, password)
		}
	}
	if s.Env.Terminal() {
		cfg.Passphrase = func(ctx context.Context, file string) (string, error) {
			if s.Screen.Load() && s.onScreen() == nil {
				return "", errors.New("is encrypted, and its passphrase cannot be prompted for here; add the key to the agent (ssh-add)")
			}
			return s.askPerson(ctx, "passphrase of "+file)
		}
	}
	if s.Env.Terminal() && s.Env.Confirm != nil {
		cfg.Confirm = func(ctx context.Context, k ssh.HostKey) (bool, error) {
			defer s.asking()()
			if s.Screen.Load() {
				return s.trusted(ctx, k, cfg.KnownHosts), nil // the wizard's screen has the terminal
			}
			return s.Env.Confirm(fmt.Sprintf("%s presents an unknown SSH host key.\n%s %s\nTrust it and remember it", k.Address, k.Type,
				k.Fingerprint))
		}
	}
	cfg.Connections = s.Env.Connections
	o := guest.Options{Archives: s.archives, Images: s.images, TakeBack: max(time.Minute, s.Set.GuestTimeout), Waiting: s.waiting}
	if s.Env.Twin != nil { // a minute of its guests passes in 3 s
		o.TakeBack, o.Settle, o.Poll, cfg.Again = 4*o.TakeBack, 80*time.Second, 20*time.Millisecond, 5*time.Millisecond
		cfg.Dial = s.Env.Twin.Dial
		o.Alone = s.Env.Twin.Last == nil || s.Env.Twin.Guests // nothing was done in the guests before, or all of it has ended
		o.BootWait = s.Env.Wait(guest.DefaultBootTime)
	}
	pool, err := ssh.NewPool(cfg)
	if err != nil {
		return err
	}
	s.pool = pool
	managed, err := assets.Managed()
	if err != nil {
		return err
	}
	s.mu.Lock()
	if s.answers != nil {
		managed = append(managed, s.answers.GPUDirect.Driver...) // a rollback must read their state
	}
	s.mu.Unlock()
	o.Packages = managed
	s.Guests = guest.New(pool, s.target, s.VC, o)
	s.Shells = esxi.New(pool, s.ShellTarget, esxi.Options{})
	return nil
}

// waiting reports that a step of an earlier process still runs in a guest. On a terminal it prints nothing, because a line would
// damage the run's screen.
func (s *Session) waiting(vm, step string, began time.Time) {
	if !s.Env.Terminal() {
		fmt.Fprintf(s.Env.Stderr, "guest %s: waiting for %q, which started at %s and is still running\n", vm, step, began.Format(time.TimeOnly))
	}
}

// archives returns the files that software may be installed from in guests.
func (s *Session) archives() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers == nil {
		return nil
	}
	files := slices.Clone(s.answers.Guest.OFED)
	if f, is := s.answers.GPUDirect.DriverFile(); is {
		files = append(files, f.Path)
	}
	for _, f := range []string{s.answers.GPUDirect.Perftest, s.answers.Measure.Source()} {
		if strings.HasPrefix(f, "/") {
			files = append(files, f)
		}
	}
	return files
}

// images are the container images that the answers use.
func (s *Session) images() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers == nil || s.answers.Container.Image == "" {
		return nil
	}
	return []string{s.answers.Container.Image}
}

// target returns how to reach the guest of a VM: according to the answers, else the address from VMware Tools.
func (s *Session) target(vm string) (ssh.Target, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers == nil {
		return ssh.Target{}, false
	}
	for _, v := range s.answers.VMs {
		path := s.paths[vm]
		if v.Name != vm && (path == "" || v.Name != path) {
			continue
		}
		if !v.Guest.Managed() {
			break
		}
		t := ssh.Target{Name: "guest " + vm, Class: "guest", Host: v.Guest.Address, Port: v.Guest.Port, User: v.Guest.User}
		t.Host, t.User = cmp.Or(t.Host, s.reported[vm]), cmp.Or(t.User, s.Set.SSHUser)
		return t, t.Host != ""
	}
	return ssh.Target{}, false
}

// Use sets the answers whose guests are connected.
func (s *Session) Use(a *answers.Answers) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = a
}

// Survey reads everything that a plan needs: details of the chosen hosts and VMs, and the guests that answer.
func (s *Session) Survey(ctx context.Context, a *answers.Answers) (*backends.Inventory, error) {
	t := s.Env.Twin
	if t != nil && t.Keep {
		s.Use(a)
		s.Note(t.Last)
		return t.Last, s.reachGuests()
	}
	inv, err := s.survey(ctx, a, planAsks(a))
	if t != nil && err == nil {
		t.Last = inv
	}
	return inv, err
}

func (s *Session) survey(ctx context.Context, a *answers.Answers, what []system.Question) (*backends.Inventory, error) {
	s.Use(a)
	scope := Scope(a)
	scope.Fresh = true
	scope.Wide = s.Wide
	inv, err := s.Inventory(ctx, scope)
	if err != nil {
		return nil, err
	}
	s.Note(inv)
	if err := s.reachGuests(); err != nil {
		return nil, err
	}
	var g errgroup.Group
	g.Go(func() error { s.guestFacts(ctx, a, inv); return nil })
	if what != nil && a.Mode == answers.PVRDMA && slices.ContainsFunc(Reachable(a, inv), nic.MayBeOff) &&
		!slices.Contains(what, system.Modules) {
		what = append(what, system.Modules)
	}
	if len(what) > 0 {
		s.ask(ctx, a, inv, what)
	}
	_ = g.Wait() // errors are stored with the guests
	inv.APICalls = s.VC.Calls()
	return inv, ctx.Err()
}

// Inventory reads an inventory from vCenter.
func (s *Session) Inventory(ctx context.Context, scope backends.Scope) (*backends.Inventory, error) {
	ctx, over := s.Waiting(ctx, "read the inventory (each call may take 2m)", "vCenter", -1)
	defer over()
	return s.VC.Inventory(ctx, scope)
}

// Scope limits an inventory to the hosts and VMs that the answers name.
func Scope(a *answers.Answers) backends.Scope {
	sc := backends.Scope{Datacenter: a.Hosts.Datacenter, Cluster: a.Hosts.Cluster, Hosts: a.Hosts.Names, Details: true}
	for _, v := range a.VMs {
		sc.VMs = append(sc.VMs, v.Name)
	}
	return sc
}

// Note stores what later look-ups need: inventory paths, and the addresses from VMware Tools.
func (s *Session) Note(inv *backends.Inventory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paths, s.reported = map[string]string{}, map[string]string{}
	for _, v := range inv.VMs {
		s.paths[v.Name] = v.Path
		if len(v.IPs) > 0 {
			s.reported[v.Name] = v.IPs[0]
		}
	}
	s.simulated.Store(inv.VCenter.Simulated)
	s.seen = inv
}

// guestFacts reads all guests of the answers whose VM is on, concurrently, each with its own limit.
func (s *Session) guestFacts(ctx context.Context, a *answers.Answers, inv *backends.Inventory) {
	if t := s.Env.Twin; t != nil && t.Guests {
		t.Guests, inv.Guests = false, t.Last.Guests
		return
	}
	var g errgroup.Group
	limit := backends.Apart(a.Run.Parallel)
	g.SetLimit(min(limit, cmp.Or(s.Env.Apart, limit)))
	facts := make([]backends.Guest, 0, len(a.VMs))
	for _, v := range a.VMs {
		vm := inv.VM(v.Name)
		if vm == nil || vm.Power != "poweredOn" || !v.Guest.Managed() {
			continue
		}
		facts = append(facts, backends.Guest{VM: vm.Name})
	}
	for i := range facts {
		g.Go(func() error {
			ctx, cancel := s.within(ctx, s.Set.GuestTimeout, backends.Unreachablef("",
				"find out what keeps the guest busy, or raise --guest-timeout", "reading it took longer than %s", s.Set.GuestTimeout))
			defer cancel()
			ctx, over := s.Waiting(ctx, "read the guest", facts[i].VM, s.Set.GuestTimeout)
			defer over()
			facts[i] = s.Guests.Survey(ctx, facts[i].VM)
			return nil
		})
	}
	_ = g.Wait()
	inv.Guests = facts
}

// Inspect reads what check needs: a quick check only reads vCenter, a full one also the guests.
func (s *Session) Inspect(ctx context.Context, a *answers.Answers, quick bool) (*backends.Inventory, error) {
	if !quick {
		return s.survey(ctx, a, nil) // Facts reads the hosts
	}
	s.Use(a)
	inv, err := s.Inventory(ctx, Scope(a))
	if err == nil {
		s.Note(inv)
	}
	return inv, err
}
