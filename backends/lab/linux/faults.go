package linux

import (
	"context"
	"strings"

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
		if ctx.Value(enteredKey{}) != nil {
			return run()
		}
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
		failure := 1
		if strings.HasPrefix(p.Name(), "apt") {
			failure = 100
		}
		return f.Run(ctx, p, failure, run, func(f fault.Rule) { s.note(vm, f) }, func() {
			s.World.After(0, func() { _ = s.World.Reset(vm) }) // fails if the guest is already going down
		})
	}
}
