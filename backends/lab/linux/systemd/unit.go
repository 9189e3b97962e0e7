// Package systemd runs the systemd units of the lab's guests. Units in /etc/systemd/system are read from their files; the
// system's own units exist only by name. As in systemd, a unit's commands are programs with arguments, not shell command lines.
package systemd

import (
	"context"
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

const (
	etcUnits = "/etc/systemd/system"
	libUnits = "/lib/systemd/system"
)

// unit is a loaded unit file.
type unit struct {
	name   string
	file   string
	text   string
	values map[string][]string // Section.Key -> values in order
	active string              // "", active, failed

	kill context.CancelCauseFunc // ends the process of a transient unit, created by systemd-run; nil for a unit with a file
	done chan struct{}           // closed when that process has ended
}

// transient reports whether systemd-run created the unit.
func (u *unit) transient() bool { return u.done != nil }

// sub returns the state of a loaded unit in systemd's finer terms.
func (u *unit) sub() string {
	switch {
	case u.active == "":
		return "dead"
	case u.active == "active" && u.transient():
		return "running"
	case u.active == "active":
		return "exited"
	}
	return u.active
}

func (u *unit) all(key string) []string { return u.values[key] }

func (u *unit) last(key string) string {
	if v := u.values[key]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

func (u *unit) words(key string) []string {
	var list []string
	for _, v := range u.values[key] {
		list = append(list, strings.Fields(v)...)
	}
	return list
}

// badUnit is systemd's message about an invalid unit.
type badUnit string

func (b badUnit) Error() string { return string(b) }

func parseUnit(name, file, text string) (*unit, error) {
	u := &unit{name: name, file: file, text: text, values: map[string][]string{}}
	section := ""
	joined := strings.ReplaceAll(text, "\\\n", " ")
	for n, line := range strings.Split(joined, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[' && strings.HasSuffix(line, "]"):
			section = line[1 : len(line)-1]
		default:
			key, value, ok := strings.Cut(line, "=")
			if !ok || section == "" {
				return nil, fmt.Errorf("%s:%d: Assignment outside of section", file, n+1)
			}
			key = section + "." + strings.TrimSpace(key)
			if value = strings.TrimSpace(value); value == "" {
				delete(u.values, key) // an empty value clears the list
				continue
			}
			u.values[key] = append(u.values[key], value)
		}
	}
	commands := u.all("Service.ExecStart")
	kind := u.last("Service.Type")
	switch {
	case !strings.HasSuffix(name, ".service"):
	case len(commands) == 0 && kind != "oneshot":
		return nil, badUnit(name + ": Service has no ExecStart=, ExecStop=, or SuccessAction=. Refusing.")
	case len(commands) > 1 && kind != "oneshot":
		return nil, badUnit(name + ": Service has more than one ExecStart= setting, which is only allowed for Type=oneshot services. Refusing.")
	}
	return u, nil
}

// split splits a command line like systemd: it supports quotes and backslash escapes.
func split(line string) ([]string, error) {
	var words []string
	var b strings.Builder
	inWord, quote := false, byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\\' && i+1 < len(line) && quote != '\'':
			i++
			b.WriteByte(line[i])
			inWord = true
		case quote != 0:
			if c == quote {
				quote = 0
			} else {
				b.WriteByte(c)
			}
		case c == '"' || c == '\'':
			quote, inWord = c, true
		case c == ' ' || c == '\t':
			if inWord {
				words = append(words, b.String())
				b.Reset()
			}
			inWord = false
		default:
			b.WriteByte(c)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("unbalanced quoting")
	}
	if inWord {
		words = append(words, b.String())
	}
	return words, nil
}

// read reads a unit's file.
func (m *Manager) read(name string) (*unit, error) {
	for _, dir := range []string{etcUnits, libUnits} {
		file := dir + "/" + name
		info, err := m.FS.Lstat(vfs.Root(), file)
		if err != nil {
			continue
		}
		if info.Target == "/dev/null" {
			return nil, errMasked
		}
		data, err := m.FS.ReadFile(vfs.Root(), file)
		if err != nil {
			return nil, err
		}
		return parseUnit(name, file, string(data))
	}
	return nil, errNotFound
}
