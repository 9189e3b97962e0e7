package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// settle ends a node and evaluates those that depend on it.
func (s *stage) settle(n *node, o outcome) {
	if n.state != "" {
		return
	}
	n.state = o.state
	s.left--
	if b := n.around; b != nil && !n.closes {
		b.tried = b.tried || o.begun
		if host, wave := b.host(); wave && !b.inherited && !o.begun && !n.started.IsZero() {
			s.up(host)
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
	if n.closes && n.around.tried && o.state == NodeDone {
		if host, wave := n.around.host(); wave {
			s.up(host)
		}
		if n.around.down() && !s.staysOut(n.around) {
			s.back[n.target] = true
		}
		if !s.staysOut(n.around) {
			s.returned(n.around)
		}
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

// staysOut reports whether a host stays in maintenance mode after one of its reboots.
func (s *stage) staysOut(b *bracket) bool {
	return slices.ContainsFunc(s.lanes[b.Target].nodes, func(n *node) bool {
		return n.closes && n.around.tried && n.state == "" && n.around.Kind == backends.BracketMaintenance && slices.Contains(n.around.inner, b)
	})
}

func (s *stage) up(t backends.Ref) {
	if s.down[t]--; s.down[t] <= 0 {
		delete(s.down, t)
	}
}

// failTarget blocks the remaining nodes of a target, except closings, and stops the wave if its host is down.
func (s *stage) failTarget(n *node) {
	if _, known := s.failed[n.target]; !known {
		s.failed[n.target] = n.title + " failed before"
	}
	host := n.target
	if n.closes {
		if h, wave := n.around.host(); wave { // a VM that does not start again is as serious as its host
			host = h
		}
	}
	if s.wave == "" && (s.down[host] > 0 || s.wasDown(host)) {
		s.wave, s.stopper = host.Name, n.target
	}
	if n.closes && n.around.outage() && s.powerFailed == "" {
		s.powerFailed = n.target.Name
	}
	for _, m := range s.lanes[n.target].nodes {
		if m.state == "" && !m.running && !m.closes {
			s.settle(m, outcome{state: NodeBlocked, err: fmt.Errorf("%q failed before", n.title)})
		}
	}
}

// wasDown reports whether a host was out of service in this stage: failures on it may then be caused by its reboot.
func (s *stage) wasDown(t backends.Ref) bool {
	l := s.lanes[t]
	return l != nil &&
		slices.ContainsFunc(l.nodes, func(n *node) bool { return n.closes && n.around.down() && n.around.tried && n.state == NodeDone })
}

// evaluate handles a node without open dependencies: it is ready, or can never be.
func (s *stage) evaluate(n *node) {
	if n.closes {
		if b := n.around; !b.tried {
			s.settle(n, outcome{state: b.open.state})
			return
		} else if why := s.unreached(n); why != "" {
			s.settle(n, outcome{state: NodeBlocked, err: errors.New(why)})
			return
		} else if in := b.lost(); in != nil {
			s.settle(n, outcome{state: NodeBlocked, err: fmt.Errorf("it stays in maintenance mode, because %q failed", in.shut.title)})
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

// lost returns the reboot inside a maintenance mode after which the host has not reconnected, nil if there is none.
func (b *bracket) lost() *bracket {
	for _, in := range b.inner {
		if b.Kind == backends.BracketMaintenance && in.tried && in.shut.state == NodeFailed {
			return in
		}
	}
	return nil
}

// doomed reports whether a required dependency of a node failed or was postponed.
func (s *stage) doomed(n *node) (outcome, bool) {
	for _, w := range n.waits {
		switch w.state {
		case NodeFailed:
			return outcome{state: NodeBlocked, err: fmt.Errorf("%s: %q failed", w.target.Name, w.title)}, true
		case NodeBlocked:
			return outcome{state: NodeBlocked, err: fmt.Errorf("%s: %q was not done", w.target.Name, w.title)}, true
		case NodePending:
			return outcome{state: NodePending}, true
		}
	}
	return outcome{}, false
}

// useless reports whether nothing inside a bracket can be done, including nested brackets, so that it need not be opened.
func (s *stage) useless(b *bracket) (outcome, bool) {
	if len(b.body) == 0 && len(b.inner) == 0 {
		return outcome{}, false
	}
	body := b.body
	for _, in := range b.inner {
		if _, doomed := s.doomed(in.open); in.open.state == "" && !doomed {
			if _, useless := s.useless(in); !useless {
				return outcome{}, false
			}
		}
		if len(b.body) == 0 {
			body = append(append(body, in.open), in.body...)
		}
	}
	worst := outcome{state: NodeSkipped, text: "nothing to do inside"}
	for _, n := range body {
		o, doomed := outcome{state: n.state}, n.state != ""
		if !doomed {
			o, doomed = s.doomed(n)
		}
		if !doomed && !s.skip[n.id] && n.around == nil {
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

// tell stores the result of a node and sends the event of its end.
func (s *stage) tell(n *node, o outcome) {
	elapsed := time.Duration(0)
	if !n.started.IsZero() {
		elapsed = s.now().Sub(n.started)
	}
	if o.state == NodeDone {
		s.took[class(n)] = max(s.took[class(n)], elapsed)
	}
	if o.state == NodeDone && n.change != nil {
		s.made[n.id] = made{n.change.To, s.number}
	}
	if n.closes && !n.around.tried {
		return // it was never opened
	}
	s.keep(NodeResult{
		ID: n.id, Target: n.target, Title: n.title, Change: n.change, State: o.state, Prior: o.prior, Found: o.found, Err: o.err,
		Elapsed: elapsed,
	})
	if s.untold[n] == NodeBlocked && o.state == NodeBlocked {
		return // unchanged since before the retry of another target
	}
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
