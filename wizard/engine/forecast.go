package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A Forecast estimates when the operations of a run would happen, given their durations. The stages, limits, waves, canaries and
// merges are those of a run, because the same scheduler decides; nothing is read or set, and no time passes.
type Forecast struct {
	Stages []plan.Plan // in the order in which they were planned
	Limits Limits
	// Took returns the duration of an operation in a stage, counted from 1, by the id of its node ("open vm/vm-01/vm-power",
	// "host/esx-01/option/Net.PVRDMAVmknic").
	Took func(stage int, node string) time.Duration
	// Ended returns how a node ends that is started in a stage, counted from 1: NodeDone, NodeSkipped or NodeFailed.
	Ended func(stage int, node string) NodeState
	// Parent returns the key under which a setting may be merged, as in backends.ManySetter; "" for none.
	Parent func(s backends.Setting) string
}

// Events returns the events of the forecast run without the result. Their times count from the beginning of 1970.
func (f Forecast) Events() ([]Event, error) {
	var events []Event
	v := &virtual{Forecast: f, at: time.Unix(0, 0)}
	job := Job{
		Setters: map[backends.Kind]backends.Setter{}, Brackets: map[backends.BracketKind]backends.Bracket{}, Limits: f.Limits,
		Clock: func() time.Time { return v.at }, Sink: func(e Event) { events = append(events, e) },
	}
	for _, p := range f.Stages {
		for _, c := range p.Changes {
			job.Setters[c.Kind] = v
		}
		for _, b := range p.Brackets {
			job.Brackets[b.Kind] = struct{ backends.Bracket }{}
		}
	}
	r := newRunner(job, journal.PhaseApply)
	r.virtual = v
	for i, p := range f.Stages {
		r.number, v.stage = i+1, i+1
		s, err := newStage(r, &p)
		if err != nil {
			return nil, err
		}
		s.run(context.Background())
		r.account(p, s)
		r.forget()
	}
	return events, nil
}

// virtual replaces the world and the clock in a forecast. It is a ManySetter so that the scheduler merges; neither its other methods
// nor those of the brackets are ever called.
type virtual struct {
	backends.ManySetter
	Forecast
	at    time.Time
	stage int
	queue []ending // sorted by time, then by start
}

// An ending is a started operation and its end time.
type ending struct {
	at time.Time
	m  message
}

// launch starts an operation: of several that are merged, the longest counts.
func (v *virtual) launch(m message) {
	took := time.Duration(0)
	for _, n := range m.nodes {
		o := outcome{state: v.Ended(v.stage, n.id), begun: true}
		if o.state == NodeFailed {
			o.err = errors.New("it failed on the twin")
		}
		m.outcomes = append(m.outcomes, o)
		if o.state != NodeSkipped {
			took = max(took, v.Took(v.stage, n.id))
		}
	}
	e := ending{v.at.Add(took), m}
	i := len(v.queue)
	for i > 0 && v.queue[i-1].at.After(e.at) {
		i--
	}
	v.queue = slices.Insert(v.queue, i, e)
}

func (v *virtual) next() message {
	e := v.queue[0]
	v.queue, v.at = v.queue[1:], e.at
	return e.m
}

// Parent returns the key of a merge; settings that are not merged have keys of their own.
func (v *virtual) Parent(s backends.Setting) string {
	if v.Forecast.Parent != nil {
		if key := v.Forecast.Parent(s); key != "" {
			return key
		}
	}
	return s.ID()
}
