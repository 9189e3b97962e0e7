package engine

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
)

func (l *lane) head() *node {
	for l.at < len(l.nodes) && l.nodes[l.at].state != "" {
		l.at++
	}
	if l.at == len(l.nodes) {
		return nil
	}
	return l.nodes[l.at]
}

func (s *stage) mark(l *lane) {
	if n := l.head(); n != nil && n.unmet == 0 && !n.running && !l.busy && !l.hot {
		l.hot = true
		s.hot = append(s.hot, l)
	}
}

func (s *stage) start(ctx context.Context) {
	if s.paused {
		s.finish = s.finishing()
	}
	for held := false; ; held = true {
		some := s.startHot(ctx, held)
		// Nodes that were held for a merge continue if nothing else does.
		if some || s.running > 0 || held {
			return
		}
	}
}

func (s *stage) startHot(ctx context.Context, held bool) bool {
	s.order()
	clear(s.holds)
	// Ending a node may mark lanes: they are examined in the same round.
	rest := s.room[:0]
	some := false
	for i := 0; i < len(s.hot); i++ {
		l := s.hot[i]
		l.hot = false
		n := l.head()
		if n == nil || n.unmet > 0 || l.busy {
			continue
		}
		switch s.admit(n, held) {
		case later:
			rest = append(rest, l)
		case tooLate:
			s.postpone(n)
		case never:
			s.settle(n,
				outcome{state: NodeBlocked, err: fmt.Errorf("not started, because %s failed in its wave",
					cmp.Or(s.barred[waveOf(n.around)].by, s.wave, s.powerFailed))})
		case now:
			some = true
			s.launch(ctx, s.batch(n))
		}
	}
	for _, l := range rest {
		l.hot = true
	}
	s.hot, s.room = rest, s.hot
	return some
}

// order sorts the lanes that could start in the order of the plan. With Limits.Finish, guests that have a change come first.
func (s *stage) order() {
	for _, l := range s.hot {
		n := l.nodes[min(l.at, len(l.nodes)-1)]
		l.index, l.left = n.index, math.MaxInt
		if s.limits.Finish && n.target.Type == backends.TypeGuest && slices.ContainsFunc(l.nodes[:l.at], touched) {
			l.left = len(l.nodes) - l.at
		}
	}
	slices.SortFunc(s.hot, func(a, b *lane) int { return cmp.Or(cmp.Compare(a.left, b.left), cmp.Compare(a.index, b.index)) })
}

type admission int

const (
	now admission = iota
	later
	never
	tooLate
)

func (s *stage) admit(n *node, held bool) admission {
	if s.waitsForPause(n) {
		return later
	}
	if n.around != nil {
		host, wave := n.around.host()
		if key := waveOf(n.around); !n.closes && !n.around.inherited && s.gated[key] {
			return later
		} else if bar, barred := s.barred[key]; !n.closes && !n.around.inherited && barred {
			return bar.how
		}
		switch {
		case !wave || n.closes || s.down[host] > 0:
		case s.wave != "":
			return never
		case len(s.down) >= s.limits.HostsDown || s.proving():
			return later
		case s.outlasts(s.hostWave(host)):
			return tooLate
		}
		if n.around.down() {
			return now
		}
		if !n.closes && !s.mayGoOff(n.around) {
			if s.powerFailed != "" {
				return never
			}
			return later
		}
		if !wave && !n.closes && s.begins(n.around) && s.outlasts(s.powerWave(n.around.group)) {
			return tooLate
		}
	}
	if running, limit := s.bound(n); *running >= limit {
		return later
	}
	if n.merge != nil && (s.busy[n.merge] || !held && s.hold(n)) {
		return later
	}
	return now
}

// proving reports whether a host that is back in service is not proven to work yet: operations that are ready or running on it must
// end before another host goes down. Operations during another outage of it prove nothing.
func (s *stage) proving() bool {
	for target := range s.back {
		l := s.lanes[target]
		again := func(b *bracket) bool { return b.Target == target && b.down() }
		switch n := l.head(); {
		case n == nil:
			delete(s.back, target)
		case n.around == nil && !slices.ContainsFunc(n.within, again) && (l.busy || n.unmet == 0):
			return true
		}
	}
	return false
}

// bound returns the counter of running operations that a node adds to, and its limit. Operations that load only their own machine
// and mostly wait for it (a guest, a VM that shuts down or starts) have a separate limit.
func (s *stage) bound(n *node) (running *int, limit int) {
	switch {
	case n.around != nil && n.around.down():
		return new(int), math.MaxInt // limited by Limits.HostsDown
	case s.limits.Parallel > 1 && (n.around != nil || n.target.Type == backends.TypeGuest):
		return &s.apart, s.limits.Apart
	}
	return &s.slots, s.limits.Parallel
}

type holdKey struct {
	parent *parent
	depth  int
}

// hold reports whether other changes of the same parent will be ready soon: those that neither depend on this one nor are inside
// a bracket. One reconfigure of a DVS then changes all hosts at once.
func (s *stage) hold(n *node) bool {
	p := n.merge
	if p.depth == nil || p.gated[n] {
		return false
	}
	key := holdKey{p, p.depth[n]}
	is, known := s.holds[key]
	if !known {
		is = slices.ContainsFunc(p.nodes, func(m *node) bool {
			if m.state != "" || m.running || p.gated[m] || p.depth[m] != key.depth {
				return false
			}
			l := s.lanes[m.target]
			return m.unmet > 0 || l.busy || l.head().merge != p
		})
		s.holds[key] = is
	}
	return is
}

// batch returns the changes for one SetMany with n: of every target the next ones in line.
func (s *stage) batch(n *node) []*node {
	if n.merge == nil {
		return []*node{n}
	}
	var out []*node
	seen := map[backends.Ref]bool{}
	for _, m := range n.merge.nodes {
		l := s.lanes[m.target]
		if seen[m.target] || l.busy {
			continue
		}
		seen[m.target] = true
		l.head()
		for _, m := range l.nodes[l.at:] {
			if m.state != "" {
				continue
			}
			if m.merge != n.merge || m.unmet > 0 || m.running || s.waitsForPause(m) {
				break
			}
			out = append(out, m)
		}
	}
	return out
}

func (s *stage) launch(ctx context.Context, nodes []*node) {
	d := &operation{runner: s.runner, nodes: nodes, over: make(chan struct{}), msgs: s.msgs}
	m := message{nodes: nodes, ended: true, merge: nodes[0].merge}
	first := nodes[0]
	m.counter, _ = s.bound(first)
	*m.counter++
	if first.merge != nil {
		s.busy[first.merge] = true
	}
	s.running++
	for _, n := range nodes {
		n.running = true
		n.started = s.now()
		s.lanes[n.target].busy = true
		s.emit(Event{Type: EventStarted, Node: n.id, Target: n.target, Title: n.title})
	}
	if b := first.around; b != nil {
		if d.gate = s.begun(first); d.gate != nil {
			d.gates, d.needs = s.gates, s.needs(b)
			s.gated[waveOf(b)] = true
		}
		if b.group != nil && !first.closes && !b.group.started {
			b.group.started = true
			s.off = append(s.off, b.group)
		}
		d.effect = b.effect || b.bare() && b.open.state == NodeDone
		if host, wave := b.host(); wave && !first.closes && !b.inherited {
			s.down[host]++
		}
	} else {
		for _, n := range nodes {
			d.moved = append(d.moved, s.moved(n))
		}
	}
	if s.virtual != nil {
		s.virtual.launch(m)
		return
	}
	if s.waitsForTarget(first) {
		ctx, first.cancel = context.WithCancel(ctx)
	}
	go func() {
		m.outcomes = d.do(ctx)
		close(d.over)
		s.msgs <- m
	}()
}

// moved reports whether an earlier operation of this stage on the same machine may have changed the value of a change: a package
// installs modules, a reboot activates values.
func (s *stage) moved(n *node) bool {
	if n.target.Type == backends.TypeGuest {
		vm := s.lanes[backends.VMRef(n.target.Name)]
		return slices.ContainsFunc(s.lanes[n.target].nodes, touched) || vm != nil && slices.ContainsFunc(vm.nodes, touched)
	}
	seen := map[*node]bool{n: true}
	ask := slices.Clone(n.waits)
	for len(ask) > 0 {
		w := ask[len(ask)-1]
		ask = ask[:len(ask)-1]
		if seen[w] || w.target != n.target {
			continue
		}
		seen[w] = true
		if touched(w) {
			return true
		}
		ask = append(append(ask, w.waits...), w.after...)
	}
	return false
}

func touched(n *node) bool { return n.state == NodeDone && (n.change != nil || n.closes) }
