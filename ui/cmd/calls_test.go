package cmd_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// perHost bounds the esxcli calls of one command per host.
const perHost = 10

// TestCallsPerHost counts, in the lab, the esxcli calls of plan and check for each host. The bound holds for any number of hosts;
// make e2e-full has a hundred.
func TestCallsPerHost(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	many := 12
	if testclass.Sized(t) {
		many = 100
	}
	for _, site := range []struct {
		hosts    int
		scenario string
	}{{2, ""}, {2, "sriov-ready"}, {many, ""}} {
		hosts := site.hosts
		t.Run(fmt.Sprint(hosts, " hosts ", site.scenario), func(t *testing.T) {
			t.Parallel()
			l := openLab(t, lab.Options{Hosts: hosts, VMs: 2, Dir: t.TempDir(), Scenario: site.scenario})
			env := environment(l, t.TempDir())
			for _, mode := range []answers.Mode{answers.PVRDMA, answers.SRIOV, answers.GPUDirect} {
				for _, command := range []string{"plan", "check"} {
					before, all := l.World().Log.Calls(), l.Calls()
					_, errs, code := inProcess(env, command, "-f", filepath.Join(l.Dir(), "answers-"+string(mode)+".yaml"))
					if code == 4 || errs != "" && code != 3 {
						t.Fatalf("%s %s: exit %d\n%s", command, mode, code, errs)
					}
					after := l.World().Log.Calls()
					n := after["ExecuteSoap"] - before["ExecuteSoap"]
					t.Logf("%s %s: %d ExecuteSoap, %d calls in all", command, mode, n, l.Calls()-all)
					if n > perHost*hosts {
						t.Errorf("%s %s: %d esxcli calls for %d hosts, at most %d for each", command, mode, n, hosts, perHost)
					}
				}
			}
		})
	}
}

// The calls of a plan depend on the number of hosts, not of rails: two rails and eight take the same number.
func TestCallsOfRails(t *testing.T) {
	t.Parallel()
	calls := map[string]int{}
	for _, scenario := range []string{"rails", "rails-8"} {
		for _, hosts := range []int{2, 6} {
			l := openLab(t, lab.Options{Hosts: hosts, VMs: hosts, Dir: t.TempDir(), Scenario: scenario})
			env := environment(l, t.TempDir())
			for _, mode := range []answers.Mode{answers.PVRDMA, answers.SRIOV} {
				before := l.Calls()
				succeeds(t, env, "plan", "-f", filepath.Join(l.Dir(), "answers-"+string(mode)+".yaml"))
				calls[fmt.Sprint(scenario, mode, hosts)] = l.Calls() - before
			}
		}
	}
	for _, mode := range []answers.Mode{answers.PVRDMA, answers.SRIOV} {
		few, many := calls[fmt.Sprint("rails", mode, 6)], calls[fmt.Sprint("rails-8", mode, 6)]
		each := (many - calls[fmt.Sprint("rails-8", mode, 2)]) / 4
		t.Logf("%s: %d calls for 6 hosts of two rails, %d for 6 of eight, %d for each host more", mode, few, many, each)
		if many > few || each > perHost {
			t.Errorf("%s: %d calls for two rails, %d for eight, %d for each host more", mode, few, many, each)
		}
	}
}
