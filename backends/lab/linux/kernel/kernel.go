// Package kernel implements the part of a Linux kernel that RDMA requires in the lab's guests: the kernel log, and modules with
// dependencies that cannot be removed while they are in use.
package kernel

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Module is an available kernel module.
type Module struct {
	Name  string
	Size  int
	Needs []string // modules it depends on
	Text  string   // description
	Alias string   // PCI alias, by which it is loaded for its device
	Path  string   // below kernel/

	BuiltIn bool // part of the kernel: always there, never loaded or removed

	License, Version string // "" for modules of the kernel itself
}

// Errors of loading and unloading modules.
var (
	ErrNotFound = errors.New("not found")
	ErrInUse    = errors.New("in use")
	ErrAbsent   = errors.New("not loaded")
	ErrBuiltIn  = errors.New("builtin")
)

// Kernel is a running kernel. Use New to create it. It is safe for concurrent use; hooks are called without its lock.
type Kernel struct {
	Release string
	Private bool                      // only root can read the log (kernel.dmesg_restrict)
	Probed  func(module string)       // called after a module was loaded
	Removed func(module string)       // called after a module was removed
	Extra   func() []Module           // modules from packages; nil: none
	Init    func(module string) error // initialises a module of Extra; nil: never fails

	now     func() time.Time
	version atomic.Uint64
	mu      sync.Mutex
	found   []Module
	loaded  []string // newest first, as in lsmod
	users   map[string]int
	log     []string
	booted  time.Time
}

// New returns a kernel with the available modules, none of them loaded.
func New(release string, modules []Module, now func() time.Time) *Kernel {
	return &Kernel{Release: release, found: modules, now: now, booted: now()}
}

// Version returns a number that changes with each change of the loaded modules.
func (k *Kernel) Version() uint64 { return k.version.Load() }

// Boot resets all state that is lost in a reboot.
func (k *Kernel) Boot() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.version.Add(1)
	k.loaded, k.users, k.log, k.booted = nil, map[string]int{}, nil, k.now()
}

// Booted returns the time at which the kernel started.
func (k *Kernel) Booted() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.booted
}

// Find returns an available module. Dashes and underscores are equivalent.
func (k *Kernel) Find(name string) (Module, bool) {
	name = normal(name)
	is := func(m Module) bool { return m.Name == name }
	if i := slices.IndexFunc(k.found, is); i >= 0 {
		return k.found[i], true
	}
	if k.Extra != nil {
		extra := k.Extra()
		if i := slices.IndexFunc(extra, is); i >= 0 {
			return extra[i], true
		}
	}
	return Module{}, false
}

// Available returns all available modules.
func (k *Kernel) Available() []Module {
	if k.Extra == nil {
		return k.found
	}
	return append(slices.Clone(k.found), k.Extra()...)
}

// AtLeast reports whether the kernel is of that release or later.
func (k *Kernel) AtLeast(major, minor int) bool {
	var have [2]int
	_, _ = fmt.Sscanf(k.Release, "%d.%d", &have[0], &have[1])
	return have[0] > major || have[0] == major && have[1] >= minor
}

func normal(name string) string { return strings.ReplaceAll(name, "-", "_") }

// BuiltIn reports whether a module is built into the kernel.
func (k *Kernel) BuiltIn(name string) bool {
	name = normal(name)
	return slices.ContainsFunc(k.found, func(m Module) bool { return m.BuiltIn && m.Name == name })
}

// Loaded reports whether a module is loaded or built into the kernel.
func (k *Kernel) Loaded(name string) bool {
	if k.BuiltIn(name) {
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Contains(k.loaded, normal(name))
}

// Load loads a module and its dependencies (ErrNotFound, or the error of Init). On failure, modules that are already loaded
// stay loaded.
func (k *Kernel) Load(name string) error {
	m, ok := k.Find(name)
	if !ok {
		return ErrNotFound
	}
	if k.Loaded(m.Name) {
		return nil
	}
	for _, need := range m.Needs {
		if err := k.Load(need); err != nil {
			return err
		}
	}
	if k.Init != nil {
		if err := k.Init(m.Name); err != nil {
			return err
		}
	}
	k.mu.Lock()
	if slices.Contains(k.loaded, m.Name) {
		k.mu.Unlock()
		return nil
	}
	k.loaded = append([]string{m.Name}, k.loaded...)
	k.version.Add(1)
	k.mu.Unlock()
	if k.Probed != nil {
		k.Probed(m.Name)
	}
	return nil
}

// Unload removes a module (ErrNotFound, ErrAbsent, ErrBuiltIn, ErrInUse). If deps is true, it also removes modules that only this module
// required.
func (k *Kernel) Unload(name string, deps bool) error {
	name = normal(name)
	k.mu.Lock()
	if !slices.Contains(k.loaded, name) {
		k.mu.Unlock()
		switch m, ok := k.Find(name); {
		case !ok:
			return ErrNotFound
		case m.BuiltIn:
			return ErrBuiltIn
		}
		return ErrAbsent
	}
	if n, by := k.usage(name); n > 0 || len(by) > 0 {
		k.mu.Unlock()
		return ErrInUse
	}
	k.loaded = slices.DeleteFunc(k.loaded, func(l string) bool { return l == name })
	k.version.Add(1)
	k.mu.Unlock()
	if k.Removed != nil {
		k.Removed(name)
	}
	if m, ok := k.Find(name); ok && deps {
		for _, need := range slices.Backward(m.Needs) {
			_ = k.Unload(need, true) // modules that others require silently stay loaded
		}
	}
	return nil
}

// Use counts a user of a module until release is called.
func (k *Kernel) Use(name string) (release func()) {
	add := func(n int) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.users == nil {
			k.users = map[string]int{}
		}
		k.users[name] += n
	}
	add(1)
	return func() { add(-1) }
}

// usage returns the number of programs, and the modules, that use a module. The caller must hold the lock.
func (k *Kernel) usage(name string) (int, []string) {
	var by []string
	for _, l := range slices.Backward(k.loaded) {
		if m, ok := k.Find(l); ok && slices.Contains(m.Needs, name) {
			by = append(by, l)
		}
	}
	return max(0, k.users[name]), by
}

// Line is a line of lsmod.
type Line struct {
	Module
	Used int
	By   []string
}

// List returns the loaded modules, the newest first.
func (k *Kernel) List() []Line {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := make([]Line, len(k.loaded))
	by := map[string][]string{}
	for i, name := range slices.Backward(k.loaded) {
		m, _ := k.Find(name)
		list[i].Module = m
		for _, need := range m.Needs {
			by[need] = append(by[need], name)
		}
	}
	for i, name := range k.loaded {
		list[i].By = by[name]
		list[i].Used = max(0, k.users[name]) + len(by[name])
	}
	return list
}

// Proc returns /proc/modules.
func (k *Kernel) Proc() string {
	var b strings.Builder
	for _, l := range k.List() {
		by := "-"
		if len(l.By) > 0 {
			by = strings.Join(l.By, ",") + ","
		}
		fmt.Fprintf(&b, "%s %d %d %s Live 0x0000000000000000\n", l.Name, l.Size, l.Used, by)
	}
	return b.String()
}

// BuiltInFile returns the modules.builtin of the kernel (Documentation/kbuild/kbuild.rst).
func (k *Kernel) BuiltInFile() string {
	var b strings.Builder
	for _, m := range k.found {
		if m.BuiltIn {
			b.WriteString(m.file() + "\n")
		}
	}
	return b.String()
}

// file returns the path of a module below the directory of a kernel.
func (m Module) file() string { return path.Join("kernel", m.Path, m.Name+".ko") }

// Logf adds a line to the kernel log.
func (k *Kernel) Logf(format string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.log = append(k.log, fmt.Sprintf("[%12.6f] %s", k.now().Sub(k.booted).Seconds(), fmt.Sprintf(format, args...)))
}

// Log returns the lines of the kernel log.
func (k *Kernel) Log() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.log)
}
