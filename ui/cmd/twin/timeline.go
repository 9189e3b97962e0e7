package twin

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/image"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// Stated are durations at the site, which a twin cannot determine.
type Stated struct {
	Reboot   time.Duration // of a host, until vCenter is connected again
	Evacuate time.Duration // until a host is in maintenance mode
	Shutdown time.Duration // of a guest
	Boot     time.Duration // from power-on until the guest answers
	Install  time.Duration // of packages, drivers and components, on one host or guest
	Other    time.Duration // any other operation

	// Limits for a host to come back (run.reboot.timeout) and for a guest to answer: how long the run waits in vain. Zero: not known.
	RebootLimit, BootLimit time.Duration

	from map[string]string // where a time is from, by its flag; the operator states the others
}

// Measure takes durations from the history of the site, where the operator has not stated a time with its flag. took may be nil.
func (s *Stated) Measure(took *backends.Took, stated func(flag string) bool) {
	s.from = map[string]string{}
	if took == nil {
		took = &backends.Took{}
	}
	for flag, t := range map[string]struct {
		to  *time.Duration
		all []time.Duration
	}{"reboot": {&s.Reboot, took.Reboot}, "evacuate": {&s.Evacuate, took.Evacuate}, "shutdown": {&s.Shutdown, took.Shutdown}, "boot": {},
		"install": {}, "other": {}} {
		switch n := len(t.all); {
		case stated(flag):
		case n > 0:
			*t.to, s.from[flag] = backends.Median(t.all), fmt.Sprintf("measured: median of %d in the site's history", n)
		default:
			s.from[flag] = "assumed"
		}
	}
}

// of returns the duration of an operation by its id: "host/esx-01/host-reboot/2", "open vm/vm-01/vm-power".
func (s Stated) of(node string) time.Duration {
	id, opens := strings.CutPrefix(node, "open ")
	is := func(kinds ...string) bool {
		return slices.ContainsFunc(kinds, func(k string) bool { return strings.Contains(id+"/", "/"+k+"/") })
	}
	switch {
	case is(string(backends.BracketReboot)) && !opens:
		return s.Reboot
	case is(string(backends.BracketMaintenance), string(backends.BracketReboot)) && opens: // a host is emptied before its reboot, too
		return s.Evacuate
	case is(string(backends.BracketVMPower)) && opens:
		return s.Shutdown
	case is(string(backends.BracketVMPower)):
		return s.Boot
	case is("packages", "component", "build", "ofed", "driver"):
		return s.Install
	}
	return s.Other
}

// inVain returns the duration of an operation that fails: if it waits for a host or a guest that does not come back, its limit.
func (s Stated) inVain(e engine.Event) time.Duration {
	usual, closes := s.of(e.Node), !strings.HasPrefix(e.Node, "open ")
	switch {
	case e.ErrKind != backends.KindUnreachable || !closes:
	case strings.Contains(e.Node, "/"+string(backends.KindImageComponent)+"/"):
		return max(usual, image.RemediationLimit)
	case bracketed(e.Node, backends.BracketReboot):
		return max(usual, s.RebootLimit)
	case bracketed(e.Node, backends.BracketVMPower):
		return max(usual, s.BootLimit)
	}
	return usual
}

// bracketed reports whether a node opens or closes a bracket of one of the kinds: "host/esx-01/host-reboot/2", "open vm/vm-01/vm-power".
func bracketed(node string, kinds ...backends.BracketKind) bool {
	id := strings.TrimPrefix(node, "open ") + "/"
	return slices.ContainsFunc(kinds, func(k backends.BracketKind) bool { return strings.Contains(id, "/"+string(k)+"/") })
}

// Sources returns the durations with their origin.
func (s Stated) Sources() []string {
	var out []string
	for _, t := range []struct {
		flag, what string
		d          time.Duration
	}{{"reboot", "a host reboots", s.Reboot}, {"evacuate", "a host enters maintenance mode", s.Evacuate},
		{"shutdown", "a guest shuts down", s.Shutdown},
		{"boot", "a guest boots", s.Boot}, {"install", "packages, drivers and components are installed", s.Install},
		{"other", "any other operation", s.Other}} {
		out = append(out, t.what+": "+t.d.Round(time.Millisecond).String()+" ("+cmp.Or(s.from[t.flag], "stated")+")")
	}
	return out
}

// A Step is one operation of a rehearsed run. Times are seconds since its beginning, by the stated times.
type Step struct {
	ID     string `json:"id"`
	Target string `json:"target"`
	Start  int    `json:"start_s"`
	End    int    `json:"end_s"`

	title  string
	failed bool
}

// Title says what the step does.
func (s Step) Title() string { return s.title }

// Down reports whether a step is about a host or a VM that is out of service.
func (s Step) Down() bool {
	return bracketed(s.ID, backends.BracketReboot, backends.BracketMaintenance, backends.BracketVMPower)
}

// A Timeline is a rehearsed run.
type Timeline struct {
	Steps  []Step
	Failed []engine.Event
	Result engine.Status
	Window int               // seconds from the first step to the end of the last
	Out    map[string]int    // seconds that each VM is off, the longest time at a stretch
	Down   map[string][]Span // when each host and VM is out of service
	Lost   map[string]string // what is the matter with each host and VM that is out of service at the end: "still off"
}

// A Span is a time of a rehearsed run, in seconds since its beginning.
type Span struct{ From, To int }

// NewTimeline computes when each step of a run happens with the stated durations: the engine's own scheduler simulates the stages
// of the run on the twin again, with the limits of the site. What failed on the twin fails there too.
func NewTimeline(stages []plan.Plan, events []engine.Event, limits engine.Limits, s Stated) (Timeline, error) {
	t := Timeline{Steps: []Step{}, Out: map[string]int{}, Down: map[string][]Span{}, Lost: map[string]string{}}
	ended, vain, stage := map[string]engine.NodeState{}, map[string]time.Duration{}, 0
	on := map[string]bool{} // VMs that were powered on and failed afterwards
	at := func(stage int, node string) string { return fmt.Sprint(stage, " ", node) }
	for _, e := range events {
		switch e.Type {
		case engine.EventPlanned:
			if !e.First || stage == 0 { // the logins that the plan needs are tried before its first stage, as part of it
				stage++
			}
		case engine.EventSkipped:
			ended[at(stage, e.Node)] = engine.NodeSkipped
		case engine.EventFailed:
			ended[at(stage, e.Node)], vain[at(stage, e.Node)] = engine.NodeFailed, s.inVain(e)
			on[e.Node] = e.Found != nil && *e.Found == backends.ValueOf("poweredOn")
			t.Failed = append(t.Failed, e)
		case engine.EventResult:
			t.Result = e.Status
		}
	}
	again, err := engine.Forecast{Stages: stages, Limits: limits, Parent: merged, Took: func(stage int, node string) time.Duration {
		if d, failed := vain[at(stage, node)]; failed {
			return d
		}
		return s.of(node)
	}, Ended: func(stage int, node string) engine.NodeState {
		return cmp.Or(ended[at(stage, node)], engine.NodeDone)
	}}.Events()
	running, begin := map[string]int{}, time.Unix(0, 0)
	second := func(at time.Time) int { return int(at.Sub(begin).Round(time.Second).Seconds()) }
	for _, e := range again {
		switch e.Type {
		case engine.EventStarted:
			running[e.Node] = len(t.Steps)
			t.Steps = append(t.Steps, Step{ID: e.Node, Target: e.Target.Name, Start: second(e.Time), title: e.Title})
		case engine.EventDone, engine.EventSkipped, engine.EventFailed:
			if i, is := running[e.Node]; is {
				t.Steps[i].End, t.Steps[i].failed = second(e.Time), e.Type == engine.EventFailed
				delete(running, e.Node)
			}
		}
	}
	t.outages(on)
	return t, err
}

// merged returns the key under which settings are merged into one call, as in the product's setters: members of a switch, all
// hardware of a VM, an option or a firewall rule of many hosts.
func merged(s backends.Setting) string {
	switch {
	case s.Target.Type == backends.TypeVM:
		return s.Target.String()
	case s.Kind == backends.KindMember, s.Kind == backends.KindOption, s.Kind == backends.KindFirewall:
		return string(s.Kind) + " " + s.Name
	}
	return ""
}

// outages computes when targets are out of service: from the start of opening a bracket to the end of closing it. Targets that do
// not come back are out of service until the end; on contains the ids of the brackets whose VM is on then, with a guest that does not
// answer.
func (t *Timeline) outages(on map[string]bool) {
	open := map[string]Step{}
	down := func(s Step, to int) {
		t.Down[s.Target] = append(t.Down[s.Target], Span{s.Start, to})
		if strings.HasSuffix(s.ID, "/"+string(backends.BracketVMPower)) {
			t.Out[s.Target] = max(t.Out[s.Target], to-s.Start)
		}
	}
	for _, s := range t.Steps {
		t.Window = max(t.Window, s.End)
		if id, opens := strings.CutPrefix(s.ID, "open "); !s.Down() {
			continue
		} else if opens {
			open[id] = s
		} else if begun, is := open[id]; is && !s.failed {
			down(begun, s.End)
			delete(open, id)
		}
	}
	for id, s := range open {
		down(s, t.Window)
		switch {
		case on[id]:
			t.Lost[s.Target] = "its guest does not answer at the end"
		case bracketed(id, backends.BracketVMPower):
			t.Lost[s.Target] = "still off at the end"
		default:
			t.Lost[s.Target] = cmp.Or(t.Lost[s.Target], "not back at the end")
		}
	}
}

// Worst returns the longest time that a VM is off, in seconds.
func (t Timeline) Worst() int {
	return slices.Max(append(slices.Collect(maps.Values(t.Out)), 0))
}
