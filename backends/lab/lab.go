// Package lab runs a complete simulated data center on the loopback addresses, or in a network inside the process: a vCenter, and the
// shells of its ESXi hosts and Linux guests. It accepts and refuses requests like the real systems. It does not depend on the program
// under test and imports no package of the product.
package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/ca"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux"
	"github.com/rdma-setup/rdma-setup/backends/lab/memnet"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell"
	"github.com/rdma-setup/rdma-setup/backends/lab/timing"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/fault"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

// Options define what to build and where to serve it.
type Options struct {
	Hosts      int           // 0: as the scenario requires, usually 4
	VMs        int           // 0: two per host
	Scenario   string        // "": healthy; see Scenarios
	Systems    []string      // operating systems that the guests get in turn; nil: those of the scenario; see linux.Systems
	Latency    time.Duration // of every vCenter call
	RebootTime time.Duration // duration of a host reboot; 0: 3 s
	BootTime   time.Duration // from power-on until a guest responds; 0: 1 s
	Shutdown   time.Duration // from the shutdown request until a guest is off; 0: 200 ms
	TaskTime   time.Duration // duration of a task of vCenter; 0: 40 ms
	Commands   timing.Clock  // duration of commands on guests and hosts; zero value: no time
	Faults     []string      // fault rules, see fault.Rule
	Listen     string        // address of the vCenter; "": 127.0.0.1:0
	Dir        string        // directory for answers, keys and env; "": a temporary one that Close removes
	GuestFiles string        // directory of files for the guests, VM/PATH and all/PATH; "": none

	// Found creates the data center instead of a scenario. Hosts, VMs, Scenario and Systems are then ignored.
	Found func(*world.State) error

	// Private: the vCenter and the shells listen on no port of this machine, and only Dial reaches them; Listen is ignored.
	// Uploads to datastores still use ports, from the first one on.
	Private bool

	Unlogged bool // programs and calls are not logged; only if Found is set

	Secrets  world.Secrets     // empty fields get the lab's fixed values; the key is always new
	Accounts []vcenter.Account // in addition to the two that every lab has
	Idle     time.Duration     // idle timeout of vCenter sessions; 0: 30 min
}

// A Lab is a running data center.
type Lab struct {
	world  *world.World
	vc     *vcenter.Server
	shells *shell.Servers
	dir    string
	temp   bool
	env    []string

	once sync.Once
	err  error
}

// Start creates the data center, serves it and writes its directory. ctx limits only the start.
func Start(ctx context.Context, o Options) (*Lab, error) {
	l := &Lab{dir: o.Dir}
	err := l.start(ctx, o)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Lab) start(ctx context.Context, o Options) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	for _, s := range o.Systems {
		if !slices.Contains(linux.Systems(), s) {
			return fmt.Errorf("no guest runs %q; one of %s does", s, strings.Join(linux.Systems(), ", "))
		}
	}
	o.Secrets.AuthorizedKey = key.authorized
	timing := world.Timing{Latency: o.Latency, HostReboot: o.RebootTime, VMBoot: o.BootTime, Shutdown: o.Shutdown, Task: o.TaskTime,
		Commands: o.Commands}
	if o.Found != nil {
		l.world, err = world.New(world.Options{Timing: timing, Faults: o.Faults, Secrets: o.Secrets, Unlogged: o.Unlogged}, o.Found)
	} else {
		l.world, err = scenario.New(scenario.Spec{
			Hosts: o.Hosts, VMs: o.VMs, Scenario: o.Scenario, Systems: o.Systems, Faults: o.Faults, Timing: timing, Secrets: o.Secrets,
		})
	}
	if err != nil {
		return err
	}
	if o.GuestFiles != "" {
		if err := layFiles(l.world, o.GuestFiles); err != nil {
			return fmt.Errorf("guest files: %w", err)
		}
	}
	authority, err := ca.New()
	if err != nil {
		return err
	}
	cert, err := authority.Server("vcenter.lab.example")
	if err != nil {
		return err
	}
	var inside *memnet.Network
	if o.Private {
		inside = memnet.New()
	}
	l.vc, err = vcenter.Serve(l.world, vcenter.Options{Listen: o.Listen, Inside: inside, Cert: cert, Accounts: o.Accounts, Idle: o.Idle})
	if err != nil {
		return err
	}
	l.shells, err = shell.Start(ctx, l.world, shell.Options{Inside: inside})
	if err != nil {
		return err
	}
	if err := l.openDir(); err != nil {
		return err
	}
	return l.write(key, authority.PEM)
}

func (l *Lab) openDir() error {
	if l.dir == "" {
		dir, err := os.MkdirTemp("", "rdma-setup-lab-")
		if err != nil {
			return err
		}
		l.dir, l.temp = dir, true
		return nil
	}
	dir, err := filepath.Abs(l.dir)
	if err != nil {
		return err
	}
	l.dir = dir
	return os.MkdirAll(dir, 0o700)
}

// Close ends the lab. Files in a directory of the caller are kept.
func (l *Lab) Close() error {
	l.once.Do(func() {
		if l.vc != nil {
			l.err = errors.Join(l.err, l.vc.Close())
		}
		if l.shells != nil {
			l.err = errors.Join(l.err, l.shells.Close())
		}
		if l.world != nil {
			l.world.Close()
		}
		if l.temp {
			l.err = errors.Join(l.err, os.RemoveAll(l.dir))
		}
	})
	return l.err
}

// URL returns the address of the vCenter's API.
func (l *Lab) URL() *url.URL { u := *l.vc.URL; return &u }

// Dial connects to the vCenter or to the SSH server of a host or guest at its address.
func (l *Lab) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return l.shells.Dial(ctx, addr)
}

// Dir returns the directory with answers, keys and env.
func (l *Lab) Dir() string { return l.dir }

// Env returns the content of the file env, as KEY=VALUE.
func (l *Lab) Env() []string { return append([]string(nil), l.env...) }

// World returns the data center itself, for tests in the same process.
func (l *Lab) World() *world.World { return l.world }

// Calls returns the number of vCenter calls so far.
func (l *Lab) Calls() int {
	n := 0
	for _, calls := range l.world.Log.Calls() {
		n += calls
	}
	return n
}

// Filters returns the number of property filters of the vCenter's clients.
func (l *Lab) Filters() int { return l.vc.Filters() }

// Systems returns the names of the operating systems that guests can run.
func Systems() []string { return linux.Systems() }

// Scenarios returns the names of the scenarios.
func Scenarios() []string {
	var names []string
	for _, s := range scenario.All() {
		names = append(names, s.Name)
	}
	return names
}

// ScenarioTable lists the scenarios with a description of each.
func ScenarioTable() [][2]string {
	var rows [][2]string
	for _, s := range scenario.All() {
		rows = append(rows, [2]string{s.Name, s.Text})
	}
	return rows
}

// FaultTable lists the keys of a fault rule and its possible actions.
func FaultTable() [][2]string { return fault.Help() }
