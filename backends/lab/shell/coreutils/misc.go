// Package coreutils implements common Unix programs for files, text and processes. They support the options that scripts use;
// an unsupported option is an error and is never ignored.
package coreutils

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/textutils"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

func miscPrograms() map[string]sh.Program {
	return map[string]sh.Program{
		"true": func(context.Context, *sh.Proc) int { return 0 }, "false": func(context.Context, *sh.Proc) int { return 1 },
		"echo": echo, "seq": seq, "id": id, "date": date,
		"sha256sum": checksum, "base64": base64Program, "groups": id,
	}
}

func echo(_ context.Context, p *sh.Proc) int {
	args, end := p.Args[1:], "\n"
	if len(args) > 0 && args[0] == "-n" {
		args, end = args[1:], ""
	}
	p.Printf("%s%s", strings.Join(args, " "), end)
	return 0
}

func seq(_ context.Context, p *sh.Proc) int {
	from, to := 1, 0
	var err error
	args := p.Args[1:]
	if len(args) == 2 {
		if from, err = strconv.Atoi(args[0]); err == nil {
			args = args[1:]
		}
	}
	if len(args) == 1 && err == nil {
		to, err = strconv.Atoi(args[0])
	}
	if err != nil || len(args) != 1 {
		return p.Usage(1, errors.New("invalid operand"))
	}
	for ; from <= to; from++ {
		p.Printf("%d\n", from)
	}
	return 0
}

func id(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("u g G n r")
	if err != nil {
		return p.Usage(1, err)
	}
	u := p.User
	name := func(file string, n int) string {
		if o.Has("n") || p.Name() == "groups" {
			return idName(p, file, n)
		}
		return strconv.Itoa(n)
	}
	var groups, named []string
	for _, g := range u.GIDs {
		groups = append(groups, name("/etc/group", g))
		named = append(named, fmt.Sprintf("%d(%s)", g, idName(p, "/etc/group", g)))
	}
	switch {
	case o.Has("u"):
		p.Printf("%s\n", name("/etc/passwd", u.UID))
	case o.Has("g"):
		p.Printf("%s\n", name("/etc/group", u.Cred().GID()))
	case o.Has("G"), p.Name() == "groups":
		p.Printf("%s\n", strings.Join(groups, " "))
	default:
		p.Printf("uid=%d(%s) gid=%s groups=%s\n", u.UID, u.Name, named[0], strings.Join(named, ","))
	}
	return 0
}

func date(_ context.Context, p *sh.Proc) int {
	now := p.Sys.Now().UTC()
	format := "%a %b %e %H:%M:%S UTC %Y"
	for _, a := range p.Args[1:] {
		switch {
		case strings.HasPrefix(a, "+"):
			format = a[1:]
		case a == "-u", a == "--utc":
		case a == "-Is", a == "--iso-8601=seconds":
			format = "%Y-%m-%dT%H:%M:%S+00:00"
		default:
			return p.Errorf("invalid date '%s'", a)
		}
	}
	p.Printf("%s\n", strings.NewReplacer("%s", strconv.FormatInt(now.Unix(), 10), "%N", fmt.Sprintf("%09d", now.Nanosecond()),
		"%F", now.Format(time.DateOnly), "%T", now.Format(time.TimeOnly), "%Y", now.Format("2006"), "%m", now.Format("01"),
		"%d", now.Format("02"), "%e", now.Format("_2"), "%H", now.Format("15"), "%M", now.Format("04"), "%S", now.Format("05"),
		"%a", now.Format("Mon"), "%b", now.Format("Jan"), "%z", "+0000", "%Z", "UTC", "%%", "%").Replace(format))
	return 0
}

func checksum(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("b t c")
	if err != nil || o.Has("c") {
		return p.Usage(1, errors.Join(err, errors.New("checking is not supported")))
	}
	return p.EachInput(o.Args, func(name string, r io.Reader) int {
		data, err := io.ReadAll(r)
		if err != nil {
			return p.Errorf("%s: %s", name, vfs.Reason(err))
		}
		p.Printf("%x  %s\n", sha256.Sum256(data), name)
		return 0
	})
}

func base64Program(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("d D i w: decode wrap:")
	if err != nil {
		return p.Usage(1, err)
	}
	return p.EachInput(o.Args, func(_ string, r io.Reader) int {
		data, _ := io.ReadAll(r)
		if o.Has("d", "D", "decode") {
			out, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(data)), ""))
			_, _ = p.Stdout.Write(out)
			if err != nil {
				return p.Errorf("invalid input")
			}
			return 0
		}
		text, width := base64.StdEncoding.EncodeToString(data), 76
		if w := o.Value("w", "wrap"); w != "" {
			width, _ = strconv.Atoi(w)
		}
		for width > 0 && len(text) > width {
			p.Printf("%s\n", text[:width])
			text = text[width:]
		}
		if width > 0 {
			text += "\n"
		}
		p.Printf("%s", text)
		return 0
	})
}

// Programs returns the programs by name.
func Programs() map[string]sh.Program {
	all := map[string]sh.Program{}
	for _, group := range []map[string]sh.Program{filePrograms(), listPrograms(), textutils.Programs(), processPrograms(), miscPrograms()} {
		maps.Copy(all, group)
	}
	return all
}

// setsid runs a command in a new session, which does not end at logout (setsid(1)).
func setsid(ctx context.Context, p *sh.Proc) int {
	return prefix(context.WithoutCancel(ctx), p)
}

// flock runs a command while holding the lock of a file or directory: flock [options] file command (flock(1)). A missing file
// is created. A directory must exist and be readable by the user.
func flock(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("+n x s e u o w: E: v nonblock exclusive nb shared close wait: timeout: conflict-exit-code: verbose")
	if err != nil {
		return p.Usage(64, err)
	}
	if len(o.Args) < 2 {
		return p.Usage(64, errors.New("requires file descriptor, file or directory"))
	}
	file := p.Path(o.Args[0])
	if f, err := p.Sys.FS.Open(p.User.Cred(), file, os.O_RDONLY|os.O_CREATE, 0o666); err == nil {
		_ = f.Close()
	} else if info, serr := p.Sys.FS.Stat(p.User.Cred(), file); serr != nil || !info.IsDir() ||
		p.Sys.FS.Access(p.User.Cred(), file, 4) != nil {
		return p.Fail(66, "cannot open lock file %s: %s", o.Args[0], vfs.Reason(err))
	}
	conflict := 1
	if e := o.Value("E", "conflict-exit-code"); e != "" {
		if conflict, err = strconv.Atoi(e); err != nil || conflict < 0 || conflict > 255 {
			return p.Fail(64, "exit code out of range (expected 0 to 255)")
		}
	}
	wait := ctx
	if w := o.Value("w", "wait", "timeout"); w != "" {
		d, ok := seconds(w)
		if !ok {
			return p.Fail(64, "invalid timeout value '%s'", w)
		}
		limited, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		wait = limited
	}
	if o.Has("n", "nonblock", "nb") {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		wait = ended
	}
	release, ok := p.Sys.Locks.Take(wait, file)
	if !ok {
		return conflict
	}
	defer release()
	return run(ctx, p, o.Args[1:]...)
}

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
