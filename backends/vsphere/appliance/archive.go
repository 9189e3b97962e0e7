package appliance

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Limits of a package: real descriptors, with licences in several languages, have a few hundred kB.
const (
	descriptorLimit = 4 << 20 // bytes
	manifestLimit   = 1 << 20 // bytes
	descriptorItems = 50_000  // elements
	descriptorDepth = 64      // nesting depth of elements
	packageFiles    = 1000
)

// An archive provides the files of a package and opens no others.
type archive interface {
	// Open opens a file by its name inside the package; the error is os.ErrNotExist if there is none.
	Open(name string) (io.ReadCloser, int64, error)
	// Descriptor returns the name of the OVF descriptor.
	Descriptor() string
	Close() error
}

// inside refuses names that point outside a package: absolute ones, those with "..", and URLs. DSP0243 allows a reference to be a
// URL, but the package's manifest cannot protect what is fetched from elsewhere.
func inside(name string) error {
	if strings.Contains(name, "://") || !filepath.IsLocal(name) {
		return fmt.Errorf("the reference %q points outside the package", name)
	}
	return nil
}

// openRegular opens a regular file; it does not block on a named pipe.
func openRegular(open func(flag int) (*os.File, error), name string) (*os.File, int64, error) {
	f, err := open(os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOFOLLOW)
	if errors.Is(err, syscall.ELOOP) {
		err = fmt.Errorf("%s is a link, not a regular file", name)
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// A folder is a package whose files are in the directory of its descriptor.
type folder struct {
	root       *os.Root
	descriptor string
}

func openFolder(path string) (*folder, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	return &folder{root, filepath.Base(path)}, nil
}

// Open implements archive.
func (d *folder) Open(name string) (io.ReadCloser, int64, error) {
	if err := inside(name); err != nil {
		return nil, 0, err
	}
	// os.Root follows links that stay inside; a package must not contain any.
	for at := filepath.Clean(name); at != "."; at = filepath.Dir(at) {
		info, err := d.root.Lstat(at)
		if err != nil {
			return nil, 0, err
		}
		if info.Mode()&os.ModeSymlink != 0 {
			return nil, 0, fmt.Errorf("%s is a link, not a regular file", at)
		}
	}
	return asReader(openRegular(func(flag int) (*os.File, error) { return d.root.OpenFile(name, flag, 0) }, name))
}

func asReader(f *os.File, size int64, err error) (io.ReadCloser, int64, error) {
	if err != nil {
		return nil, 0, err
	}
	return f, size, nil
}

func (d *folder) Descriptor() string { return d.descriptor }

func (d *folder) Close() error { return d.root.Close() }

// A tape is an OVA: a tar file with the descriptor first. Files are read at the offsets in the headers, so that a disk of many GB
// is not read to find the next file.
type tape struct {
	file       *os.File
	members    map[string]*io.SectionReader
	descriptor string
}

func openTape(path string) (*tape, error) {
	// The package itself may be a link; its contents must not contain any.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	t := &tape{file: f, members: map[string]*io.SectionReader{}}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err == nil {
		err = t.index(info.Size())
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return t, nil
}

// index locates the files of the archive. An entry that is not a regular file, or is sparse (it can claim any size), is not
// allowed in an OVA (DSP0243, "OVF package: distribution as a single file").
func (t *tape) index(size int64) error {
	for r := tar.NewReader(t.file); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("it is not a tar file, or it is damaged: %w", err)
		}
		at, err := t.file.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		if err := inside(h.Name); err != nil {
			return err
		}
		name := filepath.Clean(h.Name)
		switch {
		case h.Typeflag == tar.TypeDir || h.Typeflag == tar.TypeXGlobalHeader:
			continue
		case h.Typeflag != tar.TypeReg || sparse(h):
			return fmt.Errorf("%q in it is not a regular file", h.Name)
		case t.members[name] != nil:
			return fmt.Errorf("it contains %q twice", h.Name)
		case at+h.Size > size:
			return fmt.Errorf("it is truncated: %q is incomplete", h.Name)
		case len(t.members) == packageFiles:
			return fmt.Errorf("it contains more than %d files", packageFiles)
		}
		t.members[name] = io.NewSectionReader(t.file, at, h.Size)
		if strings.EqualFold(filepath.Ext(name), ".ovf") {
			if t.descriptor != "" {
				return fmt.Errorf("it contains two descriptors: %q and %q", t.descriptor, h.Name)
			}
			t.descriptor = name
		}
	}
	if t.descriptor == "" {
		return errors.New("it contains no OVF descriptor")
	}
	return nil
}

func sparse(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// Open implements archive.
func (t *tape) Open(name string) (io.ReadCloser, int64, error) {
	if err := inside(name); err != nil {
		return nil, 0, err
	}
	m := t.members[filepath.Clean(name)]
	if m == nil {
		return nil, 0, fmt.Errorf("%s: %w", name, os.ErrNotExist)
	}
	return io.NopCloser(io.NewSectionReader(m, 0, m.Size())), m.Size(), nil
}

func (t *tape) Descriptor() string { return t.descriptor }

func (t *tape) Close() error { return t.file.Close() }

// readLimited reads a text file of a package, up to a limit.
func readLimited(a archive, name string, limit int64) ([]byte, error) {
	r, size, err := a.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if size > limit {
		return nil, fmt.Errorf("%s is larger than %d MiB", name, limit>>20)
	}
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s is larger than %d MiB", name, limit>>20)
	}
	return text, err
}
