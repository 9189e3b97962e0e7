package torture

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

// A VM that is not part of the plan is shut down for the reboot of its host. If the run is killed at that time, the resume keeps
// the VM off until the host is back: if the VM were started earlier, its host could not be evacuated, because nothing moves it.
func TestKilledWithSomebodyElsesVMOff(t *testing.T) {
	t.Parallel()
	s := serve(t, mode{name: "sriov", scenario: "sriov-drs-manual", hosts: 2, reboot: 100 * time.Millisecond})
	const billing = "VMs.billing-01.On"
	harm := "after:opened:4" // opened: SSH on both hosts to test the logins, SSH for the firmware, then the VM
	s.killed(harm, s.child(harm, s.apply()...))
	for n := 0; s.facts()[billing] != "false"; n++ { // the order of the two hosts is not fixed
		if n == 6 {
			t.Fatalf("%s is never off", billing)
		}
		id, _ := s.run()
		harm = "after:opened:3"
		s.killed(harm, s.child(harm, "resume", id, "--yes", "-o", "json"))
	}
	if got := s.finish(); got.code != 0 {
		t.Fatalf("resume: exit %d\n%s", got.code, got)
	}
	if is := s.facts()[billing]; is != "true" {
		t.Errorf("after the resume %s is %s", billing, is)
	}
}

// If a run is killed while the SSH services run for the login test, it has changed nothing else: rollback and resume stop the
// services again.
func TestKilledDuringTheProof(t *testing.T) {
	t.Parallel()
	for _, then := range []string{"rollback", "resume"} {
		t.Run(then, func(t *testing.T) {
			t.Parallel()
			s := serve(t, mode{name: "sriov", scenario: "sriov-half", hosts: 1, reboot: 100 * time.Millisecond})
			ssh := func() (running bool) {
				s.lab.World().View(func(w *world.State) { running = w.Hosts[0].Service("TSM-SSH").Running })
				return running
			}
			start := s.facts()
			s.killed("opened", s.child("after:opened:1", s.apply()...))
			if !ssh() {
				t.Fatal("the SSH service does not run")
			}
			id, _ := s.run()
			if got := s.here(0, then, id, "--yes", "-o", "json"); got.code != 0 {
				t.Fatalf("%s: exit %d\n%s", then, got.code, got)
			}
			if ssh() {
				t.Errorf("after the %s the SSH service still runs", then)
			}
			if diff := cmp.Diff(start, s.facts()); then == "rollback" && diff != "" {
				t.Errorf("after the rollback (-start +now):\n%s", diff)
			}
		})
	}
}

// A guest that was told to shut down responds for a while. If the run is killed at that time, the rollback is complete only after
// the VM was off and is on again; otherwise the VM would power off after the rollback has ended.
func TestKilledWhileAGuestShutsDown(t *testing.T) {
	t.Parallel()
	s := serve(t, modes[0].small())
	start := s.facts()
	s.lab.World().View(func(*world.State) { s.lab.World().Timing.Shutdown = 3 * time.Second })
	seen := func(what, detail string) bool {
		return slices.ContainsFunc(s.lab.World().Log.Events(),
			func(e world.Event) bool { return e.What == what && (detail == "" || e.Detail == detail) })
	}
	run := s.start("", s.apply()...)
	s.until("a guest is told to shut down", func() bool { return seen(world.VMShutdown, "") })
	testclass.OK(t, run.cmd.Process.Kill())
	run.end()
	if got := s.back(); got.code != 0 {
		t.Fatalf("rollback: exit %d\n%s", got.code, got)
	}
	s.until("the VM went off", func() bool { return seen(world.VMPower, "off") })
	if off := s.off(); len(off) > 0 {
		t.Errorf("off after the rollback: %q", off)
	}
	s.waitUntilIdle()
	if diff := cmp.Diff(start, s.facts()); diff != "" {
		t.Errorf("after the rollback (-start +now):\n%s", diff)
	}
}

// A task of vCenter continues after the process that started it was killed. If it creates a switch or a port group, the rollback
// waits until it has ended and removes what it created; the resume waits too, and does not create it again. The task of a switch
// runs on the network folder and that of a port group on its switch, because neither exists yet (vSphere Web Services API,
// Folder.CreateDVS_Task and DistributedVirtualSwitch.AddDVPortgroup_Task).
func TestKilledWhileATaskCreates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, then string }{
		{"CreateDVS_Task", "rollback"},
		{"CreateDVS_Task", "resume"},
		{"AddDVPortgroup_Task", "rollback"},
	} {
		t.Run(c.method+" "+c.then, func(t *testing.T) {
			t.Parallel()
			s := serve(t, modes[0].small())
			w := s.lab.World()
			start := s.facts()
			s.fault("method=" + c.method + ",nth=1,do=task-hold")
			run := s.start("", s.apply()...)
			s.until("the task is running", func() bool {
				return slices.ContainsFunc(w.Log.Events(), func(e world.Event) bool { return e.What == world.FaultApplied })
			})
			testclass.OK(t, run.cmd.Process.Kill())
			run.end()
			id, _ := s.run()
			if !s.waits(c.then, id, w.Faults.Clear) {
				t.Errorf("the %s has not waited for the task", c.then)
			}
			if n := w.Log.Calls()[c.method]; n != 1 {
				t.Errorf("%s was called %d times", c.method, n)
			}
			if c.then == "resume" {
				if got := s.back(); got.code != 0 {
					t.Fatalf("rollback: exit %d\n%s", got.code, got)
				}
			}
			s.waitUntilIdle()
			if diff := cmp.Diff(start, s.facts()); diff != "" {
				t.Errorf("after the rollback (-start +now):\n%s", diff)
			}
		})
	}
}

// waits resumes a run or rolls it back, which must succeed. Before the results of the run's unfinished operations are read, it calls
// over once the command polls vCenter; it reports whether the command has done so.
func (s *site) waits(then, id string, over func()) bool {
	s.t.Helper()
	read := func() int { return s.lab.World().Log.Calls()["RetrievePropertiesEx"] }
	before, from := len(s.records()), 0
	command := s.start("", then, id, "--yes", "-o", "json")
	ended := make(chan said, 1)
	go func() { ended <- command.end() }()
	polls := false
	s.until("it has ended, or waits", func() bool {
		n := read()
		now := s.records()[before:]
		switch {
		case len(now) == 0 || slices.ContainsFunc(now, func(r journal.Record) bool { return r.Type == journal.TypeOutcome }):
		case from == 0:
			from = read()
		default:
			polls = n >= from+20
		}
		return polls || len(ended) > 0
	})
	over()
	if got := <-ended; got.code != 0 {
		s.t.Fatalf("%s: exit %d\n%s", then, got.code, got)
	}
	return polls
}

// A host that does not come back from the reboot of a killed run holds up only what depends on it: the rollback undoes everything else,
// and names it. If it comes back meanwhile, the same rollback finishes; if not, the next one.
func TestRollbackGoesOnWithoutADeadHost(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{"waiting": nil, "skipping": {"--skip-unreachable"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// firmware that was pending, and where DRS moves VMs
			s := serve(t, mode{name: "sriov", scenario: "sriov-half", hosts: 3, reboot: 100 * time.Millisecond,
				stays: regexp.MustCompile(`\.MaxVFs$|\.Cards\.|^VMs\..*\.Host$`)})
			start := s.facts()
			w := s.lab.World()
			s.fault("host=esx-03,do=reboot-never")
			dead := func() (down bool) {
				w.View(func(st *world.State) { down = st.Host("esx-03").State != world.Up })
				return down
			}
			run := s.start("", s.apply()...)
			s.until("esx-03 reboots", dead)
			testclass.OK(t, run.cmd.Process.Kill())
			run.end()
			w.Faults.Clear()
			id, _ := s.run()
			others := func() string { // what the run has changed elsewhere and is still there
				diff := cmp.Diff(s.leaving(start), s.leaving(s.facts()), cmp.FilterPath(func(p cmp.Path) bool {
					key, is := p.Last().(cmp.MapIndex)
					return is &&
						(strings.Contains(key.Key().String(), "esx-03") || strings.Contains(key.Key().String(), "vm-03") ||
							strings.Contains(key.Key().String(), "Switches."))
				}, cmp.Ignore()))
				return diff
			}
			back := s.start("", append([]string{"rollback", id, "--yes"}, flags...)...)
			if flags == nil {
				s.until("everything else is undone", func() bool { return others() == "" })
				if !dead() {
					t.Fatal("esx-03 has come back by itself")
				}
				testclass.OK(t, w.RestoreHost("esx-03"))
				if got := back.end(); got.code != 0 {
					t.Fatalf("exit %d\n%s", got.code, got)
				}
			} else {
				got := back.end()
				if got.code != 5 || !strings.Contains(got.out, "left behind: not reached: esx-03, vm-03") ||
					!strings.Contains(got.out, "continue:    rdma-setup rollback "+id) {
					t.Fatalf("exit %d\n%s", got.code, got)
				}
				if diff := others(); diff != "" {
					t.Errorf("beside esx-03 (-start +now):\n%s", diff)
				}
				testclass.OK(t, w.RestoreHost("esx-03"))
				if got := s.back(); got.code != 0 {
					t.Fatalf("exit %d\n%s", got.code, got)
				}
			}
			s.waitUntilIdle()
			if diff := cmp.Diff(s.leaving(start), s.leaving(s.facts())); diff != "" {
				t.Errorf("after the rollback (-start +now):\n%s", diff)
			}
		})
	}
}
