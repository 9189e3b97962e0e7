package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// nested is a plan in which each host's VM is off while the host reboots and gets an adapter after that.
func nested(hosts int) plan.Plan {
	var p plan.Plan
	for i := range hosts {
		h, v := backends.HostRef(fmt.Sprintf("esx-%02d", i+1)), backends.VMRef(fmt.Sprintf("vm-%02d", i+1))
		reboot := plan.Bracket{Kind: backends.BracketReboot, Target: h}
		power := plan.Bracket{Kind: backends.BracketVMPower, Target: v, Leave: backends.ValueOf("on"), Around: []string{reboot.ID()}}
		p.Brackets = append(p.Brackets, power, reboot)
		adapter := change(setting(v, backends.KindAdapter, "RDMA-PG"), backends.Absent, val("vf"), power.ID())
		adapter.After = []string{reboot.ID()}
		p.Changes = append(p.Changes, adapter, change(setting(h, KindFirmware, "SRIOV_EN"), backends.Absent, val(1), reboot.ID()))
	}
	return p
}

func TestBracketAroundReboots(t *testing.T) {
	for _, c := range []struct{ hosts, most int }{{3, 1}, {4, 2}} {
		w := NewWorld()
		jb, _ := planned(t, w, nested(c.hosts))
		jb.Limits.HostsDown = c.most
		res, err := engine.Run(t.Context(), jb)
		if err != nil || res.Status != engine.StatusDone {
			t.Fatalf("%s, %v: %v", res.Status, err, states(res))
		}
		off, most := map[string]bool{}, 0
		back := map[string]bool{}
		for _, call := range w.Calls("open", "close", "set") {
			switch target := call.Setting.Target; {
			case target.Type == backends.TypeHost && call.Verb == "open" && !off["vm-"+target.Name[4:]]:
				t.Errorf("%s goes down while its VM runs", target.Name)
			case target.Type == backends.TypeHost && call.Verb == "close":
				back[target.Name] = true
			case target.Type == backends.TypeVM && call.Verb == "open":
				off[target.Name] = true
				most = max(most, len(off))
			case target.Type == backends.TypeVM && call.Verb == "set" && !back["esx-"+target.Name[3:]]:
				t.Errorf("%s gets its adapter before its host is back", target.Name)
			case target.Type == backends.TypeVM && call.Verb == "close":
				delete(off, target.Name)
			}
		}
		if most > c.most {
			t.Errorf("%d VMs are off at once for hosts of which %d may be down", most, c.most)
		}
	}
}

func TestBracketAroundNothingIsNotOpened(t *testing.T) {
	h, v := backends.HostRef("esx-01"), backends.VMRef("bystander")
	firmware := setting(h, KindFirmware, "SRIOV_EN")
	reboot := plan.Bracket{Kind: backends.BracketReboot, Target: h}
	power := plan.Bracket{Kind: backends.BracketVMPower, Target: v, Leave: backends.ValueOf("on"), Around: []string{reboot.ID()}}
	for name, to := range map[string]backends.Value{"put off": backends.Unknown("later"), "wanted": val(1)} {
		w := NewWorld()
		jb, _ := planned(t, w, plan.Plan{
			Changes:  []plan.Change{change(firmware, backends.Absent, to, reboot.ID())},
			Brackets: []plan.Bracket{power, reboot},
		})
		if _, err := engine.Run(t.Context(), jb); err != nil {
			t.Fatal(err)
		}
		opened := slices.ContainsFunc(w.Calls("open"), func(c Call) bool { return c.Setting.Target == v })
		if opened != to.Known() {
			t.Errorf("%s: the VM was shut down: %t", name, opened)
		}
	}
}

func TestVMThatDoesNotComeBackStopsTheWave(t *testing.T) {
	w := NewWorld()
	jb, _ := planned(t, w, nested(3))
	w.Fault = func(c Call) error {
		if c.Verb == "close" && c.Setting.Target == backends.VMRef("vm-01") {
			return backends.Errorf(backends.KindPermanent, "vm-01", "", "no VF is free")
		}
		return nil
	}
	res, err := engine.Run(t.Context(), jb)
	if err != nil || res.Status != engine.StatusPartial {
		t.Fatalf("%s, %v", res.Status, err)
	}
	for _, c := range w.Calls("open") {
		if name := c.Setting.Target.Name; name != "vm-01" && name != "esx-01" {
			t.Errorf("%s was touched after vm-01 had failed", name)
		}
	}
}

func TestHostThatComesBackBrokenStopsTheWave(t *testing.T) {
	w := NewWorld()
	var p plan.Plan
	for i := range 3 {
		h := backends.HostRef(fmt.Sprintf("esx-%02d", i+1))
		reboot := plan.Bracket{Kind: backends.BracketReboot, Target: h}
		proof := change(setting(h, backends.KindOption, "proof"), backends.Absent, val(8))
		proof.After = []string{reboot.ID()}
		p.Brackets = append(p.Brackets, reboot)
		p.Changes = append(p.Changes, change(setting(h, KindFirmware, "SRIOV_EN"), backends.Absent, val(1), reboot.ID()), proof)
	}
	jb, _ := planned(t, w, p)
	w.Fault = failing("host/esx-01/option/proof", backends.KindPermanent)
	if res, err := engine.Run(t.Context(), jb); err != nil || res.Status != engine.StatusPartial {
		t.Fatalf("%s, %v", res.Status, err)
	}
	for _, c := range w.Calls("open") {
		if c.Setting.Target != backends.HostRef("esx-01") {
			t.Errorf("%s went down after esx-01 had come back without its VFs", c.Setting.Target.Name)
		}
	}
}

// If two hosts may be down at a time, the second reboot of a host does not delay the reboots of other hosts.
func TestSecondRebootOfAHostDoesNotDelayOthers(t *testing.T) {
	w := NewWorld()
	first, other := backends.HostRef("esx-01"), backends.HostRef("esx-02")
	once := plan.Bracket{Kind: backends.BracketReboot, Target: first}
	twice := plan.Bracket{Kind: backends.BracketReboot, Target: first, Round: 2, After: []string{once.ID()}}
	late := change(setting(backends.HostRef("esx-03"), backends.KindOption, "late"), backends.Absent, val(1))
	another := plan.Bracket{Kind: backends.BracketReboot, Target: other, After: []string{late.ID()}}
	again := change(setting(first, KindFirmware, "NUM_OF_VFS"), backends.Absent, val(1), twice.ID())
	jb, _ := planned(t, w, plan.Plan{
		Brackets: []plan.Bracket{once, twice, another},
		Changes: []plan.Change{late, again, change(setting(first, KindFirmware, "SRIOV_EN"), backends.Absent, val(1), once.ID()),
			change(setting(other, KindFirmware, "SRIOV_EN"), backends.Absent, val(1), another.ID())},
	})
	jb.Limits = engine.Limits{HostsDown: 2, Parallel: 4}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	down, opened := make(chan struct{}), make(chan struct{})
	wait := func(c chan struct{}) {
		select {
		case <-c:
		case <-ctx.Done():
		}
	}
	w.Before = func(_ context.Context, c Call) {
		switch {
		case c.Verb == "open" && c.Setting.Target == other:
			close(opened)
		case c.Verb == "set" && c.Setting.ID() == late.ID():
			wait(down)
		case c.Verb == "set" && c.Setting.ID() == again.ID():
			close(down)
			wait(opened)
		}
	}
	if res, err := engine.Run(ctx, jb); err != nil || res.Status != engine.StatusDone {
		t.Fatalf("%s, %v: %v", res.Status, err, states(res))
	}
}

func TestRebootThatWasSentTakesNoNewBody(t *testing.T) {
	w := NewWorld()
	h := backends.HostRef("esx-01")
	tools, firmware := setting(h, backends.KindOption, "mft"), setting(h, KindFirmware, "SRIOV_EN")
	wishes := []Wish{
		{Setting: tools, To: val("4.28"), Within: []backends.BracketKind{backends.BracketReboot}},
		{Setting: firmware, To: val(1), Until: tools.ID(), Within: []backends.BracketKind{backends.BracketReboot}},
	}
	jb, j := fresh(t, w, wishes)
	w.Fault = func(c Call) error {
		if c.Verb == "close" {
			return backends.Errorf(backends.KindUnreachable, "esx-01", "", "it has not come back")
		}
		return nil
	}
	if res, err := engine.Run(t.Context(), jb); err != nil || res.Status != engine.StatusPartial {
		t.Fatalf("%s, %v", res.Status, err)
	}
	w.Fault = nil
	again := job(w, wishes, j)
	before := len(w.Calls("close"))
	if res, err := engine.Resume(t.Context(), again); err != nil || res.Status != engine.StatusDone {
		t.Fatalf("%s, %v: %v", res.Status, err, states(res))
	}
	// The reboot that the change waited for, and another one for the later value.
	if n := len(w.Calls("close")) - before; n != 2 || w.Snapshot()[firmware.ID()] != "1" {
		t.Errorf("%d reboots, %v", n, w.Snapshot())
	}
}

// rebooted is a bracket around hosts that are rebooted while the bracket is open.
type rebooted struct{ backends.Bracket }

func (rebooted) Happened(context.Context, backends.Ref, backends.Value) (bool, error) {
	return true, nil
}

func TestHostThatRebootedWithinItsBracketRebootsAgain(t *testing.T) {
	for _, before := range []bool{false, true} {
		w := NewWorld()
		h := backends.HostRef("esx-01")
		tools, firmware := setting(h, backends.KindOption, "mft"), setting(h, KindFirmware, "SRIOV_EN")
		wishes := []Wish{
			{Setting: tools, To: val("4.28"), Within: []backends.BracketKind{backends.BracketReboot}},
			{Setting: firmware, To: val(1), Until: tools.ID(), Within: []backends.BracketKind{backends.BracketReboot}},
		}
		jb, j := fresh(t, w, wishes)
		ctx, cancel := context.WithCancel(t.Context())
		w.Fault = func(c Call) error {
			if c.Verb == "set" {
				cancel()
			}
			return nil
		}
		if res, err := engine.Run(ctx, jb); err != nil || res.Status == engine.StatusDone {
			t.Fatalf("%s, %v", res.Status, err)
		}
		w.Fault = nil
		again, want := job(w, wishes, j), 1
		if before {
			again.Brackets[backends.BracketReboot], want = rebooted{again.Brackets[backends.BracketReboot]}, 2
		}
		closed := len(w.Calls("close"))
		if res, err := engine.Resume(t.Context(), again); err != nil || res.Status != engine.StatusDone {
			t.Fatalf("%s, %v: %v", res.Status, err, states(res))
		}
		// A value that is set now waits for another reboot if the host has rebooted already.
		if n := len(w.Calls("close")) - closed; n != want || w.Snapshot()[firmware.ID()] != "1" {
			t.Errorf("rebooted before %v: closed %d times, want %d; %v", before, n, want, w.Snapshot())
		}
	}
}

func TestLateValueFollowsFromWhatIsRead(t *testing.T) {
	h := backends.HostRef("esx-01")
	card := setting(h, backends.KindFirmware, "0000:3b:00.0")
	want := backends.ValueOf(map[string]string{"SRIOV_EN": "1", "NUM_OF_VFS": "9", "LINK_TYPE_P2": "2"})
	for name, c := range map[string]struct{ is, then map[string]string }{
		"raised": {map[string]string{"SRIOV_EN": "0", "NUM_OF_VFS": "8", "LINK_TYPE_P2": "1"},
			map[string]string{"SRIOV_EN": "1", "NUM_OF_VFS": "9", "LINK_TYPE_P2": "2"}},
		"64 is never lowered": {map[string]string{"SRIOV_EN": "0", "NUM_OF_VFS": "64"}, map[string]string{"SRIOV_EN": "1", "NUM_OF_VFS": "64"}},
	} {
		w := NewWorld()
		w.Put(card, backends.ValueOf(c.is))
		late := change(card, backends.Unknown("it is read"), backends.Unknown("it is read"))
		late.Late = want
		jb, j := planned(t, w, plan.Plan{Changes: []plan.Change{late}})
		res, err := engine.Run(t.Context(), jb)
		if err != nil || res.Status != engine.StatusDone {
			t.Fatalf("%s: %s, %v: %v", name, res.Status, err, states(res))
		}
		if got := w.Snapshot()["pending "+card.ID()]; got != backends.ValueOf(c.then).String() {
			t.Errorf("%s: %s", name, got)
		}
		if p := engine.Priors(j.State()); len(p) != 1 || p[0].Prior != backends.ValueOf(c.is) {
			t.Errorf("%s: priors %v", name, p)
		}
	}
}

func TestFirmwareIsSetInTheWaveOfItsHost(t *testing.T) {
	var p plan.Plan
	for i := range 3 {
		h := backends.HostRef(fmt.Sprintf("esx-%02d", i+1))
		ssh := plan.Bracket{Kind: backends.BracketSSH, Target: h}
		firmware := change(setting(h, KindFirmware, "SRIOV_EN"), backends.Absent, val(1), ssh.ID())
		p.Brackets = append(p.Brackets, ssh, plan.Bracket{Kind: backends.BracketReboot, Target: h, After: []string{firmware.ID()}})
		p.Changes = append(p.Changes, firmware)
	}
	for _, broken := range []bool{false, true} {
		w := NewWorld()
		jb, _ := planned(t, w, p)
		jb.Brackets[backends.BracketSSH] = jb.Brackets[backends.BracketVMPower]
		if broken {
			w.Fault = failing("host/esx-01/firmware/SRIOV_EN", backends.KindAuth)
		}
		if _, err := engine.Run(t.Context(), jb); err != nil {
			t.Fatal(err)
		}
		set, down := 0, 0
		for _, c := range w.Calls("set", "close") {
			switch {
			case c.Verb == "set":
				set++
			case c.Setting.Kind == backends.Kind(backends.BracketReboot):
				down++
			}
			if set > down+1 {
				t.Errorf("the firmware of %s was set before the host before it had rebooted", c.Setting.Target.Name)
			}
		}
		if broken && (set > 1 || down > 0) {
			t.Errorf("%d hosts were set and %d rebooted after the first had failed", set, down)
		} else if !broken && down != 3 {
			t.Errorf("%d reboots", down)
		}
	}
}

func TestWhatWaitsForABracketThatNeverOpensEndsTheStages(t *testing.T) {
	host, vm := backends.HostRef("esx-01"), backends.VMRef("vm-01")
	away := plan.Bracket{Kind: backends.BracketMaintenance, Target: host}
	set := change(setting(host, backends.KindOption, "x"), backends.Absent, val(1), away.ID())
	power := plan.Bracket{Kind: backends.BracketVMPower, Target: vm, Leave: backends.ValueOf("on"), After: []string{set.ID()}}
	adapter := change(setting(vm, backends.KindAdapter, "RDMA-PG"), backends.Absent, val("vf"), power.ID())
	modules := change(setting(backends.GuestRef("vm-01"), backends.KindOption, "modules"), backends.Absent, val(1))
	modules.After = []string{power.ID()}
	p := plan.Plan{Brackets: []plan.Bracket{away, power}, Changes: []plan.Change{set, adapter, modules}}
	w := NewWorld()
	w.Fault = func(c Call) error {
		if c.Verb == "open" && c.Setting.Target == host {
			return backends.Errorf(backends.KindRefused, host.Name, "Fix it.", "the host is locked down")
		}
		return nil
	}
	jb, _ := planned(t, w, p)
	var rec recorder
	jb.Sink, jb.Replan = rec.sink, func(context.Context) (*plan.Plan, error) { return &p, nil }
	res, err := engine.Run(t.Context(), jb)
	if err != nil || res.Status != engine.StatusPartial {
		t.Fatalf("%s, %v: %v", res.Status, err, states(res))
	}
	if n := rec.count(engine.EventPlanned, ""); n != 1 || len(res.Differs) != len(p.Changes) {
		t.Errorf("%d stages, %d of %d changes said to be left: nothing of the second plan could be done", n, len(res.Differs), len(p.Changes))
	}
}
