package systemd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// Systemctl implements systemctl. It calls power for reboot and poweroff.
func (m *Manager) Systemctl(power func(ctx context.Context, p *sh.Proc, verb string) int) sh.Program {
	return func(ctx context.Context, p *sh.Proc) int {
		o, err := p.Options("q l t: a now quiet no-pager no-legend plain full all failed type: state: no-reload")
		if err != nil {
			return p.Fail(1, "%v", err)
		}
		if len(o.Args) == 0 {
			o.Args = []string{"list-units"}
		}
		verb, names := o.Args[0], o.Args[1:]
		for i, n := range names {
			if !strings.Contains(n, ".") {
				names[i] = n + ".service"
			}
		}
		switch verb {
		case "reboot", "poweroff", "halt":
			return power(ctx, p, verb)
		case "is-active", "is-enabled", "list-unit-files", "list-units":
			return m.ask(p, o, verb, names)
		case "daemon-reload", "enable", "disable", "start", "stop", "restart", "mask", "unmask", "reset-failed":
			if !p.Root() {
				fmt.Fprintf(p.Stderr, "Failed to %s %s: Interactive authentication required.\nSee system logs and 'systemctl status %s' for details.\n",
					verb, strings.Join(names, " "), strings.Join(names, " "))
				return 1
			}
			return m.do(ctx, p, o, verb, names)
		}
		fmt.Fprintf(p.Stderr, "Unknown command verb %s.\n", verb)
		return 1
	}
}

func (m *Manager) do(ctx context.Context, p *sh.Proc, o sh.Options, verb string, names []string) int {
	if verb == "daemon-reload" {
		m.reload()
		return 0
	}
	if verb == "reset-failed" && len(names) == 0 {
		names = m.failedUnits()
	}
	status := 0
	for _, name := range names {
		switch verb {
		case "enable":
			status = max(status, m.enable(p, name))
		case "disable":
			status = max(status, m.disable(p, name))
		case "mask":
			if err := m.FS.Symlink(vfs.Root(), "/dev/null", etcUnits+"/"+name); err != nil {
				fmt.Fprintf(p.Stderr, "Failed to mask unit: File %s/%s already exists.\n", etcUnits, name)
				status = 1
			}
		case "unmask":
			if target, err := m.FS.Readlink(vfs.Root(), etcUnits+"/"+name); err == nil && target == "/dev/null" {
				_ = m.FS.Remove(vfs.Root(), etcUnits+"/"+name) // the link existed a moment ago
			}
		}
		if status != 0 {
			continue
		}
		if slices.Contains([]string{"enable", "disable", "mask", "unmask"}, verb) {
			m.reload() // systemctl(1): implies daemon-reload
		}
		var err error
		switch {
		case verb == "start", verb == "enable" && o.Has("now"):
			m.warnStale(p, name)
			err = m.start(ctx, name)
		case verb == "stop", verb == "disable" && o.Has("now"):
			err = m.stop(ctx, name)
		case verb == "restart":
			err = m.restart(ctx, p, name)
		case verb == "reset-failed" && !m.resetFailed(name):
			fmt.Fprintf(p.Stderr, "Failed to reset failed state of unit %s: Unit %s not loaded.\n", name, name)
			status = 1
		}
		if err != nil {
			status = m.failed(p, verb, name, err)
		}
	}
	return status
}

func (m *Manager) restart(ctx context.Context, p *sh.Proc, name string) error {
	if _, own := m.BuiltIn[name]; own {
		if f := m.Restart[name]; f != nil {
			f()
		}
		return nil
	}
	m.warnStale(p, name)
	if err := m.stop(ctx, name); err != nil && !errors.Is(err, errNotFound) {
		return err
	}
	return m.start(ctx, name)
}

func (m *Manager) failed(p *sh.Proc, verb, name string, err error) int {
	switch {
	case errors.Is(err, errNotFound) && verb == "stop":
		fmt.Fprintf(p.Stderr, "Failed to stop %s: Unit %s not loaded.\n", name, name)
		return 5
	case errors.Is(err, errNotFound):
		fmt.Fprintf(p.Stderr, "Failed to %s %s: Unit %s not found.\n", verb, name, name)
		return 5
	case errors.Is(err, errMasked):
		fmt.Fprintf(p.Stderr, "Failed to %s %s: Unit %s is masked.\n", verb, name, name)
		return 1
	}
	var bad badUnit
	if errors.As(err, &bad) {
		fmt.Fprintf(p.Stderr, "Failed to %s %s: Unit %s has a bad unit file setting.\nSee system logs and 'systemctl status %s' for details.\n",
			verb, name, name, name)
		return 1
	}
	fmt.Fprintf(p.Stderr,
		"Job for %s failed because the control process exited with error code.\nSee \"systemctl status %s\" and \"journalctl -xe\" for "+
			"details.\n", name, name)
	return 1
}

// warnStale warns that a unit's file was changed without daemon-reload, so that the old version is still in use.
func (m *Manager) warnStale(p *sh.Proc, name string) {
	m.mu.Lock()
	u := m.units[name]
	m.mu.Unlock()
	if u == nil {
		return
	}
	if data, err := m.FS.ReadFile(vfs.Root(), u.file); err == nil && string(data) != u.text {
		fmt.Fprintf(p.Stderr,
			"Warning: The unit file, source configuration file or drop-ins of %s changed on disk. Run 'systemctl daemon-reload' to reload units.\n",
			name)
	}
}

func (m *Manager) enable(p *sh.Proc, name string) int {
	if _, own := m.BuiltIn[name]; own {
		return 0
	}
	u, err := m.read(name)
	switch {
	case errors.Is(err, errMasked):
		fmt.Fprintf(p.Stderr, "Failed to enable unit: Unit file %s/%s is masked.\n", etcUnits, name)
		return 1
	case errors.Is(err, errNotFound):
		fmt.Fprintf(p.Stderr, "Failed to enable unit: Unit file %s does not exist.\n", name)
		return 1
	case err != nil:
		fmt.Fprintf(p.Stderr, "Failed to enable unit: %v\n", err)
		return 1
	}
	targets := append(u.words("Install.WantedBy"), u.words("Install.RequiredBy")...)
	if len(targets) == 0 {
		fmt.Fprintf(p.Stderr, "The unit files have no installation config (WantedBy=, RequiredBy=, Also=,\n"+
			"Alias= settings in the [Install] section, and DefaultInstance= for template\nunits). This means they are not meant to be enabled "+
			"using systemctl.\n")
		return 0
	}
	for _, target := range targets {
		link := etcUnits + "/" + target + ".wants/" + name
		if _, err := m.FS.Lstat(vfs.Root(), link); err == nil {
			continue
		}
		if err := m.FS.MkdirAll(vfs.Root(), etcUnits+"/"+target+".wants", 0o755); err != nil {
			return p.Fail(1, "Failed to enable unit: %s", vfs.Reason(err))
		}
		if err := m.FS.Symlink(vfs.Root(), u.file, link); err != nil {
			return p.Fail(1, "Failed to enable unit: %s", vfs.Reason(err))
		}
		fmt.Fprintf(p.Stderr, "Created symlink %s \u2192 %s.\n", link, u.file)
	}
	return 0
}

// wants returns the symbolic links that enable a unit.
func (m *Manager) wants(name string) []string {
	var links []string
	list, err := m.FS.ReadDir(vfs.Root(), etcUnits)
	if err != nil {
		return nil
	}
	for _, i := range list {
		link := etcUnits + "/" + i.Name() + "/" + name
		if _, err := m.FS.Lstat(vfs.Root(), link); err == nil && strings.HasSuffix(i.Name(), ".wants") {
			links = append(links, link)
		}
	}
	return links
}

func (m *Manager) disable(p *sh.Proc, name string) int {
	if _, err := m.read(name); err != nil && m.wants(name) == nil {
		if _, own := m.BuiltIn[name]; own {
			return 0
		}
		fmt.Fprintf(p.Stderr, "Failed to disable unit: Unit file %s does not exist.\n", name)
		return 1
	}
	for _, link := range m.wants(name) {
		if err := m.FS.Remove(vfs.Root(), link); err != nil {
			return p.Fail(1, "Failed to disable unit: %s", vfs.Reason(err))
		}
		fmt.Fprintf(p.Stderr, "Removed %s.\n", link)
	}
	return 0
}

// enabled returns the output of is-enabled, or "" for an unknown unit.
func (m *Manager) enabled(name string) string {
	u, err := m.read(name)
	on, own := m.BuiltIn[name]
	switch {
	case errors.Is(err, errMasked):
		return "masked"
	case own && on:
		return "enabled"
	case own:
		return "disabled"
	case err != nil:
		return ""
	case m.wants(name) != nil:
		return "enabled"
	case len(u.words("Install.WantedBy"))+len(u.words("Install.RequiredBy")) == 0:
		return "static"
	}
	return "disabled"
}

func (m *Manager) ask(p *sh.Proc, o sh.Options, verb string, names []string) int {
	quiet := o.Has("q", "quiet")
	say := func(s string) {
		if !quiet {
			p.Printf("%s\n", s)
		}
	}
	status := 0
	switch verb {
	case "list-units":
		m.listUnits(p, o, names)
		return 0
	case "list-unit-files":
		list, _ := m.FS.ReadDir(vfs.Root(), etcUnits)
		for _, i := range list {
			if e := m.enabled(i.Name()); e != "" && (len(names) == 0 || slices.Contains(names, i.Name())) {
				p.Printf("%s %s\n", i.Name(), e)
			}
		}
		return 0
	}
	for _, name := range names {
		switch verb {
		case "is-active":
			if say(m.active(name)); m.active(name) != "active" {
				status = 3
			}
		case "is-enabled":
			e := m.enabled(name)
			if e == "" {
				fmt.Fprintf(p.Stderr, "Failed to get unit file state for %s: No such file or directory\n", name)
				status = 1
				continue
			}
			if say(e); e != "enabled" && e != "static" {
				status = 1
			}
		}
	}
	return status
}

// listUnits prints the loaded units: active and failed ones, even if their file was removed or never existed (systemd-run).
// Names are patterns. Source: systemctl(1), list-units.
func (m *Manager) listUnits(p *sh.Proc, o sh.Options, patterns []string) {
	states := map[string]string{}
	for name := range m.BuiltIn {
		states[name] = "loaded active exited"
	}
	m.mu.Lock()
	for name, u := range m.units {
		if u.active != "" {
			states[name] = m.loadState(u) + " " + u.active + " " + u.sub()
		}
	}
	m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(states)) {
		if len(patterns) > 0 && !slices.ContainsFunc(patterns, func(pattern string) bool {
			ok, _ := path.Match(strings.TrimSuffix(pattern, ".service"), strings.TrimSuffix(name, ".service"))
			return ok
		}) || o.Has("failed") && !strings.HasSuffix(states[name], "failed") {
			continue
		}
		p.Printf("%s %s %s\n", name, states[name], name)
	}
}

// loadState returns LOAD of a unit in memory.
func (m *Manager) loadState(u *unit) string {
	if u.transient() {
		return "loaded"
	}
	switch _, err := m.read(u.name); {
	case errors.Is(err, errMasked):
		return "masked"
	case err != nil:
		return "not-found"
	}
	return "loaded"
}
