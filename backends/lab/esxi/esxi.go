// Package esxi implements the shell of an ESXi host of the lab: BusyBox tools and the commands of ESXi. It uses the same state
// as the simulated vCenter.
package esxi

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/coreutils"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sshd"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
	"github.com/rdma-setup/rdma-setup/backends/lab/timing"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/fault"
)

// Host is the shell of one host. It implements sshd.Machine.
type Host struct {
	world *world.World
	name  string
	sys   *sh.System
	keys  []ssh.PublicKey

	mu   sync.Mutex
	ctx  context.Context
	stop context.CancelFunc
}

// New creates the shell of a host. Root can log in with the password and, if authorizedKey is set, with that key.
func New(w *world.World, host, authorizedKey string) (*Host, error) {
	h := &Host{world: w, name: host}
	if authorizedKey != "" {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(authorizedKey))
		if err != nil {
			return nil, fmt.Errorf("lab: host %s: authorized key: %w", host, err)
		}
		h.keys = []ssh.PublicKey{key}
	}
	h.ctx, h.stop = context.WithCancel(context.Background())
	h.sys = &sh.System{FS: vfs.New(time.Now), Now: time.Now, Dash: true, Programs: coreutils.Programs(), Clock: w.Timing.Commands,
		Wrap: h.wrap}
	maps.Copy(h.sys.Programs, h.programs())
	if err := h.image(); err != nil {
		return nil, fmt.Errorf("lab: host %s: %w", host, err)
	}
	maps.Copy(h.sys.Programs, h.mft()) // the VIB installs and removes their files
	return h, nil
}

func (h *Host) image() error {
	f, root := h.sys.FS, vfs.Root()
	for _, dir := range []string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/etc/ssh/keys-root", "/tmp", "/var/log", "/vmfs/volumes", "/opt",
		"/dev", "/usr/lib/vmware/secureboot/bin"} {
		if err := f.MkdirAll(root, dir, 0o755); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"/etc/passwd": "root:x:0:0:Administrator:/:/bin/sh\n", "/etc/group": "root:x:0:root\n", "/etc/profile": "", "/etc/profile.local": "",
		"/etc/hostname": h.name + "\n", "/etc/vmware-release": "VMware ESXi\n",
	} {
		if err := f.WriteFile(root, name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := f.Mknod(root, "/dev/null", fs.ModeDevice|fs.ModeCharDevice|0o666); err != nil {
		return err
	}
	for name := range h.sys.Programs {
		dir := "/bin/"
		switch name {
		case "sudo":
			dir = "/usr/bin/"
		case "secureBoot.py":
			dir = "/usr/lib/vmware/secureboot/bin/"
		}
		if err := h.sys.Install(name, dir+name); err != nil {
			return err
		}
	}
	return nil
}

// Update applies changes of the world. When the host or its SSH service stops, all sessions are closed.
func (h *Host) Update() {
	up := h.serves()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !up && h.ctx.Err() == nil:
		h.stop()
	case up && h.ctx.Err() != nil:
		h.ctx, h.stop = context.WithCancel(context.Background())
	}
}

// Close closes all sessions.
func (h *Host) Close() {
	h.mu.Lock()
	h.stop()
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	h.sys.Procs.KillAll(ctx)
}

// serves reports whether the host accepts connections on port 22.
func (h *Host) serves() bool {
	ok := false
	h.world.View(func(s *world.State) {
		if host := s.Host(h.name); host != nil && host.State == world.Up {
			svc, rule := host.Service("TSM-SSH"), host.Ruleset("sshServer")
			ok = svc != nil && svc.Running && (rule == nil || rule.Enabled)
		}
	})
	return ok
}

// Up implements sshd.Machine.
func (h *Host) Up() (context.Context, bool) {
	h.Update()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ctx, h.ctx.Err() == nil
}

// Account implements sshd.Machine. In lockdown mode only the exception users can log in.
func (h *Host) Account(name string) (sshd.Account, bool) {
	locked := false
	h.world.View(func(s *world.State) {
		if host := s.Host(h.name); host != nil {
			locked = host.Lockdown != "lockdownDisabled" && !slices.Contains(host.Exceptions, name)
		}
	})
	if name != "root" || locked {
		return sshd.Account{}, false
	}
	return sshd.Account{User: sh.User{Name: "root", GIDs: []int{0}, Home: "/", Shell: "/bin/sh"}, Check: h.password, Keys: h.keys}, true
}

// Login implements sshd.Machine.
func (h *Host) Login(u sh.User, s *sh.Session) *sh.Proc {
	s.Memlock = -1
	h.settle()
	return &sh.Proc{User: u, Dir: "/", Session: s, Sys: h.sys, Env: []string{"PATH=/bin:/sbin", "HOME=/", "USER=root", "SHELL=/bin/sh"}}
}

// Connect implements sshd.Machine.
func (h *Host) Connect() sshd.Verdict {
	f, ok := h.world.Faults.Take(fault.Target{Host: h.name}, "", "")
	if !ok {
		return sshd.Verdict{}
	}
	h.note(f)
	return sshd.Verdict{Drop: f.Do == fault.DoDrop, Hang: f.Do == fault.DoHang, Wait: f.Wait}
}

func (h *Host) note(f fault.Rule) {
	h.world.Log.Note(world.Event{What: world.FaultApplied, Host: h.name, Detail: f.Rule})
}

// Banner implements sshd.Machine.
func (h *Host) Banner() string { return "SSH-2.0-OpenSSH_9.1" }

// wrap logs the commands of the shell and applies fault rules to them.
func (h *Host) wrap(ctx context.Context, p *sh.Proc, run func() int) int {
	argv := strings.Join(p.Args, " ")
	h.world.Log.Note(world.Event{What: world.Process, Host: h.name, Detail: argv})
	if timing.Long(p.Args) {
		defer h.world.Begin(h.name, "", argv)()
	}
	f, ok := h.world.Faults.Take(fault.Target{Host: h.name}, "", argv)
	if !ok {
		return run()
	}
	return f.Run(ctx, p, 1, run, h.note, nil)
}

var _ sshd.Machine = (*Host)(nil)
