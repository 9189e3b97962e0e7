package coreutils

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

func listPrograms() map[string]sh.Program {
	return map[string]sh.Program{
		"ls": ls, "stat": stat, "readlink": readlink, "find": find,
		"basename": basename, "dirname": dirname,
	}
}

// modeString formats a mode like ls -l.
func modeString(m fs.FileMode) string {
	kind := byte('-')
	switch {
	case m.IsDir():
		kind = 'd'
	case m&fs.ModeSymlink != 0:
		kind = 'l'
	case m&fs.ModeCharDevice != 0:
		kind = 'c'
	}
	b := []byte(m.Perm().String())
	b[0] = kind
	if m&fs.ModeSticky != 0 {
		b[9] = 't'
	}
	if m&fs.ModeSetuid != 0 {
		b[3] = 's'
	}
	return string(b)
}

func octal(m fs.FileMode) string {
	n := uint32(m.Perm())
	for special, bit := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if m&special != 0 {
			n |= bit
		}
	}
	return fmt.Sprintf("%o", n)
}

func ls(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("l a A 1 d n")
	if err != nil {
		return p.Usage(2, err)
	}
	names := o.Args
	if len(names) == 0 {
		names = []string{"."}
	}
	status := 0
	var dirs []string
	for _, name := range names {
		info, err := p.Sys.FS.Lstat(p.User.Cred(), p.Path(name))
		if err == nil && info.Mode()&fs.ModeSymlink != 0 && !o.Has("l", "d") {
			info, err = p.Sys.FS.Stat(p.User.Cred(), p.Path(name))
		}
		switch {
		case err != nil:
			status = p.Fail(2, "cannot access '%s': %s", name, vfs.Reason(err))
		case info.IsDir() && !o.Has("d"):
			dirs = append(dirs, name)
		default:
			lsLine(p, o, name, info)
		}
	}
	for _, dir := range dirs {
		list, err := p.Sys.FS.ReadDir(p.User.Cred(), p.Path(dir))
		if err != nil {
			status = p.Fail(2, "cannot open directory '%s': %s", dir, vfs.Reason(err))
			continue
		}
		if len(names) > 1 {
			p.Printf("%s:\n", dir)
		}
		if o.Has("l") {
			p.Printf("total 0\n")
		}
		for _, i := range list {
			if strings.HasPrefix(i.Name(), ".") && !o.Has("a", "A") {
				continue
			}
			lsLine(p, o, i.Name(), i)
		}
	}
	return status
}

func lsLine(p *sh.Proc, o sh.Options, name string, i vfs.Info) {
	if !o.Has("l", "n") {
		p.Printf("%s\n", name)
		return
	}
	if i.Target != "" {
		name += " -> " + i.Target
	}
	p.Printf("%s 1 %s %s %d %s %s\n", modeString(i.Mode()), idName(p, "/etc/passwd", i.UID), idName(p, "/etc/group", i.GID),
		i.Size(), i.ModTime().UTC().Format("Jan _2 15:04"), name)
}

func stat(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("c: L")
	if err != nil {
		return p.Usage(1, err)
	}
	if len(o.Args) == 0 || !o.Has("c") {
		return p.Usage(1, errors.New("missing operand"))
	}
	status := 0
	for _, name := range o.Args {
		look := p.Sys.FS.Lstat
		if o.Has("L") {
			look = p.Sys.FS.Stat
		}
		i, err := look(p.User.Cred(), p.Path(name))
		if err != nil {
			status = p.Errorf("cannot statx '%s': %s", name, vfs.Reason(err))
			continue
		}
		kind := "regular file"
		switch {
		case i.IsDir():
			kind = "directory"
		case i.Target != "":
			kind = "symbolic link"
		case i.Mode()&fs.ModeDevice != 0:
			kind = "character special file"
		case i.Size() == 0:
			kind = "regular empty file"
		}
		p.Printf("%s\n", verbs(o.Value("c"), func(verb byte) (string, bool) {
			switch verb {
			case 'n':
				return name, true
			case 's':
				return fmt.Sprint(i.Size()), true
			case 'F':
				return kind, true
			case 'a':
				return octal(i.Mode()), true
			case 'u':
				return fmt.Sprint(i.UID), true
			case 'g':
				return fmt.Sprint(i.GID), true
			case 'U':
				return idName(p, "/etc/passwd", i.UID), true
			case 'G':
				return idName(p, "/etc/group", i.GID), true
			}
			return "%", verb == '%'
		}))
	}
	return status
}

// verbs replaces each %x in a format with its value. A verb without a value is left unchanged.
func verbs(format string, value func(verb byte) (string, bool)) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] == '%' && i+1 < len(format) {
			if s, ok := value(format[i+1]); ok {
				b.WriteString(s)
				i++
				continue
			}
		}
		b.WriteByte(format[i])
	}
	return b.String()
}

func readlink(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("f")
	if err != nil {
		return p.Usage(1, err)
	}
	status := 0
	for _, name := range o.Args {
		if !o.Has("f") {
			target, err := p.Sys.FS.Readlink(p.User.Cred(), p.Path(name))
			if err != nil {
				status = 1
				continue
			}
			p.Printf("%s\n", target)
			continue
		}
		full, err := canonical(p, p.Path(name))
		if err != nil {
			status = 1
			continue
		}
		p.Printf("%s\n", full)
	}
	return status
}

// canonical resolves all symbolic links of name. The last element may be missing.
func canonical(p *sh.Proc, name string) (string, error) {
	for range 40 {
		rest := strings.Split(strings.Trim(name, "/"), "/")
		sofar, again := "/", false
		for i, part := range rest {
			next := path.Join(sofar, part)
			info, err := p.Sys.FS.Lstat(p.User.Cred(), next)
			if err != nil && i < len(rest)-1 {
				return "", err
			}
			if err == nil && info.Target != "" {
				name = path.Join(vfs.Join(sofar, info.Target), path.Join(rest[i+1:]...))
				again = true
				break
			}
			sofar = next
		}
		if !again {
			return sofar, nil
		}
	}
	return "", errors.New("too many levels of symbolic links")
}

func basename(_ context.Context, p *sh.Proc) int {
	if len(p.Args) < 2 {
		return p.Usage(1, errors.New("missing operand"))
	}
	name := path.Base(p.Args[1])
	if len(p.Args) > 2 && name != p.Args[2] {
		name = strings.TrimSuffix(name, p.Args[2])
	}
	p.Printf("%s\n", name)
	return 0
}

func dirname(_ context.Context, p *sh.Proc) int {
	for _, name := range p.Args[1:] {
		p.Printf("%s\n", path.Dir(name))
	}
	return 0
}
