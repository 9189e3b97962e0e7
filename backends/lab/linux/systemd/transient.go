package systemd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// Run implements systemd-run: it runs a command as a transient unit, and waits until it ends if --wait or --pipe is set.
func (m *Manager) Run(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("+q G r d t P E: p: u: quiet collect no-block unit: wait pipe property: setenv: description: scope")
	if err != nil {
		return p.Fail(1, "%v", err)
	}
	if len(o.Args) == 0 {
		return p.Fail(1, "Command line to execute required.")
	}
	if !p.Root() {
		fmt.Fprintf(p.Stderr, "Failed to start transient service unit: Interactive authentication required.\n")
		return 1
	}
	file, err := m.Sys.LookPath(p, o.Args[0])
	if err != nil {
		return p.Fail(1, "Failed to find executable %s: %s", o.Args[0], vfs.Reason(err))
	}
	name := o.Value("u", "unit")
	if name == "" {
		name = fmt.Sprintf("run-r%d", p.PID)
	}
	if !strings.HasSuffix(name, ".service") {
		name += ".service"
	}
	wait := o.Has("wait", "P", "pipe")
	if !wait {
		// The manager starts it: nothing of the caller may stay in memory for as long as the unit does.
		ctx = context.Background()
	}
	ctx, kill := context.WithCancelCause(ctx)
	u := &unit{name: name, values: map[string][]string{}, active: "active", kill: kill, done: make(chan struct{})}
	if !m.add(u) {
		kill(nil)
		fmt.Fprintf(p.Stderr, "Failed to start transient service unit: Unit %s was already loaded or has a fragment file.\n", name)
		return 1
	}
	child := m.Root().With(append([]string{file}, o.Args[1:]...)...)
	out := io.Discard
	child.Stdin, child.Stdout, child.Stderr = strings.NewReader(""), out, out
	if o.Has("P", "pipe") {
		child.Stdin, child.Stdout, child.Stderr = p.Stdin, p.Stdout, p.Stderr
	}
	collect := o.Has("G", "collect")
	run := func() int {
		defer kill(nil)
		status, err := m.Sys.Exec(ctx, child) // ends when the machine goes down at the latest, which kills all processes
		if err != nil {
			status = 203
		}
		m.ended(u, status, collect)
		return status
	}
	if !o.Has("q", "quiet") {
		fmt.Fprintf(p.Stderr, "Running as unit: %s\n", name)
	}
	if wait {
		return run()
	}
	go run()
	return 0
}

// add loads a transient unit. It reports false if a unit of that name is loaded, also one that failed, or has a file.
func (m *Manager) add(u *unit) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.read(u.name); !errors.Is(err, errNotFound) || m.units[u.name] != nil {
		return false
	}
	if m.units == nil {
		m.units = map[string]*unit{}
	}
	m.units[u.name] = u
	return true
}

// ended records how the process of a transient unit has ended. The unit is unloaded, unless it failed: then it stays loaded until
// reset-failed, except with --collect. SIGTERM is a clean exit. Sources: systemd-run(1), --collect; systemd.unit(5), Unit Garbage
// Collection; systemd.service(5), SuccessExitStatus.
func (m *Manager) ended(u *unit, status int, collect bool) {
	defer close(u.done)
	m.mu.Lock()
	defer m.mu.Unlock()
	u.active = ""
	if status != 0 && status != sh.SIGTERM.Status() && !collect {
		u.active = "failed"
	} else if m.units[u.name] == u {
		delete(m.units, u.name)
	}
}

// resetFailed forgets that a unit failed, which unloads it if it has no file. It reports whether the unit was loaded.
func (m *Manager) resetFailed(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.units[name]
	if u == nil || u.active != "failed" {
		return u != nil
	}
	u.active = ""
	if _, err := m.read(name); err != nil {
		delete(m.units, name)
	}
	return true
}

// failedUnits returns the names of the units that have failed.
func (m *Manager) failedUnits() (names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, u := range m.units {
		if u.active == "failed" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
