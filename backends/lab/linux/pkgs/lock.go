package pkgs

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/timing"
)

// lockFile is the file that dpkg and its frontends lock (Debian, /usr/share/doc/dpkg/frontend.txt). It is a kernel lock: it is
// released when the process ends, but the file remains.
const lockFile = "/var/lib/dpkg/lock-frontend"

// locked is the environment variable that a frontend sets when it already holds the lock.
const locked = "DPKG_FRONTEND_LOCKED"

// A lock can be held by one process at a time.
type lock struct {
	mu   sync.Mutex
	pid  int
	name string
}

// take acquires the lock for p, or returns the process that holds it.
func (l *lock) take(p *sh.Proc) (release func(), pid int, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pid != 0 {
		return nil, l.pid, l.name
	}
	l.pid, l.name = p.PID, p.Name()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.pid = 0
	}, 0, ""
}

// frontend acquires the lock for apt-get, which waits for the time of DPkg::Lock::Timeout. It returns nil if another process
// holds the lock.
func (db *DB) frontend(ctx context.Context, p *sh.Proc, options []string) (release func()) {
	wait := 0
	for _, o := range options {
		if v, ok := strings.CutPrefix(o, "DPkg::Lock::Timeout="); ok {
			wait, _ = strconv.Atoi(v) // like apt, treat invalid numbers as 0
		}
	}
	_ = db.file(lockFile, "", 0o640)
	for end := time.Now().Add(time.Duration(wait) * time.Second); ; {
		release, pid, name := db.busy.take(p)
		if release != nil {
			p.Setenv(locked, "true")
			return release
		}
		if wait >= 0 && !time.Now().Before(end) || !timing.Sleep(ctx, 20*time.Millisecond) {
			fmt.Fprintf(p.Stderr, "E: Could not get lock %s. It is held by process %d (%s)\n"+
				"E: Unable to acquire the dpkg frontend lock (%[1]s), is another process using it?\n", lockFile, pid, name)
			return nil
		}
	}
}

// backend acquires the lock for dpkg itself.
func (db *DB) backend(p *sh.Proc) (release func(), ok bool) {
	if p.Getenv(locked) != "" {
		return func() {}, true
	}
	_ = db.file(lockFile, "", 0o640)
	release, pid, _ := db.busy.take(p)
	if release == nil {
		fmt.Fprintf(p.Stderr, "dpkg: error: dpkg frontend lock was locked by another process with pid %d\n", pid)
		return nil, false
	}
	return release, true
}

// transaction acquires the lock for dnf, which waits without a timeout.
func (db *DB) transaction(ctx context.Context, p *sh.Proc) (release func()) {
	for said := false; ; said = true {
		release, pid, _ := db.busy.take(p)
		if release != nil {
			return release
		}
		if !said {
			fmt.Fprintf(p.Stderr, "Waiting for process with pid %d to finish.\n", pid)
		}
		if !timing.Sleep(ctx, 20*time.Millisecond) {
			return nil
		}
	}
}
