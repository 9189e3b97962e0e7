package coreutils

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// unpack implements a part of tar: it extracts archives, with or without gzip compression.
func unpack(_ context.Context, p *sh.Proc) int {
	if len(p.Args) > 1 && !strings.HasPrefix(p.Args[1], "-") { // tar xf, without a dash
		p.Args[1] = "-" + p.Args[1]
	}
	o, err := p.Options("x f: file: C: directory: z v extract gzip no-same-owner strip-components:")
	if err != nil {
		return p.Usage(2, err)
	}
	file, dir := o.Value("f", "file"), o.Value("C", "directory")
	switch {
	case !o.Has("x", "extract"):
		return p.Fail(2, "You must specify one of the '-Acdtrux', '--delete' or '--test-label' options")
	case file == "":
		return p.Fail(2, "Refusing to read archive contents from terminal (missing -f option?)")
	}
	data, err := p.Sys.FS.ReadFile(p.User.Cred(), p.Path(file))
	if err != nil {
		p.Errorf("%s: Cannot open: %s", file, vfs.Reason(err))
		return p.Fail(2, "Error is not recoverable: exiting now")
	}
	if err := extract(p, data, p.Path(dir)); err != nil {
		p.Errorf("%v", err)
		return p.Fail(2, "Error is not recoverable: exiting now")
	}
	return 0
}

func reason(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

var errNoTar = errors.New("this does not look like a tar archive")

// extract writes the files of an archive below a directory.
func extract(p *sh.Proc, data []byte, dir string) error {
	var in io.Reader = bytes.NewReader(data)
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return errors.New("gzip: stdin: not in gzip format")
		}
		in = z
	}
	for t := tar.NewReader(in); ; {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return errNoTar
		case path.IsAbs(h.Name) || strings.Contains(h.Name, ".."):
			return fmt.Errorf("%s: Member name contains '..'", h.Name)
		}
		name, cred := path.Join(dir, h.Name), p.User.Cred()
		if h.Typeflag == tar.TypeDir {
			err = p.Sys.FS.MkdirAll(cred, name, fs.FileMode(h.Mode).Perm())
		} else {
			var text []byte
			if text, err = io.ReadAll(t); err == nil {
				if err = p.Sys.FS.MkdirAll(cred, path.Dir(name), 0o755); err == nil {
					err = p.Sys.FS.WriteFile(cred, name, text, fs.FileMode(h.Mode).Perm())
				}
			}
		}
		if err != nil {
			return fmt.Errorf("%s: Cannot open: %w", h.Name, reason(err))
		}
	}
}
