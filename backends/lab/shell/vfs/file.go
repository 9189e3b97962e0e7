package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// A File is an open file. Concurrent calls are not allowed, except of ReadAt and WriteAt.
type File struct {
	fs      *FS
	node    *node
	name    string
	flag    int
	off     int64
	pending []byte // data written to a computed file; stored on Close
}

// Open opens p like os.OpenFile. perm is the mode of a new file.
func (f *FS) Open(c Cred, p string, flag int, perm fs.FileMode) (*File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fail := func(err error) (*File, error) { return nil, &fs.PathError{Op: "open", Path: p, Err: err} }
	at, err := f.resolve(c, p, true)
	if err != nil {
		return fail(err)
	}
	write := flag&(os.O_WRONLY|os.O_RDWR) != 0
	if at.node == nil {
		if flag&os.O_CREATE == 0 {
			return fail(syscall.ENOENT)
		}
		if at, _, err = f.vacancy(c, "open", p, true); err != nil {
			return nil, err
		}
		at.node = &node{mode: perm.Perm(), source: ordinary}
		f.put(c, at, at.node)
		return &File{fs: f, node: at.node, name: p, flag: flag}, nil
	}
	var want fs.FileMode = 4
	if write {
		want = 2
		if flag&os.O_RDWR != 0 {
			want = 6
		}
	}
	switch {
	case flag&os.O_EXCL != 0 && flag&os.O_CREATE != 0:
		return fail(syscall.EEXIST)
	case at.node.dir() && write:
		return fail(syscall.EISDIR)
	case !at.node.may(c, want), write && at.node.readOnly():
		return fail(syscall.EACCES)
	}
	if flag&os.O_TRUNC != 0 && write && at.node.mode.IsRegular() && at.node.store == nil {
		at.node.data, at.node.mtime = nil, f.now().UnixNano()
	}
	return &File{fs: f, node: at.node, name: p, flag: flag}, nil
}

// Name returns the path with which the file was opened.
func (f *File) Name() string { return f.name }

// Stat returns information about the open file.
func (f *File) Stat() (fs.FileInfo, error) {
	f.fs.mu.RLock()
	defer f.fs.mu.RUnlock()
	return f.fs.info(f.name, f.node), nil
}

func (f *File) device() bool { return f.node.mode&fs.ModeDevice != 0 }

// Read implements io.Reader. /dev/zero is the only device that returns data.
func (f *File) Read(b []byte) (int, error) {
	if f.device() {
		return 0, io.EOF
	}
	n, err := f.ReadAt(b, f.off)
	f.off += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(b []byte, off int64) (int, error) {
	f.fs.mu.RLock()
	defer f.fs.mu.RUnlock()
	if f.node.dir() {
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: syscall.EISDIR}
	}
	if f.node.fail != nil {
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: f.node.fail}
	}
	if off >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.node.data[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Write implements io.Writer.
func (f *File) Write(b []byte) (int, error) {
	if f.flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return 0, &fs.PathError{Op: "write", Path: f.name, Err: syscall.EBADF}
	}
	if f.device() {
		return len(b), nil
	}
	if f.node.store != nil {
		f.pending = append(f.pending, b...)
		return len(b), nil
	}
	if f.flag&os.O_APPEND != 0 {
		f.fs.mu.Lock()
		defer f.fs.mu.Unlock()
		f.node.data = append(f.node.data[:len(f.node.data):len(f.node.data)], b...)
		f.node.mtime = f.fs.now().UnixNano()
		return len(b), nil
	}
	n, err := f.WriteAt(b, f.off)
	f.off += int64(n)
	return n, err
}

// WriteAt implements io.WriterAt.
func (f *File) WriteAt(b []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	end := off + int64(len(b))
	data := make([]byte, max(end, int64(len(f.node.data))))
	copy(data, f.node.data)
	copy(data[off:], b)
	f.node.data, f.node.mtime = data, f.fs.now().UnixNano()
	return len(b), nil
}

// Truncate changes the size of the file.
func (f *File) Truncate(size int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	data := make([]byte, size)
	copy(data, f.node.data)
	f.node.data, f.node.mtime = data, f.fs.now().UnixNano()
	return nil
}

// Close closes the file. For a computed file, it stores the written data and returns an error if the data is rejected.
func (f *File) Close() error {
	if f.node.store == nil || f.pending == nil {
		return nil
	}
	s := string(f.pending)
	f.pending = nil
	if err := f.node.store(s); err != nil {
		return &fs.PathError{Op: "write", Path: f.name, Err: err}
	}
	return nil
}

// ReadFile returns the content of p.
func (f *FS) ReadFile(c Cred, p string) ([]byte, error) {
	file, err := f.Open(c, p, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil || info.IsDir() || file.node.fail != nil || file.device() {
		return io.ReadAll(file)
	}
	data := make([]byte, info.Size())
	n, err := file.ReadAt(data, 0)
	if err == io.EOF { // the file was truncated
		err = nil
	}
	return data[:n], err
}

// WriteFile writes p. A new file is created with the mode perm.
func (f *FS) WriteFile(c Cred, p string, data []byte, perm fs.FileMode) error {
	file, err := f.Open(c, p, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// Walk calls do for p and everything below it, parents first, sorted by name. It does not follow links.
func (f *FS) Walk(c Cred, p string, do func(p string, i Info) error) error {
	info, err := f.Lstat(c, p)
	if err != nil {
		return err
	}
	if err := do(p, info); err != nil || !info.IsDir() {
		return err
	}
	list, err := f.ReadDir(c, p)
	if err != nil {
		return err
	}
	for _, i := range list {
		child := p + "/" + i.Name()
		if p == "/" {
			child = "/" + i.Name()
		}
		if err := f.Walk(c, child, do); err != nil {
			return err
		}
	}
	return nil
}
