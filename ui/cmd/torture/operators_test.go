package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/find"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// another is a second operator on the same lab, with a separate state directory.
func (s *site) another() *site {
	o := *s
	o.env = maps.Clone(s.env)
	state := s.t.TempDir()
	for _, key := range []string{"HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"} {
		o.env[key] = state
	}
	return &o
}

// off returns the names of the VMs that are not on.
func (s *site) off() (names []string) {
	s.lab.World().View(func(w *world.State) {
		for _, v := range w.VMs {
			if !v.On {
				names = append(names, v.Name)
			}
		}
	})
	return names
}

// changed reports whether an operator's last run has made a change that could be rolled back.
func (s *site) changed() bool {
	id, status := s.run()
	return id != "" && status != "not begun"
}

// A moment is the time at which the second operator starts: after the lab has logged an event of the first.
type moment struct {
	name string
	what string // kind of the event
	slow string // fault that slows the first operator down at that time
}

var moments = []moment{
	{name: "at once"},
	{"while the switch is made", world.FaultApplied, "method=CreateDVS_Task,do=slow:400ms"},
	{"when the VM is told to shut down", world.VMShutdown, ""},
	{"while the VM is off", world.FaultApplied, "method=ReconfigVM_Task,do=slow:800ms"},
	{"while the VM is powered on", world.FaultApplied, "method=PowerOnVM_Task,do=slow:400ms"},
}

// TestTwoOperatorsWithTheirOwnStateDirectories starts a second apply at several times during the first. In every case no VM stays
// off. If both are rolled back, in either order, the start is restored, at the latest by the next boot of the guest, or the
// remaining obstacle is named.
func TestTwoOperatorsWithTheirOwnStateDirectories(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	for i, m := range moments {
		for _, firstBack := range []bool{true, false} {
			if sample.every > 1 && firstBack != (i%2 == 0) {
				continue
			}
			t.Run(fmt.Sprintf("%s, first back %v", m.name, firstBack), func(t *testing.T) {
				t.Parallel()
				twoOperators(t, m, firstBack)
			})
		}
	}
}

func twoOperators(t *testing.T, m moment, firstBack bool) {
	s := serve(t, modes[0].small())
	start := s.facts()
	b := s.another()
	if m.slow != "" {
		testclass.OK(t, s.lab.World().Faults.Add(m.slow))
	}
	first := make(chan said, 1)
	go func() { first <- s.here(0, s.apply()...) }()
	if m.what != "" {
		s.until(m.name, func() bool {
			return slices.ContainsFunc(s.lab.World().Log.Events(), func(e world.Event) bool { return e.What == m.what })
		})
	}
	second := b.here(0, b.apply()...)
	one := <-first
	t.Logf("applies: %d and %d", one.code, second.code)
	for i, got := range []said{one, second} {
		if got.code != 0 && !strings.Contains(got.out, `"status":"refused"`) && !strings.Contains(got.out+got.errs, "omebody") &&
			!strings.Contains(got.out, "changed since the plan was made") &&
			!lostItsGuest(t, got, []said{second, one}[i]) {
			t.Errorf("exit %d, and no conflict is named\n%s", got.code, got)
		}
	}
	if off := s.off(); len(off) > 0 {
		t.Errorf("off after both applies: %q\n%s\n%s", off, one, second)
	}
	order := []*site{s, b}
	if !firstBack {
		order = []*site{b, s}
	}
	named := false
	for _, o := range order {
		if !o.changed() {
			continue
		}
		got := o.back()
		t.Logf("rollback: %d", got.code)
		if got.code != 0 {
			named = true
			if got.code != 5 && got.code != 3 || !strings.Contains(got.out+got.errs, "left alone") &&
				!strings.Contains(got.out+got.errs, "omebody") && !strings.Contains(got.out, `"event":"failed"`) {
				t.Errorf("rollback: exit %d names nothing\n%s", got.code, got)
			}
		}
	}
	if off := s.off(); len(off) > 0 {
		t.Errorf("off after both rollbacks: %q", off)
	}
	end := s.facts()
	if !named && !maps.Equal(start, end) && onlyModules(start, end) {
		// A run restores the modules that it found loaded. If the other run's packages had loaded them at boot, they stay until the
		// next boot, which must restore the start.
		for _, v := range s.vms {
			testclass.OK(t, s.lab.World().RebootGuest(v.Name))
		}
		s.waitUntilIdle()
		end = s.facts()
	}
	if diff := cmp.Diff(start, end); diff != "" && !named {
		t.Errorf("both were rolled back silently, but the state differs (-want +got):\n%s", diff)
	}
}

// onlyModules reports whether facts differ only in modules of guests that are loaded in addition.
func onlyModules(start, end map[string]string) bool {
	start, end = maps.Clone(start), maps.Clone(end)
	for key, was := range start {
		is := strings.Fields(end[key])
		if strings.HasPrefix(key, "guest ") && strings.HasSuffix(key, " modules") &&
			!slices.ContainsFunc(strings.Fields(was), func(m string) bool { return !slices.Contains(is, m) }) {
			end[key] = was
		}
	}
	return maps.Equal(start, end)
}

// lostItsGuest reports whether a run failed because another run shut down the VM of a guest, or restarted the guest: the connection is
// lost, or the guest has restarted, and once the VM is on again, it is not known who shut it down. Each operation that failed for this
// reason must have run while the other run had the VM out of service, or restarted the guest.
func lostItsGuest(t *testing.T, failed, other said) bool {
	t.Helper()
	type event struct {
		Event, Node, Target, Error string
		Time                       time.Time
	}
	events := func(got said) (list []event) {
		for line := range strings.Lines(got.out) {
			var e event
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%v in %s", err, line)
			}
			list = append(list, e)
		}
		return list
	}
	find := func(list []event, what, node string) (at time.Time) {
		if i := slices.IndexFunc(list, func(e event) bool { return e.Event == what && e.Node == node }); i >= 0 {
			at = list[i].Time
		}
		return at
	}
	own, others := events(failed), events(other)
	lost := 0
	for _, e := range own {
		if e.Event != "failed" {
			continue
		}
		vm, guest := strings.CutPrefix(e.Target, "guest/")
		began := find(own, "started", e.Node)
		away := func(from, to string) bool {
			shut, on := find(others, "started", from), find(others, "done", to)
			return !shut.IsZero() && !shut.After(e.Time) && (on.IsZero() || !on.Before(began))
		}
		gone := strings.Contains(e.Error, "the connection was lost") || strings.Contains(e.Error, "it has restarted during this step")
		if !guest || !gone || !away("open vm/"+vm+"/vm-power", "vm/"+vm+"/vm-power") && !away("guest/"+vm+"/restart", "guest/"+vm+"/restart") {
			return false
		}
		lost++
	}
	return lost > 0
}

// TestWorkOfOthersStopsTheTargetsConcerned has another user shut down a VM, and start to evacuate a host. The run skips the target,
// names the user and the start time, and continues with the targets that do not depend on it.
func TestWorkOfOthersStopsTheTargetsConcerned(t *testing.T) {
	t.Parallel()
	s := serve(t, modes[0].small())
	vm := s.vms[0].Name
	u, err := url.Parse(s.env["GOVC_URL"])
	testclass.OK(t, err)
	u.User = url.UserPassword(s.env["GOVC_USERNAME"], s.env["GOVC_PASSWORD"])
	c, err := govmomi.NewClient(t.Context(), u, true)
	testclass.OK(t, err)
	t.Cleanup(func() { _ = c.Logout(context.WithoutCancel(t.Context())) })
	f := find.NewFinder(c.Client)
	machine, err := f.VirtualMachine(t.Context(), "/DC/vm/"+vm)
	testclass.OK(t, err)
	testclass.OK(t, machine.ShutdownGuest(t.Context()))
	s.until(vm+" is off", func() bool { return len(s.off()) == 1 })
	got := s.here(0, s.apply()...)
	if got.code != 5 || !strings.Contains(got.out, vm+": somebody else is working on this target: shut down by "+s.env["GOVC_USERNAME"]+
		" since 20") {
		t.Errorf("exit %d\n%s", got.code, got)
	}
	if off := s.off(); !slices.Equal(off, []string{vm}) {
		t.Errorf("off: %q", off)
	}
	if got := s.back(); got.code != 0 {
		t.Fatalf("rollback: exit %d\n%s", got.code, got)
	}
	if task, err := machine.PowerOn(t.Context()); err != nil || task.Wait(t.Context()) != nil {
		t.Fatal(err)
	}
	host, err := f.DefaultHostSystem(t.Context())
	testclass.OK(t, err)
	task, err := host.EnterMaintenanceMode(t.Context(), 0, false, nil) // its VM cannot move to another host
	testclass.OK(t, err)
	got = s.here(0, s.apply()...)
	if got.code != 3 || !strings.Contains(got.out, "esx-01: VC-TASK-006: running tasks: HostSystem.enterMaintenanceMode by "+
		s.env["GOVC_USERNAME"]+" since 20") {
		t.Errorf("exit %d\n%s", got.code, got)
	}
	if err := task.Cancel(t.Context()); err != nil {
		t.Error(err)
	}
}
