package cmd_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// The report of a run says whether its rollback has finished.
func TestReportOfARollbackThatDidNotFinish(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	b := newBench(t, lab.Options{Hosts: 1, VMs: 1, Faults: []string{"method=Destroy,nth=1,do=task-fault:InvalidState"}})
	answers := b.lab.Dir() + "/answers-pvrdma.yaml"
	if code, out, errs := b.run("apply", "-f", answers, "--yes"); code != 0 {
		t.Fatalf("apply: %d\n%s\n%s", code, out, errs)
	}
	for _, want := range []string{"The rollback of the run did not finish", "The run was rolled back"} {
		code, out, errs := b.run("rollback", "--yes")
		if _, text, _ := b.run("report"); !strings.Contains(text, want) || (code == 0) != strings.Contains(text, "The run was rolled back") {
			t.Errorf("rollback: %d, report without %q:\n%s\n%s\n%s", code, want, out, errs, text)
		}
	}
}
