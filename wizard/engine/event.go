package engine

import (
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// EventType says what happened.
type EventType string

// The events of a run, in the order in which they can come. Every node (a change, the opening and the closing of a
// bracket) has one start and one end; progress comes in between.
const (
	EventPlanned  EventType = "planned"  // a stage begins: Nodes lists everything that is going to be done
	EventStarted  EventType = "started"  // a node begins
	EventProgress EventType = "progress" // Percent moved, or Text says what it waits for
	EventDone     EventType = "done"     // the node is done and read back
	EventSkipped  EventType = "skipped"  // nothing to do: it already is what was requested, or --skip
	EventFailed   EventType = "failed"   // Err says why
	EventBlocked  EventType = "blocked"  // not tried, because what it waits for failed
	EventAgain    EventType = "again"    // a node that was begun, failed or not tried waits to be done again
	EventControl  EventType = "control"  // an operator paused or continued the run, or skipped or retries a target; Text says what becomes of it
	EventForecast EventType = "forecast" // Left is how long the stage is expected to take from now on
	EventStopping EventType = "stopping" // cancelled: running nodes are being finished
	EventResult   EventType = "result"   // last event of a run
)

// An Event is something that the engine tells its views. Views keep no other state than what events gave them.
type Event struct {
	Type    EventType          `json:"event"`
	Time    time.Time          `json:"time"`
	Node    string             `json:"node,omitempty"` // id of the change or bracket
	Target  backends.Ref       `json:"target,omitzero"`
	Title   string             `json:"title,omitempty"` // what is being done, in words
	Percent int                `json:"percent,omitempty"`
	Text    string             `json:"text,omitempty"`
	Err     string             `json:"error,omitempty"`
	Hint    string             `json:"hint,omitempty"`
	ErrKind backends.ErrorKind `json:"error_kind,omitempty"`
	Prior   *backends.Value    `json:"prior,omitempty"`
	Found   *backends.Value    `json:"found,omitempty"`
	Elapsed time.Duration      `json:"elapsed,omitempty"` // nanoseconds
	Nodes   []NodeInfo         `json:"nodes,omitempty"`
	First   bool               `json:"first,omitempty"` // EventPlanned only: an attempt begins, the run itself or a resume or rollback of it
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
	Outage Outage       `json:"outage,omitempty"` // of what takes its target out of service, or brings it back
	Canary bool         `json:"canary,omitempty"` // with Outage: the target goes first, and all others of its type wait for it
}

// Status is how a run ended.
type Status string

// The ends of a run.
const (
	StatusDone        Status = "done"        // everything asked for is so
	StatusUnchanged   Status = "unchanged"   // there was nothing to do
	StatusPartial     Status = "partial"     // some targets failed; resume
	StatusFailed      Status = "failed"      // nothing of what was planned was reached
	StatusInterrupted Status = "interrupted" // stopped by the operator; resume
)

// A Sink takes events. It is called from one goroutine at a time and must not block for long.
type Sink func(Event)
