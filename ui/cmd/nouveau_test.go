package cmd_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// nouveau drives the GPU of each guest: it is blacklisted and the guest rebooted during the run, then NVIDIA's driver is installed
// and measured. A second plan contains no change for it, and a rollback succeeds.
func TestNouveauLeavesTheGPUInsideTheRun(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	env, file := gpuLab(t, "nouveau")
	out, errs, code := inProcess(env, "plan", "-f", file)
	for _, want := range []string{"keep nouveau from the GPU and reboot the guest",
		"are rebooted inside the run, because nouveau uses their GPUs"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Fatalf("plan: exit %d, want %q\n%s%s", code, want, out, errs)
		}
	}
	if out, errs, _ := inProcess(env, "check", "-f", file); !strings.Contains(out, "nouveau drives ") {
		t.Errorf("check:\n%s%s", out, errs)
	}
	succeeds(t, env, "apply", "-f", file, "--yes")
	if out, errs, code := inProcess(env, "plan", "-f", file, "--detailed-exitcode"); code != 0 || strings.Contains(out, "keep nouveau") {
		t.Errorf("planned again: exit %d\n%s%s", code, out, errs)
	}
	succeeds(t, env, "rollback", "--yes")
}
