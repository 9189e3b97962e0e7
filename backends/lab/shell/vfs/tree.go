package vfs

import (
	"io/fs"
	"path"
	"strings"
	"syscall"
)

// A Tree is a computed part of the file system. It maps paths below the mount point to entries. Directories in between need no
// entry.
type Tree map[string]Entry

// An Entry is a computed file, a symbolic link (if Link is set) or a directory.
type Entry struct {
	Data string
	Read func() string // used instead of Data if computing it is expensive: called when the entry is read
	Link string
	Dir  bool
	Sub  func() Tree                     // content of a directory, computed only when it is read
	One  func(name string) (Entry, bool) // computes one entry of a directory with Sub without computing the others; nil: Sub is used
	// Version returns a number that identifies the result of Sub. The result is cached until the number changes; nil: not
	// cached.
	Version func() uint64
	Mode    fs.FileMode          // default: 0444, for directories 0555
	Set     func(s string) error // handles a write; nil: read-only
	Err     error                // error of a read

	// Mkdir and Rmdir handle the creation and removal of subdirectories, as in configfs; nil: not supported.
	Mkdir, Rmdir func(name string) error
}

// Listed returns a directory whose entries have the given names and are computed one by one. An entry for which one returns
// false does not exist.
func Listed(names []string, one func(name string) (Entry, bool)) Entry {
	return Entry{One: one, Sub: func() Tree {
		t := make(Tree, len(names))
		for _, name := range names {
			if e, ok := one(name); ok {
				t[name] = e
			}
		}
		return t
	}}
}

// Mount mounts the directory e, which must have Sub, at dir. It is computed whenever dir or a path below it is accessed.
// Missing parent directories are created. Sub and One must not access the file system, so callers of the file system must not
// hold a lock that Sub or One takes.
func (f *FS) Mount(dir string, e Entry) error {
	if err := f.MkdirAll(Root(), dir, 0o755); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	at, err := f.existing(Root(), "mount", dir, true)
	if err != nil {
		return err
	}
	at.node.source = &source{tree: e.Sub, one: e.One, version: e.Version}
	return nil
}

// node returns the root of the tree with all its entries. If only is not "", it contains only the child with that name.
func (t Tree) node(only string) *node {
	root := dirNode(0o555)
	for name, e := range t {
		if only != "" && !(strings.HasPrefix(name, only) && (len(name) == len(only) || name[len(only)] == '/')) {
			continue
		}
		at := root
		parts := splitPath(name)
		for _, dir := range parts[:len(parts)-1] {
			next := at.get(dir)
			if next == nil {
				next = dirNode(0o555)
				at.set(dir, next)
			}
			at = next
		}
		last := parts[len(parts)-1]
		if e.Dir && at.get(last) != nil {
			continue
		}
		at.set(last, e.node())
	}
	return root
}

func (e Entry) node() *node {
	switch {
	case e.Link != "":
		return &node{mode: fs.ModeSymlink | 0o777, target: e.Link, source: ordinary}
	case e.Dir || e.Sub != nil:
		mode := e.Mode
		if mode == 0 {
			mode = 0o555
		}
		dir := dirNode(mode)
		dir.source = &source{computed: true, tree: e.Sub, one: e.One, version: e.Version, mkdir: e.Mkdir, rmdir: e.Rmdir}
		return dir
	}
	if e.Read != nil {
		e.Data = e.Read()
	}
	n := &node{mode: e.Mode, data: []byte(e.Data), source: computed}
	if e.Set != nil || e.Err != nil {
		n.source = &source{computed: true, store: e.Set, fail: e.Err}
	}
	if n.mode == 0 {
		n.mode = 0o444
	}
	return n
}

func dirNode(mode fs.FileMode) *node {
	return &node{mode: fs.ModeDir | mode, entries: &entries{}, source: computed}
}

// Join returns p as an absolute path, relative to dir.
func Join(dir, p string) string {
	if path.IsAbs(p) {
		return path.Clean(p)
	}
	return path.Join("/", dir, p)
}

// Reason returns the C library's message for err, such as "No such file or directory".
func Reason(err error) string {
	s := err.Error()
	if pe, ok := err.(*fs.PathError); ok {
		s = pe.Err.Error()
	}
	switch err := unwrap(err); err {
	case fs.ErrNotExist:
		s = syscall.ENOENT.Error()
	case fs.ErrExist:
		s = syscall.EEXIST.Error()
	case fs.ErrPermission:
		s = syscall.EACCES.Error()
	}
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func unwrap(err error) error {
	if pe, ok := err.(*fs.PathError); ok {
		return pe.Err
	}
	return err
}
