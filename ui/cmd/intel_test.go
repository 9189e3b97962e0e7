package cmd_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// TestIntelE810: PVRDMA on cards of another family, from the answers to the report; VFs of them are refused with a reason.
func TestIntelE810(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "e810", Hosts: 2, VMs: 2, Systems: []string{"ubuntu-22.04"}, RebootTime: 50 * time.Millisecond,
		BootTime: 50 * time.Millisecond})
	_, why := b.must(3, "plan", "-f", filepath.Join(b.lab.Dir(), "answers-sriov.yaml"))
	if !strings.Contains(why, "VFs of E810 cards have no RDMA in guests") || !strings.Contains(why, "drivers/infiniband/hw/irdma") {
		t.Errorf("SR-IOV:\n%s", why)
	}
	out, _ := b.must(10, "plan", "-f", "ANSWERS", "--detailed-exitcode")
	if !strings.Contains(out, "vmnic2 (vmrdma0, 100G, icen)") {
		t.Errorf("the plan takes another pNIC:\n%s", out)
	}
	b.must(0, "apply", "-f", "ANSWERS", "--yes")
	b.must(0, "check", "-f", "ANSWERS")
	b.must(0, "plan", "-f", "ANSWERS", "--detailed-exitcode")
	if out, _ := b.must(0, "report", "-o", "markdown"); !strings.Contains(out, "E810") {
		t.Errorf("the report does not name the card:\n%s", out)
	}
}

// TestIntelIWARP: a card that uses iWARP is refused, and the message names the module parameter that changes this.
func TestIntelIWARP(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "broken-iwarp", Hosts: 2, VMs: 2})
	_, why := b.must(3, "plan", "-f", "ANSWERS")
	if !strings.Contains(why, "supports iWARP only") || !strings.Contains(why, "set the protocol of module irdman back to RoCE v2") {
		t.Errorf("%s", why)
	}
}

// TestIntelRDMAOff: the plan enables RDMA in icen, with a reboot of the host, and rollback disables it again.
func TestIntelRDMAOff(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "e810-off", Hosts: 1, VMs: 1, Systems: []string{"ubuntu-22.04"}, RebootTime: 50 * time.Millisecond,
		BootTime: 50 * time.Millisecond})
	out, _ := b.must(10, "plan", "-f", "ANSWERS", "--detailed-exitcode")
	if !strings.Contains(out, "switches RDMA on for vmnic2") || !strings.Contains(out, "RDMA=1,0") {
		t.Errorf("the plan leaves RDMA off:\n%s", out)
	}
	b.must(0, "apply", "-f", "ANSWERS", "--yes")
	if out, _ := b.must(0, "discover"); !strings.Contains(out, "vmrdma0") {
		t.Errorf("after the reboot:\n%s", out)
	}
	b.must(0, "plan", "-f", "ANSWERS", "--detailed-exitcode")
	b.must(0, "rollback", "--yes")
	if out, _ := b.must(3, "discover"); strings.Contains(out, "vmrdma") {
		t.Errorf("after the rollback:\n%s", out)
	}
}
