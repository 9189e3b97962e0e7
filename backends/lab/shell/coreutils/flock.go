package coreutils

import (
	"context"
	"errors"
	"os"
	"strconv"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

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
	} else if info, serr := p.Sys.FS.Stat(p.User.Cred(), file); serr != nil || !info.IsDir() || p.Sys.FS.Access(p.User.Cred(), file, 4) != nil {
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
