package linux

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sshd"
	"github.com/rdma-setup/rdma-setup/backends/lab/timing"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/fault"
)

// connect applies the fault rules to a new connection.
func (s *Site) connect(vm string) sshd.Verdict {
	f, ok := s.World.Faults.Take(fault.Target{VM: vm}, "", "")
	if !ok {
		return sshd.Verdict{}
	}
	s.note(vm, f)
	return sshd.Verdict{Drop: f.Do == fault.DoDrop, Hang: f.Do == fault.DoHang, Wait: f.Wait}
}

func (s *Site) note(vm string, f fault.Rule) {
	s.World.Log.Note(world.Event{What: world.FaultApplied, VM: vm, Detail: f.Rule})
}

// wrap logs every program that a guest runs and applies fault rules to it.
func (s *Site) wrap(vm string) func(ctx context.Context, p *sh.Proc, run func() int) int {
	return func(ctx context.Context, p *sh.Proc, run func() int) int {
		long := timing.Long(p.Args)
		if !long && s.World.Log.Unlogged() && s.World.Faults.None() {
			return run()
		}
		argv := strings.Join(p.Args, " ")
		s.World.Log.Note(world.Event{What: world.Process, VM: vm, Detail: argv})
		if long {
			defer s.World.Begin("", vm, argv)()
		}
		f, ok := s.World.Faults.Take(fault.Target{VM: vm}, "", argv)
		if !ok {
			return run()
		}
		switch f.Do {
		case fault.DoFail, fault.DoHang, fault.DoSlow, fault.DoDrop, fault.DoDropAfter, fault.DoNoise, fault.DoGarbage, fault.DoKill, fault.DoReset:
			s.note(vm, f)
		}
		drop := func() {
			if p.Session.Drop != nil {
				p.Session.Drop()
			}
		}
		switch f.Do {
		case fault.DoFail:
			fmt.Fprintln(p.Stderr, f.Arg)
			if strings.HasPrefix(p.Name(), "apt") {
				return 100
			}
			return 1
		case fault.DoNoise:
			if _, err := io.Copy(p.Stdout, f.Noise()); err != nil {
				return 141 // SIGPIPE: the reader has closed the pipe
			}
		case fault.DoHang:
			<-ctx.Done()
			return 1
		case fault.DoSlow:
			t := time.NewTimer(f.Wait)
			defer t.Stop()
			select {
			case <-t.C:
			case <-ctx.Done():
				return 1
			}
		case fault.DoDrop:
			drop()
			return 255
		case fault.DoKill:
			p.AtStep(f.Step, func() { p.Kill(sh.SIGKILL) })
		case fault.DoReset:
			p.AtStep(f.Step, func() {
				p.Kill(sh.SIGKILL)
				s.World.After(0, func() { _ = s.World.Reset(vm) }) // fails if the guest is already going down
			})
		case fault.DoGarbage:
			p.Stdout.Write([]byte(fault.Garbage))
			return 0
		case fault.DoDropAfter:
			status := run()
			drop()
			return status
		}
		return run()
	}
}
