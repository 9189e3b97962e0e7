//go:build bench

package cmd_test

import (
	"context"
	"path/filepath"
	"syscall"
	"time"
)

// rehearses rehearses a plan on the twin of a large site. The CPU bound is that of two cores for one minute.
func rehearses(_ context.Context, b *board) {
	const at = "100 hosts, 400 VMs"
	s := b.serve("--hosts", "100", "--vms", "400")
	bundle := filepath.Join(b.t.TempDir(), "site.tgz")
	s.must(0, "collect", "-f", s.answers("pvrdma"), "--out", bundle)
	c := s.command("rehearse", "-f", s.answers("pvrdma"), "--bundle", bundle, "-o", "json")
	began := time.Now()
	if out, err := c.Output(); err != nil {
		b.t.Fatalf("%v\n%s", err, out)
	}
	b.duration("rehearsal", at, time.Since(began), time.Minute)
	b.duration("  its CPU", at, c.ProcessState.UserTime()+c.ProcessState.SystemTime(), 2*time.Minute)
	b.count("  its memory, MB RSS", at, int(c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss>>10), 500)
}
