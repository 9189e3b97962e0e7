package world_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// The log drops old argument lists that contain long scripts, but keeps events that changed the world.
func TestLogForgetsLongTexts(t *testing.T) {
	var l world.Log
	l.Note(world.Event{What: world.VMAdded, VM: "vm-01"})
	for i := range 200 {
		l.Note(world.Event{What: world.Process, VM: "vm-01", Detail: fmt.Sprint(i, strings.Repeat("x", 1<<20))})
	}
	size, last := 0, ""
	events := l.Events()
	for _, e := range events {
		if e.What == world.Process {
			size, last = size+len(e.Detail), e.Detail
		}
	}
	if size > 64<<20 || !strings.HasPrefix(last, "199x") || events[0].What != world.VMAdded {
		t.Errorf("%d MB of arguments, the first event %s, the last %.5s", size>>20, events[0].What, last)
	}
}

// Without its log of programs and calls, a world still logs what changes it.
func TestAWorldThatLogsNoPrograms(t *testing.T) {
	w, err := world.New(world.Options{Unlogged: true}, func(*world.State) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{world.Process, world.Call, world.FaultApplied} {
		w.Log.Note(world.Event{What: what})
	}
	if events := w.Log.Events(); len(events) != 1 || events[0].What != world.FaultApplied {
		t.Errorf("%+v", events)
	}
}
