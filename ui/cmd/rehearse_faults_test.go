package cmd_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/ui/cmd/twin"
)

// rehearsal runs rehearse with -o json and returns its result, its exit code and what it says.
func (b *bench) rehearsal(args ...string) (r twin.Rehearsal, code int, said string) {
	b.t.Helper()
	code, out, errs := b.run(append([]string{"rehearse", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		b.t.Fatalf("rehearse %q: %d, %v\n%s\n%s", args, code, err, out, errs)
	}
	return r, code, errs
}

// A host that does not come back from its reboot is out of service to the end, and so are its VMs. The run there waits for it as long as
// the answers say; the rehearsal does not.
func TestRehearseAHostThatDoesNotComeBack(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	site := newBench(t, lab.Options{Scenario: "sriov-half", Hosts: 2, VMs: 2})
	answers := filepath.Join(site.lab.Dir(), "answers-sriov.yaml")
	r, code, _ := site.rehearsal("-f", answers, "--fault", "host=esx-02,method=RebootHost_Task,do=reboot-never")
	if code != 5 || r.Status != "partial" || !slices.Equal(r.NotBack, []string{"esx-02", "vm-02"}) {
		t.Errorf("exit %d, %s, not back: %q", code, r.Status, r.NotBack)
	}
	if !slices.ContainsFunc(r.Failed, func(s string) bool {
		return strings.Contains(s, "esx-02: reboot: the host has not come back within 30m0s")
	}) {
		t.Errorf("failed: %q", r.Failed)
	}
	if r.Worst < 30*60 || r.Window < r.Worst {
		t.Errorf("a VM is off for %d s of %d s, the limit of the reboot not included", r.Worst, r.Window)
	}
	if r.Rollback != "partial" || r.Restored || len(r.NotUndone) == 0 || len(r.Differs) == 0 {
		t.Errorf("rollback %s, restored %t, failed %q, differs %q", r.Rollback, r.Restored, r.NotUndone, r.Differs)
	}
}

// A run that stops without a failed step says what it has not done. On the twin the card of vm-02 is back, so the VM starts, and its guest
// needs more than the plan could know.
func TestRehearseAPartialRun(t *testing.T) {
	t.Parallel()
	site := newBench(t, lab.Options{Scenario: "gpudirect-moved", Hosts: 2, VMs: 2})
	r, code, _ := site.rehearsal("-f", filepath.Join(site.lab.Dir(), "answers-gpudirect.yaml"))
	text := strings.Join(r.Failed, "\n")
	if code != 5 || r.Status != "partial" || !strings.Contains(text, "stopped before a change that you have not accepted: ") ||
		!strings.Contains(text, "not done: vm-02: install packages ") {
		t.Errorf("exit %d, %s: %q", code, r.Status, r.Failed)
	}
}

// Whether a BlueField is in NIC mode is in its firmware, which is not read without the ESXi shell: the twin assumes it, and says so.
func TestRehearseOnABlueField(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	site := newBench(t, lab.Options{Scenario: "sriov-bluefield", Hosts: 2, VMs: 2})
	r, code, _ := site.rehearsal("-f", filepath.Join(site.lab.Dir(), "answers-sriov.yaml"))
	assumed := func(s string) bool { return strings.Contains(s, "the mode of this BlueField was not read") }
	if code != 0 || r.Status != "done" || !r.Restored || !slices.ContainsFunc(r.Assumed, assumed) {
		t.Errorf("exit %d, %s, restored %t, assumed %q", code, r.Status, r.Restored, r.Assumed)
	}
}
