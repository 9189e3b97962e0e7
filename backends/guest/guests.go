// Package guest reads and sets up Linux guests over SSH: packages, kernel modules and their persistent configuration, addresses,
// limits and RDMA ports.
package guest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// MACs returns the MAC of a VM's adapter on a port group: interfaces are found by MAC, because their names change (Broadcom KB
// 407595). Devices returns the passed-through devices: no adapter has the MAC of such a card.
type MACs interface {
	AdapterMAC(ctx context.Context, vm, portGroup string) (string, error)
	Devices(ctx context.Context, vm string) ([]backends.AssignedDevice, error)
}

// Options are optional settings.
type Options struct {
	// Packages are the names that a survey looks for and that belong to every package set; nil: DefaultPackages. KERNEL in a name
	// is replaced by uname -r.
	Packages []string
	// Archives returns the files whose existence a survey checks; nil: none.
	Archives func() []string
	// Images returns the container images that a survey inspects; nil: none.
	Images func() []string
	// Modules are the kernel modules that a survey looks for; nil: DefaultModules.
	Modules []string
	// ModuleSet is the set of KindModules until Want defines it; nil: the modules of PVRDMA.
	ModuleSet []string

	TakeBack time.Duration // time until a guest reverts a network change that is not confirmed; 0: 60 s
	BootTime time.Duration // limit of Wait and Boot; 0: DefaultBootTime
	BootWait time.Duration // how long that limit is really waited for, in a simulation; 0: BootTime
	// Alone says that no step of an earlier process can be running in the guests, so that none is waited for before the first read.
	Alone bool
	// Waiting is called while waiting for a step that an earlier process has left running in a guest; may be nil.
	Waiting func(vm, step string, began time.Time)

	Poll    time.Duration // between attempts to reach a guest that does not answer; 0: 1 s
	Settle  time.Duration // limit for a link, address or port to come up; 0: 20 s
	AptLock time.Duration // limit for waiting for another package manager; 0: 5 min
}

// DefaultBootTime is the limit for a guest to answer after its VM was powered on.
const DefaultBootTime = 10 * time.Minute

// DefaultPackages are the RDMA packages of Debian, Ubuntu and Enterprise Linux (PVRDMA and vSphere Bitfusion, VMware,
// 2021, Additional Steps).
func DefaultPackages() []string {
	return []string{"rdma-core", "ibverbs-providers", "ibverbs-utils", "rdmacm-utils", "infiniband-diags", "perftest", "libmlx4-1",
		"libibverbs", "libibverbs-utils", "librdmacm-utils", "open-vm-tools"}
}

// DefaultModules are the kernel modules of PVRDMA in load order, vmw_pvrdma last, then those of SR-IOV and soft-RoCE
// (PVRDMA and vSphere Bitfusion, VMware, 2021, Additional Steps; RoCE SR-IOV Setup and Performance Study on vSphere
// 7.x, VMware, 2022).
func DefaultModules() []string {
	return []string{"mlx4_ib", "ib_umad", "rdma_cm", "rdma_ucm", "vmw_pvrdma", "mlx5_core", "mlx5_ib", "ib_uverbs", "ib_core", "rdma_rxe",
		"vmxnet3",
		"nvidia", "nvidia_peermem", "nv_peer_mem", "nouveau"}
}

// Guests are the guests of the VMs known to targets. It is safe for concurrent use. Close releases the connections.
type Guests struct {
	pool    *ssh.Pool
	targets func(vm string) (ssh.Target, bool)
	macs    MACs
	options Options

	mu         sync.Mutex
	conns      map[string]*ssh.Conn
	wanted     sync.Map        // backends.Value by Setting.ID
	managers   sync.Map        // pkgman.Manager by guest
	withoutRPM sync.Map        // guests that have no program rpm
	proven     sync.Map        // guests that were restarted with their configuration, and came back
	before     sync.Map        // *network before a VM is powered off, by guest
	updated    sync.Map        // output of refreshing the package lists, by guest
	idle       map[string]bool // whether no step of an earlier process runs in a guest; without an entry it is not known
	waits      map[string]int  // how often a step has waited for another, by guest
}

// New returns Guests. targets returns how to reach the guest of a VM; macs finds adapters and may be nil if no addresses or ports
// are set.
func New(pool *ssh.Pool, targets func(vm string) (ssh.Target, bool), macs MACs, o Options) *Guests {
	if o.Packages == nil {
		o.Packages = DefaultPackages()
	}
	if o.Modules == nil {
		o.Modules = DefaultModules()
	}
	if o.ModuleSet == nil {
		o.ModuleSet = DefaultModules()[:5]
	}
	o.TakeBack, o.BootTime, o.AptLock = cmp.Or(o.TakeBack, time.Minute), cmp.Or(o.BootTime, DefaultBootTime), cmp.Or(o.AptLock, 5*time.Minute)
	o.BootWait = cmp.Or(o.BootWait, o.BootTime)
	o.Poll, o.Settle = cmp.Or(o.Poll, time.Second), cmp.Or(o.Settle, 20*time.Second)
	return &Guests{pool: pool, targets: targets, macs: macs, options: o, conns: map[string]*ssh.Conn{}, idle: map[string]bool{}}
}

// Close returns the connections to the pool.
func (g *Guests) Close() error {
	g.mu.Lock()
	conns := g.conns
	g.conns = map[string]*ssh.Conn{}
	g.managers.Clear() // another vCenter may have other VMs of these names
	g.withoutRPM.Clear()
	g.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
	return nil
}

// Setters returns one Setter for each kind of setting in a guest.
func (g *Guests) Setters() map[backends.Kind]backends.Setter {
	all := map[backends.Kind]backends.Setter{
		backends.KindPackages:     packages{g},
		backends.KindBuild:        build{g},
		backends.KindOFED:         mofed{g},
		backends.KindNouveau:      nouveau{recorded{g, []string{nouveauFile, nouveauGoing, nouveauOmit}}},
		backends.KindGPUPersist:   gpuPersist{recorded{g: g}},
		backends.KindModules:      modules{g},
		backends.KindPersist:      persist{recorded{g: g}},
		backends.KindAddress:      address{g},
		backends.KindARP:          arp{recorded{g: g}},
		backends.KindNICName:      nicName{recorded{g: g}},
		backends.KindMemlock:      memlock{recorded{g, []string{limitsFile}}},
		backends.KindPort:         port{g},
		backends.KindTrafficClass: class{g},
		backends.KindPortQoS:      portQoS{g},
		backends.KindEnvironment:  environment{recorded{g, []string{environmentFile}}},
		backends.KindImage:        image{g},
		backends.KindRestart:      restart{g},
	}
	for kind, s := range all {
		all[kind] = &stepWaiter{backends.Wrapped{Setter: s}, g}
	}
	return all
}

// Want announces the requested values of a plan. Values of package and module sets contain only the requested names, so Read
// needs them to return which of them exist; without them it uses Options. Set and Keep announce their values themselves.
func (g *Guests) Want(s backends.Setting, to backends.Value) {
	if !to.IsAbsent() && to.Known() {
		g.wanted.Store(s.ID(), to)
	}
}

func (g *Guests) want(s backends.Setting, into any) bool {
	v, ok := g.wanted.Load(s.ID())
	return ok && v.(backends.Value).Decode(into) == nil
}

// wanted is the requested data, the zero value if nothing is requested.
func wanted[T any](to backends.Value) (want T, err error) {
	if !to.IsAbsent() {
		err = to.Decode(&want)
	}
	return want, err
}

// commandLimit is the limit of a command without one of its own: it reads, or moves a few files.
const commandLimit = 5 * time.Minute

// Run runs a command in the guest of a VM; see ssh.Conn.Run. Without a limit of its own it gets commandLimit.
func (g *Guests) Run(ctx context.Context, vm string, cmd ssh.Command) (ssh.Result, error) {
	backends.ReadsOf(ctx).Forget()
	return g.run(ctx, vm, cmd)
}

// look is Run of a script that only reads; see backends.Reads.
func (g *Guests) look(ctx context.Context, vm string, cmd ssh.Command) (ssh.Result, error) {
	return backends.Again(ctx, question(vm, cmd), func() (ssh.Result, error) { return g.run(ctx, vm, cmd) })
}

// question identifies a look; see backends.Reads.
func question(vm string, cmd ssh.Command) string { return fmt.Sprintln(vm, cmd.Sudo, cmd.Script) }

func (g *Guests) run(ctx context.Context, vm string, cmd ssh.Command) (ssh.Result, error) {
	if cmd.Limit <= 0 {
		cmd.Limit = commandLimit
	}
	c, err := g.conn(ctx, vm)
	if err != nil {
		return ssh.Result{}, err
	}
	return c.Run(ctx, cmd)
}

// conn returns the connection to a guest; it stays open until Close.
func (g *Guests) conn(ctx context.Context, vm string) (*ssh.Conn, error) {
	g.mu.Lock()
	c := g.conns[vm]
	g.mu.Unlock()
	if c != nil {
		return c, nil
	}
	t, ok := g.targets(vm)
	if !ok {
		return nil, backends.Usagef(label(vm), "Set its address under vms: guest: in the answers.",
			"its address and login are not known")
	}
	if t.Name == "" {
		t.Name = label(vm)
	}
	c, err := g.pool.Dial(ctx, t)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if first := g.conns[vm]; first != nil {
		defer c.Close() // another goroutine was faster
		return first, nil
	}
	g.conns[vm] = c
	return c, nil
}

func label(vm string) string { return "guest " + vm }

// root runs a command as root in a step that may be interrupted, and fails unless it succeeds; what describes it.
func (g *Guests) root(ctx context.Context, vm, what string, cmd ssh.Command) (string, error) {
	return g.change(ctx, vm, step{what: what, Command: cmd})
}

// ask runs a read-only script as root, and fails unless it succeeds; what describes it.
func (g *Guests) ask(ctx context.Context, vm, what string, cmd ssh.Command) (string, error) {
	cmd.Sudo, cmd.What = true, what
	r, err := g.Run(ctx, vm, cmd)
	return answered(vm, what, r, err)
}

// answered returns the output of a command, and an error unless it succeeded.
func answered(vm, what string, r ssh.Result, err error) (string, error) {
	if err != nil {
		return r.Stdout, fmt.Errorf("%s: %w", what, err)
	}
	if r.ExitCode != 0 {
		return r.Stdout, failed(vm, what, r)
	}
	return r.Stdout, nil
}

// failed returns the error of an unsuccessful command, with a hint that fits its output.
func failed(vm, what string, r ssh.Result) error {
	said := lastLines(r.Stderr, 3)
	if said == "" {
		said = lastLines(r.Stdout, 3)
	}
	if said == "" {
		said = fmt.Sprintf("exit code %d", r.ExitCode)
	}
	kind, hint := backends.KindPermanent, ""
	for _, c := range []struct {
		says string
		kind backends.ErrorKind
		hint string
	}{
		{"No space left", backends.KindPermanent, "Free some space in the guest."},
		{"Read-only file system", backends.KindPermanent,
			"The guest's file system is mounted read-only. Check its kernel log for errors of the file system."},
		{"is in use", backends.KindTransient, "Stop what uses RDMA in the guest, then run rdma-setup resume."},
		{"Resource temporarily unavailable", backends.KindTransient, "Another program is working in the guest. Try again."},
		{"Operation not permitted", backends.KindPermission, "Log in as root, or as a user with sudo rights."},
		{"ermission denied", backends.KindPermission, "Log in as root, or as a user with sudo rights."},
	} {
		if strings.Contains(said, c.says) {
			kind, hint = c.kind, c.hint
			break
		}
	}
	return backends.Errorf(kind, label(vm), hint, "%s: %s", what, said)
}

// lastLines returns the last n non-empty lines as one line.
func lastLines(text string, n int) string {
	var lines []string
	for l := range strings.SplitSeq(text, "\n") {
		if l = ssh.Excerpt(l); l != "" {
			lines = append(lines, l)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], "; ")
}

func (g *Guests) mac(ctx context.Context, s backends.Setting) (string, error) {
	if g.macs == nil {
		return "", backends.Usagef(label(s.Target.Name), "", "the MAC of the adapter on %s is not known", s.Name)
	}
	if pci, _ := backends.OfHCA(s.Name); pci != "" {
		return g.card(ctx, s.Target.Name, s.Name)
	}
	mac, err := backends.Again(ctx, "MAC "+s.ID(), func() (string, error) { return g.macs.AdapterMAC(ctx, s.Target.Name, s.Name) })
	if backends.KindOf(err) == backends.KindRefused {
		if card, wrong := g.card(ctx, s.Target.Name, s.Name); wrong == nil {
			return card, nil
		} else if _, passthrough := backends.OfHCA(s.Name); passthrough {
			return "", wrong
		}
	}
	return strings.ToLower(mac), err
}

// ordered returns those of want that are in have, in the order of want.
func ordered(want, have []string) []string {
	out := []string{}
	for _, w := range want {
		if slices.Contains(have, w) {
			out = append(out, w)
		}
	}
	return out
}

const bootIDFile = "/proc/sys/kernel/random/boot_id"

// BootID returns the boot id, which changes with every boot.
func (g *Guests) BootID(ctx context.Context, vm string) (string, error) {
	r, err := g.Run(ctx, vm, ssh.Command{Argv: []string{"cat", bootIDFile}, Limit: 30 * time.Second})
	if err != nil {
		return "", err
	}
	if id := strings.TrimSpace(r.Stdout); r.ExitCode == 0 && id != "" {
		return id, nil
	}
	return "", failed(vm, "read "+bootIDFile, r)
}

// Wait waits until the guest answers over SSH.
func (g *Guests) Wait(ctx context.Context, vm string) error {
	return g.await(ctx, vm, "")
}

// Boot waits until the guest answers over SSH with a boot id other than before. If before is "", it is Wait.
func (g *Guests) Boot(ctx context.Context, vm, before string) error {
	return g.await(ctx, vm, before)
}

// await retries while waiting may help, such as for a guest that is still starting. A refused login or host key is final.
func (g *Guests) await(ctx context.Context, vm, before string) error {
	last, limit := errors.New("its first reply did not come in time"), backends.InForce(ctx, g.options.BootTime)
	wait := backends.Poll{What: "wait until it answers by SSH", Target: vm, Limit: g.options.BootWait, Every: g.options.Poll}
	err := wait.Until(ctx, func(ctx context.Context) (bool, error) {
		id, err := g.BootID(ctx, vm)
		switch kind := backends.KindOf(err); {
		case err == nil && id != before:
			return true, nil
		case err == nil:
			last = fmt.Errorf("it has not rebooted")
		case kind == backends.KindAuth || kind == backends.KindUsage:
			return false, err
		case ctx.Err() == nil:
			last = err
		}
		return false, nil
	})
	switch {
	case err == backends.ErrLate || ctx.Err() == context.DeadlineExceeded:
		return backends.Unreachablef(label(vm), "Check the VM's console.",
			"it did not answer over SSH within %s: %w", limit, last)
	case ctx.Err() != nil:
		return backends.Interruptedf(label(vm), "", "interrupted while waiting for it to answer: %w", ctx.Err())
	}
	return err
}
