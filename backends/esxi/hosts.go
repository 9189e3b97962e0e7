// Package esxi does what requires a shell on an ESXi host: it reads and sets the firmware of cards with the tools of their family
// (package nic). Everything else on a host goes through vCenter.
package esxi

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// Options are the time limits. A zero time means the default.
type Options struct {
	Tool  time.Duration // for one run of a tool; default 2 min
	Start time.Duration // for the SSH service to answer after its start; default 10 s
	Poll  time.Duration // between connection attempts during Start; default 500 ms
}

// Hosts gives access to the shells of the ESXi hosts known to targets. It keeps no connection between calls, because the SSH
// service of a host runs only while a bracket keeps it open. It is safe for concurrent use.
type Hosts struct {
	pool    *ssh.Pool
	targets func(host string) (ssh.Target, bool)
	options Options

	mu    sync.Mutex
	turns map[string]chan struct{} // one tool at a time per host, because the tools lock the card
	cards map[string][]string      // by host: cards whose mode the next login examines
}

// New returns Hosts. targets returns how to reach the shell of a host.
func New(pool *ssh.Pool, targets func(host string) (ssh.Target, bool), o Options) *Hosts {
	o.Tool, o.Start, o.Poll = cmp.Or(o.Tool, 2*time.Minute), cmp.Or(o.Start, 10*time.Second), cmp.Or(o.Poll, 500*time.Millisecond)
	return &Hosts{pool: pool, targets: targets, options: o, turns: map[string]chan struct{}{}, cards: map[string][]string{}}
}

// Want announces a setting of a run. A card whose mode the run will depend on is examined at the first login to its host, before any
// host reboots.
func (h *Hosts) Want(t backends.Setting) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.Kind == backends.KindActiveFirmware {
		h.cards[t.Target.Name] = append(h.cards[t.Target.Name], t.Name)
	}
}

// Setters returns the setters of the settings that need a host's shell.
func (h *Hosts) Setters() map[backends.Kind]backends.Setter {
	return map[backends.Kind]backends.Setter{backends.KindFirmware: firmwareSetter{h}, backends.KindFirmwareImage: imageSetter{h},
		backends.KindActiveFirmware: activeFirmwareSetter{h}}
}

// A Reading is what was read in the shell of one host. A failed command affects only its own fact.
type Reading struct {
	Cards      map[string]backends.Firmware // by PCI address of function 0
	SecureBoot *bool                        // nil: not read
	Log        []string                     // lines of vmkernel.log that contain one of backends.LogTexts; nil: not read
	Err        error                        // why the cards were not read
}

// Read reads several hosts in parallel, each within the limit. SSH must be open on them. The result has an entry for every host.
func (h *Hosts) Read(ctx context.Context, hosts []string, parallel int, limit time.Duration) map[string]Reading {
	out := make(map[string]Reading, len(hosts))
	var mu sync.Mutex
	backends.InParallel(slices.All(hosts), parallel, func(_ int, host string) {
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		limited, over := (*backends.Voice)(nil).Waiting(limited, "read the ESXi shell", host, limit)
		defer over()
		r := h.read(limited, host)
		mu.Lock()
		defer mu.Unlock()
		out[host] = r
	})
	return out
}

// with runs f with a connection to a host's shell; only one f runs per host at a time.
func (h *Hosts) with(ctx context.Context, host string, f func(s *shell) error) error {
	turn := h.turn(host)
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return backends.Interruptedf(host, "", "ask the firmware: %w", context.Cause(ctx))
	}
	t, ok := h.targets(host)
	if !ok {
		return backends.Usagef(host, "set the host's address under esxi: addresses: in the answers",
			"the login for its ESXi shell is not known")
	}
	if t.Name == "" {
		t.Name = host
	}
	c, err := h.dial(ctx, t)
	if err != nil {
		return err
	}
	defer c.Close()
	return f(&shell{conn: c, host: host, limit: h.options.Tool})
}

func (h *Hosts) turn(host string) chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.turns[host] == nil {
		h.turns[host] = make(chan struct{}, 1)
	}
	return h.turns[host]
}

// dial connects to the service, and retries for a short time because the service may just have been started.
func (h *Hosts) dial(ctx context.Context, t ssh.Target) (*ssh.Conn, error) {
	var c *ssh.Conn
	var err error
	_ = backends.Poll{What: "connect by SSH", Target: t.Name, Limit: h.options.Start, Every: h.options.Poll, Whole: true}.Until(ctx,
		func(ctx context.Context) (bool, error) {
			c, err = h.pool.Dial(ctx, t)
			return err == nil || !strings.Contains(err.Error(), "refused the connection"), nil
		})
	return c, explainLogin(err)
}

// explainLogin replaces the hint of a refused password with what it means on ESXi: five failures lock an account for 15 minutes
// (vSphere Security, "ESXi Passwords and Account Lockout": Security.AccountLockFailures 5, Security.AccountUnlockTime 900 s), and
// a locked account refuses the correct password too. Other errors, such as a changed host key, keep their hints.
func explainLogin(err error) error {
	var e *backends.Error
	if !errors.As(err, &e) || e.Kind != backends.KindAuth || !errors.Is(err, ssh.ErrLogin) {
		return err
	}
	told := *e
	told.Hint = "Check esxi.user in the answers, the password of this host (RDMA_SETUP_ESXI_PASSWORD or --esxi-passwords), or the key in " +
		"/etc/ssh/keys-root/authorized_keys. Each password is tried once per host: ESXi locks an account for 15 minutes after five failures, " +
		"and then refuses the correct password as well."
	return &told
}

// A shell is a connection to one host. It implements backends.HostShell.
type shell struct {
	conn  *ssh.Conn
	host  string
	limit time.Duration
}

func (s *shell) Host() string { return s.host }

func (s *shell) Run(ctx context.Context, limit time.Duration, argv ...string) (text string, status int, err error) {
	r, err := s.conn.Run(ctx, ssh.Command{Argv: argv, Limit: cmp.Or(limit, s.limit)})
	return r.Stdout + r.Stderr, r.ExitCode, err
}

// Prove logs in to a host's shell and runs a command that does nothing. An account with shell access needs no sudo: since ESXi
// 5.1, local users with the Administrator role have full rights in the shell, as root has (VMware vSphere Blog, "vSphere 5.1:
// Full Admin Support for Named User Accounts").
func (h *Hosts) Prove(ctx context.Context, host string) error {
	return h.with(ctx, host, func(s *shell) error {
		r, err := s.conn.Run(ctx, ssh.Command{Script: "true", Limit: s.limit})
		if err == nil && r.ExitCode != 0 {
			err = backends.Refusedf(host,
				"Give the user the Administrator role and shell access on the host, or set another user as esxi.user in the answers.",
				"%s logged in, but has no shell: %s", s.conn.User(), backends.Clean(r.Stderr))
		}
		if err == nil {
			err = h.modes(ctx, s)
		}
		return err
	})
}

// modes fails if a card that the run needs is in a mode in which its ports do not belong to the host, now or after a boot. Without
// the firmware tools, which the run may install first, the mode is read when the card is set.
func (h *Hosts) modes(ctx context.Context, s *shell) error {
	h.mu.Lock()
	cards := h.cards[s.host]
	delete(h.cards, s.host)
	h.mu.Unlock()
	for _, card := range cards {
		keys, err := nic.FirmwareTools(s).Config(ctx, card)
		if err == nil {
			err = cmp.Or(nic.NICMode(s.host, card, keys.Current), nic.NICMode(s.host, card, keys.Next))
		} else {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// PriorityCounters reads the driver's per-priority counters of a pNIC, by the names it prints, such as rx_prio3_bytes. Only the
// port itself has these counters (kernel mlx5 counters.rst), and no esxcli command shows them. The vsish node is only read, never
// set. SSH must be open on the host.
func (h *Hosts) PriorityCounters(ctx context.Context, host, device string) (map[string]int64, error) {
	out := map[string]int64{}
	err := h.with(ctx, host, func(s *shell) error {
		r, err := s.conn.Run(ctx, ssh.Command{Argv: []string{"vsish", "-e", "cat", "/net/pNics/" + device + "/stats"}, Limit: s.limit})
		if err != nil {
			return err
		}
		out = priorityCounters(r.Stdout)
		if r.ExitCode != 0 || len(out) == 0 {
			return backends.Permanentf(host, "", "read the statistics of %s: vsish shows no counters per priority", device)
		}
		return nil
	})
	return out, err
}

// priorityCounter matches one line of a per-priority counter in a driver's statistics.
var priorityCounter = regexp.MustCompile(`(?m)^\s*([rt]x_prio[0-7]_[a-z_]+)\s*[:=]\s*(\d+)\s*$`)

func priorityCounters(text string) map[string]int64 {
	out := map[string]int64{}
	for _, m := range priorityCounter.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.ParseInt(m[2], 10, 64); err == nil {
			out[m[1]] = n
		}
	}
	return out
}
