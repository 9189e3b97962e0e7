package fault

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
)

// Run runs a program of a guest or an ESXi host as the rule says. It returns the exit status: failure, if the program is to fail.
// note is called before, unless the rule does nothing to the program; reset powers the machine off and on, nil: it cannot be done.
func (r Rule) Run(ctx context.Context, p *sh.Proc, failure int, run func() int, note func(Rule), reset func()) int {
	drop := func() {
		if p.Session.Drop != nil {
			p.Session.Drop()
		}
	}
	switch {
	case r.Do == DoReset && reset == nil:
		return run()
	case slices.Contains([]string{DoFail, DoNoise, DoHang, DoSlow, DoDrop, DoDropAfter, DoKill, DoReset, DoGarbage}, r.Do):
		note(r)
	}
	switch r.Do {
	case DoFail:
		fmt.Fprintln(p.Stderr, r.Arg)
		return failure
	case DoNoise:
		if _, err := io.Copy(p.Stdout, r.Noise()); err != nil {
			return sh.SIGPIPE.Status() // the reader has closed the pipe
		}
	case DoHang:
		select {
		case <-r.over:
			return sh.SIGTERM.Status()
		case <-ctx.Done():
			return 1
		}
	case DoSlow:
		t := time.NewTimer(r.Wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return 1
		}
	case DoDrop:
		drop()
		return 255
	case DoDropAfter:
		status := run()
		drop()
		return status
	case DoKill:
		p.AtStep(r.Step, func() { p.Kill(sh.SIGKILL) })
	case DoReset:
		p.AtStep(r.Step, func() {
			p.Kill(sh.SIGKILL)
			reset()
		})
	case DoGarbage:
		p.Stdout.Write([]byte(Garbage))
		return 0
	}
	return run()
}
