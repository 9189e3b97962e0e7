package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// TestOutageIsNotRepeated: a VM was powered off for a change that was refused because of the VM's configuration. A resume powers it
// off again only if that configuration has changed since, if the operator insists, or if the failure was transient. In every case
// the change would succeed by now.
func TestOutageIsNotRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		lasting bool
		now     string // state on which the refusal depends when the run is resumed
		unread  bool
		wanted  int // value in the answers by then
		insist  bool
		again   bool // the VM is powered off again
	}{
		"the same as before":           {lasting: true, now: "vmx-13", wanted: 1},
		"the VM was upgraded":          {lasting: true, now: "vmx-14", wanted: 1, again: true},
		"something else is wanted":     {lasting: true, now: "vmx-13", wanted: 2, again: true},
		"the operator insists":         {lasting: true, now: "vmx-13", wanted: 1, insist: true, again: true},
		"it cannot be read":            {lasting: true, unread: true, wanted: 1, again: true},
		"the failure was of that time": {now: "vmx-13", wanted: 1, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWorld()
			vm := backends.VMRef("vm-01")
			memory := setting(vm, backends.KindMemory, "")
			wanting := func(n int) plan.Plan {
				b := plan.Bracket{Kind: backends.BracketVMPower, Target: vm, Effect: plan.VMPowerCycle}
				return plan.Plan{Brackets: []plan.Bracket{b}, Changes: []plan.Change{change(memory, backends.Absent, val(n), b.ID())}}
			}
			w.Fault = func(call Call) error {
				if call.Verb == "set" || call.Verb == "setmany" {
					return &backends.Error{Kind: backends.KindPermanent, Target: vm.Name, What: "it is refused", Hint: "Fix it.", Lasting: c.lasting}
				}
				return nil
			}
			jb, _ := planned(t, w, wanting(1))
			is := "vmx-13"
			jb.Grounds = func(context.Context, backends.Ref) (string, error) {
				if is == "" {
					return "", errors.New("no answer")
				}
				return is, nil
			}
			if res, err := engine.Run(t.Context(), jb); err != nil || res.Status == engine.StatusDone {
				t.Fatalf("%s, %v", res.Status, err)
			}
			if is = c.now; c.unread {
				is = ""
			}
			w.Fault, jb.Insist = nil, c.insist
			before := len(w.Calls())
			next := wanting(c.wanted)
			jb.Replan = func(context.Context) (*plan.Plan, error) {
				if w.Value(memory) == val(c.wanted) {
					return &plan.Plan{}, nil
				}
				return &next, nil
			}
			res, err := engine.Resume(t.Context(), jb)
			if err != nil {
				t.Fatal(err)
			}
			off := slices.ContainsFunc(w.Calls()[before:], func(call Call) bool { return call.Verb == "open" })
			if off != c.again || (res.Status == engine.StatusDone) != c.again {
				t.Errorf("powered off again: %t, %s: %v", off, res.Status, states(res))
			}
			if c.again {
				return
			}
			failed := node(t, res, memory.ID()).Err
			if failed == nil || backends.KindOf(failed) != backends.KindRefused {
				t.Fatalf("%v", failed)
			}
			for _, want := range []string{"not powered off again", "(vmx-13)", "it is refused", "--insist"} {
				if text := failed.Error() + "; " + backends.HintOf(failed); !strings.Contains(text, want) {
					t.Errorf("%q does not say %q", text, want)
				}
			}
		})
	}
}
