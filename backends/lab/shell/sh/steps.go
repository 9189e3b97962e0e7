package sh

import (
	"context"
	"sync/atomic"

	"github.com/rdma-setup/rdma-setup/backends/lab/timing"
)

// steps counts the points of a process at which it can be interrupted. The points also exist if commands take no time.
type steps struct {
	passed atomic.Int32
	stop   int32 // point at which act is called; 0: none
	act    func()
}

// AtStep calls act when the process reaches its nth point, counted from 1. A program without steps has two points: before and
// after its work. AtStep must be called before the program runs.
func (p *Proc) AtStep(n int, act func()) { p.steps.stop, p.steps.act = int32(n), act }

// Kill sends the process a signal.
func (p *Proc) Kill(s Signal) { p.Sys.Procs.Kill(p.PID, s) }

// Spend waits for the duration in a row of the clock's table and reports whether the process is still alive.
func (p *Proc) Spend(ctx context.Context, row string) bool {
	return p.step(ctx, func() bool { return timing.Sleep(ctx, p.Sys.Clock.Of(row)) })
}

// step waits and then advances to the next point.
func (p *Proc) step(ctx context.Context, wait func() bool) bool {
	if !wait() {
		return false
	}
	if s := p.steps; s != nil && s.passed.Add(1) == s.stop {
		s.act()
	}
	return ctx.Err() == nil
}

// timed runs a program that takes time. The work happens in the middle: a process killed in the first half has done nothing,
// and one killed in the second half has done everything. A program with more than one step calls Spend itself.
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
