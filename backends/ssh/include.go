package ssh

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Limits for the Include directives of ssh_config files. The library follows five levels (OpenSSH 16) and has no other limit.
const (
	includeDepth = 5
	includeFiles = 512
)

// includes checks the files that ssh_config files include before the library reads them.
type includes struct {
	files   int
	left    int64
	ignored []string // reported to the operator
}

// read reads one ssh_config file after checking everything it includes, and returns what the library can evaluate. OpenSSH trusts
// the system's file unchecked, and checks owner and permissions of the user's file and of all included files (readconf.c,
// SSHCONF_CHECKPERM).
func (w *includes) read(name string) ([]byte, error) {
	in := backends.InputSSHConfig
	in.Script = !inEtc(name)
	text, err := in.ReadFile(name)
	if err != nil {
		return nil, err
	}
	kept, _, err := w.walk(name, string(text), 1, false)
	return []byte(kept), err
}

func inEtc(name string) bool { return strings.HasPrefix(filepath.Clean(name), "/etc/ssh/") }

// walk returns a text without what the library cannot evaluate: Match blocks with criteria other than "all" or one "host", and
// Includes of files with such blocks, because the library reads those itself. Line numbers do not change. complete is true if
// nothing was left out.
func (w *includes) walk(file, text string, depth int, system bool) (kept string, complete bool, err error) {
	if w.left -= int64(len(text)); w.left < 0 {
		return "", false, fmt.Errorf("the included files are %w: the limit is %s", backends.ErrTooLarge, backends.SizeText(backends.InputSSHConfig.Limit))
	}
	var out strings.Builder
	complete = true
	ignoring := false
	for line := range strings.Lines(text) {
		key, value := directive(line)
		switch {
		case key == "match":
			if ignoring = !understood(value); ignoring {
				complete = false
				if depth == 1 {
					w.note(file, "%q: the block %q is ignored", file, "Match "+value)
				}
			}
		case key == "host":
			ignoring = false
		}
		if ignoring {
			out.WriteString("\n")
			continue
		}
		if key == "include" {
			good, all, err := w.include(value, depth, system)
			if err != nil {
				return "", false, err
			}
			if !all {
				complete = false
				if line = "\n"; len(good) > 0 {
					line = "Include " + strings.Join(good, " ") + "\n"
				}
			}
		}
		out.WriteString(line)
	}
	return out.String(), complete, nil
}

// note records ignored settings for the operator. Settings of algorithms in the system's own files, such as Red Hat's with "Match
// final all", are not reported.
func (w *includes) note(file, format string, args ...any) {
	if !inEtc(file) {
		w.ignored = append(w.ignored, fmt.Sprintf(format, args...)+`: only "Match all" and "Match host" are supported`)
	}
}

// include checks the files of an Include directive; good are those that the library may read, all reports whether it may read
// each.
func (w *includes) include(patterns string, depth int, system bool) (good []string, all bool, err error) {
	all = true
	for _, pattern := range strings.Fields(strings.ReplaceAll(patterns, `"`, " ")) {
		names, err := filepath.Glob(includePath(pattern, system))
		if err != nil {
			return nil, false, fmt.Errorf("include %s: %w", pattern, err)
		}
		for _, name := range names {
			if w.files++; w.files > includeFiles {
				return nil, false, fmt.Errorf("it includes more than %d files", includeFiles)
			}
			if depth > includeDepth {
				return nil, false, fmt.Errorf("include directives are nested more than %d levels deep", includeDepth)
			}
			complete, err := w.file(name, depth)
			if err != nil {
				return nil, false, err
			}
			if complete {
				good = append(good, name)
				continue
			}
			all = false
			w.note(name, "the included file %q is ignored, since it has another Match block", name)
		}
	}
	return good, all, nil
}

func (w *includes) file(name string, depth int) (complete bool, err error) {
	info, err := os.Stat(name)
	if os.IsNotExist(err) {
		return true, nil // a dangling link: ssh(1) ignores it
	}
	if err == nil {
		err = backends.InputSSHConfig.Fits(name, info)
	}
	if err != nil {
		return false, err
	}
	text, err := backends.InputSSHConfig.ReadFile(name)
	if err != nil {
		return false, err
	}
	_, complete, err = w.walk(name, string(text), depth+1, strings.HasPrefix(filepath.Clean(name), "/etc/ssh"))
	return complete, err
}

// directive splits a line: "Include a b", "include=a", "Match host x # comment".
func directive(line string) (key, value string) {
	line = strings.TrimSpace(line)
	i := strings.IndexAny(line, " \t=\"")
	if i < 0 {
		return strings.ToLower(line), ""
	}
	value = strings.TrimSpace(line[i:])
	return strings.ToLower(line[:i]), strings.TrimSpace(strings.TrimPrefix(value, "="))
}

// understood reports whether the library evaluates the criteria of a Match line as ssh_config(5) defines. With several criteria it
// would treat all except the first as patterns of host names.
func understood(criteria string) bool {
	criteria, _, _ = strings.Cut(criteria, "#")
	f := strings.Fields(strings.ToLower(criteria))
	return len(f) == 1 && f[0] == "all" || len(f) == 2 && f[0] == "host"
}

// includePath resolves a pattern as the library does according to ssh_config(5): relative paths are below ~/.ssh, and in a system
// file below /etc/ssh.
func includePath(pattern string, system bool) string {
	me, err := user.Current()
	switch {
	case filepath.IsAbs(pattern):
		return pattern
	case system:
		return filepath.Join("/etc/ssh", pattern)
	case err != nil:
		return pattern
	case strings.HasPrefix(pattern, "~/"):
		return filepath.Join(me.HomeDir, pattern[2:])
	}
	return filepath.Join(me.HomeDir, ".ssh", pattern)
}
