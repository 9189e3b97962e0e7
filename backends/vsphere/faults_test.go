package vsphere_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// TestOneFaultEach sets up switch, port group, member, host and VM while one call of each fails once with a transient error: the
// result is the same, and nothing exists twice.
func TestOneFaultEach(t *testing.T) {
	testclass.Plain(t)
	methods := []string{
		"CreateDVS_Task", "EnableNetworkResourceManagement", "AddDVPortgroup_Task", "ReconfigureDvs_Task", "UpdateOptions",
		"EnableRuleset", "ReconfigVM_Task", "RetrievePropertiesEx", "CreateContainerView", "CreateListView", "CreateFilter",
		"CreatePropertyCollector", "ModifyListView", "WaitForUpdatesEx", "QueryOptions",
	}
	for _, method := range methods {
		for _, do := range []string{"drop", "drop-after", "garbage", "http:503", "fault:ConcurrentAccess", "fault:NotAuthenticated"} {
			if strings.HasPrefix(do, "fault:Concurrent") && !slices.Contains(methods[:7], method) {
				continue // only writes conflict with somebody else's change
			}
			t.Run(method+" "+do, func(t *testing.T) {
				t.Parallel()
				l, c := startLab(t, lab.Options{Hosts: 1, VMs: 1})
				set := c.Setters()
				vm := backends.VMRef("vm-01")
				withVM := method == "ReconfigVM_Task"
				if withVM {
					testclass.OK(t, c.Brackets()[backends.BracketVMPower].Open(t.Context(), vm, nil))
				}
				testclass.OK(t, l.World().Faults.Add("method="+method+",nth=1,do="+do))
				steps := []struct {
					s backends.Setting
					v any
				}{
					{dvs, dvs1},
					{group, group1},
					{member("esx-01"), backends.MemberSpec{PNICs: []string{"vmnic2"}}},
					{backends.Setting{Target: backends.HostRef("esx-01"), Kind: backends.KindOption, Name: option}, "vmk0"},
					{backends.Setting{Target: backends.HostRef("esx-01"), Kind: backends.KindFirewall, Name: "pvrdma"}, true},
					{backends.Setting{Target: vm, Kind: backends.KindAdapter, Name: "RDMA-PG"},
						backends.AdapterSpec{Type: "pvrdma", PortGroup: "RDMA-PG", Switch: "RDMA-DVS", Protocol: "rocev2", Start: true}},
				}
				adapters := 2
				if !withVM { // its devices change only while it is off, which takes a while
					steps, adapters = steps[:len(steps)-1], 1
				}
				for _, step := range steps {
					mustSet(t, set, step.s, step.v)
				}
				for _, step := range steps {
					if got := read(t, set, step.s); got != backends.ValueOf(step.v) {
						t.Errorf("%s reads %s", step.s.ID(), got)
					}
				}
				inv := inventory(t, c, backends.Scope{})
				if len(inv.Switches) != 1 || len(inv.VMs[0].Adapters) != adapters {
					t.Errorf("%d switches, %d adapters", len(inv.Switches), len(inv.VMs[0].Adapters))
				}
			})
		}
	}
}

// TestOnlyWaitingIsRefused checks that a wait ends, and that the outcome of the task is read, if something between this machine
// and vCenter blocks waiting calls while everything else is answered: unlike a restart, that is not waited out.
func TestOnlyWaitingIsRefused(t *testing.T) {
	t.Parallel()
	_, c := startLab(t, lab.Options{Hosts: 1, VMs: 1, Faults: []string{"method=WaitForUpdatesEx,do=http:503"}})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // a restart gets 20
	defer cancel()
	if err := c.Setters()[dvs.Kind].Set(ctx, dvs, backends.ValueOf(dvs1), nil); err != nil || ctx.Err() != nil {
		t.Errorf("%v, %v", err, ctx.Err())
	}
}

// A task of the lab takes 40 ms: on a busy machine it may end before its progress is read. Of many tasks, at least one is seen in
// progress.
func TestProgressMoves(t *testing.T) {
	_, c := startLab(t, lab.Options{Hosts: 2, VMs: 1})
	for n := range 50 {
		one := backends.Setting{Target: backends.SwitchRef(fmt.Sprintf("DVS-%d", n)), Kind: backends.KindSwitch}
		var seen []int
		testclass.OK(t, c.Setters()[one.Kind].Set(t.Context(), one, backends.ValueOf(dvs1), func(n int) { seen = append(seen, n) }))
		if len(seen) == 0 || !slices.IsSorted(seen) || seen[len(seen)-1] != 100 {
			t.Fatalf("progress %v", seen)
		}
		if len(seen) > 1 {
			return
		}
	}
	t.Error("no task was seen to move")
}

func TestTaskFailsWithAMessage(t *testing.T) {
	l, c := startLab(t, lab.Options{Hosts: 1, VMs: 1})
	if err := l.World().Faults.Add(
		"method=CreateDVS_Task,do=task-error:The operation is not supported in this phase of the moon."); err != nil {
		t.Fatal(err)
	}
	err := c.Setters()[dvs.Kind].Set(t.Context(), dvs, backends.ValueOf(dvs1), nil)
	check(t, err, backends.KindPermanent, "phase of the moon")
	if !strings.HasPrefix(err.Error(), "RDMA-DVS: set up the distributed switch: ") {
		t.Errorf("%v", err)
	}
}
