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

// A subject is a SOAP method or a remote command, and how often an undisturbed run of each phase uses it.
type subject struct {
	name    string
	command bool
	calls   map[string]int // by phase: apply, check, rollback
	outages map[string]outages
}

// phases are what a subject can be used in.
var phases = []string{"apply", "check", "rollback"}

// Outages are what cannot be done a second time without somebody noticing: how often hosts went down and VMs off.
type outages struct{ hosts, vms int }

// more reports whether there was one more than there should be.
func (d outages) more(than outages) bool { return d.hosts > than.hosts || d.vms > than.vms }

// used is what the lab's log tells since a point: the calls by method, the commands by name, and the outages.
type used struct {
	calls, commands map[string]int
	outages         outages
}

// watch begins to count what is used; the function it gives ends it.
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

// rule is the fault rule that hits the call in the middle of a phase, or all of them.
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

// phase is the one in which the subject is tried: the first that uses it.
func (s subject) phase() string {
	for _, p := range []string{"apply", "rollback"} {
		if s.calls[p] > 0 {
			return p
		}
	}
	return "check"
}

// subjects runs everything once and lists what was used, from the lab's own log.
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
		if got.code != 0 && phase != "check" { // a lab has things to warn of
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

// program0 names a command as fault rules do: the base name of its first word, with the verb of programs that have many.
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

// repeatable are the methods that may be called again without a look at what the first call did: they only read, or are
// about our own session, or harm nobody: a guest that shuts down is asked to shut down.
var repeatable = regexp.MustCompile(`^(Retrieve|ContinueRetrieve|Query|Fetch|CurrentTime|HasPrivilege|WaitFor|CancelWait|Create(ContainerView|ListView|Filter|PropertyCollector)|ModifyListView|DestroyView|Log(in|out)|Refresh|ExecuteSoap|ShutdownGuest)`)

// twice holds that what took effect and was not answered is not done a second time, and tells of repeated calls.
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
