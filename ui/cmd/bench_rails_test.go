//go:build bench

package cmd_test

import (
	"context"
	"path/filepath"
	"syscall"
	"time"
)

// railed plans eight rails on 64 hosts: 512 pNICs and 512 adapters.
func railed(_ context.Context, b *board) {
	const at = "64 hosts x 8 rails x 64 VMs"
	s := b.serve("--hosts", "64", "--vms", "64", "--scenario", "rails-8")
	for _, mode := range []string{"pvrdma", "sriov"} {
		calls := s.calls()
		c := s.command("plan", "-f", filepath.Join(s.dir, "answers-"+mode+".yaml"))
		begin := time.Now()
		if out, err := c.CombinedOutput(); err != nil {
			b.t.Fatalf("%v\n%s", err, out)
		}
		b.duration("plan "+mode, at, time.Since(begin), 5*time.Second)
		usage := c.ProcessState.SysUsage().(*syscall.Rusage)
		b.count("memory of plan "+mode+", MB RSS", at, int(usage.Maxrss>>10), 300)
		b.count("SOAP calls of plan "+mode, at, total(s.calls())-total(calls), 10*64)
	}
}
