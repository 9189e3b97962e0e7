package vfs

import (
	"io/fs"
	"path"
	"strings"
	"syscall"
)

// A Tree is a computed part of the file system: path below the mount point -> what is there. Directories in
// between need no entry.
type Tree map[string]Entry

// An Entry is one computed file, a symbolic link when Link is set, or a directory.
type Entry struct {
	Data string
	Read func() string // instead of Data if it is expensive: called when this entry is read
	Link string
	Dir  bool
	Sub  func() Tree                     // of a directory that is computed only when it is read
	One  func(name string) (Entry, bool) // of a directory with Sub: what Sub has under a name, computed without the rest; nil: it is taken from Sub
	// Version is a number for what Sub of a directory returns, which is kept until the number is another; nil: it is not kept.
	Version func() uint64
	Mode    fs.FileMode          // 0444 when zero; 0555 for directories
	Set     func(s string) error // what writing does; nil: it cannot be written
	Err     error                // what reading answers

	// Of a directory in which directories are made and removed, as configfs has it; nil: they are not.
	Mkdir, Rmdir func(name string) error
}

// Listed is a directory whose entries have names and are computed one by one. One of which one says false is not there.
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

// Mount has the directory e, which has Sub, computed whenever something at or below dir is looked at. Missing directories are made.
// Sub and One must not touch the file system; so whatever lock they take must not be held by those who do.
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

// node returns the root of the tree, with all that is in it or, where only is not "", with the child of that name alone.
func (t Tree) node(only string) *node {
	root := dirNode(0o555)
	for name, e := range t {
		if only != "" && !(strings.HasPrefix(name, only) && (len(name) == len(only) || name[len(only)] == '/')) {
			continue
		}
		at := root
		parts := splitPath(name)
		for _, dir := range parts[:len(parts)-1] {
			next := at.children[dir]
			if next == nil {
				next = dirNode(0o555)
				at.children[dir] = next
			}
			at = next
		}
		last := parts[len(parts)-1]
		if e.Dir && at.children[last] != nil {
			continue
		}
		at.children[last] = e.node()
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
	return &node{mode: fs.ModeDir | mode, children: map[string]*node{}, source: computed}
}

// Join makes p absolute, seen from dir.
func Join(dir, p string) string {
	if path.IsAbs(p) {
		return path.Clean(p)
	}
	return path.Join("/", dir, p)
}

// Reason returns what the C library would say about err: "No such file or directory".
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
