package recipe_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// TestOneMoreVMOnASwitchThatChanges: vm-02 has its PVRDMA adapter already and is off while the switch gets another MTU (KB 328676);
// vm-01 is new and comes first in the answers. Neither the plan nor the rollback waits for itself.
func TestOneMoreVMOnASwitchThatChanges(t *testing.T) {
	inv := newInventory(2)
	a := newAnswers(inv)
	a.Switch.MTU = 1500
	both := slices.Clone(a.VMs)
	a.VMs = both[1:]
	apply(t, a, inv)
	start := clone(t, inv)
	a.VMs, a.Switch.MTU = both, 9000
	back := apply(t, a, inv) // it builds and applies the plans, and fails on a cycle
	takeBack(t, inv, back)
	if diff := cmp.Diff(start.VMs, inv.VMs); diff != "" {
		t.Errorf("the VMs after the rollback (-want +got):\n%s", diff)
	}
}

// TestPowerWaves: notes and refusals of a plan about VMs that are off at the same time.
func TestPowerWaves(t *testing.T) {
	inv := newInventory(8)
	a := newAnswers(inv)
	for i := range a.VMs {
		a.VMs[i].Group = []string{"db", ""}[i%2]
	}
	p := mustBuild(t, a, inv, plan.Options{})
	if !slices.Contains(p.Notes, "at most 2 VMs off at a time, about 5 minutes each, 8 in all (run.power.max_unavailable)") {
		t.Errorf("notes %q", p.Notes)
	}
	canary := 0
	for _, b := range p.Brackets {
		if b.Kind != backends.BracketVMPower {
			continue
		}
		if waits := slices.Contains(b.After, "vm/vm-01/vm-power"); waits != (b.Target.Name != "vm-01") {
			t.Errorf("%s waits for %q", b.ID(), b.After)
		} else if waits {
			canary++
		}
		if slices.Contains(b.Apart, "db") != (b.Target.Name == "vm-01" || b.Target.Name == "vm-03" || b.Target.Name == "vm-05" ||
			b.Target.Name == "vm-07") {
			t.Errorf("%s is kept apart from %q", b.ID(), b.Apart)
		}
	}
	if canary != 7 {
		t.Errorf("%d VMs wait for the first one", canary)
	}
	inv.Clusters = []backends.Cluster{{Name: inv.Hosts[0].Cluster, Rules: []backends.DRSRule{
		{Name: "pair", Kind: backends.RuleApart, VMs: []string{"vm-02", "vm-04"}},
		{Name: "near", Kind: backends.RuleTogether, VMs: []string{"vm-06", "vm-08"}}}}}
	for _, b := range mustBuild(t, a, inv, plan.Options{}).Brackets {
		if name := b.Target.Name; b.Kind == backends.BracketVMPower &&
			slices.Contains(b.Apart, "DRS rule pair") != (name == "vm-02" || name == "vm-04") || slices.Contains(b.Apart, "DRS rule near") {
			t.Errorf("%s is kept apart from %q", b.ID(), b.Apart)
		}
	}
	a.Run.Power = answers.Power{MaxUnavailable: answers.AllVMs}
	p = mustBuild(t, a, inv, plan.Options{})
	if !slices.Contains(p.Notes, "all 8 VMs may be off at a time, about 5 minutes each (run.power.max_unavailable: all)") {
		t.Errorf("notes %q", p.Notes)
	}
}

// TestPowerCyclesThatARuleKeepsApart: two VMs on one host that reboots are off together, which a DRS rule forbids.
func TestPowerCyclesThatARuleKeepsApart(t *testing.T) {
	inv := withTools(newSRIOV(2))
	inv.VM("vm-02").Host = inv.VM("vm-01").Host
	a := sriovAnswers(inv)
	inv.Clusters = []backends.Cluster{{Name: inv.Hosts[0].Cluster, DRS: true, DRSMode: "fullyAutomated",
		Rules: []backends.DRSRule{{Name: "pair", Kind: backends.RuleApart, VMs: []string{"vm-01", "vm-02"}}}}}
	refused := refusals(t, a, inv, plan.Options{})
	if !slices.ContainsFunc(refused, func(r plan.Refusal) bool {
		return strings.Contains(r.Why, "must not be off together with vm-01 (DRS rule pair)")
	}) {
		t.Errorf("refused with %+v", refused)
	}
}

// TestRefusalsOfRulesKeepTheirOrder: VMs of many hosts that a rule separates are refused in the same order each time.
func TestRefusalsOfRulesKeepTheirOrder(t *testing.T) {
	inv := withTools(newSRIOV(6))
	rules := []backends.DRSRule{}
	for _, pair := range [][]string{{"vm-01", "vm-02"}, {"vm-03", "vm-04"}, {"vm-05", "vm-06"}} {
		inv.VM(pair[1]).Host = inv.VM(pair[0]).Host
		rules = append(rules, backends.DRSRule{Name: pair[0], Kind: backends.RuleApart, VMs: pair})
	}
	rules = append(rules, rules[0]) // one VM is not a pair
	inv.Clusters = []backends.Cluster{{Name: inv.Hosts[0].Cluster, DRS: true, DRSMode: "fullyAutomated", Rules: rules}}
	a := sriovAnswers(inv)
	var first []plan.Refusal
	for range 8 {
		refused := slices.DeleteFunc(refusals(t, a, inv, plan.Options{}),
			func(r plan.Refusal) bool { return !strings.Contains(r.Why, "must not be off together") })
		if first == nil {
			first = refused
		}
		if !slices.Equal(refused, first) {
			t.Fatalf("refused with %+v, before with %+v", refused, first)
		}
	}
	if slices.ContainsFunc(first, func(r plan.Refusal) bool { return strings.Contains(r.Why, "together with "+r.Target.Name+" ") }) ||
		len(first) < 3 {
		t.Errorf("refused with %+v", first)
	}
}

// TestUnlistedDriverIsNoted: a pNIC whose driver is not listed is used if the host reports RoCE v2, and the plan says so.
func TestUnlistedDriverIsNoted(t *testing.T) {
	inv := newInventory(2)
	for i := range inv.Hosts {
		inv.Hosts[i].NIC("vmnic2").Driver = "newnic"
	}
	p := mustBuild(t, newAnswers(inv), inv, plan.Options{})
	if !strings.Contains(strings.Join(p.Notes, "\n"), "vmnic2 has driver newnic, which is not listed among those that support RoCE v2") {
		t.Errorf("notes %q", p.Notes)
	}
}

// TestRestartOfTheFirstGuest (run.power.canary_reboot): the guest of the first VM that the run powers off and whose network it sets up is
// restarted once, after everything in it, and the network of other guests is set up after that, in every mode and also for one VM.
func TestRestartOfTheFirstGuest(t *testing.T) {
	pvrdma := func(vms int) (*answers.Answers, *backends.Inventory) {
		inv := newInventory(vms)
		return newAnswers(inv), inv
	}
	sriov := func(vms int) (*answers.Answers, *backends.Inventory) {
		inv := withTools(newSRIOV(vms))
		return sriovAnswers(inv), inv
	}
	gpus := func(vms int) (*answers.Answers, *backends.Inventory) {
		inv := newGPUs(vms)
		return gpuAnswers(inv), inv
	}
	for name, test := range map[string]struct {
		world func(vms int) (*answers.Answers, *backends.Inventory)
		vms   int
		with  func(a *answers.Answers, inv *backends.Inventory, o *plan.Options)
		want  string // the guest that is restarted, "" for none
	}{
		"pvrdma, one VM":    {pvrdma, 1, nil, "vm-01"},
		"pvrdma":            {pvrdma, 3, nil, "vm-01"},
		"sriov, one VM":     {sriov, 1, nil, "vm-01"},
		"sriov":             {sriov, 3, nil, "vm-01"},
		"gpudirect, one VM": {gpus, 1, nil, "vm-01"},
		"gpudirect":         {gpus, 3, nil, "vm-01"},
		"the first VM is on a host that reboots later": {sriov, 3, func(_ *answers.Answers, inv *backends.Inventory, _ *plan.Options) {
			inv.VM("vm-01").Host, inv.VM("vm-03").Host = inv.VM("vm-03").Host, inv.VM("vm-01").Host
		}, "vm-03"},
		"not wanted":    {sriov, 2, func(a *answers.Answers, _ *backends.Inventory, _ *plan.Options) { a.Run.Power.CanaryReboot = false }, ""},
		"without first": {pvrdma, 2, func(a *answers.Answers, _ *backends.Inventory, _ *plan.Options) { a.Run.Power.Canary = false }, ""},
		"rdma-setup runs in the first": {pvrdma, 2, func(_ *answers.Answers, inv *backends.Inventory, o *plan.Options) {
			o.Ourselves = []string{"10.0.0.1"}
			inv.VM("vm-01").IPs = o.Ourselves
		}, "vm-02"},
		"a stage before has powered it off": {pvrdma, 1, func(a *answers.Answers, inv *backends.Inventory, o *plan.Options) {
			apply(t, a, inv)
			inv.Guests[0].Interfaces, o.Boots.Cycled = nil, []string{"vm-01"}
		}, "vm-01"},
		"no VM is powered off": {pvrdma, 1, func(a *answers.Answers, inv *backends.Inventory, _ *plan.Options) {
			apply(t, a, inv)
			inv.Guests[0].Interfaces = nil
		}, ""},
		"an attempt before ended before the restart": {pvrdma, 2, func(a *answers.Answers, inv *backends.Inventory, o *plan.Options) {
			apply(t, a, inv)
			o.Boots = plan.Boots{Cycled: []string{"vm-01", "vm-02"}, SetUp: []string{"vm-02"}}
		}, "vm-02"},
		"a guest was restarted before": {pvrdma, 2, func(_ *answers.Answers, _ *backends.Inventory, o *plan.Options) {
			o.Boots = plan.Boots{Cycled: []string{"vm-01"}, SetUp: []string{"vm-01"}, Proven: true}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, inv := test.world(test.vms)
			var o plan.Options
			if test.with != nil {
				test.with(a, inv, &o)
			}
			p := mustBuild(t, a, inv, o)
			restarts := slices.DeleteFunc(slices.Clone(p.Changes), func(c plan.Change) bool { return c.Kind != backends.KindRestart })
			if test.want == "" || len(restarts) != 1 || restarts[0].Target.Name != test.want {
				if test.want != "" || len(restarts) > 0 {
					t.Errorf("%q is to be restarted: %+v", test.want, restarts)
				}
				return
			}
			for _, b := range p.Brackets { // whatever waits for the VM waits for its restart
				waits := slices.ContainsFunc(b.After, func(id string) bool { return id == "vm/"+test.want+"/vm-power" })
				if waits && !slices.Contains(b.After, restarts[0].ID()) {
					t.Errorf("%s does not wait for the restart", b.ID())
				}
			}
			for _, c := range p.Changes {
				own := c.Target.Name == test.want && (c.Target.Type == backends.TypeVM || c.Target.Type == backends.TypeGuest) &&
					c.Kind != backends.KindRestart
				if own != slices.Contains(restarts[0].After, c.ID()) {
					t.Errorf("the restart is after %s: %t", c.ID(), !own)
				}
				alone := slices.ContainsFunc(p.Brackets,
					func(b plan.Bracket) bool { return b.Target.Name == test.want && slices.Contains(b.After, c.ID()) })
				if later := c.Kind == backends.KindAddress && !own && !alone; later != slices.Contains(c.After, restarts[0].ID()) {
					t.Errorf("%s is after the restart: %t", c.ID(), !later)
				}
			}
		})
	}
}
