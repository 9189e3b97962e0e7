package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

// Verb is a request of an operator to a running run.
type Verb string

// The verbs.
const (
	ControlPause    Verb = "pause"    // start no new steps, but finish open ones: no host or VM stays out of service during a pause
	ControlContinue Verb = "continue" // end the pause
	ControlSkip     Verb = "skip"     // leave the rest of a target, and what depends on it, to a later resume
	ControlRetry    Verb = "retry"    // try the failed steps of a target again
)

// A Control is one request of an operator, from the keys of the run page or through the run's socket.
type Control struct {
	Do     Verb         `json:"do"`
	Target backends.Ref `json:"target,omitzero"` // for skip and retry
	By     string       `json:"by,omitempty"`    // who requests it, and from where
}

// A Remote passes controls to a run. Each run needs its own.
type Remote struct {
	asks  chan ask
	over  chan struct{}
	once  sync.Once
	again string // the command that continues the run; set before it begins
}

type ask struct {
	control Control
	reply   chan<- reply
}

type reply struct {
	text string
	err  error
}

// NewRemote returns a Remote for Job.Remote.
func NewRemote() *Remote { return &Remote{asks: make(chan ask), over: make(chan struct{})} }

// Ask passes on a control and waits until it is journalled and takes effect; text says what happens. A run does not react while
// it reads the inventory; ctx bounds the wait.
func (r *Remote) Ask(ctx context.Context, c Control) (text string, err error) {
	back := make(chan reply, 1)
	select {
	case r.asks <- ask{c, back}:
	case <-r.over:
		return "", backends.Refusedf("", "To try again what failed: "+r.again,
			"the changes of this run have ended")
	case <-ctx.Done():
		return "", backends.Transientf("", "Try again while steps are running.",
			"the run is reading the inventory and has not answered: %w", ctx.Err())
	}
	a := <-back
	return a.text, a.err
}

func (r *Remote) asked() <-chan ask {
	if r == nil {
		return nil
	}
	return r.asks
}

func (r *Remote) end() {
	if r != nil {
		r.once.Do(func() { close(r.over) })
	}
}

// control handles a control: it is journalled before it takes effect, and reported to all views.
func (s *stage) control(ctx context.Context, c Control) (string, error) {
	check, known := map[Verb]func(Control) (string, func(), error){
		ControlPause: s.pause, ControlContinue: s.goOn, ControlSkip: s.skipTarget, ControlRetry: s.retry,
	}[c.Do]
	if !known {
		return "", backends.Usagef("", "", "unknown control %q", c.Do)
	}
	if s.halted {
		return "", backends.Refusedf("", "When it has ended: "+s.job.Remote.again, "the run is being stopped")
	}
	text, do, err := check(c)
	if err != nil {
		return "", s.phase.Err(s.job.run(), err)
	}
	text = s.phase.Text(s.job.run(), text)
	if err := s.append(journal.Record{Type: journal.TypeControl, Name: string(c.Do), Target: c.Target, By: c.By}); err != nil {
		s.broken = err
		s.halt("stopping: " + err.Error())
		return "", err
	}
	s.emit(Event{Type: EventControl, Control: &c, Target: c.Target, Text: text})
	if do(); c.Do == ControlPause || c.Do == ControlSkip {
		// Openings that wait at the gate have changed nothing yet: they are cancelled, and wait again when they may begin.
		s.stopGates()
		s.gates, s.stopGates = context.WithCancel(ctx)
	}
	return text, nil
}

func (s *stage) pause(c Control) (string, func(), error) {
	if s.paused {
		return "", nil, backends.Refusedf("", "", "the run is paused already")
	}
	text := "no step starts until the run is continued"
	if open := s.unclosed(); len(open) > 0 {
		text += "; finished first: " + strings.Join(open, ", ")
	}
	return text, func() { s.runner.paused = true }, nil
}

// unclosed returns what a pause still finishes: hosts and VMs that are out of service, and open shells.
func (s *stage) unclosed() []string {
	var out []string
	for _, n := range s.nodes {
		open := n.closes && n.around.tried && n.state == "" || n.around != nil && !n.closes && n.running && !s.gated[waveOf(n.around)]
		if name := n.target.String(); open && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	if len(out) > 5 {
		out = append(out[:5:5], fmt.Sprintf("and %d more", len(out)-5))
	}
	return out
}

func (s *stage) goOn(Control) (string, func(), error) {
	if !s.paused {
		return "", nil, backends.Refusedf("", "", "the run is not paused")
	}
	return "the run continues", func() {
		s.runner.paused, s.finish = false, nil
	}, nil
}

// finishing returns the nodes that are started during a pause: the closings of open brackets, and everything that they depend on.
func (s *stage) finishing() map[*node]bool {
	out := map[*node]bool{}
	var need func(n *node)
	need = func(n *node) {
		if out[n] || n.state != "" {
			return
		}
		out[n] = true
		for _, w := range slices.Concat(n.waits, n.after) {
			need(w)
		}
		for _, m := range s.lanes[n.target].nodes {
			if m == n {
				return
			}
			need(m)
		}
	}
	for _, n := range s.nodes {
		if n.closes && n.around.tried {
			need(n)
		}
	}
	return out
}

// waitsForPause reports whether a node is not started because the run is paused.
func (s *stage) waitsForPause(n *node) bool { return s.paused && !s.finish[n] }

// recall resets an opening that was cancelled at the gate.
func (s *stage) recall(n *node) {
	b := n.around
	n.started = time.Time{}
	if host, wave := b.host(); wave && !b.inherited {
		s.up(host)
	}
	if g := b.group; g != nil && !slices.ContainsFunc(g.members, func(m *bracket) bool { return m.tried || m.open.running }) {
		g.started = false
		s.off = slices.DeleteFunc(s.off, func(o *powerGroup) bool { return o == g })
	}
	s.emit(Event{Type: EventAgain, Node: n.id, Target: n.target, Title: n.title})
	if why, failed := s.failed[n.target]; failed {
		s.settle(n, outcome{state: NodeBlocked, err: errors.New(why)})
		return
	}
	s.mark(s.lanes[n.target])
}

// skippedBy is the prefix of the reason for a target that an operator skipped.
const skippedBy = "skipped by "

func (s *stage) skipTarget(c Control) (string, func(), error) {
	var rest []*node
	if l := s.lanes[c.Target]; l != nil {
		rest = slices.DeleteFunc(slices.Clone(l.nodes), func(n *node) bool { return n.state != "" || n.closes && n.cancel == nil })
	}
	if len(rest) == 0 {
		return "", nil, backends.Refusedf(c.Target.Name, "", "nothing is left to do in this stage")
	}
	why := skippedBy + c.By
	return fmt.Sprintf("the rest of %s is left to rdma-setup resume, with what needs it", c.Target), func() {
		s.failed[c.Target] = why
		s.stopWaits(func(n *node) bool { return n.target == c.Target })
		for _, n := range rest {
			if n.state == "" && !n.running {
				s.settle(n, outcome{state: NodeBlocked, err: errors.New(why)})
			}
		}
		s.mark(s.lanes[c.Target])
	}, nil
}

// retry retries the failed steps of a target. Steps that need no outage are retried immediately; for the others the run plans
// again after this stage, because their host or VM is back in service.
func (s *stage) retry(c Control) (string, func(), error) {
	var failed []*node
	later := false
	if l := s.lanes[c.Target]; l != nil {
		for _, n := range l.nodes {
			switch {
			case n.closes && n.around.tried && n.state != NodeDone, n.running:
				return "", nil, backends.Refusedf(c.Target.Name, "Wait for it, or run rdma-setup resume when the run has ended.",
					"%s: %q is not done yet, or failed", c.Target, n.title)
			case n.state == NodeFailed:
				failed = append(failed, n)
				later = later || n.change == nil || len(n.within) > 0
			}
		}
	}
	why, known := s.failed[c.Target]
	if !known || len(failed) == 0 && !strings.HasPrefix(why, skippedBy) {
		return "", nil, backends.Refusedf(c.Target.Name, "", "%s: no step has failed", c.Target)
	}
	if later && s.job.Replan == nil {
		return "", nil, backends.Refusedf(c.Target.Name, "Run rdma-setup resume when the run has ended.",
			"%s: it would have to go out of service again", c.Target)
	}
	if later {
		return c.Target.String() + " goes out of service again for it: tried again after this stage", func() {
			s.retries[c.Target] = true
			s.allow(failed)
		}, nil
	}
	when := "now"
	if s.paused {
		when = "when the run is continued"
	}
	return fmt.Sprintf("the failed steps of %s are tried again %s", c.Target, when), func() { s.reopen(c.Target) }, nil
}

// allow adds the outages of retried nodes to the consent: the retry is the consent.
func (s *stage) allow(failed []*node) {
	again := map[*bracket]bool{}
	for _, n := range failed {
		if n.around != nil {
			again[n.around] = true
		}
		for _, b := range n.within {
			again[b] = true
		}
	}
	for _, n := range s.nodes {
		if b := n.around; b != nil && slices.ContainsFunc(b.inner, func(in *bracket) bool { return again[in] }) {
			again[b] = true
		}
	}
	for b := range again {
		switch {
		case !b.tried:
		case b.Kind == backends.BracketReboot:
			s.job.Ceiling.HostReboots++
		case b.Kind == backends.BracketVMPower:
			s.job.Ceiling.PowerCycles++
		}
	}
}

// forgive allows changes of a target again, and continues the waves that its failure has stopped.
func (r *runner) forgive(t backends.Ref) {
	delete(r.failed, t)
	if r.stopper == t {
		r.wave = ""
	}
}

// reopen resets the failed changes of a target, and everything that was blocked by them.
func (s *stage) reopen(t backends.Ref) {
	s.forgive(t)
	was := map[*node]NodeState{}
	for _, n := range s.nodes {
		_, failed := s.failed[n.target]
		untried := n.state == NodeBlocked && !failed
		if n.closes && !n.around.tried {
			_, untried = was[n.around.open] // what was not opened is not closed; openings come before their closings
		}
		if untried || n.state == NodeFailed && n.target == t {
			was[n] = n.state
		}
	}
	ids := map[string]bool{}
	for n := range was {
		n.state, n.started = "", time.Time{}
		s.left++
		ids[n.id] = true
	}
	s.drop(func(r NodeResult) bool { return ids[r.ID] })
	s.untold = was
	var ready []*node
	for _, n := range s.nodes {
		if n.state != "" || n.running {
			continue
		}
		n.unmet = 0
		for _, w := range slices.Concat(n.waits, n.after) {
			if w.state == "" {
				n.unmet++
			}
		}
		s.lanes[n.target].at = 0
		if n.unmet == 0 {
			ready = append(ready, n)
		}
	}
	for _, n := range ready {
		if n.state == "" {
			s.evaluate(n)
		}
	}
	s.untold = nil
	for _, n := range s.nodes {
		if _, again := was[n]; again && n.state == "" && (!n.closes || n.around.tried) {
			s.emit(Event{Type: EventAgain, Node: n.id, Target: n.target, Title: n.title})
		}
	}
}
