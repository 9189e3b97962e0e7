package cmd_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab"
)

// check says of a pNIC that cannot carry the RDMA of the answers what plan says of it, and names the same remedy.
func TestCheckAndPlanRefuseAPNICInTheSameWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ scenario, mode, id string }{
		{"e810", "sriov", "HOST-PNIC-DRIVER-006"}, {"broadcom-bnxt-off", "pvrdma", "HOST-PNIC-RDMA-001"},
		{"broken-iwarp", "pvrdma", "HOST-PNIC-ROCEV2-002"},
	} {
		t.Run(tt.scenario, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, lab.Options{Scenario: tt.scenario, Hosts: 1, VMs: 1})
			answers := filepath.Join(b.lab.Dir(), "answers-"+tt.mode+".yaml")
			_, _, refused := b.run("plan", "-f", answers)
			_, out, errs := b.run("check", "--quick", "-f", answers, "-o", "json")
			var doc struct {
				Results []struct{ ID, Status, Evidence, Remedy string }
			}
			if err := json.Unmarshal([]byte(out), &doc); err != nil {
				t.Fatalf("%v\n%s\n%s", err, out, errs)
			}
			found := false
			for _, c := range doc.Results {
				found = found || c.ID == tt.id
				hint := strings.ToLower(c.Remedy[:1]) + strings.TrimSuffix(c.Remedy[1:], ".")
				if c.ID == tt.id && (c.Status != "fail" || !strings.Contains(refused, c.Evidence) || !strings.Contains(refused, hint)) {
					t.Errorf("check: %+v\nplan: %s", c, refused)
				}
			}
			if !found {
				t.Errorf("no %s in\n%s", tt.id, out)
			}
		})
	}
}

// discover does not say that there is no card where RDMA may be switched off in the driver of one, which a plan finds out.
func TestDiscoverKnowsThatRDMAMayBeOff(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "e810-off", Hosts: 1, VMs: 1})
	if code, _, errs := b.run("discover"); code != 3 || !strings.Contains(errs, "switched off in the driver") {
		t.Errorf("%d\n%s", code, errs)
	}
	if code, out, errs := b.run("plan", "-f", filepath.Join(b.lab.Dir(), "answers-pvrdma.yaml")); code != 0 ||
		!strings.Contains(out, "RDMA=1,0") {
		t.Errorf("%d\n%s\n%s", code, out, errs)
	}
}
