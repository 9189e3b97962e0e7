package sshd

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// serveFiles serves the file system of the machine over SFTP, with the permissions of the user.
func serveFiles(ch ssh.Channel, p *sh.Proc) {
	h := &files{fs: p.Sys.FS, cred: p.User.Cred()}
	server := sftp.NewRequestServer(ch, sftp.Handlers{FileGet: h, FilePut: h, FileCmd: h, FileList: h},
		sftp.WithStartDirectory(p.User.Home))
	_ = server.Serve() // returns when the channel is closed
	_ = server.Close()
}

type files struct {
	fs   *vfs.FS
	cred vfs.Cred
}

// status converts an errno to an error that SFTP supports.
func status(err error) error {
	switch {
	case errors.Is(err, syscall.ENOENT):
		return sftp.ErrSSHFxNoSuchFile
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return sftp.ErrSSHFxPermissionDenied
	}
	return err
}

func (h *files) Fileread(r *sftp.Request) (io.ReaderAt, error) {
	f, err := h.fs.Open(h.cred, r.Filepath, os.O_RDONLY, 0)
	if err != nil {
		return nil, status(err)
	}
	return f, nil
}

func (h *files) Filewrite(r *sftp.Request) (io.WriterAt, error) {
	flags := r.Pflags()
	flag := os.O_WRONLY
	for _, f := range []struct {
		set bool
		bit int
	}{{flags.Creat, os.O_CREATE}, {flags.Trunc, os.O_TRUNC}, {flags.Excl, os.O_EXCL}} {
		if f.set {
			flag |= f.bit
		}
	}
	perm := fs.FileMode(0o644)
	if r.AttrFlags().Permissions {
		perm = r.Attributes().FileMode().Perm()
	}
	f, err := h.fs.Open(h.cred, r.Filepath, flag, perm)
	if err != nil {
		return nil, status(err)
	}
	return f, nil
}

func (h *files) Filecmd(r *sftp.Request) error { return status(h.command(r)) }

// PosixRename renames a file and replaces an existing target.
func (h *files) PosixRename(r *sftp.Request) error {
	return status(h.fs.Rename(h.cred, r.Filepath, r.Target))
}

func (h *files) command(r *sftp.Request) error {
	switch r.Method {
	case "Mkdir":
		return h.fs.Mkdir(h.cred, r.Filepath, 0o755)
	case "Rename":
		if _, err := h.fs.Lstat(h.cred, r.Target); err == nil {
			return errors.New("failure")
		}
		return h.fs.Rename(h.cred, r.Filepath, r.Target)
	case "Remove", "Rmdir":
		return h.fs.Remove(h.cred, r.Filepath)
	case "Symlink":
		return h.fs.Symlink(h.cred, r.Filepath, r.Target)
	case "Setstat":
		return h.setstat(r)
	}
	return sftp.ErrSSHFxOpUnsupported
}

func (h *files) setstat(r *sftp.Request) error {
	have, a := r.AttrFlags(), r.Attributes()
	var err error
	if have.Size {
		var f *vfs.File
		if f, err = h.fs.Open(h.cred, r.Filepath, os.O_WRONLY, 0); err == nil {
			err = f.Truncate(int64(a.Size))
		}
	}
	if have.Permissions {
		err = errors.Join(err, h.fs.Chmod(h.cred, r.Filepath, a.FileMode()))
	}
	if have.UidGid {
		err = errors.Join(err, h.fs.Chown(h.cred, r.Filepath, int(a.UID), int(a.GID)))
	}
	if have.Acmodtime {
		err = errors.Join(err, h.fs.Chtimes(h.cred, r.Filepath, a.ModTime()))
	}
	return err
}

func (h *files) Filelist(r *sftp.Request) (sftp.ListerAt, error) {
	if r.Method == "List" {
		infos, err := h.fs.ReadDir(h.cred, r.Filepath)
		if err != nil {
			return nil, status(err)
		}
		list := make(listing, len(infos))
		for i, info := range infos {
			list[i] = info
		}
		return list, nil
	}
	info, err := h.fs.Stat(h.cred, r.Filepath)
	return listing{info}, status(err)
}

// Lstat returns information about a link itself.
func (h *files) Lstat(r *sftp.Request) (sftp.ListerAt, error) {
	info, err := h.fs.Lstat(h.cred, r.Filepath)
	return listing{info}, status(err)
}

// Readlink returns the target of a link.
func (h *files) Readlink(name string) (string, error) {
	target, err := h.fs.Readlink(h.cred, name)
	return target, status(err)
}

type listing []fs.FileInfo

func (l listing) ListAt(into []fs.FileInfo, from int64) (int, error) {
	if from >= int64(len(l)) {
		return 0, io.EOF
	}
	n := copy(into, l[from:])
	if n < len(into) {
		return n, io.EOF
	}
	return n, nil
}
