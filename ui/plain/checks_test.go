package plain_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// The chain is printed in one line, and the first failure in it comes before later failures and before warnings.
func TestChain(t *testing.T) {
	var b bytes.Buffer
	found := []checks.Finding{
		{ID: "GST-PORT-010", Target: backends.GuestRef("vm-02"), Status: checks.Fail, Evidence: "PORT_DOWN", Remedy: "Load it again."},
		{ID: "HOST-FW-PVRDMA-007", Target: backends.HostRef("esx-02"), Status: checks.Fail, Evidence: "ruleset pvrdma is off",
			Remedy: "Enable it."},
		{ID: "CL-VER-002", Target: backends.HostRef("esx-01"), Status: checks.Warn, Evidence: "ESXi 8.0.2", Remedy: "Align."},
		{ID: "DVS-MTU-006", Target: backends.SwitchRef("D"), Status: checks.Pass},
	}
	var nothing []string
	for _, c := range catalogue.Checks() {
		if c.Link != checks.InBIOS && c.Link != checks.InSwitch {
			nothing = append(nothing, c.ID)
		}
	}
	err := plain.Chain(&b, catalogue.Chain(found, nothing...), catalogue.FirstBroken(found))
	want := "chain   BIOS not read > host fail > switch partly read > guest fail\n" +
		"first   host: HOST-FW-PVRDMA-007 esx-02: ruleset pvrdma is off\n        remedy: Enable it.\n"
	if err != nil || b.String() != want {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// A reason that many checks of one guest share is printed once, with their number, and targets are in natural order.
func TestOneReasonOfAGuestIsSaidOnce(t *testing.T) {
	var all []checks.Finding
	add := func(id, vm, why string) {
		all = append(all, checks.Finding{ID: id, Target: backends.GuestRef(vm), Status: checks.Unknown, Evidence: why, Remedy: "Do it."})
	}
	for i := range 25 {
		id := fmt.Sprintf("GST-X-%03d", i)
		add(id, "vm-10", "the guest could not be asked: timeout")
		add(id, "vm-9", "the guest could not be asked: timeout")
		add(id, "vm-8", "the guest could not be asked: password refused")
	}
	add("GST-Y-001", "vm-10", "not installed")
	add("GST-Y-001", "vm-9", "not installed")
	var b bytes.Buffer
	err := plain.Findings(&b, all)
	want := "UNKNOWN GST-Y-001  vm-9, vm-10\n        not installed\n" +
		"UNKNOWN 25 checks  vm-8\n        the guest could not be asked: password refused\n        -o json lists each of them\n" +
		"UNKNOWN 25 checks each  vm-9, vm-10\n        the guest could not be asked: timeout\n        -o json lists each of them\n" +
		"0 passed, 0 warnings, 0 failed, 77 unknown\n"
	if err != nil || b.String() != want {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// A failure stays in the list if its cause merely could not be evaluated.
func TestFailureIsNotFoldedIntoAnUnknown(t *testing.T) {
	esx := backends.HostRef("esx-1")
	r := report.Report{Checks: []checks.Finding{
		{ID: "HOST-SRIOVBIOS-006", Target: esx, Status: checks.Fail, Evidence: "not capable of SR-IOV"},
		{ID: "HOST-SRIOVEN-009", Target: esx, Status: checks.Unknown, Evidence: "password refused"},
	}}
	var b bytes.Buffer
	err := plain.Findings(&b, r.Checks, r.Causes()...)
	if err != nil || !bytes.Contains(b.Bytes(), []byte("FAIL    HOST-SRIOVBIOS-006  esx-1\n        not capable of SR-IOV")) {
		t.Errorf("%v\n%s", err, b.String())
	}
}
