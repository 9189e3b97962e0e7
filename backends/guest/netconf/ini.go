package netconf

import (
	"slices"
	"strings"
)

// An ini holds the settings of a file of systemd or NetworkManager in order; a section may occur several times.
type ini []iniSection

type iniSection struct {
	name     string
	settings [][2]string
}

// parseINI skips what is neither a section nor a setting, as both programs do. A backslash continues a line of systemd's.
func parseINI(text string) (f ini) {
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		switch k, v, ok := strings.Cut(line, "="); {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[' && line[len(line)-1] == ']':
			f = append(f, iniSection{name: line[1 : len(line)-1]})
		case ok && len(f) > 0:
			s := &f[len(f)-1]
			s.settings = append(s.settings, [2]string{strings.TrimSpace(k), strings.TrimSpace(v)})
		}
	}
	return f
}

// all returns the values of a setting in all sections of a name; an empty value forgets those before it (systemd.syntax(7)).
func (f ini) all(section string, keys ...string) (values []string) {
	for _, s := range f {
		if s.name == section {
			values = append(values, s.all(keys...)...)
		}
	}
	return values
}

func (s iniSection) all(keys ...string) (values []string) {
	for _, kv := range s.settings {
		switch {
		case !slices.Contains(keys, kv[0]):
		case kv[1] == "":
			values = nil
		default:
			values = append(values, kv[1])
		}
	}
	return values
}

// get returns the last value of a setting.
func (f ini) get(section string, keys ...string) string { return last(f.all(section, keys...)) }

func (s iniSection) get(keys ...string) string { return last(s.all(keys...)) }

func last(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// yes reports whether a boolean of systemd or NetworkManager is set.
func yes(value string) bool {
	return slices.Contains([]string{"1", "yes", "y", "true", "t", "on"}, strings.ToLower(value))
}
