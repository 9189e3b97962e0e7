package twin

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// Stated says how long things take at the site. Whoever rehearses states it: a twin does not know.
type Stated struct {
	Reboot   time.Duration // of a host, until vCenter is connected again
	Evacuate time.Duration // until a host is in maintenance mode
	Shutdown time.Duration // of a guest
	Boot     time.Duration // from power-on until the guest answers
	Install  time.Duration // of packages, drivers and components, on one host or guest
	Other    time.Duration // any other operation
}

// of is the time of an operation by its id: "host/esx-01/host-reboot/2", "open vm/vm-01/vm-power".
func (s Stated) of(node string) time.Duration {
	id, opens := strings.CutPrefix(node, "open ")
	is := func(kinds ...string) bool {
		return slices.ContainsFunc(kinds, func(k string) bool { return strings.Contains(id+"/", "/"+k+"/") })
	}
	switch {
	case is(string(backends.BracketReboot)) && !opens:
		return s.Reboot
	case is(string(backends.BracketMaintenance)) && opens:
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

// A Step is one operation of a rehearsed run. Times are seconds since its beginning, by the stated times.
type Step struct {
	ID     string `json:"id"`
	Target string `json:"target"`
	Start  int    `json:"start_s"`
	End    int    `json:"end_s"`

	title string
}

// Title says what the step does.
func (s Step) Title() string { return s.title }

// Down tells whether a step is about a host or a VM that is out of service.
func (s Step) Down() bool {
	id := strings.TrimPrefix(s.ID, "open ") + "/"
	for _, k := range []backends.BracketKind{backends.BracketReboot, backends.BracketMaintenance, backends.BracketVMPower} {
		if strings.Contains(id, "/"+string(k)+"/") {
			return true
		}
	}
	return false
}

// A Timeline is a rehearsed run.
type Timeline struct {
	Steps  []Step
	Failed []engine.Event
	Result engine.Status
	Window int            // seconds from the first step to the end of the last
	Out    map[string]int // seconds that each VM is off, the longest time at a stretch
}

// NewTimeline works out when each step of a run happens where things take as long as stated. The run on the twin gives the order: a
// step begins when all are over that were over when it began there and that it can have waited for. Those are the steps of the same
// target, those of the switches, and where it takes something out of service, all that did so. after are the ids that the plan has a
// change wait for.
func NewTimeline(events []engine.Event, after map[string][]string, s Stated) Timeline {
	t := Timeline{Steps: []Step{}, Out: map[string]int{}}
	running, over := map[string]int{}, []int{}
	for _, e := range events {
		switch e.Type {
		case engine.EventStarted:
			step := Step{ID: e.Node, Target: e.Target.Name, title: e.Title}
			for _, i := range over {
				if p := t.Steps[i]; p.Target == step.Target || e.Target.Type == backends.TypeVM && shared(p.ID) || step.Down() && p.Down() || slices.Contains(after[e.Node], p.ID) {
					step.Start = max(step.Start, p.End)
				}
			}
			step.End = step.Start + int(s.of(e.Node).Round(time.Second).Seconds())
			running[e.Node] = len(t.Steps)
			t.Steps = append(t.Steps, step)
		case engine.EventDone, engine.EventSkipped, engine.EventFailed, engine.EventBlocked:
			if i, is := running[e.Node]; is {
				if e.Type == engine.EventSkipped {
					t.Steps[i].End = t.Steps[i].Start
				}
				over = append(over, i)
				delete(running, e.Node)
			}
			if e.Type == engine.EventFailed {
				t.Failed = append(t.Failed, e)
			}
		case engine.EventResult:
			t.Result = e.Status
		}
	}
	t.outages()
	return t
}

// shared tells whether a step is about a switch or a port group, which hosts and VMs wait for.
func shared(id string) bool {
	return strings.HasPrefix(id, "dvs/") || strings.HasPrefix(id, "portgroup/")
}

// outages works out how long each VM is off. A VM that does not come back is off until the end.
func (t *Timeline) outages() {
	off := map[string]int{}
	for _, s := range t.Steps {
		t.Window = max(t.Window, s.End)
		id, opens := strings.CutPrefix(s.ID, "open ")
		if !strings.Contains(id+"/", "/"+string(backends.BracketVMPower)+"/") {
			continue
		}
		if _, is := off[s.Target]; opens && !is {
			off[s.Target] = s.Start
		} else if since, is := off[s.Target]; !opens && is {
			t.Out[s.Target] = max(t.Out[s.Target], s.End-since)
			delete(off, s.Target)
		}
	}
	for vm, since := range off {
		t.Out[vm] = max(t.Out[vm], t.Window-since)
	}
}

// Worst is the longest time that a VM is off, in seconds.
func (t Timeline) Worst() int {
	worst := 0
	for _, out := range t.Out {
		worst = max(worst, out)
	}
	return worst
}

// Waits reads which ids each change of a plan waits for, out of what plan -o json prints.
func Waits(text []byte) (hash string, after map[string][]string, err error) {
	var doc struct {
		Hash    string `json:"hash"`
		Changes []struct {
			ID     string   `json:"id"`
			After  []string `json:"after"`
			Within []string `json:"within"`
		} `json:"changes"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return "", nil, err
	}
	after = map[string][]string{}
	for _, c := range doc.Changes {
		after[c.ID] = c.After
		for _, w := range c.Within {
			after[c.ID] = append(after[c.ID], "open "+w)
		}
	}
	return doc.Hash, after, nil
}
