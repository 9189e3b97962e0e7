package cmd_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/ui/cmd/torture/witness"
	given "github.com/rdma-setup/rdma-setup/wizard/answers"
)

// twoCenters is a vCenter with the datacenters DC and Other, each with a cluster Cluster-01 of two hosts; only the one in DC has HA.
// The answers are for one of them. A VM of each has the name vm-01.
func twoCenters(asked int) func(*world.State) error {
	return func(s *world.State) error {
		if err := scenario.Build(s, scenario.Spec{Hosts: 4, VMs: 4}); err != nil {
			return err
		}
		s.Services = world.Services{HA: true, Failover: 1, EVC: "intel-cascadelake"}
		s.Others = []string{"Other"}
		s.Clusters = []world.Cluster{{Name: s.Cluster, Datacenter: 1, Services: world.Services{DRS: "manual"}}}
		s.Hosts[2].Cluster, s.Hosts[3].Cluster = 1, 1
		for i, v := range s.VMs {
			n := s.VMDatacenter(v)
			if n != asked {
				s.Strangers = append(s.Strangers, v.Name)
			}
			if n == 1 {
				if i == 2 {
					v.Title = "vm-01"
				}
				v.Folder, v.Path = world.RootFolder("v", 1), "/Other/vm/"+v.Name
			}
		}
		return nil
	}
}

// hostNames matches the hosts in answers of a lab.
var hostNames = regexp.MustCompile(`(?m)^  names:\n(    - .*\n)+`)

// In a vCenter with two datacenters, whose clusters and VMs have the same names, each is set up and reset without the other, and the
// twin has both.
func TestTwoDatacenters(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	for asked, datacenter := range []string{"DC", "Other"} {
		t.Run(datacenter, func(t *testing.T) {
			t.Parallel()
			site := newBench(t, lab.Options{Found: twoCenters(asked)})
			text := testclass.Read(t, filepath.Join(site.lab.Dir(), "answers-pvrdma.yaml"))
			own := []string{"vm-01", "vm-03"}[asked]
			answers := filepath.Join(t.TempDir(), "answers.yaml")
			write := func(vm string) {
				t.Helper()
				now := hostNames.ReplaceAllString(string(text), "  names: []\n")
				now = strings.NewReplacer(`datacenter: "DC"`, `datacenter: "`+datacenter+`"`, `name: "`+own+`"`, `name: "`+vm+`"`).Replace(now)
				now += "\nrun: {lock: shared}\n"
				testclass.Write(t, answers, now)
			}
			write("vm-01")
			path := "/" + datacenter + "/vm/vm-01"
			if code, _, errs := site.run("plan", "-f", answers); code != 2 || !strings.Contains(errs, path) {
				t.Errorf("plan with a name that several VMs have: %d\n%s", code, errs)
			}
			write(path)
			_, tw := site.bundle("")
			file, err := os.Open(answers)
			testclass.OK(t, err)
			defer func() { _ = file.Close() }()
			a, err := given.Load(file, answers)
			testclass.OK(t, err)
			served, tw, again := serveTwin(t, tw, a)
			if want, got := site.planHash(answers), served.planHash(again); got != want || len(want) != 64 {
				t.Errorf("plan %s on the site, %s on the twin", want, got)
			}
			before := site.outside()
			if diff := witness.Diff(before, served.outside(), assumed.MatchString); len(diff) > 0 {
				t.Errorf("%d differences:\n%s\nassumed:\n%s", len(diff), strings.Join(diff[:min(len(diff), 30)], "\n"), strings.Join(tw.Assumed, "\n"))
			}
			for _, args := range [][]string{{"apply", "-f", answers, "--yes"}, {"check", "-f", answers}, {"rollback", "--yes"}} {
				code, out, errs := site.run(args...)
				if code != 0 && (args[0] != "check" || code != 1) {
					t.Fatalf("%v: %d\n%s\n%s", args, code, out, errs)
				}
				if args[0] == "check" && strings.Contains(out, "EVC mode intel-cascadelake") != (datacenter == "DC") {
					t.Errorf("the check takes the settings of the other cluster of the name:\n%s", out)
				}
			}
			if diff := witness.Diff(before, site.outside(), nil); len(diff) > 0 {
				t.Errorf("after the rollback:\n%s", strings.Join(diff, "\n"))
			}
		})
	}
}
