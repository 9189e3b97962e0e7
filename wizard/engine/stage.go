package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A stage executes one plan. Its own goroutine (that of run) owns everything in it; operations run in other goroutines and only
// send messages.
type stage struct {
	*runner
	plans []plan.Plan // the plan that is executed
	nodes []*node
	lanes map[backends.Ref]*lane
	hot   []*lane // lanes whose first node could start
	room  []*lane // memory of the next hot
	msgs  chan message

	left      int // nodes that have not ended
	running   int // running operations
	slots     int // operations that count against Limits.Parallel
	apart     int // operations that count against Limits.Apart
	busy      map[*parent]bool
	holds     map[holdKey]bool      // of one round
	down      map[backends.Ref]int  // open brackets of hosts out of service
	off       []*powerGroup         // that have been started
	back      map[backends.Ref]bool // hosts that were out of service, and on which nodes may be left
	gated     map[any]bool          // waves whose first opening waits at the gate
	barred    map[any]bar           // waves that the gate rejected
	gates     context.Context       // ends when the run is stopped
	stopGates context.CancelFunc

	nextForecast time.Time

	finish map[*node]bool      // nodes that are started although the run is paused
	untold map[*node]NodeState // nodes that had ended before a retry that is being prepared
}

// A lane contains the nodes of one target, which are done one after the other.
type lane struct {
	nodes []*node
	at    int
	busy  bool
	hot   bool

	// of its next node; see order
	index int
	left  int // with Limits.Finish, nodes that are left of a guest with a change; otherwise the largest number
}

// A message comes from an operation: progress, or its end.
type message struct {
	nodes    []*node
	percent  int
	text     string // what it waits for
	passed   bool   // the gate
	ended    bool
	outcomes []outcome // at the end, one per node
	counter  *int      // of the limits
	merge    *parent
}

func newStage(r *runner, p *plan.Plan) (*stage, error) {
	for _, c := range p.Changes {
		if r.job.Setters[c.Kind] == nil {
			return nil, backends.Permanentf(c.Target.Name, "", "nothing sets %s", c.ID())
		}
	}
	for _, b := range p.Brackets {
		if r.job.Brackets[b.Kind] == nil {
			return nil, backends.Permanentf(b.Target.Name, "", "nothing opens %s", b.ID())
		}
	}
	nodes, err := nodesOf(p, r.open)
	if err != nil {
		return nil, backends.Permanentf("", "", "put the plan in order: %w", err)
	}
	nodes = r.withWaits(nodes, p)
	s := &stage{
		runner: r, plans: []plan.Plan{*p}, nodes: nodes, lanes: map[backends.Ref]*lane{}, msgs: make(chan message), left: len(nodes),
		busy: map[*parent]bool{}, holds: map[holdKey]bool{}, down: map[backends.Ref]int{}, back: map[backends.Ref]bool{},
		gated: map[any]bool{}, barred: map[any]bar{},
	}
	parentsOf(nodes, r.job.Setters)
	for _, n := range nodes {
		l := s.lanes[n.target]
		if l == nil {
			l = &lane{}
			s.lanes[n.target] = l
		}
		l.nodes = append(l.nodes, n)
		if g := n.around; g != nil && n.closes && g.group != nil && g.group.started && !r.isAway(n.target) && !slices.Contains(s.off, g.group) {
			s.off = append(s.off, g.group)
		}
		if n.closes && n.around.inherited {
			// In a rollback, a host that does not come back is not a reason to leave the others as they are.
			if host, wave := n.around.host(); wave && (r.phase == journal.PhaseApply || !r.isAway(host)) {
				s.down[host]++
			}
		}
	}
	return s, nil
}

// viable reports whether any change or leftover bracket of the stage can be done, without doing anything.
func (s *stage) viable() bool {
	bad := map[*node]bool{}
	for _, n := range s.nodes {
		if n.wait {
			return true
		}
		if n.closes {
			_, failed := s.failed[n.target]
			if n.around.inherited && !failed {
				return true
			}
			bad[n] = !n.around.inherited && bad[n.around.open] // a bracket that is never opened is never closed
			continue
		}
		cannot := func(n *node) bool {
			_, failed := s.failed[n.target]
			return failed || s.deferred(n) || s.held(n) || s.undone(n) != "" || slices.ContainsFunc(n.waits, func(w *node) bool { return bad[w] })
		}
		bad[n] = cannot(n)
		if b := n.around; b != nil && len(b.body) > 0 && len(b.inner) == 0 { // a bracket in which nothing can be done is not opened
			bad[n] = bad[n] || !slices.ContainsFunc(b.body, func(n *node) bool { return !cannot(n) })
		}
		if !bad[n] && n.change != nil && !s.skip[n.id] {
			return true
		}
	}
	return false
}

// held reports whether a node would take a VM or a host out of service although the limit is reached.
func (s *stage) held(n *node) bool {
	if n.around == nil || n.around.inherited {
		return false
	}
	_, wave := n.around.host()
	return s.powerFailed != "" && n.around.outage() || s.wave != "" && wave || s.late && (wave || n.around.outage())
}

// deferred reports whether the value of a change is not known yet, and will not be when the change is due.
func (s *stage) deferred(n *node) bool {
	return n.change != nil && !n.change.To.Known() && n.change.Late.IsAbsent()
}

// undone says that a change of this attempt is needed again, "" otherwise.
func (s *stage) undone(n *node) string {
	if n.change == nil || !n.change.To.Known() {
		return ""
	}
	if m, made := s.made[n.id]; made && m.to == n.change.To && m.stage == s.number-1 {
		return "it was set and read back, but has changed again"
	}
	return ""
}

func (s *stage) run(ctx context.Context) {
	s.gates, s.stopGates = context.WithCancel(ctx)
	defer func() { s.stopGates() }()
	s.emit(Event{Type: EventPlanned, Nodes: s.infos(), First: s.number == 1})
	for _, n := range s.nodes {
		why, failed := s.failed[n.target]
		switch {
		case n.state != "" || n.closes:
		case n.around != nil && n.around.leftover:
			s.settle(n, outcome{state: NodeDone, quiet: true})
		case s.deferred(n):
			s.settle(n, outcome{state: NodePending})
		case s.undone(n) != "":
			s.settle(n, outcome{state: NodeFailed, err: backends.Conflictf(n.target.Name,
				"Find out what sets it back, then run rdma-setup resume.", "%s: %s", n.title, s.undone(n))})
		case failed:
			s.settle(n, outcome{state: NodeBlocked, err: errors.New(why)})
		}
	}
	s.yield(ctx)
	s.spare(ctx)
	for _, n := range s.nodes {
		if n.state == "" && n.unmet == 0 {
			s.evaluate(n)
		}
	}
	cancelled := ctx.Done()
	for {
		select {
		case <-cancelled:
			cancelled = nil
			s.abort()
		case <-s.stop:
			s.stop = nil
			s.halt(s.finishes())
		default:
		}
		s.start(ctx)
		s.forecast()
		if s.running == 0 {
			if s.left == 0 && (!s.paused || s.halted) {
				return // a paused run stays open, so that failures can be retried
			}
			if !s.paused {
				s.giveUp()
				continue
			}
		}
		if s.virtual != nil {
			s.take(s.virtual.next())
			continue
		}
		select {
		case m := <-s.msgs:
			s.take(m)
		case a := <-s.job.Remote.asked():
			text, err := s.control(ctx, a.control)
			a.reply <- reply{text, err}
		case <-s.stop:
			s.stop = nil
			s.halt(s.finishes())
		case <-cancelled:
			cancelled = nil
			s.abort()
		}
	}
}

// abort starts nothing more, not even a closing.
func (s *stage) abort() {
	s.halt("stopping at once: running calls are cancelled")
	s.settleAll(func(*node) bool { return true }, outcome{state: NodePending})
}

// halt starts no new operations; open brackets are still closed.
func (s *stage) halt(why string) {
	s.halted = true
	s.stopGates()
	s.stopWaits(func(*node) bool { return true })
	s.emit(Event{Type: EventStopping, Text: why})
	s.settleAll(func(n *node) bool { return !n.closes }, outcome{state: NodePending})
}

func (s *stage) settleAll(which func(*node) bool, o outcome) {
	for _, n := range s.nodes {
		if n.state == "" && !n.running && which(n) {
			s.settle(n, o)
		}
	}
}

// giveUp ends a stage in which nothing runs and nothing can start. That requires a plan that blocks itself through hosts that may
// not be down together.
func (s *stage) giveUp() {
	for _, n := range s.nodes {
		if n.state == "" {
			s.settle(n, outcome{state: NodeBlocked, err: fmt.Errorf("it depends on something that cannot start")})
			return
		}
	}
}

// take processes a message.
func (s *stage) take(m message) {
	if m.passed {
		delete(s.gated, waveOf(m.nodes[0].around))
		return
	}
	if !m.ended {
		for _, n := range m.nodes {
			s.emit(Event{Type: EventProgress, Node: n.id, Target: n.target, Title: n.title, Percent: m.percent, Text: m.text})
		}
		return
	}
	s.running--
	*m.counter--
	if m.merge != nil {
		delete(s.busy, m.merge)
	}
	for i, n := range m.nodes {
		n.running = false
		s.lanes[n.target].busy = false
		if o := m.outcomes[i]; o.journal != nil && s.broken == nil {
			s.broken = o.journal
			s.settle(n, o)
			s.halt("stopping: " + o.journal.Error())
			continue
		}
		if b := n.around; b != nil && !n.closes {
			delete(s.gated, waveOf(b))
		}
		m.outcomes[i] = s.afterWait(n, m.outcomes[i])
		if m.outcomes[i].recalled && !s.halted {
			s.recall(n)
			continue
		}
		if o := m.outcomes[i]; o.bars != now {
			s.barred[waveOf(n.around)] = bar{o.bars, n.target.Name}
			if o.bars == tooLate {
				s.postpone(n)
				continue
			}
		}
		s.settle(n, m.outcomes[i])
	}
}
