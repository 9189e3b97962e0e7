package engine

import (
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A State is the accumulated content of a run's events; views render it and keep no state of their own.
type State struct {
	Run      string
	Stage    int
	Begun    time.Time // time of the first event
	Last     time.Time // time of the latest event
	Counts   Counts
	Targets  []*TargetState // in the order in which they were announced
	Stopping string         // why, once the run is being stopped
	Paused   string         // by whom, while the run is paused
	Wait     string         // what is waited for that no running node shows; "" if nothing is
	Result   *Event         // the last event

	nodes   map[string]*StepState
	targets map[backends.Ref]*TargetState
	left    time.Duration // of this stage, as estimated at leftAt
	leftAt  time.Time
}

// Counts counts nodes by state.
type Counts struct {
	Total, Running, Done, Skipped, Failed, Blocked int
}

// Ended returns the number of nodes that have ended, successfully or not.
func (c Counts) Ended() int { return c.Done + c.Skipped + c.Failed + c.Blocked }

// A TargetState is the progress of one target.
type TargetState struct {
	Target  backends.Ref
	Counts  Counts
	Steps   []*StepState // in the order in which they were announced
	Canary  bool         // it goes out of service first, and the others wait for it
	Title   string       // what is being done, "" if nothing is
	Percent int          // of that
	Text    string       // what that waits for
	Wait    string       // for how long at most, if it takes long
	Since   time.Time    // when that began
	Err     string       // of the first node that failed
	Hint    string
	ErrKind backends.ErrorKind
	Ended   time.Time // when its last node ended; zero while some are left
}

// Word is the state of the target as text: waiting, running, done, failed, not tried.
func (t *TargetState) Word() string {
	switch c := t.Counts; {
	case c.Running > 0:
		return "running"
	case c.Failed > 0:
		return "failed"
	case c.Ended() < c.Total:
		return "waiting"
	case c.Blocked > 0:
		return NodeBlocked.Word()
	}
	return "done"
}

// Service returns the state of a target that goes out of service: "to go", "out", "back"; "" for other targets, and if it no
// longer does.
func (t *TargetState) Service() string {
	out, pending, back := 0, false, false
	for _, n := range t.Steps {
		switch {
		case n.Outage == OutageBegins && (n.Running || n.Ended == EventDone):
			out++
		case n.Outage == OutageBegins && n.Ended == "":
			pending = true
		case n.Outage == OutageEnds && n.Ended == EventDone:
			out--
			back = true
		}
	}
	switch {
	case out > 0:
		return "out"
	case pending:
		return "to go"
	case back:
		return "back"
	}
	return ""
}

// A StepState is the progress of one node of a target.
type StepState struct {
	NodeInfo
	Running bool
	Since   time.Time     // when it began
	Ended   EventType     // done, skipped, failed, blocked; "" until it has ended
	Elapsed time.Duration // of one that has ended
	Err     string
	Hint    string

	target *TargetState
}

// Fold applies the next event. A new attempt starts over: what the previous one left, even if it was killed, no longer counts.
func (s *State) Fold(e Event) {
	if e.First {
		*s = State{}
	}
	if s.nodes == nil {
		s.nodes, s.targets = map[string]*StepState{}, map[backends.Ref]*TargetState{}
		s.Begun = e.Time
	}
	if e.Time.After(s.Last) {
		s.Last = e.Time
	}
	if e.Run != "" {
		s.Run = e.Run
	}
	if e.Type != EventProgress && e.Type != EventForecast {
		s.Wait = ""
	}
	switch e.Type {
	case EventWaiting:
		if e.Title != "" { // not a notice
			s.waits(e)
		}
	case EventPlanned:
		s.Stage++
		s.left = 0
		for _, n := range e.Nodes {
			s.plan(n)
		}
	case EventStopping:
		s.Stopping = e.Text
	case EventResult:
		s.Result = &e
	case EventControl:
		if c := e.Control; c != nil && c.Do == ControlPause {
			s.Paused = c.By
		} else if c != nil && c.Do == ControlContinue {
			s.Paused = ""
		}
	case EventForecast:
		s.left, s.leftAt = e.Left, e.Time
	case EventAgain, EventStarted, EventProgress, EventDone, EventSkipped, EventFailed, EventBlocked:
		s.node(e)
	}
}

// waits notes a wait at the running target that it belongs to.
func (s *State) waits(e Event) {
	text := strings.TrimPrefix(e.Title+": "+e.Text, ": ")
	for _, ts := range s.Targets {
		if ts.Target.Name != e.Waits || ts.Counts.Running == 0 {
			continue
		}
		if ts.Wait = text; ts.Title == e.Title {
			ts.Wait = e.Text
		}
		return
	}
	s.Wait = strings.TrimPrefix(e.Waits+": "+text, ": ")
}

func (s *State) target(t backends.Ref) *TargetState {
	ts := s.targets[t]
	if ts == nil {
		ts = &TargetState{Target: t}
		s.targets[t] = ts
		s.Targets = append(s.Targets, ts)
	}
	return ts
}

// plan adds a node. A node that an earlier stage has ended is reset.
func (s *State) plan(n NodeInfo) {
	ts := s.target(n.Target)
	step := s.nodes[n.ID]
	if step != nil {
		s.undo(step)
	} else {
		step = &StepState{target: ts}
		s.nodes[n.ID] = step
		ts.Steps = append(ts.Steps, step)
		ts.Counts.Total++
		s.Counts.Total++
	}
	step.NodeInfo = n
	ts.Canary = ts.Canary || n.Canary
	ts.Ended = time.Time{}
}

func (s *State) undo(n *StepState) {
	s.add(n.target, n.Ended, -1)
	if n.Ended == EventFailed && n.target.Err == n.Err {
		n.target.Err, n.target.Hint, n.target.ErrKind = "", "", ""
	}
	if n.Running {
		s.halt(n)
	}
	n.Ended, n.Err, n.Hint, n.Since, n.Elapsed = "", "", "", time.Time{}, 0
	n.target.Ended = time.Time{}
}

func (s *State) halt(n *StepState) {
	ts := n.target
	n.Running = false
	ts.Counts.Running--
	s.Counts.Running--
	if ts.Counts.Running == 0 {
		ts.Title, ts.Percent, ts.Text, ts.Wait = "", 0, "", ""
	}
}

func (s *State) node(e Event) {
	n := s.nodes[e.Node]
	if n == nil {
		s.plan(NodeInfo{ID: e.Node, Target: e.Target, Title: e.Title})
		n = s.nodes[e.Node]
	}
	ts := n.target
	switch e.Type {
	case EventAgain:
		s.undo(n)
		return
	case EventStarted:
		if n.Ended != "" || n.Running {
			s.undo(n)
		}
		n.Running, n.Since = true, e.Time
		ts.Counts.Running++
		s.Counts.Running++
		ts.Title, ts.Percent, ts.Text, ts.Wait, ts.Since = e.Title, 0, "", "", e.Time
		return
	case EventProgress:
		ts.Percent, ts.Text = e.Percent, e.Text
		return
	}
	if n.Running {
		s.halt(n)
	}
	if n.Ended == "" {
		n.Ended, n.Elapsed, n.Err, n.Hint = e.Type, e.Elapsed, e.Err, e.Hint
		s.add(ts, e.Type, 1)
	}
	if e.Type == EventFailed && ts.Err == "" {
		ts.Err, ts.Hint, ts.ErrKind = e.Err, e.Hint, e.ErrKind
	}
	if ts.Counts.Ended() == ts.Counts.Total {
		ts.Ended = e.Time
	}
}

func (s *State) add(ts *TargetState, t EventType, n int) {
	for _, c := range []*Counts{&ts.Counts, &s.Counts} {
		switch t {
		case EventDone:
			c.Done += n
		case EventSkipped:
			c.Skipped += n
		case EventFailed:
			c.Failed += n
		case EventBlocked:
			c.Blocked += n
		}
	}
}

// Elapsed returns the time since the first event, up to the result.
func (s *State) Elapsed(now time.Time) time.Duration {
	switch {
	case s.Begun.IsZero():
		return 0
	case s.Result != nil:
		return s.Result.Time.Sub(s.Begun)
	}
	return max(0, now.Sub(s.Begun))
}

// ETA returns the estimated remaining time of this stage, as computed by the run; 0 if it is unknown, and while the run is
// paused.
func (s *State) ETA(now time.Time) time.Duration {
	if s.Result != nil || s.Paused != "" || s.left == 0 || s.Counts.Ended() == s.Counts.Total {
		return 0
	}
	return max(0, s.left-max(0, now.Sub(s.leftAt)))
}

// Failed returns the targets that failed, in the order in which they were announced.
func (s *State) Failed() []*TargetState {
	return slices.DeleteFunc(slices.Clone(s.Targets), func(t *TargetState) bool { return t.Counts.Failed == 0 })
}
