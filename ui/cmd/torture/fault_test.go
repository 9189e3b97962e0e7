package torture

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// harms are what can be injected into a call. Task harms apply only to methods that start a task.
var (
	callHarms = []string{
		"fault:SystemError", "fault:NoPermission", "fault:ConcurrentAccess", "hang", "drop", "drop-after", "slow:1s", "garbage", "expire",
		"http:503",
	}
	taskHarms    = []string{"task-error:The operation failed.", "task-cancel", "task-fault:ConcurrentAccess", "task-fault:Timedout"}
	commandHarms = []string{"fail:No such thing", "hang", "drop", "drop-after", "slow:1s", "garbage"}
	// insideHarms interrupt a command between its steps: kill -9 of the command itself, or a power failure of the guest.
	insideHarms = []string{"kill:1", "kill:2", "kill:3", "reset:1", "reset:2"}
)

func (s *site) check() []string { return []string{"check", "-f", s.answers, "-o", "json"} }

// No call and no command may block a run for longer than this; the tests reduce the program's own timeouts to it.
const callLimit = 6 * time.Second

// No command may take longer than this, whatever happens to one call, even on a machine that runs other tests too.
const patience = 4 * time.Minute

// try injects a harm into a subject and checks what every run must guarantee. It restores the site. The verdict ends with the
// number of additional uses of the subject, compared with an undisturbed run.
func (s *site) try(c course, sub subject, do string, always bool) (verdict string) {
	s.t.Helper()
	phase, rule := sub.phase(), sub.rule(sub.phase(), do, always)
	line := s.check()
	switch phase {
	case "apply":
		line = s.apply()
	case "rollback":
		if first := s.here(0, s.apply()...); first.code != 0 {
			s.t.Fatalf("apply: exit %d\n%s", first.code, first)
		}
		id, _ := s.run()
		line = []string{"rollback", id, "--yes", "-o", "json"}
	}
	s.fault(rule)
	end := s.watch()
	got := s.here(callLimit, line...)
	s.lab.World().Faults.Clear()
	again := s.twice(sub, rule, do, end())
	s.waitUntilIdle()
	s.owes(rule, got)
	if phase == "check" {
		return fmt.Sprintf("exit %d%s", got.code, again)
	}
	id, status := s.run()
	begun := id != "" && status != "not begun"
	goal := c.end
	if phase == "rollback" {
		goal = c.start
	}
	now := s.facts()
	changed := !s.alike(c.start, now)
	switch {
	case got.code == 0 && !s.alike(goal, now):
		s.t.Errorf("%s: SILENT: exit 0, and something is missing (-want +got):\n%s", rule, cmp.Diff(goal, now))
	case got.code != 0 && !strings.Contains(got.errs+got.out, "error"):
		s.t.Errorf("%s: UNREPORTED: exit %d without any output\n%s", rule, got.code, got)
	case changed && !begun:
		s.t.Errorf("%s: UNRECORDED: something was changed, and no run knows of it (-want +got):\n%s", rule, cmp.Diff(c.start, now))
	}
	verdict = map[int]string{0: "done", 1: "failed", 3: "refused", 4: "not connected", 5: "partly done"}[got.code]
	if phase == "apply" {
		if got.code != 0 {
			if again := s.finish(); again.code != 0 {
				s.t.Errorf("%s: NOT RESUMED: exit %d\n%s", rule, again.code, again)
			}
			verdict += ", resumed"
			if !begun {
				verdict = strings.Replace(verdict, "resumed", "nothing written, applied", 1)
			}
			s.same(rule+": after the resume", c.end)
		}
	} else if got.code != 0 {
		verdict += ", taken back"
	}
	if phase == "apply" || got.code != 0 {
		if again := s.back(); again.code != 0 {
			s.t.Errorf("%s: NOT TAKEN BACK: exit %d\n%s", rule, again.code, again)
		}
	}
	s.started(rule+": after the rollback", c)
	s.forget()
	return verdict + again
}

func (s *site) fault(rule string) {
	s.t.Helper()
	if err := s.lab.World().Faults.Add(rule); err != nil {
		s.t.Fatal(err)
	}
}

// owes checks what every command must guarantee, however it ended: it ends in time, with a documented exit code and without a stack
// trace.
func (s *site) owes(rule string, got said) {
	s.t.Helper()
	if got.took > patience {
		s.t.Errorf("%s: HUNG: it took %s", rule, got.took)
	}
	if !slices.Contains([]int{0, 1, 2, 3, 4, 5}, got.code) {
		s.t.Errorf("%s: exit %d\n%s", rule, got.code, got)
	}
	if text := got.out + got.errs; strings.Contains(text, "panic") || strings.Contains(text, "goroutine ") {
		s.t.Errorf("%s: PANIC\n%s", rule, got)
	}
}

// waitUntilIdle waits until no host reboots, no VM starts or stops, and all guests respond, so that the world can be compared.
func (s *site) waitUntilIdle() {
	s.t.Helper()
	s.until("the lab is at rest", func() bool {
		rest := true
		s.lab.World().View(func(st *world.State) {
			for _, h := range st.Hosts {
				rest = rest && h.State != world.Rebooting
			}
			for _, v := range st.VMs {
				rest = rest && (!v.On || v.Guest.Up)
			}
		})
		return rest
	})
}

// alike compares in the same way as started.
func (s *site) alike(a, b map[string]string) bool { return cmp.Equal(s.leaving(a), s.leaving(b)) }

// TestFaultsOneByOne injects a selection of harms once each (make torture: all of them), into methods and commands that vary by
// harm.
func TestFaultsOneByOne(t *testing.T) {
	testclass.Full(t)
	for _, m := range sample.modes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			m.oneByOne(t)
		})
	}
}

func (m mode) oneByOne(t *testing.T) {
	s := serve(t, m.small())
	all, c := s.subjects()
	rows := newTable(t, "faults-sample-"+m.name, "subject\tphase\tharm\tcalls\tverdict")
	var calls, tasks, commands []subject
	for _, sub := range all {
		switch {
		case sub.phase() != "apply":
		case sub.command:
			commands = append(commands, sub)
		case strings.HasSuffix(sub.name, "_Task"):
			tasks = append(tasks, sub)
		default:
			calls = append(calls, sub)
		}
	}
	for _, group := range []struct {
		subjects []subject
		harms    []string
	}{{calls, callHarms}, {tasks, taskHarms}, {commands, slices.Concat(commandHarms, insideHarms)}} {
		for i, do := range group.harms {
			if i%sample.every != 0 {
				continue
			}
			sub := group.subjects[(i*7+3)%len(group.subjects)]
			rows.row(sub.name, sub.phase(), do, sub.calls[sub.phase()], s.try(c, sub, do, false))
		}
	}
	// A rollback that is interrupted while it removes boot files of the guest must not be considered complete.
	stop := subject{name: "systemctl stop", command: true, calls: map[string]int{"rollback": 1}, outages: all[0].outages}
	rows.row(stop.name, stop.phase(), "hang", 1, s.try(c, stop, "hang", false))
}
