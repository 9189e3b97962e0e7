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
		p.Changes = append(p.Changes, plan.Change{Setting: backends.Setting{Target: vm, Kind: backends.KindMemory}, To: backends.ValueOf(backends.MemorySpec{Locked: true}), Within: []string{b.ID()}})
	}
	p.Changes = append(p.Changes, plan.Change{Setting: backends.Setting{Target: backends.GuestRef("vm-9"), Kind: backends.KindPackages, Name: "rdma"}, To: backends.ValueOf([]string{"rdma-core"})})
	return p
}

var stated = twin.Stated{Shutdown: 30 * time.Second, Boot: time.Minute, Install: 2 * time.Minute, Other: 5 * time.Second}

func TestTimeline(t *testing.T) {
	const each = 30 + 5 + 60
	for _, row := range []struct {
		off, window int
	}{{1, 4 * each}, {2, 2 * each}, {0, 2 * 60}} { // all at once: the packages take longest
		got, err := twin.NewTimeline([]plan.Plan{site(4)}, []engine.Event{{Type: engine.EventPlanned}, {Type: engine.EventResult, Status: engine.StatusDone}}, engine.Limits{VMsOff: row.off}, stated)
		if err != nil || got.Window != row.window || got.Worst() != each || len(got.Out) != 4 || got.Result != engine.StatusDone {
			t.Errorf("%d off at once: %v, window %d of %d, off %v, %s", row.off, err, got.Window, row.window, got.Out, got.Result)
		}
	}
}

// A VM that does not start on the twin is off until the end, and no other VM is powered off after it.
func TestTimelineOfAFailure(t *testing.T) {
	const lost = "vm/vm-2/vm-power"
	got, err := twin.NewTimeline([]plan.Plan{site(4)}, []engine.Event{{Type: engine.EventPlanned}, {Type: engine.EventFailed, Node: lost, Err: "it does not start"}}, engine.Limits{VMsOff: 1}, stated)
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
	for _, want := range []string{"window: 3m10s; expect 2m32s to 3m48s", "vm-1    #########################.........................  off for 1m35s", lost + ": it does not start", "a guest boots: 1m0s (stated)"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
	if err := r.HTML(&page); err != nil || !strings.Contains(page.String(), `left:0.00%;width:50.00%" title="out of service from 0s to 1m35s"`) || strings.Contains(page.String(), "ZgotmplZ") {
		t.Errorf("%v\n%s", err, &page)
	}
}

// Durations stated by the operator override the history of the site, which overrides the defaults.
func TestMeasure(t *testing.T) {
	s := twin.Stated{Reboot: time.Minute, Evacuate: time.Minute, Shutdown: time.Minute, Boot: 90 * time.Second, Install: time.Minute, Other: time.Second}
	s.Measure(&backends.Took{Reboot: []time.Duration{8 * time.Minute, 14 * time.Minute, 9 * time.Minute}, Shutdown: []time.Duration{time.Hour}},
		func(flag string) bool { return flag == "shutdown" || flag == "boot" })
	want := []string{"a host reboots: 9m0s (measured: median of 3 in the site's history)", "a host enters maintenance mode: 1m0s (assumed)",
		"a guest shuts down: 1m0s (stated)", "a guest boots: 1m30s (stated)", "packages, drivers and components are installed: 1m0s (assumed)",
		"any other operation: 1s (assumed)"}
	if got := s.Sources(); !slices.Equal(got, want) || s.Reboot != 9*time.Minute {
		t.Errorf("%q", got)
	}
}
