package coreutils

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

func filePrograms() map[string]sh.Program {
	return map[string]sh.Program{
		"cp": cp, "mv": mv, "rm": rm, "mkdir": mkdir, "rmdir": rmdir, "ln": ln, "touch": touch,
		"tar": unpack, "chmod": chmod, "chown": chown, "mktemp": mktemp, "sync": sync,
	}
}

func sync(context.Context, *sh.Proc) int { return 0 }

// into returns the target path of src: below dst if dst is a directory.
func into(p *sh.Proc, src, dst string) string {
	if info, err := p.Sys.FS.Stat(p.User.Cred(), p.Path(dst)); err == nil && info.IsDir() {
		return path.Join(p.Path(dst), path.Base(src))
	}
	return p.Path(dst)
}

// destination splits operands into sources and target. More than one source requires a directory as target.
func destination(p *sh.Proc, o sh.Options) (src []string, dst string, status int) {
	args := o.Args
	switch len(args) {
	case 0:
		return nil, "", p.Usage(1, errors.New("missing file operand"))
	case 1:
		return nil, "", p.Usage(1, fmt.Errorf("missing destination file operand after '%s'", args[0]))
	}
	src, dst = args[:len(args)-1], args[len(args)-1]
	if len(src) > 1 {
		if info, err := p.Sys.FS.Stat(p.User.Cred(), p.Path(dst)); err != nil || !info.IsDir() {
			return nil, "", p.Errorf("target '%s' is not a directory", dst)
		}
	}
	return src, dst, 0
}

func cp(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("r f p P")
	if err != nil {
		return p.Usage(1, err)
	}
	srcs, dst, status := destination(p, o)
	for _, src := range srcs {
		if s := copyOne(p, o, src, into(p, src, dst)); s != 0 {
			status = s
		}
	}
	return status
}

func copyOne(p *sh.Proc, o sh.Options, src, dst string) int {
	c, f := p.User.Cred(), p.Sys.FS
	info, err := f.Stat(c, p.Path(src))
	if err != nil {
		return p.Errorf("cannot stat '%s': %s", src, vfs.Reason(err))
	}
	keep := o.Has("p")
	if info.IsDir() {
		if !o.Has("r") {
			return p.Errorf("-r not specified; omitting directory '%s'", src)
		}
		if err := f.MkdirAll(c, dst, info.Mode()); err != nil {
			return p.Errorf("cannot create directory '%s': %s", dst, vfs.Reason(err))
		}
		list, err := f.ReadDir(c, p.Path(src))
		if err != nil {
			return p.Errorf("cannot access '%s': %s", src, vfs.Reason(err))
		}
		status := 0
		for _, i := range list {
			status = max(status, copyOne(p, o, path.Join(src, i.Name()), path.Join(dst, i.Name())))
		}
		return status
	}
	data, err := f.ReadFile(c, p.Path(src))
	if err != nil {
		return p.Errorf("cannot open '%s' for reading: %s", src, vfs.Reason(err))
	}
	if err := f.WriteFile(c, dst, data, info.Mode().Perm()); err != nil {
		return p.Errorf("cannot create regular file '%s': %s", dst, vfs.Reason(err))
	}
	if keep {
		_ = f.Chmod(c, dst, info.Mode()) // like cp, ignore attributes that cannot be preserved
		_ = f.Chown(c, dst, info.UID, info.GID)
		_ = f.Chtimes(c, dst, info.ModTime())
	}
	return 0
}

func mv(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("f")
	if err != nil {
		return p.Usage(1, err)
	}
	srcs, dst, status := destination(p, o)
	for _, src := range srcs {
		to := into(p, src, dst)
		if _, err := p.Sys.FS.Lstat(p.User.Cred(), p.Path(src)); err != nil {
			status = p.Errorf("cannot stat '%s': %s", src, vfs.Reason(err))
		} else if err := p.Sys.FS.Rename(p.User.Cred(), p.Path(src), to); err != nil {
			status = p.Errorf("cannot move '%s' to '%s': %s", src, dst, vfs.Reason(err))
		}
	}
	return status
}

func rm(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("r f")
	if err != nil {
		return p.Usage(1, err)
	}
	force := o.Has("f")
	if len(o.Args) == 0 && !force {
		return p.Usage(1, errors.New("missing operand"))
	}
	status := 0
	for _, name := range o.Args {
		info, err := p.Sys.FS.Lstat(p.User.Cred(), p.Path(name))
		switch {
		case errors.Is(err, syscall.ENOENT) && force:
			continue
		case err == nil && info.IsDir() && !o.Has("r"):
			err = &fs.PathError{Err: syscall.EISDIR}
		case err == nil && o.Has("r"):
			err = p.Sys.FS.RemoveAll(p.User.Cred(), p.Path(name))
		case err == nil:
			err = p.Sys.FS.Remove(p.User.Cred(), p.Path(name))
		}
		if err != nil {
			status = p.Errorf("cannot remove '%s': %s", name, vfs.Reason(err))
		}
	}
	return status
}

func mkdir(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("p m:")
	if err != nil {
		return p.Usage(1, err)
	}
	perm := fs.FileMode(0o755)
	if m := o.Value("m"); m != "" {
		if perm, err = parseMode(m); err != nil {
			return p.Errorf("invalid mode '%s'", m)
		}
	}
	if len(o.Args) == 0 {
		return p.Usage(1, errors.New("missing operand"))
	}
	status := 0
	for _, name := range o.Args {
		if o.Has("p") {
			if _, err = p.Sys.FS.Stat(p.User.Cred(), p.Path(name)); err == nil {
				continue
			}
			if err = p.Sys.FS.MkdirAll(p.User.Cred(), path.Dir(p.Path(name)), 0o755); err == nil {
				err = p.Sys.FS.MkdirAll(p.User.Cred(), p.Path(name), perm)
			}
		} else {
			err = p.Sys.FS.Mkdir(p.User.Cred(), p.Path(name), perm)
		}
		if err != nil {
			status = p.Errorf("cannot create directory '%s': %s", name, vfs.Reason(err))
		}
	}
	return status
}

func rmdir(_ context.Context, p *sh.Proc) int {
	status := 0
	for _, name := range p.Args[1:] {
		info, err := p.Sys.FS.Lstat(p.User.Cred(), p.Path(name))
		if err == nil && !info.IsDir() {
			err = &fs.PathError{Err: syscall.ENOTDIR}
		}
		if err == nil {
			err = p.Sys.FS.Remove(p.User.Cred(), p.Path(name))
		}
		if err != nil {
			status = p.Errorf("failed to remove '%s': %s", name, vfs.Reason(err))
		}
	}
	return status
}

func ln(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("s f n")
	if err != nil {
		return p.Usage(1, err)
	}
	if !o.Has("s") {
		return p.Errorf("failed to create hard link: Operation not permitted")
	}
	if len(o.Args) != 2 {
		return p.Usage(1, errors.New("missing file operand"))
	}
	to := p.Path(o.Args[1])
	if !o.Has("n") {
		to = into(p, o.Args[0], o.Args[1])
	}
	if o.Has("f") {
		_ = p.Sys.FS.Remove(p.User.Cred(), to) // a remaining file causes an error in the next step
	}
	if err := p.Sys.FS.Symlink(p.User.Cred(), o.Args[0], to); err != nil {
		return p.Errorf("failed to create symbolic link '%s': %s", o.Args[1], vfs.Reason(err))
	}
	return 0
}

func touch(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("")
	if err != nil {
		return p.Usage(1, err)
	}
	status := 0
	for _, name := range o.Args {
		if _, err := p.Sys.FS.Stat(p.User.Cred(), p.Path(name)); err == nil {
			err = p.Sys.FS.Chtimes(p.User.Cred(), p.Path(name), p.Sys.Now())
			if err != nil {
				status = p.Errorf("setting times of '%s': %s", name, vfs.Reason(err))
			}
			continue
		}
		if err := p.Sys.FS.WriteFile(p.User.Cred(), p.Path(name), nil, 0o644); err != nil {
			status = p.Errorf("cannot touch '%s': %s", name, vfs.Reason(err))
		}
	}
	return status
}

func mktemp(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("d u q p: t tmpdir:")
	if err != nil {
		return p.Usage(1, err)
	}
	dir := o.Value("p", "tmpdir")
	template := "tmp.XXXXXXXXXX"
	if len(o.Args) > 0 {
		template = o.Args[0]
	} else if dir == "" {
		dir = "/tmp"
	}
	x := len(template) - len(strings.TrimRight(template, "X"))
	if x < 3 {
		return p.Errorf("too few X's in template '%s'", template)
	}
	for range 100 {
		name := p.Path(path.Join(dir, template[:len(template)-x]+letters(x)))
		if o.Has("d") {
			err = p.Sys.FS.Mkdir(p.User.Cred(), name, 0o700)
		} else {
			var f *vfs.File
			if f, err = p.Sys.FS.Open(p.User.Cred(), name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
				err = f.Close()
			}
		}
		if err == nil {
			p.Printf("%s\n", name)
			return 0
		}
		if !errors.Is(err, syscall.EEXIST) {
			break
		}
	}
	return p.Errorf("failed to create file via template '%s': %s", template, vfs.Reason(err))
}
