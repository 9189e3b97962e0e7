package coreutils

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

func letters(n int) string {
	const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[rand.IntN(len(alphabet))]
	}
	return string(b)
}

// parseMode parses an octal mode.
func parseMode(s string) (fs.FileMode, error) {
	n, err := strconv.ParseUint(s, 8, 12)
	mode := fs.FileMode(n & 0o777)
	for bit, special := range map[uint64]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if n&bit != 0 {
			mode |= special
		}
	}
	return mode, err
}

// each calls do for the operands and, with -R, for all files below them.
func each(p *sh.Proc, o sh.Options, names []string, do func(name string, i vfs.Info) int) int {
	status := 0
	for _, name := range names {
		abs := p.Path(name)
		info, err := p.Sys.FS.Stat(p.User.Cred(), abs)
		if err != nil {
			status = p.Errorf("cannot access '%s': %s", name, vfs.Reason(err))
			continue
		}
		if !o.Has("R", "recursive") {
			status = max(status, do(abs, info))
			continue
		}
		err = p.Sys.FS.Walk(p.User.Cred(), abs, func(name string, i vfs.Info) error {
			status = max(status, do(name, i))
			return nil
		})
		if err != nil {
			status = p.Errorf("cannot access '%s': %s", name, vfs.Reason(err))
		}
	}
	return status
}

func chmod(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("R")
	if err != nil || len(o.Args) < 2 {
		return p.Usage(1, errors.New("missing operand"))
	}
	mode, err := parseMode(o.Args[0])
	if err != nil {
		return p.Errorf("invalid mode: '%s'", o.Args[0])
	}
	return each(p, o, o.Args[1:], func(name string, _ vfs.Info) int {
		if err := p.Sys.FS.Chmod(p.User.Cred(), name, mode); err != nil {
			return p.Errorf("changing permissions of '%s': %s", name, vfs.Reason(err))
		}
		return 0
	})
}

// owner parses USER, USER:GROUP or :GROUP. A missing part is -1.
func owner(p *sh.Proc, s string) (uid, gid int, ok bool) {
	user, group, both := strings.Cut(s, ":")
	uid, gid = -1, -1
	if user != "" {
		if uid, ok = lookupID(p, "/etc/passwd", user); !ok {
			return 0, 0, false
		}
	}
	if both && group != "" {
		if gid, ok = lookupID(p, "/etc/group", group); !ok {
			return 0, 0, false
		}
	}
	return uid, gid, true
}

// lookupID returns the third column for a name in a colon-separated file. A number is returned unchanged.
func lookupID(p *sh.Proc, file, name string) (int, bool) {
	if n, err := strconv.Atoi(name); err == nil {
		return n, true
	}
	data, _ := p.Sys.FS.ReadFile(vfs.Root(), file)
	for line := range strings.Lines(string(data)) {
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) > 2 && f[0] == name {
			n, err := strconv.Atoi(f[2])
			return n, err == nil
		}
	}
	return 0, false
}

// idName is the inverse of lookupID.
func idName(p *sh.Proc, file string, id int) string {
	data, _ := p.Sys.FS.ReadFile(vfs.Root(), file)
	for line := range strings.Lines(string(data)) {
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) > 2 && f[2] == strconv.Itoa(id) {
			return f[0]
		}
	}
	return strconv.Itoa(id)
}

func chown(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("R f v h recursive")
	if err != nil {
		return p.Usage(1, err)
	}
	if len(o.Args) < 2 {
		return p.Usage(1, errors.New("missing operand"))
	}
	uid, gid, ok := owner(p, o.Args[0])
	if !ok {
		return p.Errorf("invalid user: '%s'", o.Args[0])
	}
	return each(p, o, o.Args[1:], func(name string, _ vfs.Info) int {
		if err := p.Sys.FS.Chown(p.User.Cred(), name, uid, gid); err != nil {
			return p.Errorf("changing ownership of '%s': %s", name, vfs.Reason(err))
		}
		return 0
	})
}
