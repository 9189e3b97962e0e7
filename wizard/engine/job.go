package engine

import (
	"context"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A Job is everything that a run needs. Only Plan, Setters and Journal must be there; a plan without changes needs no
// journal.
type Job struct {
	Plan     plan.Plan
	Setters  map[backends.Kind]backends.Setter
	Brackets map[backends.BracketKind]backends.Bracket
	Journal  *journal.Journal

	// Replan reads the world again and plans again. It is asked at every stage boundary and at the end, where its plan
	// must be empty; Resume and Rollback cannot go without it.
	Replan func(ctx context.Context) (*plan.Plan, error)
	// Ceiling is what the operator consented to; zero: what the first plan holds.
	Ceiling plan.Ceiling
	// AskBeyond is asked before a later stage goes beyond the ceiling; what names the first thing beyond it. nil: no.
	AskBeyond func(ctx context.Context, what string, p plan.Plan) bool

	// Busy tells which targets somebody else is at work on, and who. It is asked before the first change of a stage, and
	// before a VM or host is taken out of service. nil: nobody is asked.
	Busy func(ctx context.Context, targets []backends.Ref) (map[backends.Ref]error, error)

	// Gate is asked before a wave goes out of service, and waits until it may: it says what it waits for, and gives an error when
	// that takes too long. It owns its time. nil: nobody is asked.
	Gate func(ctx context.Context, w Wave, say func(text string)) error

	// Grounds reads what a refusal to change a target rests on, as text that is only compared: its make and that of the host it
	// is on. nil: every change is tried again.
	Grounds func(ctx context.Context, target backends.Ref) (string, error)
	// Insist tries changes again for which a VM was powered off in vain, though what the refusal rests on is as it was.
	Insist bool

	Limits Limits
	Skip   []string // ids of changes to leave alone
	// Refused are log-ins that have failed already: those that the engine proves are added to them, and nothing else is done.
	Refused []plan.Refusal
	Sink    Sink
	Clock   func() time.Time // nil: time.Now

	// Stop is closed when the operator wants no new operations: running ones finish and open brackets are closed. When the
	// context ends as well, nothing more is waited for.
	Stop <-chan struct{}

	// VCenter is the instance UUID of the vCenter in use and Answers the text of the answers in use; where given, Resume
	// refuses a journal of others.
	VCenter string
	Answers string

	// Remote brings what operators ask for while the run goes on; nil: nothing.
	Remote *Remote
}

// A Wave is what goes out of service next, a host with the VMs that are off for it or VMs that are off together, and the hosts
// and VMs that the run has brought back. Earlier are VMs that attempts before have switched on again and nobody may have proven.
type Wave struct{ Next, Back, Earlier []backends.Ref }

// Limits bound a run. Zero fields take the defaults.
type Limits struct {
	Parallel int // operations at the same time that load what all share (vCenter), each with one target or one SetMany: 16
	// Apart bounds those that load only a machine of their own and mostly wait for it (guests, VMs that start): 8 x
	// Parallel. With Parallel 1 all take turns.
	Apart     int
	VMsOff    int // VMs that are off at the same time because of the run: no limit
	HostsDown int // hosts in maintenance or rebooting at the same time (max_unavailable): 1
	// Times. Grace is for a call to return after its time or its context has ended.
	// Operation bounds one change, with its reads; zero: the setter alone knows how long it may take.
	Operation time.Duration
	// Until is the end of the window: no wave of hosts or VMs starts that cannot be finished and undone by then. Zero: no end.
	Until   time.Time
	Bracket time.Duration // opening or closing a bracket without a reboot: 30 min
	Reboot  time.Duration // opening or closing one with a reboot: 30 min
	Grace   time.Duration // 10 s
	// PutBack is for closing what the proof of log-ins has left open once the operator has ended the program at a question: 700 ms.
	PutBack time.Duration
}

func (l Limits) withDefaults() Limits {
	if l.Parallel <= 0 {
		l.Parallel = 16
	}
	if l.Apart <= 0 {
		l.Apart = 8 * l.Parallel
	}
	if l.HostsDown <= 0 {
		l.HostsDown = 1
	}
	for _, d := range []struct {
		limit *time.Duration
		then  time.Duration
	}{{&l.Bracket, 30 * time.Minute}, {&l.Reboot, 30 * time.Minute}, {&l.Grace, 10 * time.Second}, {&l.PutBack, 700 * time.Millisecond}} {
		if *d.limit <= 0 {
			*d.limit = d.then
		}
	}
	return l
}

// NodeState is what became of a node.
type NodeState string

// The states of a node at the end of a run.
const (
	NodeDone    NodeState = "done"
	NodeSkipped NodeState = "skipped" // it was already so, or Skip names it
	NodeFailed  NodeState = "failed"
	NodeBlocked NodeState = "blocked" // what it waits for failed
	NodePending NodeState = "pending" // not tried: the run was stopped, or its value is not known yet
)

// A NodeResult is a change, or the opening or closing of a bracket, and what became of it.
type NodeResult struct {
	ID      string
	Target  backends.Ref
	Title   string       // what was done, in words
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
	Nodes   []NodeResult  // in the order in which they were settled; a node of several attempts stands once, as it ended
	Differs []plan.Change // what the last plan would still change
	// Conflicts are the targets that the last plan of a rollback leaves alone, because somebody else has changed them.
	Conflicts []plan.Refusal
	// Reread tells that Job.Replan has read the world after the last change: what it saw is how the run has left it.
	Reread bool
	Notes  []string
}

// Exit is the exit code of CLI.md.
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
