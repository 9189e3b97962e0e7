package engine

import (
	"slices"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A State is what the events of a run have told so far; views draw it and keep nothing of their own.
type State struct {
	Run      string
	Stage    int
	Begun    time.Time // of the first event
	Last     time.Time // of the latest event
	Counts   Counts
	Targets  []*TargetState // in the order in which they were announced
	Stopping string         // why, once the run is being stopped
	Result   *Event         // the last event

	nodes   map[string]*nodeState
	targets map[backends.Ref]*TargetState
	spent   time.Duration // of the nodes done, and how many these are
	timed   int
}

// Counts counts nodes.
type Counts struct {
	Total, Running, Done, Skipped, Failed, Blocked int
}

// Settled counts the nodes that have ended, well or not.
func (c Counts) Settled() int { return c.Done + c.Skipped + c.Failed + c.Blocked }

// A TargetState is the progress of one target.
type TargetState struct {
	Target  backends.Ref
	Counts  Counts
	Title   string    // what is being done, "" when nothing is
	Percent int       // of that
	Text    string    // what that waits for
	Since   time.Time // when that began
	Err     string    // of the first node that failed
	Hint    string
	ErrKind backends.ErrorKind
	Ended   time.Time // when its last node ended; zero while some are left
}

// Word is the state of the target in one word: waiting, running, done, failed, blocked.
func (t *TargetState) Word() string {
	switch c := t.Counts; {
	case c.Running > 0:
		return "running"
	case c.Failed > 0:
		return "failed"
	case c.Settled() < c.Total:
		return "waiting"
	case c.Blocked > 0:
		return "blocked"
	}
	return "done"
}

type nodeState struct {
	target  *TargetState
	running bool
	ended   EventType // "" until it has ended
}

// Fold takes the next event.
func (s *State) Fold(e Event) {
	if s.nodes == nil {
		s.nodes, s.targets = map[string]*nodeState{}, map[backends.Ref]*TargetState{}
		s.Begun = e.Time
	}
	if e.Time.After(s.Last) {
		s.Last = e.Time
	}
	if e.Run != "" {
		s.Run = e.Run
	}
	switch e.Type {
	case EventPlanned:
		s.Stage++
		for _, n := range e.Nodes {
			s.plan(n)
		}
	case EventStopping:
		s.Stopping = e.Text
	case EventResult:
		s.Result = &e
	case EventStarted, EventProgress, EventDone, EventSkipped, EventFailed, EventBlocked:
		s.node(e)
	}
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

// plan announces a node. One that a stage before has settled is begun anew.
func (s *State) plan(n NodeInfo) {
	ts := s.target(n.Target)
	if was := s.nodes[n.ID]; was != nil {
		s.add(was.target, was.ended, -1)
		was.target.Counts.Total--
		s.Counts.Total--
	}
	s.nodes[n.ID] = &nodeState{target: ts}
	ts.Counts.Total++
	s.Counts.Total++
	ts.Ended = time.Time{}
}

func (s *State) node(e Event) {
	n := s.nodes[e.Node]
	if n == nil {
		s.plan(NodeInfo{ID: e.Node, Target: e.Target, Title: e.Title})
		n = s.nodes[e.Node]
	}
	ts := n.target
	switch e.Type {
	case EventStarted:
		n.running = true
		ts.Counts.Running++
		s.Counts.Running++
		ts.Title, ts.Percent, ts.Text, ts.Since = e.Title, 0, "", e.Time
		return
	case EventProgress:
		ts.Percent, ts.Text = e.Percent, e.Text
		return
	}
	if n.running {
		n.running = false
		ts.Counts.Running--
		s.Counts.Running--
		if ts.Counts.Running == 0 {
			ts.Title, ts.Percent, ts.Text = "", 0, ""
		}
		s.spent += e.Elapsed
		s.timed++
	}
	if n.ended == "" {
		n.ended = e.Type
		s.add(ts, e.Type, 1)
	}
	if e.Type == EventFailed && ts.Err == "" {
		ts.Err, ts.Hint, ts.ErrKind = e.Err, e.Hint, e.ErrKind
	}
	if ts.Counts.Settled() == ts.Counts.Total {
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

// Elapsed is the time since the first event, up to the result.
func (s *State) Elapsed(now time.Time) time.Duration {
	switch {
	case s.Begun.IsZero():
		return 0
	case s.Result != nil:
		return s.Result.Time.Sub(s.Begun)
	}
	return max(0, now.Sub(s.Begun))
}

// ETA estimates how long the rest of this stage takes, from what the nodes so far took; 0 while nothing can be said.
func (s *State) ETA() time.Duration {
	left := s.Counts.Total - s.Counts.Settled()
	if s.Result != nil || s.timed == 0 || left <= 0 {
		return 0
	}
	mean := s.spent / time.Duration(s.timed)
	return mean * time.Duration(left) / time.Duration(max(1, s.Counts.Running))
}

// Failed returns the targets that failed, in the order in which they were announced.
func (s *State) Failed() []*TargetState {
	return slices.DeleteFunc(slices.Clone(s.Targets), func(t *TargetState) bool { return t.Counts.Failed == 0 })
}
