package cmd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// TestBroadcomNetXtremeE: PVRDMA on cards of a third family, from the answers to the report and back; VFs and PFC are refused with a
// reason.
func TestBroadcomNetXtremeE(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "broadcom-bnxt", Hosts: 2, VMs: 2, Systems: []string{"ubuntu-22.04"},
		RebootTime: 50 * time.Millisecond, BootTime: 50 * time.Millisecond})
	before, _ := b.must(0, "discover")
	_, why := b.must(3, "plan", "-f", filepath.Join(b.lab.Dir(), "answers-sriov.yaml"))
	if !strings.Contains(why, "VFs of NetXtreme-E cards are configured in the card's NVRAM") || !strings.Contains(why, "UG100, SR-IOV") {
		t.Errorf("SR-IOV:\n%s", why)
	}
	text := testclass.Read(t, filepath.Join(b.lab.Dir(), "answers-pvrdma.yaml"))
	pfc := filepath.Join(t.TempDir(), "pfc.yaml")
	testclass.OK(t, os.WriteFile(pfc, append(text, "\nqos: {lossless: pfc}\n"...), 0o600))
	if _, why := b.must(3, "plan", "-f", pfc); !strings.Contains(why, "vmnic2 has driver bnxtnet") ||
		!strings.Contains(why, "configure DCBX on the switch") {
		t.Errorf("PFC:\n%s", why)
	}
	out, _ := b.must(10, "plan", "-f", "ANSWERS", "--detailed-exitcode")
	if !strings.Contains(out, "vmnic2 (vmrdma0, 100G, bnxtnet)") || !strings.Contains(out, "0 host reboots") {
		t.Errorf("the plan takes another pNIC, or reboots hosts:\n%s", out)
	}
	b.must(0, "apply", "-f", "ANSWERS", "--yes")
	b.must(0, "check", "-f", "ANSWERS")
	b.must(0, "plan", "-f", "ANSWERS", "--detailed-exitcode")
	if out, _ := b.must(0, "report", "-o", "markdown"); !strings.Contains(out, "BCM57508 NetXtreme-E") ||
		!strings.Contains(out, "at expected line rate") {
		t.Errorf("the report does not name the card, or the rate is low:\n%s", out)
	}
	b.must(0, "rollback", "--yes")
	if after, _ := b.must(0, "discover"); after != before {
		t.Errorf("before:\n%s\nafter the rollback:\n%s", before, after)
	}
}

// TestBroadcomRDMAOff: RDMA that is disabled in the card's NVRAM is not visible to esxcli and cannot be enabled by a plan; the hint
// names the NVRAM.
func TestBroadcomRDMAOff(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "broadcom-bnxt-off", Hosts: 1, VMs: 1})
	_, why := b.must(3, "plan", "-f", "ANSWERS")
	if !strings.Contains(why, "vmnic2 has no RDMA device") || !strings.Contains(why, "enable RDMA for the port in the card's NVRAM") {
		t.Errorf("%s", why)
	}
}
