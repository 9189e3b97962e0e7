package linux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

const sudoTries = 3

// sudo prompts for a password like sudo 1.9, and runs commands as root with a clean environment.
func (m *Machine) sudo(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("+n S p:")
	if err != nil {
		fmt.Fprintf(p.Stderr, "sudo: %v\nusage: sudo -h | -K | -k | -V\n", err)
		return 1
	}
	if status := m.authenticate(p, o); status != 0 {
		return status
	}
	args := o.Args
	child := p.With()
	child.User = m.people[0].user()
	child.Env = []string{"PATH=" + rootPath + ":/snap/bin", "HOME=" + child.User.Home, "USER=" + child.User.Name, "LOGNAME=" + child.User.Name,
		"SHELL=/bin/bash", "SUDO_USER=" + p.User.Name, fmt.Sprintf("SUDO_UID=%d", p.User.UID)}
	for _, kv := range p.Environ() {
		key, _, _ := strings.Cut(kv, "=")
		if key == "LANG" || key == "TERM" || strings.HasPrefix(key, "LC_") {
			child.Env = append(child.Env, kv)
		}
	}
	if len(args) == 0 {
		fmt.Fprintf(p.Stderr, "usage: sudo -h | -K | -k | -V\nusage: sudo -v [-ABkNnS] [-g group] [-h host] [-p prompt] [-u user]\n")
		return 1
	}
	child.Args = args
	status, err := m.sys.Exec(ctx, child)
	switch {
	case errors.Is(err, syscall.ENOENT):
		fmt.Fprintf(p.Stderr, "sudo: %s: command not found\n", args[0])
		return 1
	case err != nil:
		fmt.Fprintf(p.Stderr, "sudo: unable to execute %s: %s\n", args[0], vfs.Reason(err))
		return 1
	}
	return status
}

func (m *Machine) authenticate(p *sh.Proc, o sh.Options) int {
	i := slices.IndexFunc(m.people, func(x person) bool { return x.uid == p.User.UID })
	me := m.people[i]
	if me.uid == 0 || me.sudo == "nopasswd" {
		return 0
	}
	if o.Has("n") {
		fmt.Fprintf(p.Stderr, "sudo: a password is required\n")
		return 1
	}
	if !o.Has("S") && !p.Session.TTY {
		fmt.Fprintf(p.Stderr,
			"sudo: a terminal is required to read the password; either use the -S option to read from standard input or configure an "+
				"askpass helper\nsudo: a password is required\n")
		return 1
	}
	prompt := "[sudo] password for " + me.name + ": "
	if o.Has("p") {
		prompt = strings.NewReplacer("%u", "root", "%p", me.name, "%h", m.cfg.Hostname).Replace(o.Value("p"))
	}
	for try := range sudoTries {
		fmt.Fprint(p.Stderr, prompt)
		given, ok := line(p.Stdin)
		if !ok {
			fmt.Fprintf(p.Stderr, "\nsudo: no password was provided\n")
			if try == 0 {
				fmt.Fprintf(p.Stderr, "sudo: a password is required\n")
			} else {
				fmt.Fprintf(p.Stderr, "sudo: %d incorrect password attempt%s\n", try, map[bool]string{true: "s"}[try > 1])
			}
			return 1
		}
		if given != m.cfg.Sudo {
			if try < sudoTries-1 {
				fmt.Fprintf(p.Stderr, "Sorry, try again.\n")
			}
			continue
		}
		if me.sudo == "" {
			fmt.Fprintf(p.Stderr, "%s is not in the sudoers file.\n", me.name)
			return 1
		}
		return 0
	}
	fmt.Fprintf(p.Stderr, "sudo: %d incorrect password attempts\n", sudoTries)
	return 1
}

// line reads one line and no data after it, because that is input for the command.
func line(r io.Reader) (string, bool) {
	if r == nil {
		return "", false
	}
	var out []byte
	b := make([]byte, 1)
	for {
		n, err := r.Read(b)
		if n == 1 && b[0] == '\n' {
			return string(out), true
		}
		if n == 1 {
			out = append(out, b[0])
		}
		if err != nil {
			return string(out), len(out) > 0
		}
	}
}
