package vfs

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Info describes a file. It implements fs.FileInfo and fs.DirEntry.
type Info struct {
	name     string
	size     int64
	mode     fs.FileMode
	mtime    time.Time
	UID, GID int
	Target   string // target of a symbolic link
}

// Name returns the last element of the path.
func (i Info) Name() string { return i.name }

// Size returns the length in bytes.
func (i Info) Size() int64 { return i.size }

// Mode returns permissions and type.
func (i Info) Mode() fs.FileMode { return i.mode }

// ModTime returns the time of the last change.
func (i Info) ModTime() time.Time { return i.mtime }

// IsDir reports whether it is a directory.
func (i Info) IsDir() bool { return i.mode.IsDir() }

// Sys returns nil.
func (i Info) Sys() any { return nil }

// Type returns the type bits of the mode.
func (i Info) Type() fs.FileMode { return i.mode.Type() }

// Info returns i.
func (i Info) Info() (fs.FileInfo, error) { return i, nil }

func (f *FS) info(name string, n *node) Info {
	i := Info{name: path.Base(name), size: int64(len(n.data)), mode: n.mode, mtime: time.Unix(0, n.mtime), UID: int(n.uid), GID: int(n.gid),
		Target: n.target}
	if n.dir() {
		i.size = 4096
	}
	if n.target != "" {
		i.size = int64(len(n.target))
	}
	if n.mtime == 0 {
		i.mtime = f.now()
	}
	return i
}

// Stat returns information about p. It follows symbolic links.
func (f *FS) Stat(c Cred, p string) (Info, error) { return f.stat(c, p, true) }

// Lstat returns information about p. It does not follow a symbolic link.
func (f *FS) Lstat(c Cred, p string) (Info, error) { return f.stat(c, p, false) }

func (f *FS) stat(c Cred, p string, follow bool) (Info, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	at, err := f.existing(c, "stat", p, follow)
	if err != nil {
		return Info{}, err
	}
	return f.info(p, at.node), nil
}

// Access returns nil if c has the permissions want (rwx bits 4, 2, 1) on p, otherwise an error.
func (f *FS) Access(c Cred, p string, want fs.FileMode) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	at, err := f.existing(c, "access", p, true)
	if err != nil {
		return err
	}
	if !at.node.may(c, want) {
		return &fs.PathError{Op: "access", Path: p, Err: syscall.EACCES}
	}
	return nil
}

// Runnable returns nil if c may execute p, otherwise the errno without a PathError: a search in PATH checks many paths that do
// not exist.
func (f *FS) Runnable(c Cred, p string) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	at, err := f.resolve(c, p, true)
	switch {
	case err != nil:
		return err
	case at.node == nil:
		return syscall.ENOENT
	case at.node.dir():
		return syscall.EISDIR
	case !at.node.may(c, 1):
		return syscall.EACCES
	}
	return nil
}

// ReadDir returns the entries of a directory, sorted by name.
func (f *FS) ReadDir(c Cred, p string) ([]Info, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	at, err := f.existing(c, "open", p, true)
	if err != nil {
		return nil, err
	}
	if !at.node.dir() {
		return nil, &fs.PathError{Op: "readdir", Path: p, Err: syscall.ENOTDIR}
	}
	if !at.node.may(c, 4) {
		return nil, &fs.PathError{Op: "open", Path: p, Err: syscall.EACCES}
	}
	all := at.node.entries
	if at.node.tree != nil {
		kept := all.list
		all = at.node.computes("")
		if len(kept) > 0 { // made below the mount point
			all = &entries{list: slices.Clone(all.list)}
			for _, e := range kept {
				if all.get(e.name) == nil {
					all.set(e.name, e.node)
				}
			}
		}
	}
	list := make([]Info, len(all.list))
	for i, e := range all.list {
		list[i] = f.info(e.name, e.node)
	}
	return list, nil
}

// Readlink returns the target of the symbolic link p.
func (f *FS) Readlink(c Cred, p string) (string, error) {
	info, err := f.Lstat(c, p)
	if err != nil {
		return "", err
	}
	if info.Target == "" {
		return "", &fs.PathError{Op: "readlink", Path: p, Err: syscall.EINVAL}
	}
	return info.Target, nil
}

// Mkdir creates a directory.
func (f *FS) Mkdir(c Cred, p string, perm fs.FileMode) error {
	return f.make(c, "mkdir", p, &node{mode: fs.ModeDir | perm.Perm(), source: ordinary})
}

// Symlink creates p as a symbolic link to target, which need not exist.
func (f *FS) Symlink(c Cred, target, p string) error {
	return f.make(c, "symlink", p, &node{mode: fs.ModeSymlink | 0o777, target: target, source: ordinary})
}

// Mknod creates a special file, such as a device.
func (f *FS) Mknod(c Cred, p string, mode fs.FileMode) error {
	return f.make(c, "mknod", p, &node{mode: mode, source: ordinary})
}

func (f *FS) make(c Cred, op, p string, n *node) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at, err := f.resolve(c, p, false); err == nil && at.node == nil && n.dir() && at.parent.mkdir != nil {
		err = syscall.EACCES
		if at.parent.may(c, 3) {
			err = at.parent.mkdir(at.name)
		}
		if err != nil {
			err = &fs.PathError{Op: op, Path: p, Err: err}
		}
		return err
	}
	at, taken, err := f.vacancy(c, op, p, false)
	if err != nil {
		return err
	}
	if taken {
		return &fs.PathError{Op: op, Path: p, Err: syscall.EEXIST}
	}
	f.put(c, at, n)
	return nil
}

// MkdirAll creates a directory and its missing parents.
func (f *FS) MkdirAll(c Cred, p string, perm fs.FileMode) error {
	sofar := "/"
	for _, name := range splitPath(p) {
		sofar = path.Join(sofar, name)
		info, err := f.Stat(c, sofar)
		switch {
		case err == nil && info.IsDir():
		case err == nil:
			return &fs.PathError{Op: "mkdir", Path: sofar, Err: syscall.ENOTDIR}
		default:
			if err := f.Mkdir(c, sofar, perm); err != nil {
				return err
			}
		}
	}
	return nil
}

// Remove removes a file or an empty directory.
func (f *FS) Remove(c Cred, p string) error { return f.remove(c, p, false) }

// RemoveAll removes p and everything below it. It is not an error if p does not exist.
func (f *FS) RemoveAll(c Cred, p string) error {
	err := f.remove(c, p, true)
	if err != nil && unwrap(err) == syscall.ENOENT {
		return nil
	}
	return err
}

func (f *FS) remove(c Cred, p string, all bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, err := f.existing(c, "remove", p, false)
	if err != nil {
		return err
	}
	fail := func(e error) error { return &fs.PathError{Op: "remove", Path: p, Err: e} }
	switch {
	case at.parent.rmdir != nil && at.node.dir() && at.parent.may(c, 3) && !all:
		if err := at.parent.rmdir(at.name); err != nil {
			return fail(err)
		}
		return nil
	case at.name == "." || at.node.tree != nil:
		return fail(syscall.EBUSY)
	case at.parent.tree != nil || at.parent.computed:
		return fail(syscall.EPERM)
	case !at.parent.may(c, 3):
		return fail(syscall.EACCES)
	case at.node.dir() && len(at.node.list) > 0 && !all:
		return fail(syscall.ENOTEMPTY)
	case at.parent.mode&fs.ModeSticky != 0 && c.UID != 0 && c.UID != int(at.node.uid) && c.UID != int(at.parent.uid):
		return fail(syscall.EPERM)
	}
	at.parent.remove(at.name)
	at.parent.mtime = f.now().UnixNano()
	return nil
}

// Rename renames from to to and replaces an existing file or empty directory.
func (f *FS) Rename(c Cred, from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	src, err := f.existing(c, "rename", from, false)
	if err != nil {
		return err
	}
	dst, taken, err := f.vacancy(c, "rename", to, false)
	if err != nil {
		return err
	}
	fail := func(e error) error { return &fs.PathError{Op: "rename", Path: to, Err: e} }
	switch {
	case src.name == "." || src.parent.tree != nil || src.parent.computed:
		return fail(syscall.EBUSY)
	case !src.parent.may(c, 3) || !dst.parent.may(c, 3) || dst.parent.tree != nil || dst.parent.computed:
		return fail(syscall.EACCES)
	case taken && dst.node.dir() && !src.node.dir():
		return fail(syscall.EISDIR)
	case taken && !dst.node.dir() && src.node.dir():
		return fail(syscall.ENOTDIR)
	case taken && dst.node.dir() && len(dst.node.list) > 0:
		return fail(syscall.ENOTEMPTY)
	case src.node.dir() && strings.HasPrefix(path.Clean(to)+"/", path.Clean(from)+"/"):
		return fail(syscall.EINVAL)
	}
	src.parent.remove(src.name)
	dst.parent.set(dst.name, src.node)
	return nil
}

// Chmod sets the permission bits, including the sticky, setuid and setgid bits.
func (f *FS) Chmod(c Cred, p string, mode fs.FileMode) error {
	const settable = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	return f.change(c, "chmod", p, true, func(n *node) bool { return c.UID == int(n.uid) },
		func(n *node) { n.mode = n.mode&^settable | mode&settable })
}

// Chown changes the owner and group of p; -1 leaves a value unchanged.
func (f *FS) Chown(c Cred, p string, uid, gid int) error {
	may := func(n *node) bool { return c.UID == int(n.uid) && uid == -1 && slices.Contains(c.GIDs, gid) }
	return f.change(c, "chown", p, true, may, func(n *node) {
		if uid >= 0 {
			n.uid = int32(uid)
		}
		if gid >= 0 {
			n.gid = int32(gid)
		}
	})
}

// Chtimes sets the modification time.
func (f *FS) Chtimes(c Cred, p string, t time.Time) error {
	return f.change(c, "chtimes", p, true, func(n *node) bool { return c.UID == int(n.uid) }, func(n *node) { n.mtime = t.UnixNano() })
}

func (f *FS) change(c Cred, op, p string, follow bool, may func(*node) bool, do func(*node)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, err := f.existing(c, op, p, follow)
	if err != nil {
		return err
	}
	if c.UID != 0 && !may(at.node) {
		return &fs.PathError{Op: op, Path: p, Err: syscall.EPERM}
	}
	do(at.node)
	return nil
}
