package cmd_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// gpuLab is a lab whose account holds exactly what generate role prints for the mode.
func gpuLab(t *testing.T, scenario string) (env map[string]string, file string) {
	t.Helper()
	l, err := lab.Start(t.Context(), lab.Options{Scenario: scenario, Hosts: 2, VMs: 2, Dir: t.TempDir(), RebootTime: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	env = environment(l, t.TempDir())
	newRole(t, env).hold(t, checks.Privileges(answers.GPUDirect))
	return env, filepath.Join(l.Dir(), "answers-gpudirect.yaml")
}

// hardware is what a rollback must bring back: devices, keys and reservations, without what boots and clocks move.
func hardware(t *testing.T, env map[string]string, file string) *backends.Inventory {
	t.Helper()
	out, errs, code := inProcess(env, "discover", "-o", "json")
	if code != 0 {
		t.Fatalf("discover: exit %d\n%s", code, errs)
	}
	var inv backends.Inventory
	if err := json.Unmarshal([]byte(out), &inv); err != nil {
		t.Fatal(err)
	}
	inv.VCenter.Clock, inv.APICalls = time.Time{}, 0
	for i := range inv.Hosts {
		inv.Hosts[i].BootTime, inv.Hosts[i].MemoryUsedMB = time.Time{}, 0
	}
	return &inv
}

// edited writes the answers anew with a word replaced.
func edited(t *testing.T, file, old, now string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(b), old, now)
	if text == string(b) {
		t.Fatalf("%q does not stand in the answers", old)
	}
	file = filepath.Join(t.TempDir(), "answers.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// With the role of the mode and no more: apply, nothing left to do, rollback to what was there. A window that is too small
// is refused; forced, the VM does not start, the cause is named, and rollback brings everything back.
func TestGPUDirectFromBareToBack(t *testing.T) {
	t.Parallel()
	env, file := gpuLab(t, "gpudirect")
	start := hardware(t, env, file)
	guide := edited(t, file, "mmio: kb", "mmio: guide")
	out, errs, code := inProcess(env, "plan", "-f", guide)
	if code != 3 || !strings.Contains(errs, "256 GB is the least") || !strings.Contains(errs, "--skip VM-MMIO-SIZE-024") {
		t.Fatalf("the guide's size for an 80 GB card: exit %d\n%s%s", code, out, errs)
	}
	out, errs, code = inProcess(env, "apply", "-f", guide, "--yes", "--skip", "VM-MMIO-SIZE-024")
	if said := out + errs; code != 5 || !strings.Contains(said, "firmware found no room") || !strings.Contains(said, "64bitMMIOSizeGB to 256 at least") {
		t.Fatalf("forced: exit %d\n%s", code, said)
	}
	back := func(after string) {
		t.Helper()
		if out, errs, code := inProcess(env, "rollback", "--yes"); code != 0 {
			t.Fatalf("rollback %s: exit %d\n%s%s", after, code, out, errs)
		}
		if diff := cmp.Diff(start, hardware(t, env, file)); diff != "" {
			t.Errorf("the rollback %s leaves:\n%s", after, diff)
		}
	}
	back("of the forced run")
	if out, errs, code := inProcess(env, "apply", "-f", file, "--yes"); code != 0 {
		t.Fatalf("apply: exit %d\n%s%s", code, out, errs)
	}
	if out, errs, code := inProcess(env, "plan", "-f", file, "--detailed-exitcode"); code != 0 {
		t.Errorf("a second plan: exit %d\n%s%s", code, out, errs)
	}
	back("of the run")
}

// What cannot work is refused before anything is written, with what to do instead.
func TestGPUDirectIsRefused(t *testing.T) {
	for scenario, want := range map[string]string{
		"gpudirect-bios": "create a new VM with EFI firmware", "gpudirect-busy": "belongs to render-01", "gpudirect-vgpu": "vGPU grid_a100d-40c",
	} {
		t.Run(scenario, func(t *testing.T) {
			env, file := gpuLab(t, scenario)
			out, errs, code := inProcess(env, "apply", "-f", file, "--yes")
			if code != 3 || !strings.Contains(errs, want) {
				t.Errorf("exit %d, want %q:\n%s%s", code, want, out, errs)
			}
			if out, _, _ := inProcess(env, "runs", "-o", "json"); !strings.Contains(out, `"runs": []`) {
				t.Errorf("a run was begun:\n%s", out)
			}
		})
	}
}

// GPU and NIC below different sockets: the plan says before any change that no pair can do peer-to-peer.
func TestGPUDirectSplitIsSaidBefore(t *testing.T) {
	env, file := gpuLab(t, "gpudirect-split")
	out, errs, code := inProcess(env, "plan", "-f", file)
	if code != 0 || !strings.Contains(out, "NO GPU of this VM is certain to reach the RDMA card") || !strings.Contains(out, "different root complexes") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}
