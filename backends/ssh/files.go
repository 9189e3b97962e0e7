package ssh

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Put writes a file as root atomically: to a temporary file in the same directory that replaces it when it is complete. owner is
// "user:group", "" for root. The directory must exist.
func (c *Conn) Put(ctx context.Context, name string, content []byte, mode fs.FileMode, owner string) error {
	if !path.IsAbs(name) {
		return backends.Errorf(backends.KindUsage, c.target.String(), "", "write %s: the path is not absolute", name)
	}
	r, err := c.Run(ctx, Command{Script: PutScript(name, len(content), mode, owner), Stdin: content, Sudo: true})
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return c.fileError("write", name, r)
}

// PutScript returns the script of Put, which reads the content from standard input.
func PutScript(name string, size int, mode fs.FileMode, owner string) string {
	if owner == "" {
		owner = "0:0"
	}
	return Script("put-file.sh", name, strconv.Itoa(size), fmt.Sprintf("%04o", mode.Perm()), owner)
}

const exitMissing = 44

// ReadFile reads a file as root, at most 1 MiB; fs.ErrNotExist is in the error chain if there is none.
func (c *Conn) ReadFile(ctx context.Context, name string) ([]byte, error) {
	q := Quote(name)
	r, err := c.Run(ctx, Command{Script: fmt.Sprintf("[ -e %s ] || [ -L %[1]s ] || exit %d\ncat %[1]s", q, exitMissing), Sudo: true})
	if errors.Is(err, ErrTooMuch) {
		return nil, backends.Errorf(backends.KindPermanent, c.target.String(), "", "read %s: it is longer than %s", name, inBytes(defaultOutput))
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if r.ExitCode == exitMissing {
		return nil, backends.Errorf(backends.KindPermanent, c.target.String(), "", "read %s: %w", name, fs.ErrNotExist)
	}
	return []byte(r.Stdout), c.fileError("read", name, r)
}

func (c *Conn) fileError(verb, name string, r Result) error {
	if r.ExitCode == 0 {
		return nil
	}
	said := Excerpt(r.Stderr)
	hint := ""
	kind := backends.KindPermanent
	switch {
	case strings.Contains(said, "No space left"):
		hint = "Free some space on that file system."
	case strings.Contains(said, "Read-only file system"):
		hint = "The file system is mounted read-only. Check the kernel log for errors."
	case strings.Contains(said, "ermission denied"), strings.Contains(said, "not permitted"):
		kind = backends.KindPermission
	case said == "":
		said = fmt.Sprintf("exit code %d", r.ExitCode)
	}
	return backends.Errorf(kind, c.target.String(), hint, "%s %s: %w", verb, name, errors.New(said))
}
