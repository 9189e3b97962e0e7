package engine

import (
	"cmp"
	"container/heap"
	"reflect"
	"slices"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A node is a change, or the opening or closing of a bracket. Only the scheduler's goroutine writes to it; an operation reads
// only fields that no longer change.
type node struct {
	id     string
	target backends.Ref
	title  string
	change *plan.Change  // nil for a bracket
	around *bracket      // of an opening or closing
	closes bool          // the closing of around
	wait   bool          // neither: it waits until its target answers
	most   time.Duration // of a wait
	cancel func()        // ends a wait for a target that does not answer; nil: none is running

	index int     // position in the order
	waits []*node // must have succeeded before
	after []*node // must have ended before, successfully or not
	next  []*node // nodes that have this one in waits or after
	unmet int     // number of open entries in waits and after

	merge  *parent    // the SetMany it may be part of
	within []*bracket // brackets of a change

	state   NodeState // "" until it has ended
	running bool
	started time.Time
}

// A bracket is a bracket of the stage.
type bracket struct {
	plan.Bracket
	open, shut *node
	body       []*node
	inner      []*bracket     // opened and closed while this one is open
	tried      bool           // opening was started, now or in an earlier attempt: it has to be closed
	effect     bool           // a change inside was started: the effect is needed
	found      backends.Value // state before the first opening
	leave      backends.Value
	inherited  bool        // open since an earlier attempt, from which found and leave come
	leftover   bool        // inherited, and the plan no longer needs it: it is only closed
	group      *powerGroup // of a power cycle
	closing    bool        // inherited, and its closing was started in an earlier attempt
}

// down reports whether the bracket takes its host out of service.
func (b *bracket) down() bool {
	return plan.TakesHostDown(b.Kind)
}

// host returns the host whose wave the bracket belongs to: the one that is out of service while it is open, the one that it
// reboots, or the one whose shell is open (settings made in a shell need a reboot of the host, reading does not). Several
// brackets with a common body are open together, whatever their hosts: they do not wait for a wave.
func (b *bracket) host() (backends.Ref, bool) {
	setting := len(b.body) == 0 || slices.ContainsFunc(b.body, func(n *node) bool { return !n.change.State })
	if b.down() || b.Kind == backends.BracketSSH && !b.Proof && setting {
		return b.Target, true
	}
	for _, n := range b.body {
		if len(n.within) > 1 {
			return backends.Ref{}, false
		}
	}
	for _, in := range b.inner {
		if in.down() {
			return in.Target, true
		}
	}
	return backends.Ref{}, false
}

// held returns the changes that are made while the bracket is open: its own, and those of the reboots of a host in maintenance
// mode.
func (b *bracket) held() []*node {
	body := b.body
	for _, in := range b.inner {
		if b.Kind == backends.BracketMaintenance {
			body = append(body[:len(body):len(body)], in.body...)
		}
	}
	return body
}

// bare reports whether the bracket has no changes inside: its effect is needed as soon as it is open.
func (b *bracket) bare() bool { return len(b.body) == 0 && !b.leftover }

// A parent contains the changes that one SetMany may merge.
type parent struct {
	key   string
	nodes []*node
	depth map[*node]int // length of the chain of others that a node waits for; only with several targets
	gated map[*node]bool
}

// nodesOf converts a plan to nodes, in an order in which they can be done one by one.
func nodesOf(p *plan.Plan, open map[string]*bracket) ([]*node, error) {
	g, err := p.Graph()
	if err != nil {
		return nil, err
	}
	byID := make(map[string]*node, len(g.Order))
	var all []*node
	add := func(n *node) *node {
		n.index = len(all)
		all = append(all, n)
		byID[n.id] = n
		return n
	}
	var brackets []*bracket
	byBracket := map[string]*bracket{}
	for _, pb := range p.Brackets {
		b := &bracket{Bracket: pb, leave: pb.Leave}
		if was := open[pb.ID()]; was != nil {
			b.found, b.leave, b.effect = was.found, was.leave, was.effect
			b.inherited, b.tried, b.leftover = true, true, was.leftover
		}
		b.open = add(&node{id: plan.OpenID(pb.ID()), target: pb.Target, title: plan.OpenTitle(pb), around: b})
		b.shut = add(&node{id: pb.ID(), target: pb.Target, title: plan.CloseTitle(pb), around: b, closes: true})
		brackets, byBracket[pb.ID()] = append(brackets, b), b
	}
	for i := range p.Changes {
		c := &p.Changes[i]
		n := add(&node{id: c.ID(), target: c.Target, title: plan.Title(*c), change: c})
		for _, id := range c.Within {
			if b := byBracket[id]; b != nil {
				b.body = append(b.body, n)
				n.within = append(n.within, b)
			}
		}
	}
	for _, b := range brackets {
		for _, id := range b.Around {
			if in := byBracket[id]; in != nil {
				b.inner = append(b.inner, in)
			}
		}
	}
	powerGroups(p, byBracket)
	for _, n := range all {
		for _, id := range g.Waits[n.id] {
			if n.closes || n.around != nil && slices.Contains(n.around.AfterAny, id) && !slices.Contains(n.around.After, id) {
				n.after = append(n.after, byID[id])
			} else {
				n.waits = append(n.waits, byID[id])
			}
			byID[id].next = append(byID[id].next, n)
		}
	}
	ordered := order(all, brackets)
	if soft := openLate(brackets); soft {
		if late := order(all, brackets); len(late) == len(all) {
			ordered = late
		} else {
			undoOpenLate(brackets)
			ordered = order(all, brackets)
		}
	}
	for i, n := range ordered {
		n.index = i
		n.unmet = len(n.waits) + len(n.after)
	}
	return ordered, nil
}

// openLate delays a bracket until all outside dependencies of its body have ended, so that a VM is off and a host is down no
// longer than necessary. Dependencies that wait for the bracket themselves are excluded.
func openLate(brackets []*bracket) bool {
	some := false
	for _, b := range brackets {
		inside := map[*node]bool{}
		reach(b.open, inside)
		for _, n := range b.held() {
			for _, w := range n.waits {
				if !inside[w] && !slices.Contains(b.open.waits, w) && !slices.Contains(b.open.after, w) {
					b.open.after = append(b.open.after, w)
					w.next = append(w.next, b.open)
					some = true
				}
			}
		}
	}
	return some
}

func undoOpenLate(brackets []*bracket) {
	for _, b := range brackets {
		b.open.after = slices.DeleteFunc(b.open.after, func(w *node) bool {
			if slices.Contains(b.AfterAny, w.id) {
				return false
			}
			w.next = slices.DeleteFunc(w.next, func(n *node) bool { return n == b.open })
			return true
		})
	}
}

func reach(n *node, seen map[*node]bool) {
	if seen[n] {
		return
	}
	seen[n] = true
	for _, m := range n.next {
		reach(m, seen)
	}
}

// order sorts the nodes by their dependencies and otherwise as planned; a bracket is opened directly before the first node of its
// body and closed directly after the last. It returns fewer nodes if there is a cycle.
func order(all []*node, brackets []*bracket) []*node {
	rank := make(map[*node]float64, len(all))
	for i, n := range all {
		rank[n] = float64(i)
	}
	for _, b := range brackets {
		if body := b.held(); len(body) > 0 {
			byRank := func(x, y *node) int { return cmp.Compare(rank[x], rank[y]) }
			offset := 0.5
			if b.Kind == backends.BracketMaintenance {
				offset = 0.75
			}
			rank[b.open] = rank[slices.MinFunc(body, byRank)] - offset
			rank[b.shut] = rank[slices.MaxFunc(body, byRank)] + offset
		}
	}
	unmet := make(map[*node]int, len(all))
	q := &queue{rank: rank}
	for _, n := range all {
		unmet[n] = len(n.waits) + len(n.after)
		if unmet[n] == 0 {
			heap.Push(q, n)
		}
	}
	out := make([]*node, 0, len(all))
	for q.Len() > 0 {
		n := heap.Pop(q).(*node)
		out = append(out, n)
		for _, m := range n.next {
			if unmet[m]--; unmet[m] == 0 {
				heap.Push(q, m)
			}
		}
	}
	return out
}

// A queue is a heap of nodes by rank.
type queue struct {
	rank  map[*node]float64
	nodes []*node
}

func (q *queue) Len() int           { return len(q.nodes) }
func (q *queue) Less(i, j int) bool { return q.rank[q.nodes[i]] < q.rank[q.nodes[j]] }
func (q *queue) Swap(i, j int)      { q.nodes[i], q.nodes[j] = q.nodes[j], q.nodes[i] }
func (q *queue) Push(n any)         { q.nodes = append(q.nodes, n.(*node)) }
func (q *queue) Pop() any {
	n := q.nodes[len(q.nodes)-1]
	q.nodes = q.nodes[:len(q.nodes)-1]
	return n
}

// parentsOf returns the changes that may be merged. nodes are in order.
func parentsOf(nodes []*node, setters map[backends.Kind]backends.Setter) {
	type key struct {
		setter any
		parent string
	}
	parents := map[key]*parent{}
	for _, n := range nodes {
		if n.change == nil {
			continue
		}
		many, ok := backends.As[backends.ManySetter](setters[n.change.Kind])
		if !ok {
			continue
		}
		k := key{identity(many), many.Parent(n.change.Setting)}
		if parents[k] == nil {
			parents[k] = &parent{key: k.parent}
		}
		n.merge = parents[k]
		n.merge.nodes = append(n.merge.nodes, n)
	}
	for _, p := range parents {
		if slices.ContainsFunc(p.nodes, func(n *node) bool { return n.target != p.nodes[0].target }) {
			p.survey(nodes)
		}
	}
}

// survey determines which of the changes of a parent depend on others of it, and which are inside a bracket.
func (p *parent) survey(nodes []*node) {
	p.depth, p.gated = map[*node]int{}, map[*node]bool{}
	last := map[backends.Ref]*node{}
	look := func(n, before *node) {
		d := p.depth[before]
		if before.merge == p {
			d++
		}
		p.depth[n] = max(p.depth[n], d)
		p.gated[n] = p.gated[n] || p.gated[before] || before.around != nil
	}
	for _, n := range nodes {
		for _, w := range n.waits {
			look(n, w)
		}
		for _, w := range n.after {
			look(n, w)
		}
		if before := last[n.target]; before != nil && (before.merge != p || n.merge != p) {
			look(n, before)
		}
		last[n.target] = n
	}
}

// identity makes a setter comparable: the same pointer under two kinds is one setter. Setters that cannot be compared equal none,
// not even themselves.
func identity(s backends.Setter) any {
	if reflect.TypeOf(s).Comparable() {
		return s
	}
	return new(byte)
}
