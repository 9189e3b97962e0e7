package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A stage carries out one plan. Its own goroutine (that of run) owns everything in it; deeds run in goroutines of their
// own and only send messages.
type stage struct {
	*runner
	nodes []*node
	lanes map[backends.Ref]*lane
	hot   []*lane // lanes whose first node could start
	msgs  chan message

	left    int // nodes not settled
	running int // deeds
	slots   int // deeds that count against Limits.Parallel
	busy    map[*parent]bool
	holds   map[holdKey]bool     // of one round
	down    map[backends.Ref]int // open brackets of hosts out of service
}

// A lane holds the nodes of one target, which are done one after the other.
type lane struct {
	nodes []*node
	at    int
	busy  bool
	hot   bool
}

// A message comes from a deed: progress, or the end of it.
type message struct {
	nodes    []*node
	percent  int
	ended    bool
	outcomes []outcome // when ended, one per node
	slot     bool
	merge    *parent
}

func newStage(r *runner, p *plan.Plan) (*stage, error) {
	for _, c := range p.Changes {
		if r.job.Setters[c.Kind] == nil {
			return nil, backends.Errorf(backends.KindPermanent, c.Target.Name, "", "nothing sets %s", c.ID())
		}
	}
	for _, b := range p.Brackets {
		if r.job.Brackets[b.Kind] == nil {
			return nil, backends.Errorf(backends.KindPermanent, b.Target.Name, "", "nothing opens %s", b.ID())
		}
	}
	nodes, err := nodesOf(p, r.open)
	if err != nil {
		return nil, backends.Errorf(backends.KindPermanent, "", "", "put the plan in order: %w", err)
	}
	s := &stage{
		runner: r, nodes: nodes, lanes: map[backends.Ref]*lane{}, msgs: make(chan message), left: len(nodes),
		busy: map[*parent]bool{}, holds: map[holdKey]bool{}, down: map[backends.Ref]int{},
	}
	parentsOf(nodes, r.job.Setters)
	for _, n := range nodes {
		l := s.lanes[n.target]
		if l == nil {
			l = &lane{}
			s.lanes[n.target] = l
		}
		l.nodes = append(l.nodes, n)
		if n.closes && n.around.inherited && n.around.down() {
			s.down[n.target]++
		}
	}
	return s, nil
}

// viable tells whether any change or leftover bracket of the stage can be done, without doing anything.
func (s *stage) viable() bool {
	bad := map[*node]bool{}
	for _, n := range s.nodes {
		_, failed := s.failed[n.target]
		if n.closes {
			if n.around.inherited && !failed {
				return true
			}
			continue
		}
		bad[n] = failed || s.deferred(n) || s.undone(n) != "" || slices.ContainsFunc(n.waits, func(w *node) bool { return bad[w] })
		if !bad[n] && n.change != nil && !s.skip[n.id] {
			return true
		}
	}
	return false
}

// deferred tells whether the value of a change is not known yet.
func (s *stage) deferred(n *node) bool { return n.change != nil && !n.change.To.Known() }

// undone says that a change which this attempt has made is wanted again, "" when it is not so.
func (s *stage) undone(n *node) string {
	if n.change == nil {
		return ""
	}
	if m, made := s.made[n.id]; made && m.to == n.change.To && m.stage == s.number-1 {
		return "it was set and read back, but did not stay"
	}
	return ""
}

func (s *stage) run(ctx context.Context) {
	var infos []NodeInfo
	for _, n := range s.nodes {
		if !s.deferred(n) {
			infos = append(infos, NodeInfo{ID: n.id, Target: n.target, Title: n.title})
		}
	}
	s.emit(Event{Type: EventPlanned, Nodes: infos})
	for _, n := range s.nodes {
		where, failed := s.failed[n.target]
		switch {
		case n.state != "" || n.closes:
		case n.around != nil && n.around.leftover:
			s.settle(n, outcome{state: NodeDone, quiet: true})
		case s.deferred(n):
			s.settle(n, outcome{state: NodePending})
		case s.undone(n) != "":
			s.settle(n, outcome{state: NodeFailed, err: backends.Errorf(backends.KindConflict, n.target.Name,
				"Find out what sets it back, then resume.", "%s: %s", n.title, s.undone(n))})
		case failed:
			s.settle(n, outcome{state: NodeBlocked, err: fmt.Errorf("%s failed before", where)})
		}
	}
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
			s.halt(stopText)
		default:
		}
		s.start(ctx)
		if s.running == 0 {
			if s.left == 0 {
				return
			}
			s.giveUp()
			continue
		}
		select {
		case m := <-s.msgs:
			s.take(m)
		case <-s.stop:
			s.stop = nil
			s.halt(stopText)
		case <-cancelled:
			cancelled = nil
			s.abort()
		}
	}
}

const stopText = "stopping: what runs is finished, nothing new is begun"

// abort begins nothing more, not even a closing.
func (s *stage) abort() {
	s.halt("stopping at once: running calls are broken off")
	s.settleAll(func(*node) bool { return true }, outcome{state: NodePending})
}

// halt begins no new deeds; brackets that are open are still closed.
func (s *stage) halt(why string) {
	s.halted = true
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

// giveUp ends a stage in which nothing runs and nothing can start. It takes a plan that waits for itself through hosts
// that may not be down together.
func (s *stage) giveUp() {
	for _, n := range s.nodes {
		if n.state == "" {
			s.settle(n, outcome{state: NodeBlocked, err: fmt.Errorf("it waits for something that cannot be begun")})
			return
		}
	}
}

// take works a message in.
func (s *stage) take(m message) {
	if !m.ended {
		for _, n := range m.nodes {
			s.emit(Event{Type: EventProgress, Node: n.id, Target: n.target, Title: n.title, Percent: m.percent})
		}
		return
	}
	s.running--
	if m.slot {
		s.slots--
	}
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
		s.settle(n, m.outcomes[i])
	}
}

// settle ends a node and looks at those that wait for it.
func (s *stage) settle(n *node, o outcome) {
	if n.state != "" {
		return
	}
	n.state = o.state
	s.left--
	if b := n.around; b != nil && !n.closes {
		b.tried = b.tried || o.begun
		if b.down() && !b.inherited && !o.begun && !n.started.IsZero() {
			s.up(n.target)
		}
	}
	if o.begun {
		for _, b := range n.within {
			b.effect = true
		}
	}
	if !o.quiet {
		s.tell(n, o)
	}
	if n.closes && n.around.down() && n.around.tried && o.state == NodeDone {
		s.back = true
		s.up(n.target)
	}
	for _, m := range n.next {
		if m.unmet--; m.unmet == 0 && m.state == "" {
			s.evaluate(m)
		}
	}
	if o.state == NodeFailed {
		s.failTarget(n)
	}
	s.mark(s.lanes[n.target])
}

// up counts one bracket less around a host.
func (s *stage) up(t backends.Ref) {
	if s.down[t]--; s.down[t] <= 0 {
		delete(s.down, t)
	}
}

// failTarget blocks what is left to do on a target, closings apart, and stops the wave when its host is down.
func (s *stage) failTarget(n *node) {
	if _, known := s.failed[n.target]; !known {
		s.failed[n.target] = n.title
	}
	if s.down[n.target] > 0 && s.wave == "" {
		s.wave = n.target.Name
	}
	for _, m := range s.lanes[n.target].nodes {
		if m.state == "" && !m.running && !m.closes {
			s.settle(m, outcome{state: NodeBlocked, err: fmt.Errorf("%q failed before", n.title)})
		}
	}
}

// evaluate decides on a node that waits for nothing any more: it is ready, or can never be.
func (s *stage) evaluate(n *node) {
	if n.closes {
		if b := n.around; !b.tried {
			s.settle(n, outcome{state: b.open.state})
			return
		}
		s.mark(s.lanes[n.target])
		return
	}
	if s.halted {
		s.settle(n, outcome{state: NodePending})
		return
	}
	if o, doomed := s.doomed(n); doomed {
		s.settle(n, o)
		return
	}
	if n.change != nil && s.skip[n.id] {
		s.settle(n, outcome{state: NodeSkipped, text: "left out as asked"})
		return
	}
	if n.around != nil {
		if o, useless := s.useless(n.around); useless {
			s.settle(n, o)
			return
		}
	}
	s.mark(s.lanes[n.target])
}

// doomed tells whether something that a node must have failed or was put off.
func (s *stage) doomed(n *node) (outcome, bool) {
	for _, w := range n.waits {
		switch w.state {
		case NodeFailed, NodeBlocked:
			return outcome{state: NodeBlocked, err: fmt.Errorf("%s: %q failed", w.target.Name, w.title)}, true
		case NodePending:
			return outcome{state: NodePending}, true
		}
	}
	return outcome{}, false
}

// useless tells whether nothing of a bracket's body can be done, so that it need not be opened.
func (s *stage) useless(b *bracket) (outcome, bool) {
	if len(b.body) == 0 {
		return outcome{}, false
	}
	worst := outcome{state: NodeSkipped, text: "nothing to do inside"}
	for _, n := range b.body {
		o, doomed := outcome{state: n.state}, n.state != ""
		if !doomed {
			o, doomed = s.doomed(n)
		}
		if !doomed && !s.skip[n.id] {
			return outcome{}, false
		}
		if o.state == NodeFailed || o.state == NodeBlocked {
			worst = outcome{state: NodeBlocked, err: fmt.Errorf("%s: %q cannot be done", n.target.Name, n.title)}
		} else if o.state == NodePending && worst.state == NodeSkipped {
			worst = outcome{state: NodePending}
		}
	}
	return worst, true
}

// tell keeps the result of a node and emits its end.
func (s *stage) tell(n *node, o outcome) {
	elapsed := time.Duration(0)
	if !n.started.IsZero() {
		elapsed = s.now().Sub(n.started)
	}
	if o.state == NodeDone && n.change != nil {
		s.made[n.id] = made{n.change.To, s.number}
	}
	if n.closes && !n.around.tried {
		return // it was never opened
	}
	s.keep(NodeResult{
		ID: n.id, Target: n.target, Change: n.change, State: o.state, Prior: o.prior, Found: o.found, Err: o.err, Elapsed: elapsed,
	})
	e := Event{Node: n.id, Target: n.target, Title: n.title, Text: o.text, Prior: o.prior, Found: o.found, Elapsed: elapsed}
	if o.err != nil {
		e.Err, e.Hint, e.ErrKind = o.err.Error(), backends.HintOf(o.err), backends.KindOf(o.err)
	}
	switch o.state {
	case NodeDone:
		e.Type, e.Percent = EventDone, 100
	case NodeSkipped:
		e.Type = EventSkipped
	case NodeFailed:
		e.Type = EventFailed
	case NodeBlocked:
		e.Type = EventBlocked
	default:
		return
	}
	s.emit(e)
}
