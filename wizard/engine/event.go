package engine

import (
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

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
	First   bool               `json:"first,omitempty"` // EventPlanned only: an attempt begins, either the run itself or its resume or rollback
	Run     string             `json:"run,omitempty"`
	Status  Status             `json:"status,omitempty"`  // EventResult only
	Control *Control           `json:"control,omitempty"` // EventControl only
	Left    time.Duration      `json:"left,omitempty"`    // EventForecast only, nanoseconds
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
