package twin_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd/twin"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// site returns a plan for VMs that are powered off to change their memory, and a guest in which packages are installed.
func site(vms int) plan.Plan {
	var p plan.Plan
	for i := range vms {
		vm := backends.VMRef(fmt.Sprintf("vm-%d", i+1))
		b := plan.Bracket{Kind: backends.BracketVMPower, Target: vm, Effect: plan.VMPowerCycle}
		p.Brackets = append(p.Brackets, b)
		p.Changes = append(p.Changes, plan.Change{Setting: backends.Setting{Target: vm, Kind: backends.KindMemory},
			To: backends.ValueOf(backends.MemorySpec{Locked: true}), Within: []string{b.ID()}})
	}
	p.Changes = append(p.Changes, plan.Change{Setting: backends.Setting{Target: backends.GuestRef("vm-9"), Kind: backends.KindPackages,
		Name: "rdma"}, To: backends.ValueOf([]string{"rdma-core"})})
	return p
}

var stated = twin.Stated{Shutdown: 30 * time.Second, Boot: time.Minute, Install: 2 * time.Minute, Other: 5 * time.Second}

func TestTimeline(t *testing.T) {
	const each = 30 + 5 + 60
	for _, row := range []struct {
		off, window int
	}{{1, 4 * each}, {2, 2 * each}, {0, 2 * 60}} { // all at once: the packages take longest
		got, err := twin.NewTimeline([]plan.Plan{site(4)},
			[]engine.Event{{Type: engine.EventPlanned}, {Type: engine.EventResult, Status: engine.StatusDone}}, engine.Limits{VMsOff: row.off},
			stated)
		if err != nil || got.Window != row.window || got.Worst() != each || len(got.Out) != 4 || got.Result != engine.StatusDone {
			t.Errorf("%d off at once: %v, window %d of %d, off %v, %s", row.off, err, got.Window, row.window, got.Out, got.Result)
		}
	}
}

// A VM that does not start on the twin is off until the end, and no other VM is powered off after it.
func TestTimelineOfAFailure(t *testing.T) {
	const lost = "vm/vm-2/vm-power"
	got, err := twin.NewTimeline([]plan.Plan{site(4)},
		[]engine.Event{{Type: engine.EventPlanned}, {Type: engine.EventFailed, Node: lost, Err: "it does not start"}}, engine.Limits{VMsOff: 1},
		stated)
	if err != nil || len(got.Failed) != 1 || slices.ContainsFunc(got.Steps, func(s twin.Step) bool { return s.Target == "vm-3" }) {
		t.Fatalf("%v, failed %v: %+v", err, got.Failed, got.Steps)
	}
	if down := got.Down["vm-2"]; len(down) != 1 || down[0].To != 2*(30+5+60) || got.Window != down[0].To {
		t.Errorf("vm-2 is down %v of %d", down, got.Window)
	}
	r := twin.NewRehearsal(nil, stated.Sources())
	r.Take(got)
	var text, page bytes.Buffer
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"window: 3m10s; expect 2m32s to 3m48s", "vm-1    ##################.................  off for 1m35s",
		"off for 1m35s, still off at the end", "out of service at the end: vm-2", lost + ": it does not start", "a guest boots: 1m0s (stated)"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
	if err := r.HTML(&page); err != nil ||
		!strings.Contains(page.String(), `left:0.00%;width:50.00%" title="out of service from 0s to 1m35s"`) ||
		strings.Contains(page.String(), "ZgotmplZ") {
		t.Errorf("%v\n%s", err, &page)
	}
}

// A host that does not come back is waited for as long as the answers allow, and is out of service to the end, as is a VM that does not
// start. The first stage is announced twice if logins are tried first.
func TestTimelineOfWhatDoesNotComeBack(t *testing.T) {
	host, vm := backends.HostRef("esx-1"), backends.VMRef("vm-1")
	reboot := plan.Bracket{Kind: backends.BracketReboot, Target: host, Effect: plan.HostReboot}
	power := plan.Bracket{Kind: backends.BracketVMPower, Target: vm, Effect: plan.VMPowerCycle}
	p := plan.Plan{Brackets: []plan.Bracket{reboot, power}, Changes: []plan.Change{
		{Setting: backends.Setting{Target: host, Kind: backends.KindOption, Name: "a"}, To: backends.ValueOf("1"), Within: []string{reboot.ID()}},
		{Setting: backends.Setting{Target: vm, Kind: backends.KindMemory}, To: backends.ValueOf(backends.MemorySpec{Locked: true}),
			Within: []string{power.ID()}},
	}}
	times := stated
	times.Reboot, times.Evacuate, times.RebootLimit, times.BootLimit = 5*time.Minute, time.Minute, 30*time.Minute, 10*time.Minute
	planned := engine.Event{Type: engine.EventPlanned, First: true}
	on := backends.ValueOf("poweredOn")
	for _, row := range []struct {
		found  *backends.Value
		kind   backends.ErrorKind
		window int
		lost   string
	}{
		{nil, backends.KindPermanent, 60 + 5 + 30*60, "off for 31m5s, still off at the end"},
		{&on, backends.KindUnreachable, 60 + 5 + 30*60, "its guest does not answer at the end"},
	} {
		got, err := twin.NewTimeline([]plan.Plan{p}, []engine.Event{planned, planned,
			{Type: engine.EventFailed, Node: reboot.ID(), Err: "it has not come back", ErrKind: backends.KindUnreachable},
			{Type: engine.EventFailed, Node: power.ID(), Err: "it does not start", ErrKind: row.kind, Found: row.found},
		}, engine.Limits{}, times)
		if err != nil || got.Window != row.window {
			t.Fatalf("%v, window %d, want %d: %+v", err, got.Window, row.window, got.Steps)
		}
		for _, name := range []string{"esx-1", "vm-1"} {
			if down := got.Down[name]; len(down) != 1 || down[0].To != got.Window {
				t.Errorf("%s is down %v of %d", name, down, got.Window)
			}
		}
		r := twin.NewRehearsal(nil, nil)
		r.Take(got)
		chart := strings.Join(r.Chart(20), "\n")
		if !strings.Contains(chart, "not back at the end") || !strings.Contains(chart, row.lost) ||
			!slices.Equal(r.NotBack, []string{"esx-1", "vm-1"}) {
			t.Errorf("%q, want %q:\n%s", r.NotBack, row.lost, chart)
		}
	}
}

// So is the remediation of a host by its image, which includes the reboot.
func TestTimelineOfARemediationThatDoesNotEnd(t *testing.T) {
	c := plan.Change{Setting: backends.Setting{Target: backends.HostRef("esx-1"), Kind: backends.KindImageComponent,
		Name: "Mellanox-MFT-Tools"}, To: backends.ValueOf("4.28")}
	got, err := twin.NewTimeline([]plan.Plan{{Changes: []plan.Change{c}}}, []engine.Event{{Type: engine.EventPlanned},
		{Type: engine.EventFailed, Node: c.ID(), Err: "it has not ended", ErrKind: backends.KindUnreachable}}, engine.Limits{}, stated)
	if err != nil || got.Window != 90*60 {
		t.Errorf("%v, window %d", err, got.Window)
	}
}

// The text about the rollback gives the reason why the plan is not the same again.
func TestWhatTheRollbackLeaves(t *testing.T) {
	for want, r := range map[string]twin.Rehearsal{
		"done; the plan is the same again": {Rollback: "done", Restored: true},
		"partial; not everything is as before, because steps of the rollback failed\n": {Rollback: "partial", NotUndone: []string{"a"},
			Differs: []string{"b"}},
		"done; the plan is not the same as before: changes that it marks as irreversible": {Rollback: "done", Differs: []string{"a"}, Stay: 1},
		"done; the plan is not the same as before\n": {Rollback: "done", Differs: []string{"a", "b"},
			Stay: 1},
		"done; the plan has the same changes again, and describes some of them differently": {Rollback: "done"},
	} {
		var text bytes.Buffer
		if err := r.Text(&text); err != nil || !strings.Contains(text.String(), "rollback on the twin: "+want) {
			t.Errorf("%v, no %q in\n%s", err, want, &text)
		}
	}
}

// Durations stated by the operator override the history of the site, which overrides the defaults.
func TestMeasure(t *testing.T) {
	s := twin.Stated{Reboot: time.Minute, Evacuate: time.Minute, Shutdown: time.Minute, Boot: 90 * time.Second, Install: time.Minute,
		Other: time.Second}
	s.Measure(&backends.Took{Reboot: []time.Duration{8 * time.Minute, 14 * time.Minute, 9 * time.Minute},
		Shutdown: []time.Duration{time.Hour}},
		func(flag string) bool { return flag == "shutdown" || flag == "boot" })
	want := []string{"a host reboots: 9m0s (measured: median of 3 in the site's history)", "a host enters maintenance mode: 1m0s (assumed)",
		"a guest shuts down: 1m0s (stated)", "a guest boots: 1m30s (stated)", "packages, drivers and components are installed: 1m0s (assumed)",
		"any other operation: 1s (assumed)"}
	if got := s.Sources(); !slices.Equal(got, want) || s.Reboot != 9*time.Minute {
		t.Errorf("%q", got)
	}
}
