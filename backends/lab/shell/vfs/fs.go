// Package vfs is an in-memory file system for the lab's machines. It enforces owners and modes, follows symbolic links, and
// computes parts of the tree (/proc, /sys) when they are read. It never accesses the disk of the machine on which the lab runs.
//
// Errors are *fs.PathError with the errno that Linux would return.
package vfs

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const maxLinks = 40 // MAXSYMLINKS in Linux

// Cred is the user on whose behalf a file is accessed. UID 0 passes all permission checks.
type Cred struct {
	UID  int
	GIDs []int // the first is the group of new files
}

// Root returns the credential of root.
func Root() Cred { return Cred{GIDs: []int{0}} }

// GID returns the group of new files.
func (c Cred) GID() int {
	if len(c.GIDs) == 0 {
		return 0
	}
	return c.GIDs[0]
}

// FS is one file system. Use New to create one; the zero value is not usable. It is safe for concurrent use.
type FS struct {
	mu   sync.RWMutex
	root *node
	now  func() time.Time
}

// A node is a file. A site has a hundred thousand of them, so it is small.
type node struct {
	mode     fs.FileMode // including the type bits
	uid, gid int32
	mtime    int64 // in nanoseconds since 1970; 0: now
	data     []byte
	target   string // target of a symbolic link
	*entries        // of a directory; nil for the others
	*source
}

// entries are the entries of a directory, sorted by name. They take a quarter of the memory of a map.
type entries struct{ list []entry }

type entry struct {
	name string
	*node
}

func (e *entries) find(name string) (int, bool) {
	if e == nil {
		return 0, false
	}
	return slices.BinarySearchFunc(e.list, name, func(e entry, name string) int { return strings.Compare(e.name, name) })
}

// get returns the entry with a name, nil if there is none.
func (e *entries) get(name string) *node {
	if i, found := e.find(name); found {
		return e.list[i].node
	}
	return nil
}

func (e *entries) set(name string, n *node) {
	i, found := e.find(name)
	if found {
		e.list[i].node = n
	} else {
		e.list = slices.Insert(e.list, i, entry{name, n})
	}
}

func (e *entries) remove(name string) {
	if i, found := e.find(name); found {
		e.list = slices.Delete(e.list, i, i+1)
	}
}

// source describes how the content of a file or directory is computed. All ordinary files share one value, because a site has
// many of them.
type source struct {
	computed bool        // created from a Tree
	tree     func() Tree // content of a computed directory
	one      func(name string) (Entry, bool)
	version  func() uint64
	kept     atomic.Pointer[kept]
	mkdir    func(name string) error
	rmdir    func(name string) error
	store    func(s string) error // stores the data written to a computed file; nil: read-only
	fail     error                // error of reading a computed file
}

var ordinary, computed = &source{}, &source{computed: true}

// New returns an empty file system. Its timestamps are from now.
func New(now func() time.Time) *FS {
	return &FS{now: now, root: &node{mode: fs.ModeDir | 0o755, mtime: now().UnixNano(), entries: &entries{}, source: ordinary}}
}

func (n *node) dir() bool { return n.mode.IsDir() }

// may reports whether c has all permissions of want (rwx bits 4, 2, 1) on n.
func (n *node) may(c Cred, want fs.FileMode) bool {
	if c.UID == 0 {
		return want&1 == 0 || n.dir() || n.mode&0o111 != 0
	}
	bits := n.mode.Perm()
	switch {
	case c.UID == int(n.uid):
		bits >>= 6
	case slices.Contains(c.GIDs, int(n.gid)):
		bits >>= 3
	}
	return bits&want == want
}

// readOnly reports whether n is a computed file that nobody can write, not even root.
func (n *node) readOnly() bool { return n.computed && n.store == nil && n.mode&fs.ModeDevice == 0 }

// place is the result of resolving a path: the parent directory, the last name and its node (nil if there is none).
type place struct {
	parent *node
	name   string
	node   *node
}

// resolve resolves a path from the root. The caller must hold the lock.
func (f *FS) resolve(c Cred, p string, follow bool) (place, error) {
	links := 0
	return f.walk(c, f.root, f.top(), p, follow, &links)
}

// top returns the start of a path from the root, with capacity for most paths.
func (f *FS) top() []*node { return append(make([]*node, 0, 12), f.root) }

func splitPath(p string) []string {
	names := make([]string, 0, strings.Count(p, "/")+1)
	for name := range strings.SplitSeq(p, "/") {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

func (f *FS) walk(c Cred, at *node, above []*node, p string, follow bool, links *int) (place, error) {
	here := place{parent: at, name: ".", node: at}
	for {
		p = strings.TrimLeft(p, "/")
		if p == "" {
			return here, nil
		}
		if !at.dir() {
			return place{}, syscall.ENOTDIR
		}
		if !at.may(c, 1) {
			return place{}, syscall.EACCES
		}
		name, rest, _ := strings.Cut(p, "/")
		rest = strings.TrimLeft(rest, "/")
		p = rest
		if name == "." {
			continue
		}
		if name == ".." {
			if len(above) > 1 {
				above = above[:len(above)-1]
			}
			at = above[len(above)-1]
			here = place{parent: at, name: ".", node: at}
			continue
		}
		child := at.child(name)
		here = place{parent: at, name: name, node: child}
		if child == nil {
			if rest == "" {
				return here, nil
			}
			return place{}, syscall.ENOENT
		}
		if child.mode&fs.ModeSymlink != 0 && (rest != "" || follow) {
			if *links++; *links > maxLinks {
				return place{}, syscall.ELOOP
			}
			if rest != "" {
				rest = "/" + rest
			}
			if path.IsAbs(child.target) {
				at, above = f.root, f.top()
			}
			return f.walk(c, at, above, child.target+rest, follow, links)
		}
		at = child
		above = append(above, child)
	}
}

func (n *node) child(name string) *node {
	if child := n.get(name); child != nil {
		return child
	}
	if n.one != nil {
		if e, ok := n.one(name); ok {
			return e.node()
		}
		return nil
	}
	if n.tree != nil {
		return n.computes(name).get(name)
	}
	return nil
}

// kept is the cached content of a computed directory at a version.
type kept struct {
	version uint64
	*entries
}

// computes returns the entries of a computed directory. If only is not "", it returns at least the one with that name.
func (n *node) computes(only string) *entries {
	if n.version == nil {
		return n.tree().node(only).entries
	}
	now := n.version()
	if k := n.kept.Load(); k != nil && k.version == now {
		return k.entries
	}
	k := &kept{version: now, entries: n.tree().node("").entries}
	n.kept.Store(k)
	return k.entries
}

func (f *FS) existing(c Cred, op, p string, follow bool) (place, error) {
	at, err := f.resolve(c, p, follow)
	if err == nil && at.node == nil {
		err = syscall.ENOENT
	}
	if err != nil {
		return place{}, &fs.PathError{Op: op, Path: p, Err: err}
	}
	return at, nil
}

// vacancy returns the place for a new file p. exists reports that the name is in use.
func (f *FS) vacancy(c Cred, op, p string, follow bool) (at place, exists bool, err error) {
	at, err = f.resolve(c, p, follow)
	switch {
	case err != nil:
	case at.node != nil:
		return at, true, nil
	case at.parent.tree != nil || at.parent.computed:
		err = syscall.EACCES
	case !at.parent.may(c, 3):
		err = syscall.EACCES
	default:
		return at, false, nil
	}
	return place{}, false, &fs.PathError{Op: op, Path: p, Err: err}
}

func (f *FS) put(c Cred, at place, n *node) {
	n.uid, n.gid, n.mtime = int32(c.UID), int32(c.GID()), f.now().UnixNano()
	if n.entries == nil && n.dir() {
		n.entries = &entries{}
	}
	at.parent.set(at.name, n)
	at.parent.mtime = n.mtime
}
