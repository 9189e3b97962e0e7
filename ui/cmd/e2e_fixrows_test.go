//go:build e2e

package cmd_test

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
)

// notFixed are the rows with an automatic fix that no scenario below has fixed, with the reason.
var notFixed = map[string]string{
	"CL-POWER-010":        "a plan for PVRDMA sets no power policy, and the others differ in all hosts",
	"DVS-NIOC-005":        "only on a switch that this program created",
	"GST-CONTAINER-030":   "needs an image in the answers",
	"GST-OFED-024":        "needs MLNX_OFED in the answers",
	"DVS-UPLINKS-004":     "not on a switch that this program did not create",
	"GST-POLICY-036":      "needs several rails in one subnet",
	"GST-QOS-035":         "needs whole cards with PFC",
	"GST-TCLASS-025":      "shows only once the guest has its VF",
	"HOST-PNIC-PAUSE-014": "needs lossless: pause in the answers",
	"HOST-POWER-009":      "no scenario below has it without other gaps",
	"HOST-PT-ACTIVE-013":  "needs whole sites for GPUDirect",
	"VM-CPURES-012":       "needs tuning.latency in the answers",
	"VM-HWVER-002":        "needs hardware: upgrade in the answers",
	"VM-HWVER-DDIO-003":   "needs dynamic DirectPath in the answers",
	"VM-LATSENS-011":      "needs tuning.latency in the answers",
	"VM-PCIADDR-050":      "needs a VM with a passthrough device of another host",
	"VM-SRIOV-MTU-020":    "needs VFs whose guests may not change the MTU",
}

// In each scenario check --fix repairs the findings whose fix is automatic, and the row passes afterwards, or it says which it cannot
// repair with these answers.
func TestE2EFixRowByRow(t *testing.T) {
	fixed := map[string]bool{}
	for _, c := range []struct{ scenario, mode string }{
		{"healthy", "pvrdma"}, {"drifted", "pvrdma"}, {"sriov-ready", "sriov"}, {"gpudirect-broken-window-off", "gpudirect"}, {"gpudirect-broken-window-small", "gpudirect"},
		{"gpudirect-broken-p2p", "gpudirect"}, {"broken-protocol-mixed", "pvrdma"}, {"broken-uplink-missing", "pvrdma"}, {"broken-uplink-standby", "pvrdma"},
		{"broken-guest-mtu", "pvrdma"}, {"broken-wrong-address", "pvrdma"}, {"broken-pg-vlan", "pvrdma"}, {"broken-not-member", "pvrdma"}, {"broken-address-lost", "pvrdma"},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			b := newBench(t, lab.Options{Scenario: c.scenario, Hosts: 3, VMs: 3, RebootTime: 100 * time.Millisecond})
			file := filepath.Join(b.lab.Dir(), "answers-"+c.mode+".yaml")
			amiss := func() map[string]string {
				out, errs, _ := inProcess(b.env, "check", "-f", file, "-o", "json")
				var doc struct{ Results []checks.Finding }
				if err := json.Unmarshal([]byte(out), &doc); err != nil {
					t.Fatalf("%v: %s%s", err, out, errs)
				}
				found := map[string]string{}
				for _, f := range doc.Results {
					if s := f.State(); f.Fix == string(checks.Automatic) && (s == checks.Fail || s == checks.Warn) {
						found[f.ID+" of "+f.Target.String()] = f.ID
					}
				}
				return found
			}
			before := amiss()
			out, errs, code := inProcess(b.env, "check", "-f", file, "--fix", "--yes")
			if len(before) == 0 || code > 2 {
				t.Fatalf("%d findings with an automatic fix, exit %d\n%s%s", len(before), code, out, errs)
			}
			after := amiss()
			for _, what := range slices.Sorted(maps.Keys(before)) {
				if id := before[what]; after[what] == "" {
					fixed[id] = true
				} else if !strings.Contains(errs, "no automatic fix for "+id) {
					t.Errorf("%s is not fixed", what)
				}
			}
		})
	}
	for _, c := range catalogue.Checks() {
		if why := notFixed[c.ID]; c.Fix == checks.Automatic && fixed[c.ID] == (why != "") {
			t.Errorf("%s: fixed %t, in the list of rows that are not fixed: %q", c.ID, fixed[c.ID], why)
		}
	}
}
