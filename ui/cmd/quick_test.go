package cmd_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// pageSize is the number of objects that one call for properties returns.
const pageSize = 500

// TestQuickCheckCostsAFewCallsWhateverTheNumberOfHosts counts calls in the vCenter, including login and logout. make e2e-full has
// more hosts.
func TestQuickCheckCostsAFewCallsWhateverTheNumberOfHosts(t *testing.T) {
	t.Parallel()
	counts := []int{4, 12}
	if testclass.Sized(t) {
		counts = []int{4, 60, 120}
	}
	for _, hosts := range counts {
		t.Run(fmt.Sprint(hosts, " hosts"), func(t *testing.T) {
			const vms = 20
			b := newBench(t, lab.Options{Hosts: hosts, VMs: vms})
			pages := (2*hosts + 2*vms + 20) / pageSize // every object of the overview, and the selected ones again
			for _, args := range [][]string{{"check", "--quick", "-o", "json"}, {"check", "--quick", "-o", "json", "-f", "ANSWERS"}} {
				before := b.lab.Calls()
				_, out, errs := b.run(args...)
				var doc struct {
					Results  []json.RawMessage
					APICalls int `json:"api_calls"`
				}
				if err := json.Unmarshal([]byte(out), &doc); err != nil {
					t.Fatalf("%v: %s", err, errs)
				}
				n := b.lab.Calls() - before
				if n > 15+pages {
					t.Errorf("%v: %d calls for %d hosts, at most 15 and one for each of %d further pages", args, n, hosts, pages)
				}
				if doc.APICalls > n || doc.APICalls < n-2 { // the logout, and other calls that the server counts, come after the document
					t.Errorf("%v: it says %d calls, the vCenter counted %d", args, doc.APICalls, n)
				}
				if len(doc.Results) < 10*hosts {
					t.Errorf("%v: only %d results", args, len(doc.Results))
				}
				t.Logf("%d hosts, %v: %d calls", hosts, args, n)
			}
		})
	}
}
