package systemd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

var (
	errNotFound = errors.New("not found")
	errMasked   = errors.New("masked")
)

// Manager implements systemd of one guest. It is safe for concurrent use.
type Manager struct {
	FS      *vfs.FS
	Sys     *sh.System
	BuiltIn map[string]bool         // the system's own units, and whether they are enabled
	Root    func() *sh.Proc         // returns a process of root for running commands
	Restart map[string]func()       // handlers for a restart of the system's own units
	Log     func(unit, line string) // adds a line to the journal

	mu    sync.Mutex
	units map[string]*unit
}

// Boot resets the state of units and starts those enabled for the default target, in the order of After.
func (m *Manager) Boot(ctx context.Context) {
	m.mu.Lock()
	m.units = map[string]*unit{}
	m.mu.Unlock()
	var names []string
	for _, target := range []string{"sysinit.target", "basic.target", "network-online.target", "multi-user.target", "default.target", "graphical.target"} {
		list, err := m.FS.ReadDir(vfs.Root(), etcUnits+"/"+target+".wants")
		if err != nil {
			continue
		}
		for _, i := range list {
			if !slices.Contains(names, i.Name()) {
				names = append(names, i.Name())
			}
		}
	}
	for _, name := range m.order(names) {
		_ = m.start(ctx, name) // a failed unit does not abort the boot
	}
}

// order sorts units according to After.
func (m *Manager) order(names []string) []string {
	var sorted []string
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		if u, err := m.load(name); err == nil {
			for _, before := range u.words("Unit.After") {
				if slices.Contains(names, before) {
					visit(before)
				}
			}
		}
		sorted = append(sorted, name)
	}
	for _, name := range names {
		visit(name)
	}
	return sorted
}

// load returns a unit. It reads the unit's file the first time.
func (m *Manager) load(name string) (*unit, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if u := m.units[name]; u != nil {
		return u, nil
	}
	u, err := m.read(name)
	if err != nil {
		return nil, err
	}
	if m.units == nil {
		m.units = map[string]*unit{}
	}
	m.units[name] = u
	return u, nil
}

// reload reads all unit files again.
func (m *Manager) reload() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, old := range m.units {
		u, err := m.read(name)
		if err != nil {
			if old.active == "" {
				delete(m.units, name)
			}
			continue
		}
		u.active = old.active
		m.units[name] = u
	}
}

func (m *Manager) setActive(u *unit, state string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	u.active = state
}

func (m *Manager) active(name string) string {
	if _, ok := m.BuiltIn[name]; ok {
		return "active"
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if u := m.units[name]; u != nil && u.active != "" {
		return u.active
	}
	return "inactive"
}

// start runs a unit's commands. A oneshot unit is active after they have ended, but only with RemainAfterExit.
func (m *Manager) start(ctx context.Context, name string) error {
	if _, ok := m.BuiltIn[name]; ok {
		return nil
	}
	u, err := m.load(name)
	if err != nil {
		return err
	}
	if m.active(name) == "active" {
		return nil
	}
	for _, need := range u.words("Unit.Requires") {
		if err := m.start(ctx, need); err != nil && !errors.Is(err, errNotFound) {
			return err
		}
	}
	for _, want := range u.words("Unit.Wants") {
		_ = m.start(ctx, want) // Wants: a failure does not matter
	}
	if u.last("Service.Type") == "forking" {
		m.setActive(u, "active")
		if err := m.run(ctx, u, u.last("Service.ExecStart")); err != nil {
			m.setActive(u, "failed")
			return err
		}
		return nil // its process remains
	}
	if u.last("Service.Type") != "oneshot" && strings.HasSuffix(name, ".service") {
		return m.startSimple(u)
	}
	for _, line := range append(slices.Clone(u.all("Service.ExecStartPre")), u.all("Service.ExecStart")...) {
		if err := m.run(ctx, u, line); err != nil {
			m.setActive(u, "failed")
			return err
		}
	}
	if u.last("Service.RemainAfterExit") == "yes" || u.last("Service.RemainAfterExit") == "true" || !strings.HasSuffix(name, ".service") {
		m.setActive(u, "active")
	} else {
		m.setActive(u, "")
	}
	return nil
}

// startSimple starts the unit's command in the background.
func (m *Manager) startSimple(u *unit) error {
	line := u.last("Service.ExecStart")
	m.setActive(u, "active")
	go func() {
		if err := m.run(context.Background(), u, line); err != nil {
			m.setActive(u, "failed")
			return
		}
		m.setActive(u, "")
	}()
	return nil
}

func (m *Manager) stop(ctx context.Context, name string) error {
	u, err := m.load(name)
	if err != nil {
		return err
	}
	if m.active(name) == "active" {
		for _, line := range u.all("Service.ExecStop") {
			if err := m.run(ctx, u, line); err != nil {
				m.setActive(u, "failed")
				return err
			}
		}
	}
	m.mu.Lock()
	kill, done := u.kill, u.done
	m.mu.Unlock()
	if kill != nil {
		kill(sh.SIGTERM)
		select {
		case <-done:
		case <-ctx.Done(): // the unit stopped itself
		}
	}
	m.setActive(u, "")
	return nil
}

// run runs one command of a unit. A leading "-" means that failure is ignored.
func (m *Manager) run(ctx context.Context, u *unit, line string) error {
	forgive := false
	for line != "" && strings.ContainsRune("-@:+!", rune(line[0])) {
		forgive = forgive || line[0] == '-'
		line = line[1:]
	}
	args, err := split(line)
	if err != nil || len(args) == 0 {
		return fmt.Errorf("%s: %q cannot be run", u.name, line)
	}
	p := m.Root().With(args...)
	out := &journal{m: m, unit: u.name}
	p.Stdin, p.Stdout, p.Stderr = strings.NewReader(""), out, out
	status, err := m.Sys.Exec(ctx, p)
	if err != nil {
		m.Log("systemd", fmt.Sprintf("%s: Failed at step EXEC spawning %s: %s", u.name, args[0], vfs.Reason(err)))
		status = 203
	}
	if status != 0 && !forgive {
		m.Log("systemd", fmt.Sprintf("%s: Main process exited, code=exited, status=%d", u.name, status))
		return fmt.Errorf("exited with status %d", status)
	}
	return nil
}

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
	m.mu.Lock()
	if m.units == nil {
		m.units = map[string]*unit{}
	}
	if old := m.units[name]; old != nil && old.active == "active" {
		m.mu.Unlock()
		fmt.Fprintf(p.Stderr, "Failed to start transient service unit: Unit %s already exists.\n", name)
		return 1
	}
	u := &unit{name: name, values: map[string][]string{}, active: "active", done: make(chan struct{})}
	m.units[name] = u
	m.mu.Unlock()
	child := m.Root().With(append([]string{file}, o.Args[1:]...)...)
	out := &journal{m: m, unit: name}
	child.Stdin, child.Stdout, child.Stderr = strings.NewReader(""), out, out
	if o.Has("P", "pipe") {
		child.Stdin, child.Stdout, child.Stderr = p.Stdin, p.Stdout, p.Stderr
	}
	run := func(ctx context.Context) int {
		defer close(u.done)
		status, err := m.Sys.Exec(ctx, child)
		if err != nil {
			status = 203
		}
		// SIGTERM is a clean exit (systemd.service(5), SuccessExitStatus).
		m.setActive(u, map[bool]string{true: "", false: "failed"}[status == 0 || status == sh.SIGTERM.Status()])
		return status
	}
	if !o.Has("q", "quiet") {
		fmt.Fprintf(p.Stderr, "Running as unit: %s\n", name)
	}
	if o.Has("wait", "P", "pipe") {
		return run(ctx)
	}
	// The manager starts it: nothing of the caller may stay in memory for as long as the unit does.
	ctx, kill := context.WithCancelCause(context.Background())
	m.mu.Lock()
	u.kill = kill
	m.mu.Unlock()
	go func() {
		run(ctx) // ends when the machine goes down at the latest, which kills all processes
		kill(nil)
		m.mu.Lock()
		u.kill = nil
		m.mu.Unlock()
	}()
	return 0
}

type journal struct {
	m    *Manager
	unit string
}

var _ io.Writer = (*journal)(nil)

func (j *journal) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		j.m.Log(j.unit, strings.TrimSuffix(line, "\n"))
	}
	return len(b), nil
}
