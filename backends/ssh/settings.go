package ssh

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/kevinburke/ssh_config"

	"github.com/rdma-setup/rdma-setup/backends"
)

// settings are the parts of the ssh_config files, in the order in which they count. The library never sees an Include: it would read
// the file without the checks below, and fail at Match blocks that it does not know, as in Red Hat's 50-redhat.conf.
type settings []part

// A part applies to the hosts that all of within match: the Host and Match lines with the Includes of its file.
type part struct {
	*ssh_config.Config
	within []*ssh_config.Host
}

func loadSettings(files []string, warn func(string)) (settings, error) {
	var s settings
	for _, name := range files {
		if _, err := os.Stat(name); os.IsNotExist(err) {
			continue
		}
		r := settingsReader{in: backends.InputSSHConfig}
		r.in.Script = !inEtc(name) // OpenSSH does not check the system's file (readconf.c, SSHCONF_CHECKPERM)
		err := r.file(name, nil, 0)
		if err != nil && inEtc(name) {
			continue // a file of the distribution that the library cannot read: it sets algorithms
		}
		if err != nil {
			return nil, backends.Usagef("",
				cmp.Or(backends.HintOf(err), "Correct the file, or run rdma-setup as a user with another SSH configuration."),
				"read the SSH client configuration %s: %w", name, err)
		}
		for _, block := range r.ignored {
			if warn != nil && !inEtc(name) {
				warn(block + ` is ignored: only "Match all" and "Match host" are supported`)
			}
		}
		s = append(s, r.parts...)
	}
	return s, nil
}

func inEtc(name string) bool { return strings.HasPrefix(filepath.Clean(name), "/etc/ssh/") }

var (
	section   = regexp.MustCompile(`(?i)^\s*(host|match)[\s=]+(.*?)\s*(#.*)?$`)
	include   = regexp.MustCompile(`(?i)^\s*include[\s=]+(.*?)\s*(#.*)?$`)
	evaluated = regexp.MustCompile(`(?i)^(all|host\s+\S+)$`)
)

// understood returns the text without the Match blocks that the library does not evaluate as ssh_config(5) defines: those with
// criteria other than "all" or one "host". Line numbers do not change.
func understood(text string) (kept string, ignored []string) {
	lines, ignoring := strings.Split(text, "\n"), false
	for i, line := range lines {
		if m := section.FindStringSubmatch(line); m != nil {
			ignoring = strings.EqualFold(m[1], "match") && !evaluated.MatchString(m[2])
			if ignoring {
				ignored = append(ignored, "Match "+m[2])
			}
		}
		if ignoring {
			lines[i] = ""
		}
	}
	return strings.Join(lines, "\n"), ignored
}

// includeDepth is how deep Includes may be nested; OpenSSH allows 16. A file and what it includes have at most mostParts.
const includeDepth, mostParts = 5, 1000

// A settingsReader reads one ssh_config file and what it includes.
type settingsReader struct {
	in      backends.Input
	parts   settings
	ignored []string // the Match blocks that are passed over, with their files
}

func (r *settingsReader) file(name string, within []*ssh_config.Host, depth int) error {
	text, err := r.in.ReadFile(name)
	if err != nil {
		return err
	}
	kept, ignored := understood(string(text))
	for _, block := range ignored {
		r.ignored = append(r.ignored, fmt.Sprintf("%q: the block %q", name, block))
	}
	lines, head, from := strings.Split(kept, "\n"), "", 0
	for i, line := range lines {
		if section.MatchString(line) {
			head = line
		}
		m := include.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if depth == includeDepth {
			return fmt.Errorf("its Include directives are nested more than %d levels deep", includeDepth)
		}
		block, err := r.part(lines[:i], from, within)
		if err != nil {
			return err
		}
		if err := r.include(m[1], slices.Concat(within, block), depth+1); err != nil {
			return err
		}
		lines[i], from = head, i // what follows belongs to the same block
	}
	_, err = r.part(lines, from, within)
	return err
}

// part adds the lines since one of them, and returns their last block. Errors have the line numbers of the file.
func (r *settingsReader) part(lines []string, from int, within []*ssh_config.Host) (block []*ssh_config.Host, err error) {
	if len(r.parts) == mostParts {
		return nil, fmt.Errorf("more than %d Include directives and included files", mostParts)
	}
	c, err := ssh_config.DecodeBytes([]byte(strings.Repeat("\n", from) + strings.Join(lines[from:], "\n")))
	if err != nil {
		return nil, err
	}
	r.parts = append(r.parts, part{c, within})
	return c.Hosts[len(c.Hosts)-1:], nil // before the first Host or Match line, it is one that matches every host
}

func (r *settingsReader) include(patterns string, within []*ssh_config.Host, depth int) error {
	for _, pattern := range strings.Fields(strings.ReplaceAll(patterns, `"`, " ")) {
		names, err := filepath.Glob(includePath(pattern, !r.in.Script))
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := r.file(name, within, depth); err != nil && !os.IsNotExist(err) { // ssh passes over dangling links
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// includePath resolves a pattern as ssh_config(5) does: relative paths are below ~/.ssh, and in a system file below /etc/ssh.
func includePath(pattern string, system bool) string {
	home, err := os.UserHomeDir()
	switch {
	case filepath.IsAbs(pattern) || err != nil && !system:
		return pattern
	case system:
		return filepath.Join("/etc/ssh", pattern)
	case strings.HasPrefix(pattern, "~/"):
		return filepath.Join(home, pattern[2:])
	}
	return filepath.Join(home, ".ssh", pattern)
}

func (s settings) get(alias, key string) string {
	for _, p := range s {
		if v, err := p.Get(alias, key); err == nil && v != "" && p.applies(alias) {
			return v
		}
	}
	return ""
}

func (s settings) all(alias, key string) []string {
	var list []string
	for _, p := range s {
		if v, err := p.GetAll(alias, key); err == nil && p.applies(alias) {
			list = append(list, v...)
		}
	}
	return list
}

func (p part) applies(alias string) bool {
	return !slices.ContainsFunc(p.within, func(h *ssh_config.Host) bool { return !h.Matches(alias) })
}
