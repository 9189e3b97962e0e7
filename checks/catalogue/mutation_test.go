package catalogue_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// A mutation breaks one thing in a healthy fabric and states the expected result: the row and its status, and the other rows that
// rightly report the same.
type mutation struct {
	id     string
	mode   answers.Mode
	want   checks.Status
	change func(f *checks.Facts)
	others string
}

const (
	p = answers.PVRDMA
	s = answers.SRIOV
	g = answers.GPUDirect
)

// The third host and the objects on it: the majority stays healthy.
func theHost(f *checks.Facts) *backends.Host   { return &f.Inventory.Hosts[2] }
func theVM(f *checks.Facts) *backends.VM       { return &f.Inventory.VMs[2] }
func theGuest(f *checks.Facts) *backends.Guest { return &f.Inventory.Guests[2] }
func theSwitch(f *checks.Facts) *backends.Switch {
	return &f.Inventory.Switches[0]
}
func theGroup(f *checks.Facts) *backends.PortGroup { return &f.Inventory.PortGroups[0] }
func thePair(f *checks.Facts) *checks.PairFacts    { return &f.Pairs[len(f.Pairs)-1] }

// theNIC is the RDMA pNIC of the third host (not in gpudirect).
func theNIC(f *checks.Facts) *backends.NIC { return &theHost(f).NICs[1] }

// theFacts changes the facts that esxcli reported for the third host.
func theFacts(change func(h *backends.HostSystem)) func(f *checks.Facts) {
	return func(f *checks.Facts) {
		change(theHost(f).System)
	}
}

func mutations() []mutation {
	return slices.Concat(vcenterMutations(), hostMutations(), nicMutations(), directMutations(), switchMutations(), vmMutations(),
		gpuMutations(), guestMutations(), pairMutations())
}

func TestOneFaultIsReportedByItsRow(t *testing.T) {
	for _, m := range mutations() {
		f := healthy(m.mode)
		m.change(f)
		if !strings.Contains("HOST-PNIC-MAC-005 VM-HWVER-SLOT-004 GST-NAME-017", m.id) {
			f.Baseline = f.Inventory // nothing has changed: drift has a test of its own
		}
		told := amiss(f, m.want == checks.Unknown)
		for _, id := range strings.Fields(notHere(m.mode)) {
			if told[id] == checks.Unknown {
				delete(told, id)
			}
		}
		if told[m.id] != m.want {
			t.Errorf("%s (%s): %q, want %s: %s", m.id, m.mode, told[m.id], m.want, evidence(f, m.id))
		}
		delete(told, m.id)
		for _, id := range strings.Fields(m.others) {
			if told[id] == "" {
				t.Errorf("%s (%s %s): %s does not notice", m.id, m.mode, m.want, id)
			}
			delete(told, id)
		}
		for _, id := range slices.Sorted(maps.Keys(told)) {
			t.Errorf("%s (%s %s): %s is %s too: %s", m.id, m.mode, m.want, id, told[id], evidence(f, id))
		}
	}
}

func TestEveryRowHasAFault(t *testing.T) {
	// one only reports a number, the others need several rails
	told := map[string]bool{"GST-HUGE-021": true, "SW-RAIL-015": true, "GST-POLICY-036": true}
	for _, m := range mutations() {
		told[m.id] = true
	}
	for _, c := range catalogue.Checks() {
		if !told[c.ID] {
			t.Errorf("%s: no fault in the table", c.ID)
		}
	}
}
