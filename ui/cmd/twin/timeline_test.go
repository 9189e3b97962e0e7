package twin_test

import (
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd/twin"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// Two hosts reboot one after the other, each with a VM that is off meanwhile; a third VM is only set up.
func TestTimeline(t *testing.T) {
	host, vm := backends.HostRef, backends.VMRef
	var events []engine.Event
	run := func(node string, target backends.Ref) {
		events = append(events, engine.Event{Type: engine.EventStarted, Node: node, Target: target}, engine.Event{Type: engine.EventDone, Node: node, Target: target})
	}
	for _, n := range []string{"1", "2"} {
		run("open vm/vm-"+n+"/vm-power", vm("vm-"+n))
		run("open host/esx-"+n+"/host-maintenance", host("esx-"+n))
		run("open host/esx-"+n+"/host-reboot", host("esx-"+n))
		run("host/esx-"+n+"/host-reboot", host("esx-"+n))
		run("host/esx-"+n+"/host-maintenance", host("esx-"+n))
		run("vm/vm-"+n+"/vm-power", vm("vm-"+n))
	}
	run("vm/vm-3/packages", vm("vm-3"))
	events = append(events, engine.Event{Type: engine.EventResult, Status: engine.StatusDone})
	got := twin.NewTimeline(events, nil, twin.Stated{Reboot: 10 * time.Minute, Evacuate: 5 * time.Minute, Shutdown: 30 * time.Second, Boot: time.Minute, Install: 2 * time.Minute, Other: time.Second})
	const each = 30 + 300 + 1 + 600 + 1 + 60
	if got.Window != 2*each || got.Worst() != each || got.Out["vm-1"] != each || got.Out["vm-2"] != each || got.Result != engine.StatusDone {
		t.Errorf("window %d, off %v, %s; want %d for each host", got.Window, got.Out, got.Result, each)
	}
	if last := got.Steps[len(got.Steps)-1]; last.Start != 0 || last.End != 120 {
		t.Errorf("the packages of vm-3 wait for nobody: %+v", last)
	}
	if lost := twin.NewTimeline(events[:10], nil, twin.Stated{Reboot: time.Minute, Other: time.Second}); lost.Out["vm-1"] != lost.Window || lost.Window == 0 {
		t.Errorf("a VM that does not come back is off until the end: %+v of %d", lost.Out, lost.Window)
	}
}
