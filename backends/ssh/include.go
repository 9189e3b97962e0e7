package ssh

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Bounds on the Include directives of ssh_config files. The library follows five levels (OpenSSH 16) and bounds nothing else.
const (
	includeDepth = 5
	includeFiles = 512
)

// includes walks through the files that ssh_config files include before the library reads them whole.
type includes struct {
	files int
	left  int64
}

// read reads one ssh_config file after it has walked through everything below it. OpenSSH trusts the system's file as it is
// and checks owner and permissions of the user's and of all that are included (readconf.c, SSHCONF_CHECKPERM).
func (w *includes) read(name string) ([]byte, error) {
	in := backends.InputSSHConfig
	in.Script = !strings.HasPrefix(filepath.Clean(name), "/etc/ssh/")
	text, err := in.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return text, w.walk(string(text), 1, false)
}

func (w *includes) walk(text string, depth int, system bool) error {
	if w.left -= int64(len(text)); w.left < 0 {
		return fmt.Errorf("the files that it includes are %w: the limit is %s", backends.ErrTooLarge, backends.SizeText(backends.InputSSHConfig.Limit))
	}
	for line := range strings.Lines(text) {
		for _, pattern := range included(line) {
			names, err := filepath.Glob(includePath(pattern, system))
			if err != nil {
				return fmt.Errorf("include %s: %w", pattern, err)
			}
			for _, name := range names {
				if w.files++; w.files > includeFiles {
					return fmt.Errorf("it includes more than %d files", includeFiles)
				}
				if depth > includeDepth {
					return fmt.Errorf("include directives are nested more than %d levels deep", includeDepth)
				}
				if err := w.file(name, depth); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (w *includes) file(name string, depth int) error {
	info, err := os.Stat(name)
	if os.IsNotExist(err) {
		return nil // a link that leads nowhere: ssh(1) passes it by
	}
	if err == nil {
		err = backends.InputSSHConfig.Fits(name, info)
	}
	if err != nil {
		return err
	}
	text, err := backends.InputSSHConfig.ReadFile(name)
	if err != nil {
		return err
	}
	return w.walk(string(text), depth+1, strings.HasPrefix(filepath.Clean(name), "/etc/ssh"))
}

// included takes the patterns out of an Include line: "Include a b", "include=a".
func included(line string) []string {
	line = strings.TrimSpace(line)
	i := strings.IndexAny(line, " \t=\"")
	if i < 0 || !strings.EqualFold(line[:i], "include") {
		return nil
	}
	rest := strings.TrimSpace(line[i:])
	rest = strings.ReplaceAll(strings.TrimPrefix(rest, "="), `"`, " ")
	return strings.Fields(rest)
}

// includePath resolves a pattern as the library does after ssh_config(5): relative ones are those of ~/.ssh, in a file of the
// system those of /etc/ssh.
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
