package cmd_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// A vendor device group of an HGX board: its vGPUs are assigned as one unit, with exactly the role of the mode. Another client sees
// the group and its devices, the GPUs are connected over NVLink, and a rollback undoes everything. Groups that the host does not
// list are refused.
func TestVendorDeviceGroup(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	env, defaults := gpuLab(t, "hgx-h100")
	const name = "Nvidia:2@grid_h100xm-80c%NVLink"
	file := edited(t, defaults, `["0000:3c:00.0"]`, fmt.Sprintf("{group: %q}", name))
	start := hardware(t, env, file)
	_, errs, code := inProcess(env, "plan", "-f", edited(t, file, "Nvidia:2@", "Nvidia:3@"))
	if code != 3 || !strings.Contains(errs, "esx-01 lists no vendor device group Nvidia:3@grid_h100xm-80c%NVLink") ||
		!strings.Contains(errs, "name one of: "+name) {
		t.Errorf("an unknown group: exit %d\n%s", code, errs)
	}
	out, errs, code := inProcess(env, "apply", "-f", file, "--yes")
	if code != 0 || !strings.Contains(errs, "hardware version 19: vendor device groups came with ESXi 8.0") ||
		!strings.Contains(out, "50.4 GB/s in one direction") {
		t.Fatalf("apply: exit %d\n%s%s", code, out, errs)
	}
	for _, vm := range []string{"vm-01", "vm-02"} {
		seen := foreignVM(t, env, vm)
		if !slices.Equal(seen.groups, []string{name + " 0/1 0/2"}) || len(seen.vgpus) != 2 || seen.extra["pciPassthru.64bitMMIOSizeGB"] != "512" {
			t.Errorf("%s: %+v", vm, seen)
		}
	}
	if out, _, _ := inProcess(env, "check", "-f", file, "--only", "GST-GPUP2P-040,GST-NVSMI-027,HOST-GPU-GFX-018", "-o",
		"json"); strings.Count(out, `"status": "pass"`) != 6 {
		t.Errorf("check:\n%s", out)
	}
	succeeds(t, env, "plan", "-f", file, "--detailed-exitcode")
	succeeds(t, env, "rollback", "--yes")
	if diff := cmp.Diff(start, hardware(t, env, file)); diff != "" {
		t.Errorf("the rollback leaves:\n%s", diff)
	}
}

// What a vGPU lacks is refused in the plan, before any host is rebooted: the vGPU Manager, although the host still lists profiles, the
// vGPU guest driver, and a license.
func TestWhatAVGPULacksIsRefused(t *testing.T) {
	t.Parallel()
	for scenario, want := range map[string][]string{
		"hgx-no-manager": {"cannot serve vGPUs: the NVIDIA vGPU Manager is not installed", "gpudirect.manager"},
		"vgpu-guests": {"vm-01: is to have a vGPU, and its driver 570.133.20 is the one for whole GPUs", "nvidia-linux-grid-*",
			"vm-02: is to have a vGPU, and has no license for it", "client_configuration_token_*.tok"},
	} {
		env, file := gpuLab(t, scenario)
		_, errs, code := inProcess(env, "apply", "-f", file, "--yes")
		for _, w := range want {
			if code != 3 || !strings.Contains(errs, w) {
				t.Errorf("%s: exit %d, not %q\n%s", scenario, code, w, errs)
			}
		}
		if out, _, _ := inProcess(env, "runs", "-o", "json"); !strings.Contains(out, `"runs": []`) {
			t.Errorf("%s: a run was begun:\n%s", scenario, out)
		}
	}
}

// NVIDIA's vGPU Manager is installed from the datastore, or through the image of the cluster, before the graphics type is set: two
// reboots of each host, with exactly the role of the mode. A rollback removes it from an image, but not from a host without an
// image.
func TestVGPUManagerIsInstalled(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	for scenario, stays := range map[string]bool{"vgpu-bare": true, "vgpu-image": false} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			env, file := gpuLab(t, scenario)
			start := hardware(t, env, file)
			out, errs, code := inProcess(env, "apply", "-f", file, "--yes")
			if said := out + errs; code != 0 || !strings.Contains(said, "2 VM power cycles") || !strings.Contains(said, "4 host reboots") ||
				!strings.Contains(said, "% of host memory's") {
				t.Fatalf("apply: exit %d\n%s", code, said)
			}
			if seen := foreignVM(t, env, "vm-01"); !slices.Equal(seen.vgpus, []string{"grid_a100d-80c"}) {
				t.Errorf("%+v", seen)
			}
			if out, _, _ := inProcess(env, "check", "-f", file, "--only", "HOST-VGPUMGR-019,HOST-GPU-GFX-018", "-o",
				"json"); strings.Count(out, `"status": "pass"`) != 4 {
				t.Errorf("check:\n%s", out)
			}
			succeeds(t, env, "plan", "-f", file, "--detailed-exitcode")
			succeeds(t, env, "rollback", "--yes")
			now := hardware(t, env, file)
			for i := range now.Hosts {
				if has := len(now.Hosts[i].Profiles) > 0; has != stays {
					t.Errorf("%s offers vGPUs after the rollback: %t", now.Hosts[i].Name, has)
				}
				if stays {
					now.Hosts[i].Profiles = nil
					for g := range now.Hosts[i].GPUs {
						now.Hosts[i].GPUs[g].Graphics = start.Hosts[i].GPUs[g].Graphics
					}
				}
			}
			if diff := cmp.Diff(start, now); diff != "" {
				t.Errorf("the rollback leaves:\n%s", diff)
			}
		})
	}
}
