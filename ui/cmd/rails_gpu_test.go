package cmd_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// Whole cards on two rails, from an unconfigured site to the evaluated measurement: each VM has both ports of its host's card and a
// GPU, the second plan is empty, and a rollback removes the cards.
func TestWholeCardsOnTwoRails(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "rails", Hosts: 2, VMs: 2, RebootTime: 50 * time.Millisecond, BootTime: 50 * time.Millisecond})
	file := edited(t, filepath.Join(b.lab.Dir(), "answers-gpudirect.yaml"), "guest:\n  install",
		"measure: {latency: false}\nguest:\n  install")
	b.must(0, "apply", "-f", file, "--yes")
	b.lab.World().View(func(s *world.State) {
		for _, v := range s.VMs {
			var has []string
			for _, d := range v.Devices {
				has = append(has, d.PCI)
			}
			slices.Sort(has)
			if !slices.Equal(has, []string{"0000:3b:00.0", "0000:3b:00.1", "0000:3c:00.0"}) {
				t.Errorf("%s has %q", v.Name, has)
			}
		}
	})
	report, _ := b.must(0, "report", "-o", "json")
	for _, want := range []string{"vm-01 rail-1 vm-02 rail-1 pass", "vm-01 rail-2 vm-02 rail-2 pass", "vm-02 rail-2 vm-01 rail-2 pass"} {
		if got := measuredOn(t, report, "ib_write_bw"); !slices.Contains(got, want) {
			t.Errorf("%q is not among %q", want, got)
		}
	}
	if code, out, said := b.run("plan", "-f", file, "--detailed-exitcode"); code != 0 {
		t.Errorf("the second plan: exit %d\n%s%s", code, out, said)
	}
	b.must(0, "rollback", "--yes")
	b.lab.World().View(func(s *world.State) {
		for _, v := range s.VMs {
			if len(v.Devices) > 0 {
				t.Errorf("after the rollback %s has %d devices", v.Name, len(v.Devices))
			}
		}
		for _, h := range s.Hosts {
			for _, d := range h.PCI {
				if d.PassthruEnabled {
					t.Errorf("after the rollback %s of %s is passed through", d.Address, h.Name)
				}
			}
		}
	})
}

// measuredOn returns the measurements of one test in a report, "vm-01 rail-1 vm-02 rail-1 pass".
func measuredOn(t *testing.T, report, test string) []string {
	t.Helper()
	var r struct {
		Measurements []struct {
			From, To, Test, Verdict string
			RailFrom                string `json:"rail_from"`
			RailTo                  string `json:"rail_to"`
		}
	}
	if err := json.Unmarshal([]byte(report), &r); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range r.Measurements {
		if m.Test == test {
			out = append(out, strings.Join([]string{m.From, m.RailFrom, m.To, m.RailTo, m.Verdict}, " "))
		}
	}
	return out
}
