package engine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A Job is the input of a run. Only Plan, Setters and Journal are required; a plan without changes needs no journal.
type Job struct {
	Plan     plan.Plan
	Setters  map[backends.Kind]backends.Setter
	Brackets map[backends.BracketKind]backends.Bracket
	Journal  *journal.Journal

	// Replan reads the world again and plans again. It is called at every stage boundary and at the end, where its plan must be
	// empty; Resume and Rollback require it.
	Replan func(ctx context.Context) (*plan.Plan, error)
	// Ceiling is what the operator consented to; zero: the contents of the first plan.
	Ceiling plan.Ceiling
	// AskBeyond is called before a later stage exceeds the ceiling; what names the first excess. nil: no consent.
	AskBeyond func(ctx context.Context, what string, p plan.Plan) bool

	// Return waits until a target that Plan.Conflicts says to await answers again, and has its own limit. Resume and Rollback call
	// it while they continue with the other targets. nil: nothing is awaited.
	Return func(ctx context.Context, t backends.Ref) error
	// SkipUnreachable waits for nothing that does not answer, not even for the end of a host's reboot.
	SkipUnreachable bool

	// Busy returns which targets are in use by others, and by whom. It is called before the first change of a stage, before a VM
	// or host is taken out of service, and before the results of an earlier attempt are read: a target may not exist yet. nil: not
	// checked.
	Busy func(ctx context.Context, targets []backends.Ref) (map[backends.Ref]error, error)

	// Gate is called before a wave goes out of service, and waits until it may: it reports what it waits for, and returns an
	// error if that takes too long. It has its own time limit. nil: no gate.
	Gate func(ctx context.Context, w Wave, say func(text string)) error

	// Grounds returns the facts on which a refusal to change a target depends, as text that is only compared: its configuration
	// and that of its host. nil: every change is retried.
	Grounds func(ctx context.Context, target backends.Ref) (string, error)
	// Insist retries changes for which a VM was powered off without success, even if the facts that caused the refusal have not
	// changed.
	Insist bool

	Limits Limits
	Skip   []string // ids of changes to skip
	// Refused are logins that have failed already: those that the engine tests are added to them, and nothing else is done.
	Refused []plan.Refusal
	Sink    Sink
	Clock   func() time.Time // nil: time.Now
	// Notices are sentences that are reported to the views, such as that vCenter does not answer; may be nil.
	Notices <-chan string

	// Stop is closed when the operator wants no new operations: running ones finish and open brackets are closed. If the context
	// ends too, nothing more is waited for.
	Stop <-chan struct{}

	// VCenter is the instance UUID of the current vCenter and Answers the text of the current answers; if set, Resume refuses a
	// journal with others.
	VCenter string
	Answers string

	// Remote passes on requests of operators during the run; may be nil.
	Remote *Remote
}

// A Wave is the next set of targets to go out of service, a host with the VMs that are off for it or VMs that are off together, and
// the hosts and VMs that the run has returned to service. Earlier are VMs that earlier attempts have powered on and that may not
// have been proven yet.
type Wave struct{ Next, Back, Earlier []backends.Ref }

// Limits bound a run. Zero fields mean the defaults.
type Limits struct {
	Parallel int // simultaneous operations that load shared systems (vCenter), each with one target or one SetMany: 16
	// Apart bounds operations that load only their own machine and mostly wait for it (guests, VMs that start). If Parallel is 1, all
	// operations run one at a time.
	Apart int
	// Finish continues a guest that has a change before another one is begun. VMs may be off for longer then: it is for twins, whose
	// guests are more than the connections that stay open.
	Finish    bool
	VMsOff    int // VMs that the run keeps off at the same time: no limit
	HostsDown int // hosts in maintenance mode or rebooting at the same time (max_unavailable): 1
	// Time limits. Grace is for a call to return after its limit or the end of its context. Operation bounds one change, with its
	// reads; zero: only the setter's own limit.
	Operation time.Duration
	// Until is the end of the window: no wave of hosts or VMs starts that cannot be finished and undone by then. Zero: no end.
	Until   time.Time
	Bracket time.Duration // opening or closing a bracket without a reboot: 30 min
	Reboot  time.Duration // opening or closing one with a reboot: 30 min
	Grace   time.Duration // 10 s
	Speak   time.Duration // a run that says nothing for this time names what it waits for: 10 s
	// PutBack is the time to close what the test of logins has left open after the operator has ended the program at a prompt: 700
	// ms.
	PutBack time.Duration
}

func (l Limits) withDefaults() Limits {
	l.Parallel = cmp.Or(max(l.Parallel, 0), 16)
	l.Apart = cmp.Or(max(l.Apart, 0), backends.Apart(l.Parallel))
	l.HostsDown = cmp.Or(max(l.HostsDown, 0), 1)
	l.Bracket = cmp.Or(max(l.Bracket, 0), 30*time.Minute)
	l.Reboot = cmp.Or(max(l.Reboot, 0), 30*time.Minute)
	l.Grace = cmp.Or(max(l.Grace, 0), 10*time.Second)
	l.Speak = cmp.Or(max(l.Speak, 0), 10*time.Second)
	l.PutBack = cmp.Or(max(l.PutBack, 0), 700*time.Millisecond)
	return l
}

// NodeState is the result of a node.
type NodeState string

// The states of a node at the end of a run.
const (
	NodeDone    NodeState = "done"
	NodeSkipped NodeState = "skipped" // it already had the value, or it is in Skip
	NodeFailed  NodeState = "failed"
	NodeBlocked NodeState = "blocked" // a dependency failed
	NodePending NodeState = "pending" // not tried: the run was stopped, or its value is not known yet
)

// Word returns the word for a state in all texts.
func (s NodeState) Word() string {
	switch s {
	case NodeSkipped:
		return "already set"
	case NodeBlocked, NodePending:
		return "not tried"
	}
	return string(s)
}

// Tally counts changes by how they ended, in the words of all texts.
func Tally(n map[NodeState]int) string {
	return fmt.Sprintf("%d %s, %d %s, %d %s, %d %s", n[NodeDone], NodeDone.Word(), n[NodeSkipped], NodeSkipped.Word(),
		n[NodeFailed], NodeFailed.Word(), n[NodeBlocked]+n[NodePending], NodeBlocked.Word())
}

// A NodeResult is a change, or the opening or closing of a bracket, with its result.
type NodeResult struct {
	ID      string
	Target  backends.Ref
	Title   string       // what was done, for display
	Change  *plan.Change // nil for a bracket
	State   NodeState
	Prior   *backends.Value // as read before the operation; nil: not read
	Found   *backends.Value // as read after the operation; nil: not read
	Err     error
	Elapsed time.Duration
}

// A Result is how a run ended.
type Result struct {
	Run     string
	Status  Status
	Nodes   []NodeResult  // in the order in which they ended; a node of several attempts is listed once, with its last result
	Differs []plan.Change // what the last plan would still change
	// Conflicts are the targets that the last plan of a rollback does not change, because someone else has changed them.
	Conflicts []plan.Refusal
	// Reread means that Job.Replan has read the world after the last change: it saw the final state.
	Reread bool
	Notes  []string
	// Journal is the content of the run's journal at the end, as in its file; nil: unknown, as the file was changed from outside, or
	// the run ended before its first operation.
	Journal *journal.State
}

// Exit returns the exit code of the command.
func (s Status) Exit() int {
	switch s {
	case StatusDone, StatusUnchanged:
		return 0
	case StatusPartial:
		return 5
	case StatusInterrupted:
		return 130
	}
	return 1
}

// EventType is the type of an Event.
type EventType string

// The events of a run, in the order in which they can occur. Every node (a change, the opening and the closing of a bracket) has
// one start and one end, with progress in between.
const (
	EventPlanned  EventType = "planned"  // a stage begins: Nodes lists everything that will be done
	EventStarted  EventType = "started"  // a node begins
	EventProgress EventType = "progress" // Percent changed, or Text says what the node waits for
	EventDone     EventType = "done"     // the node is done and read back
	EventSkipped  EventType = "skipped"  // nothing to do: it already has the requested value, or --skip
	EventFailed   EventType = "failed"   // Err says why
	EventBlocked  EventType = "blocked"  // not tried, because a dependency failed
	EventAgain    EventType = "again"    // a node that was started, failed or blocked will be tried again
	EventWaiting  EventType = "waiting"  // Title on the target named Waits is not done yet; Text says since when and for how long at most
	EventControl  EventType = "control"  // an operator paused or continued the run, or skipped or retried a target; Text says what happens
	EventForecast EventType = "forecast" // Left is the estimated remaining time of the stage
	EventStopping EventType = "stopping" // cancelled: running nodes are being finished
	EventResult   EventType = "result"   // last event of a run
)

// An Event reports a step of a run to the views, whose state derives only from events.
type Event struct {
	Type    EventType          `json:"event"`
	Time    time.Time          `json:"time"`
	Node    string             `json:"node,omitempty"` // id of the change or bracket
	Target  backends.Ref       `json:"target,omitzero"`
	Title   string             `json:"title,omitempty"` // what is being done, for display
	Percent int                `json:"percent,omitempty"`
	Text    string             `json:"text,omitempty"`
	Err     string             `json:"error,omitempty"`
	Hint    string             `json:"hint,omitempty"`
	ErrKind backends.ErrorKind `json:"error_kind,omitempty"`
	Prior   *backends.Value    `json:"prior,omitempty"`
	Found   *backends.Value    `json:"found,omitempty"`
	Elapsed time.Duration      `json:"elapsed,omitempty"` // nanoseconds
	Nodes   []NodeInfo         `json:"nodes,omitempty"`
	// EventPlanned only: an attempt begins, either the run itself or its resume or rollback
	First   bool          `json:"first,omitempty"`
	Run     string        `json:"run,omitempty"`
	Status  Status        `json:"status,omitempty"`  // EventResult only
	Waits   string        `json:"waits,omitempty"`   // EventWaiting only
	Control *Control      `json:"control,omitempty"` // EventControl only
	Left    time.Duration `json:"left,omitempty"`    // EventForecast only, nanoseconds
}

// A NodeInfo announces one node of a stage.
type NodeInfo struct {
	ID     string       `json:"id"`
	Target backends.Ref `json:"target"`
	Title  string       `json:"title"`
	Outage Outage       `json:"outage,omitempty"` // for a node that takes its target out of service or brings it back
	Canary bool         `json:"canary,omitempty"` // with Outage: the target goes first, and all others of its type wait for it
}

// Status is how a run ended.
type Status string

// The ends of a run.
const (
	StatusDone        Status = "done"        // every request is fulfilled
	StatusUnchanged   Status = "unchanged"   // there was nothing to do
	StatusPartial     Status = "partial"     // some targets failed; resume
	StatusFailed      Status = "failed"      // nothing was achieved
	StatusInterrupted Status = "interrupted" // stopped by the operator; resume
)

// A Sink receives events. It is never called concurrently and must not block for long.
type Sink func(Event)
