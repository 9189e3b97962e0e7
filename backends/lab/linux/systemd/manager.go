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
	BuiltIn map[string]bool   // the system's own units, and whether they are enabled
	Root    func() *sh.Proc   // returns a process of root for running commands
	Restart map[string]func() // handlers for a restart of the system's own units

	mu    sync.Mutex
	units map[string]*unit
}

// Boot resets the state of units and starts those enabled for the default target, in the order of After.
func (m *Manager) Boot(ctx context.Context) {
	m.mu.Lock()
	m.units = map[string]*unit{}
	m.mu.Unlock()
	var names []string
	for _, target := range []string{"sysinit.target", "basic.target", "network-online.target", "multi-user.target", "default.target",
		"graphical.target"} {
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
		if old.transient() {
			continue
		}
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
	if _, err := m.read(name); errors.Is(err, errMasked) {
		return "inactive"
	}
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

// stop stops a unit and waits until the process of a transient unit has ended. A unit that failed stays failed: systemctl(1),
// reset-failed.
func (m *Manager) stop(ctx context.Context, name string) error {
	u, err := m.load(name)
	if err != nil {
		return err
	}
	switch m.active(name) {
	case "failed":
		return nil
	case "active":
		for _, line := range u.all("Service.ExecStop") {
			if err := m.run(ctx, u, line); err != nil {
				m.setActive(u, "failed")
				return err
			}
		}
	}
	if u.done == nil {
		m.setActive(u, "")
		return nil
	}
	u.kill(sh.SIGTERM)
	select {
	case <-u.done:
	case <-ctx.Done(): // the unit stopped itself
	}
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
	p.Stdin, p.Stdout, p.Stderr = strings.NewReader(""), io.Discard, io.Discard
	status, err := m.Sys.Exec(ctx, p)
	if err != nil {
		status = 203
	}
	if status != 0 && !forgive {
		return fmt.Errorf("exited with status %d", status)
	}
	return nil
}
