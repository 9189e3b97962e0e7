package torture

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// A subject is a SOAP method or a remote command, with the number of its uses in each phase of an undisturbed run.
type subject struct {
	name    string
	command bool
	calls   map[string]int // by phase: apply, check, rollback
	outages map[string]outages
}

// phases are the commands in which a subject can be used.
var phases = []string{"apply", "check", "rollback"}

// Outages count what must not happen a second time: how often hosts went down and VMs were off.
type outages struct{ hosts, vms int }

// more reports whether there were more outages than expected.
func (d outages) more(than outages) bool { return d.hosts > than.hosts || d.vms > than.vms }

// used is what the lab has logged since a given time: the calls by method, the commands by name, and the outages.
type used struct {
	calls, commands map[string]int
	outages         outages
}

// watch starts to count uses; the returned function stops and returns the counts.
func (s *site) watch() func() used {
	log := s.lab.World().Log
	before, from := log.Calls(), len(log.Events())
	return func() used {
		u := used{calls: map[string]int{}, commands: map[string]int{}}
		for method, n := range log.Calls() {
			if n -= before[method]; n > 0 {
				u.calls[method] = n
			}
		}
		for _, e := range log.Events()[from:] {
			switch {
			case e.What == world.Process:
				u.commands[program0(e.Detail)]++
			case e.What == world.HostDown:
				u.outages.hosts++
			case e.What == world.VMPower && e.Detail == "off":
				u.outages.vms++
			}
		}
		return u
	}
}

// rule returns the fault rule for the call in the middle of a phase, or for all calls.
func (s subject) rule(phase, do string, always bool) string {
	key := "method="
	if s.command {
		key = "command="
	}
	if always {
		return key + s.name + ",do=" + do
	}
	return fmt.Sprintf("%s%s,nth=%d,do=%s", key, s.name, 1+s.calls[phase]/2, do)
}

// phase returns the phase in which the subject is tested: the first that uses it.
func (s subject) phase() string {
	for _, p := range []string{"apply", "rollback"} {
		if s.calls[p] > 0 {
			return p
		}
	}
	return "check"
}

// subjects runs every phase once and returns the subjects in the lab's own log.
func (s *site) subjects() (list []subject, c course) {
	s.t.Helper()
	c.start = s.facts()
	found := map[string]*subject{}
	undisturbed := map[string]outages{}
	for _, phase := range phases {
		end := s.watch()
		var got said
		switch phase {
		case "apply":
			got = s.here(0, s.apply()...)
		case "check":
			got = s.here(0, s.check()...)
		default:
			got = s.back()
		}
		if got.code != 0 && phase != "check" { // a lab causes warnings
			s.t.Fatalf("undisturbed %s: exit %d\n%s", phase, got.code, got)
		}
		note := func(counts map[string]int, command bool) {
			for name, n := range counts {
				if found[name] == nil {
					found[name] = &subject{name: name, command: command, calls: map[string]int{}, outages: undisturbed}
				}
				found[name].calls[phase] += n
			}
		}
		u := end()
		note(u.calls, false)
		note(u.commands, true)
		undisturbed[phase] = u.outages
		if phase == "apply" {
			c.end = s.facts()
		}
	}
	s.started("an undisturbed rollback", c)
	s.forget()
	for _, name := range slices.Sorted(maps.Keys(found)) {
		list = append(list, *found[name])
	}
	return list, c
}

// program0 names a command as fault rules do: the base name of its first word, with the subcommand of programs that have many.
func program0(argv string) string {
	words := strings.Fields(argv)
	name := path.Base(words[0])
	switch name {
	case "systemctl", "ip", "apt-get", "nmcli", "netplan", "dnf", "esxcli", "mlxconfig", "mst":
		for _, w := range words[1:] {
			if !strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "/") && !strings.Contains(w, ":") {
				if before, _, _ := strings.Cut(argv, w); before == words[0]+" " {
					return name + " " + w
				}
				break
			}
		}
	}
	return name
}

// repeatable matches methods that can be called again without reading the result of the first call: they only read, or concern our
// own session, or have no further effect, such as a second shutdown of a guest that is shutting down. How many members share a
// call of ReconfigureDvs_Task depends on when they are due, so a second one is not noticed here.
var repeatable = regexp.MustCompile(
	`^(Retrieve|ContinueRetrieve|Query|Fetch|CurrentTime|HasPrivilege|WaitFor|CancelWait|Create(ContainerView|ListView|Filter|PropertyCollector)|ModifyListView|DestroyView|Log(in|out)|Refresh|ExecuteSoap|ShutdownGuest|ReconfigureDvs_Task)`)

// twice checks that a call that took effect, but was not answered, does not take effect a second time, and reports repeated calls.
func (s *site) twice(sub subject, rule, do string, u used) string {
	s.t.Helper()
	n, phase := u.calls[sub.name], sub.phase()
	if sub.command {
		n = u.commands[sub.name]
	}
	n -= sub.calls[phase]
	if do == "drop-after" {
		if u.outages.more(sub.outages[phase]) {
			s.t.Errorf("%s: TWICE: hosts down and VMs off %v, undisturbed %v", rule, u.outages, sub.outages[phase])
		}
		if n > 0 && !sub.command && !repeatable.MatchString(sub.name) {
			s.t.Errorf("%s: TWICE: %d more calls than undisturbed", rule, n)
		}
	}
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(", %d more", n)
}
