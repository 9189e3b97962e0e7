package engine

import (
	"strconv"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// forecastEvery is how often a stage reports its estimated remaining time; a large stage does so less often, so that the
// computation takes at most a fiftieth of the time.
const forecastEvery = 5 * time.Second

// forecast reports the estimated remaining time of the stage when that is due.
func (s *stage) forecast() {
	if s.virtual != nil || s.job.Sink == nil || s.now().Before(s.nextForecast) || s.left == 0 {
		return
	}
	begun := time.Now()
	if left, err := s.remaining(); err == nil {
		s.emit(Event{Type: EventForecast, Left: left})
	}
	s.nextForecast = s.now().Add(max(forecastEvery, 50*time.Since(begun)))
}

// Expected returns how long the first stage of a plan is expected to take: the first estimate of a run that begins with it. Later stages
// are unknown until the run has replanned.
func Expected(job Job, p *plan.Plan) (time.Duration, error) {
	s, err := newStage(newRunner(job, journal.PhaseApply), p)
	if err != nil {
		return 0, err
	}
	return s.remaining()
}

// remaining simulates the rest of the stage: ended nodes take no time, running ones the rest of theirs.
func (s *stage) remaining() (time.Duration, error) {
	durations, parent := map[string]time.Duration{}, map[string]string{}
	keys := map[any]string{}
	for _, n := range s.nodes {
		if n.state == "" {
			durations[n.id] = s.expect(n)
			if n.running {
				durations[n.id] = max(0, durations[n.id]-s.now().Sub(n.started))
			}
		}
		if n.merge != nil {
			if keys[n.merge] == "" {
				keys[n.merge] = strconv.Itoa(len(keys) + 1)
			}
			parent[n.id] = keys[n.merge]
		}
	}
	limits := s.limits
	limits.Until = time.Time{}
	events, err := Forecast{
		Stages: s.plans, Limits: limits, Took: func(_ int, node string) time.Duration { return durations[node] },
		Ended: func(int, string) NodeState { return NodeDone }, Parent: func(c backends.Setting) string { return parent[c.ID()] },
	}.Events()
	if err != nil || len(events) == 0 {
		return 0, err
	}
	return events[len(events)-1].Time.Sub(events[0].Time), nil
}

// Outage is the effect of a node on the service of its target.
type Outage string

// The effects of opening and closing a bracket that takes a host or a VM out of service.
const (
	OutageBegins Outage = "begins"
	OutageEnds   Outage = "ends"
)

func (s *stage) infos() []NodeInfo {
	var out []NodeInfo
	canary := s.canaries()
	for _, n := range s.nodes {
		if s.deferred(n) {
			continue
		}
		i := NodeInfo{ID: n.id, Target: n.target, Title: n.title}
		if n.around.takesOut() {
			i.Canary, i.Outage = canary[n.target], OutageBegins
			if n.closes {
				i.Outage = OutageEnds
			}
		}
		out = append(out, i)
	}
	return out
}

func (b *bracket) takesOut() bool { return b != nil && (b.down() || b.outage()) }

// canaries are the host and the VM that go out of service first; all others of their type wait for them.
func (s *stage) canaries() map[backends.Ref]bool {
	waits := map[backends.Ref]map[backends.Ref]bool{}
	for _, n := range s.nodes {
		if n.closes || !n.around.takesOut() {
			continue
		}
		if waits[n.target] == nil {
			waits[n.target] = map[backends.Ref]bool{}
		}
		for _, ws := range [][]*node{n.waits, n.after} {
			for _, w := range ws {
				t := w.target
				if t.Type == backends.TypeGuest {
					t = backends.VMRef(t.Name)
				}
				waits[n.target][t] = true
			}
		}
	}
	out := map[backends.Ref]bool{}
	others, waiting := map[string]int{}, map[backends.Ref]int{}
	for t, on := range waits {
		others[string(t.Type)]++
		for c := range on {
			if c != t && c.Type == t.Type {
				waiting[c]++
			}
		}
	}
	for c, n := range waiting {
		out[c] = waits[c] != nil && n == others[string(c.Type)]-1
	}
	return out
}
