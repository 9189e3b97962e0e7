package sh

import (
	"context"
	"sync/atomic"

	"github.com/rdma-setup/rdma-setup/backends/lab/timing"
)

// steps are the points of a process at which it can be interrupted. They also exist if commands take no time.
type steps struct {
	passed atomic.Int32
	stop   int32 // the point at which act is called; 0 for none
	act    func()
}

// AtStep lets act happen when the process comes to its nth point, counted from 1. A program that does its work at one
// instant has two points: before it and after it. Call it before the program runs.
func (p *Proc) AtStep(n int, act func()) { p.steps.stop, p.steps.act = int32(n), act }

// Kill sends the process a signal.
func (p *Proc) Kill(s Signal) { p.Sys.Procs.Kill(p.PID, s) }

// Spend waits for the time in a row of the clock's table and reports whether the process is still alive.
func (p *Proc) Spend(ctx context.Context, row string) bool {
	return p.step(ctx, func() bool { return timing.Sleep(ctx, p.Sys.Clock.Of(row)) })
}

// step waits and then moves on to the next point.
func (p *Proc) step(ctx context.Context, wait func() bool) bool {
	if !wait() {
		return false
	}
	if s := p.steps; s != nil && s.passed.Add(1) == s.stop {
		s.act()
	}
	return ctx.Err() == nil
}

// timed runs a program in the middle of its time: killed in the first half it has done nothing, in the second half all.
// A program with more than one step spends its time by itself.
func (s *System) timed(ctx context.Context, p *Proc, program Program) int {
	half, itself := s.Clock.Command(p.Args)
	if itself {
		return program(ctx, p)
	}
	wait := func() bool { return timing.Sleep(ctx, half/2) }
	if !p.step(ctx, wait) {
		return 1
	}
	status := program(ctx, p)
	if status == 0 {
		p.step(ctx, wait)
	}
	return status
}
