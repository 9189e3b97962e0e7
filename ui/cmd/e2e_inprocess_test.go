//go:build e2e

package cmd_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// These tests take the longest of those on labs in the same process.

func TestE2EBrokenLinks(t *testing.T) { brokenLinks(t, 1) }

func TestE2ERolesAreExact(t *testing.T) {
	for mode, scenario := range map[answers.Mode]string{answers.SRIOV: "bare", answers.GPUDirect: "gpudirect"} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			roleIsExact(t, mode, scenario)
		})
	}
}

func TestE2ESRIOVKeepsSettingsOfOthers(t *testing.T) {
	for name, c := range map[string]existingVFs{
		"the firmware gives more": {"bare", "0,0,0,7", "0,0,8,7", 64, true, map[string]string{"0000:3b:00.0 NUM_OF_VFS": "64"}},
		"cards and vmnics the other way round": {"sriov-reversed", "7,0,0,0", "7,8,0,0", 8, false, map[string]string{
			"0000:3b:00.0 NUM_OF_VFS": "16", "VFs of 0000:3b:00.0": "7", "VFs of 0000:3b:00.1": "8", "VFs of 0000:d8:00.0": "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.applyAndRollBack(t)
		})
	}
}

// Driver and perftest are built from the files that the answers name and GPU memory is measured with them; a rollback removes all
// of it.
func TestE2EGPUDirectFromFiles(t *testing.T) {
	t.Parallel()
	env, file := gpuLab(t, "gpudirect-source")
	out, errs, code := inProcess(env, "apply", "-f", file, "--yes")
	if code != 0 || !strings.Contains(out, "ib_write_bw --use_cuda") || !strings.Contains(out, "0 failed, 0 not tried") {
		t.Fatalf("apply: exit %d\n%s%s", code, out, errs)
	}
	succeeds(t, env, "plan", "-f", file, "--detailed-exitcode")
	succeeds(t, env, "rollback", "--yes")
	out, errs, code = inProcess(env, "plan", "-f", file, "-o", "json")
	if code != 0 || !strings.Contains(out, `"guest/vm-01/build/nvidia"`) || !strings.Contains(out, `"guest/vm-02/build/perftest"`) {
		t.Errorf("after the rollback: exit %d\n%s%s", code, out, errs)
	}
}
