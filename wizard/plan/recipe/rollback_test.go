package recipe_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/rollback"
)

func conflicts(p *plan.Plan) []string {
	var out []string
	for _, c := range p.Conflicts {
		out = append(out, c.Target.String())
	}
	return out
}

func TestRollbackStopsAtWhatSomebodyElseChanged(t *testing.T) {
	for name, c := range map[string]struct {
		change func(inv *backends.Inventory)
		want   []string
		stays  string // part of ids that must not be in the plan
	}{
		"option set to something else": {func(inv *backends.Inventory) { inv.Hosts[0].Options["Net.PVRDMAVmknic"] = "vmk5" },
			[]string{"host/esx-01", "dvs/RDMA-DVS"}, "host/esx-01"},
		"memory reservation changed": {func(inv *backends.Inventory) { inv.VMs[1].MemoryLocked, inv.VMs[1].Reservation = false, 4096 },
			[]string{"vm/vm-02", "portgroup/RDMA-PG", "host/esx-02", "dvs/RDMA-DVS"}, "vm/vm-02"},
		"a foreign VM came to the port group": {func(inv *backends.Inventory) {
			v := newVM(9, "esx-01")
			v.Adapters = append(v.Adapters, backends.Adapter{Type: "vmxnet3", PortGroup: "RDMA-PG", Switch: "RDMA-DVS"})
			inv.VMs = append(inv.VMs, v)
		}, []string{"portgroup/RDMA-PG", "host/esx-01", "dvs/RDMA-DVS"}, "dvs/"},
		"somebody's vmknic came to the port group": {func(inv *backends.Inventory) {
			h := &inv.Hosts[0]
			h.VMKs = append(h.VMKs, backends.VMKernelNIC{Device: "vmk7", IP: "10.9.0.1", PrefixLen: 24, PortGroup: "RDMA-PG", Switch: "RDMA-DVS"})
		}, []string{"portgroup/RDMA-PG", "host/esx-01", "dvs/RDMA-DVS"}, "dvs/"},
		"a later run gave another VM a PVRDMA adapter": {func(inv *backends.Inventory) {
			v := newVM(9, "esx-01")
			v.Adapters = append(v.Adapters, backends.Adapter{Type: "pvrdma", PortGroup: "OTHER-PG", Switch: "OTHER-DVS"})
			inv.VMs = append(inv.VMs, v)
		}, []string{"host/esx-01", "dvs/RDMA-DVS"}, "host/esx-01"},
		"guest cannot be asked": {func(inv *backends.Inventory) { inv.Guests[0].Error = "connection refused" }, []string{"guest/vm-01"},
			"guest/vm-01"},
		"host away": {func(inv *backends.Inventory) { inv.Hosts[1].State = "disconnected" }, []string{"host/esx-02", "dvs/RDMA-DVS"},
			"host/esx-02"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := newInventory(2)
			back := apply(t, newAnswers(inv), inv)
			c.change(inv)
			p, err := rollback.Build(back.priors, inv, rollback.Options{Brackets: back.brackets})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]bool{}
			for _, x := range conflicts(p) {
				got[x] = true
			}
			want := map[string]bool{}
			for _, x := range c.want {
				want[x] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("conflicts:\n%s", diff)
			}
			for _, ch := range p.Changes {
				if strings.HasPrefix(ch.ID(), c.stays) {
					t.Errorf("planned all the same: %s", ch.ID())
				}
			}
			carryOut(t, inv, p, nil)
		})
	}
}

func TestRollbackTellsWhatStays(t *testing.T) {
	inv := newInventory(2)
	inv.VMs[0].Hardware = 11
	a := newAnswers(inv)
	a.VMs[0].Hardware = answers.HardwareUpgrade
	back := apply(t, a, inv)
	p := takeBack(t, inv, back)
	if inv.VMs[0].Hardware != 14 || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "hardware version") {
		t.Errorf("hardware %d, notes %q", inv.VMs[0].Hardware, p.Notes)
	}
}

func TestRollbackOfARunThatBrokeOff(t *testing.T) {
	inv := newInventory(2)
	start := clone(t, inv)
	a := newAnswers(inv)
	back := &past{brackets: map[string]backends.Value{}}
	carryOut(t, inv, mustBuild(t, a, inv, plan.Options{}), back)
	// The last operation was started and its result was not read; here it was not done.
	last := &back.priors[len(back.priors)-1]
	setWorld(t, inv, last.Change.Setting, last.Prior)
	last.Found, last.Uncertain = backends.Absent, true
	p := takeBack(t, inv, back)
	reboot(start, inv)
	if diff := cmp.Diff(start, inv, equateEmpty); diff != "" || len(p.Conflicts) > 0 {
		t.Errorf("conflicts %v\n%s", p.Conflicts, diff)
	}
}

func TestRollbackWhenTheTargetIsGone(t *testing.T) {
	inv := newInventory(2)
	back := apply(t, newAnswers(inv), inv)
	inv.VMs, inv.Guests = inv.VMs[:1], inv.Guests[:1]
	p := takeBack(t, inv, back)
	if len(p.Conflicts) != 0 || len(inv.Switches) != 0 || len(p.Notes) != 1 {
		t.Errorf("conflicts %v, switches %d, notes %q", p.Conflicts, len(inv.Switches), p.Notes)
	}
}

func TestRollbackWritesUplinksOnlyWithPVRDMAVMsOff(t *testing.T) {
	inv := newInventory(2)
	a := newAnswers(inv)
	apply(t, a, inv)
	inv.Switches[0].MTU = 1500
	back := &past{brackets: map[string]backends.Value{}}
	carryOut(t, inv, mustBuild(t, a, inv, plan.Options{}), back)
	p := takeBack(t, inv, back)
	c := p.Change("dvs/RDMA-DVS/switch")
	if c == nil || len(c.Within) != 2 || inv.Switches[0].MTU != 1500 || inv.VMs[0].Power != "poweredOn" {
		t.Errorf("KB 328676: %+v", c)
	}
}

// The engine plans again after the rollback: a VM that the run found off is off again then, and its guest is in the state that the
// journal recorded.
func TestRollbackOfAVMThatWasOffAsksItsGuestNoMore(t *testing.T) {
	inv := newInventory(2)
	inv.VMs[1].Power = "poweredOff"
	back := apply(t, newAnswers(inv), inv)
	p, err := rollback.Build(back.priors, inv, rollback.Options{Brackets: back.brackets})
	if err != nil || len(p.Conflicts) > 0 {
		t.Fatal(p.Conflicts, err)
	}
	carryOut(t, inv, p, back)
	if inv.VMs[1].Power != "poweredOff" {
		t.Fatalf("the VM is %s", inv.VMs[1].Power)
	}
	again := takeBack(t, inv, back)
	if len(again.Conflicts) > 0 || !again.Empty() {
		t.Errorf("conflicts %v, changes %v", again.Conflicts, again.Changes)
	}
}

func TestRollbackNamesAGuestThatSomebodySwitchedOff(t *testing.T) {
	inv := newInventory(2)
	back := apply(t, newAnswers(inv), inv)
	inv.VMs[0].Power = "poweredOff"
	if p := takeBack(t, inv, back); !slices.Contains(conflicts(p), "guest/vm-01") {
		t.Errorf("conflicts %v", conflicts(p))
	}
}

// A setting that was half done before the run is neither set again nor mistaken for another person's change.
func TestRollbackOfWhatIsHalfDone(t *testing.T) {
	half, complete := backends.Partial(nil), backends.ValueOf(106)
	for name, test := range map[string]struct {
		prior  backends.Value
		partly bool // today
	}{
		"it was half done before the run, and is whole": {prior: half},
		"it was not there, and is half undone":          {partly: true},
		"it was half done, and is again":                {prior: half, partly: true},
	} {
		t.Run(name, func(t *testing.T) {
			inv := newInventory(2)
			apply(t, newAnswers(inv), inv)
			d := &inv.Guests[0].RDMA[0]
			class := 106
			d.Class, d.ClassKept, d.ClassPartly = &class, !test.partly, test.partly
			s := backends.Setting{Target: backends.GuestRef("vm-01"), Kind: backends.KindTrafficClass, Name: "RDMA-PG"}
			p, err := rollback.Build([]plan.Prior{{Change: plan.Change{Setting: s, To: complete}, Prior: test.prior, Found: complete}}, inv,
				rollback.Options{})
			if err != nil || len(p.Conflicts) > 0 || len(p.Changes) != 1 {
				t.Fatalf("%v, conflicts %v, changes %v", err, p.Conflicts, p.Changes)
			}
			if got := p.Changes[0].To; !got.IsAbsent() {
				t.Errorf("to %s", got)
			}
		})
	}
}
