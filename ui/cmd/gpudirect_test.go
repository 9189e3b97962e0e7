package cmd_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// gpuLab is a lab whose account has exactly the privileges that generate role prints for the mode.
func gpuLab(t *testing.T, scenario string) (env map[string]string, file string) {
	t.Helper()
	l := openLab(t, lab.Options{Scenario: scenario, Hosts: 2, VMs: 2, Dir: t.TempDir(), RebootTime: 100 * time.Millisecond})
	env = environment(l, t.TempDir())
	holds := checks.Privileges(answers.GPUDirect)
	if strings.HasSuffix(scenario, "-image") {
		holds = append(holds, checks.Images()...)
	}
	r := newRole(t, env)
	r.hold(t, holds)
	if strings.HasSuffix(scenario, "-image") {
		r.atRoot(t)
	}
	return env, filepath.Join(l.Dir(), "answers-gpudirect.yaml")
}

// hardware returns what a rollback must restore: devices, keys and reservations, without values that change at each boot or with
// time.
func hardware(t *testing.T, env map[string]string, file string) *backends.Inventory {
	t.Helper()
	out, errs, code := inProcess(env, "discover", "-o", "json")
	if code != 0 {
		t.Fatalf("discover: exit %d\n%s", code, errs)
	}
	var inv backends.Inventory
	testclass.OK(t, json.Unmarshal([]byte(out), &inv))
	inv.VCenter.Clock, inv.APICalls = time.Time{}, 0
	for i := range inv.Hosts {
		inv.Hosts[i].BootTime, inv.Hosts[i].MemoryUsedMB = time.Time{}, 0
	}
	return &inv
}

// edited rewrites the answers with a word replaced.
func edited(t *testing.T, file, old, now string) string {
	t.Helper()
	b := testclass.Read(t, file)
	text := strings.ReplaceAll(string(b), old, now)
	if text == string(b) {
		t.Fatalf("%q does not stand in the answers", old)
	}
	file = filepath.Join(t.TempDir(), "answers.yaml")
	testclass.Write(t, file, text)
	return file
}

// With exactly the role of the mode: apply, an empty second plan, and rollback to the original state. An MMIO window that is too
// small is refused; if it is forced, the VM does not start, the cause is named, and rollback restores everything.
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
	if said := out + errs; code != 5 || !strings.Contains(said, "firmware found no room") ||
		!strings.Contains(said, "64bitMMIOSizeGB to 256 at least") {
		t.Fatalf("forced: exit %d\n%s", code, said)
	}
	back := func(after string) {
		t.Helper()
		succeeds(t, env, "rollback", "--yes")
		if diff := cmp.Diff(start, hardware(t, env, file)); diff != "" {
			t.Errorf("the rollback %s leaves:\n%s", after, diff)
		}
	}
	back("of the forced run")
	succeeds(t, env, "apply", "-f", file, "--yes")
	succeeds(t, env, "plan", "-f", file, "--detailed-exitcode")
	back("of the run")
}

// Configurations that cannot work are refused before anything is written, with a suggestion.
func TestGPUDirectIsRefused(t *testing.T) {
	for scenario, want := range map[string]string{
		"gpudirect-bios": "create a new VM with EFI firmware", "gpudirect-busy": "belongs to render-01 (powered on",
		"gpudirect-vgpu": "vGPU grid_a100d-40c",
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

// GPU and NIC at different sockets: refused before a host reboots for them, and planned with --skip.
func TestGPUDirectSplitIsRefusedBeforeReboots(t *testing.T) {
	env, file := gpuLab(t, "gpudirect-split")
	out, errs, code := inProcess(env, "plan", "-f", file)
	if code != 3 || !strings.Contains(errs, "different root complexes") || !strings.Contains(errs, "--skip HOST-GPU-ROOT-016") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if out, errs, code := inProcess(env, "plan", "-f", file, "--skip", "HOST-GPU-ROOT-016"); code != 0 ||
		!strings.Contains(out, "HOST-GPU-ROOT-016 skipped") {
		t.Errorf("skipped: exit %d\n%s%s", code, out, errs)
	}
}

// Another VM that uses the card and the GPU is named, with its power state, its folder and what to do.
func TestGPUInAnotherVMIsNamed(t *testing.T) {
	env, file := gpuLab(t, "gpu-other-vm")
	_, errs, code := inProcess(env, "apply", "-f", file, "--yes")
	for _, want := range []string{"the RDMA card at 0000:3b:00.0 belongs to render-01 (powered off, in /DC/vm/Rendering)",
		"the GPU at 0000:3c:00.0 belongs to render-01", "remove the device from render-01"} {
		if code != 3 || !strings.Contains(errs, want) {
			t.Errorf("exit %d, want %q:\n%s", code, want, errs)
		}
	}
	if strings.Contains(errs, "no link") || strings.Contains(errs, "correct nic.device") {
		t.Errorf("the card is blamed for what its owner does:\n%s", errs)
	}
}

// HGX boards are named. Whole GPUs of them are refused with NVIDIA's source and the supported alternative, and the PCI functions
// that lead to NVSwitches are never offered as adapters.
func TestHGXBoards(t *testing.T) {
	for scenario, want := range map[string]struct{ board, profile string }{
		"hgx-h100": {"HGX H100 baseboard (Hopper, 8 GPUs, NVSwitches 0000:c9:00.0", "grid_h100xm-80c"},
		"hgx-b200": {"HGX B200 baseboard (Blackwell, 8 GPUs, NVSwitches behind ConnectX-7 functions 0000:c9:00.0 0000:c9:00.1",
			"grid_b200x-180c"},
	} {
		t.Run(scenario, func(t *testing.T) {
			env, file := gpuLab(t, scenario)
			_, errs, code := inProcess(env, "apply", "-f", file, "--yes")
			for _, say := range []string{want.board, "GPU passthrough is not supported on systems with NVSwitch under VMware vSphere",
				"NVIDIA AI Enterprise 8.0", "(" + want.profile + ")", "this host lists Nvidia:2@" + want.profile + "%NVLink"} {
				if code != 3 || !strings.Contains(errs, say) {
					t.Errorf("exit %d, want %q:\n%s", code, say, errs)
				}
			}
			out, errs, code := inProcess(env, "discover")
			if code != 0 || !strings.Contains(out, want.board) || !strings.Contains(out, "vendor device groups: Nvidia:2@"+want.profile+"%NVLink") {
				t.Errorf("discover: exit %d\n%s%s", code, out, errs)
			}
			for _, h := range hardware(t, env, file).Hosts {
				for _, g := range h.GPUs {
					for _, p := range g.Pairs {
						if strings.HasPrefix(p.NIC, "0000:c9") || strings.HasPrefix(p.NIC, "0000:ca") {
							t.Errorf("%s pairs %s with %s", h.Name, g.PCI, p.NIC)
						}
					}
				}
			}
			_, errs, code = inProcess(env, "plan", "-f", edited(t, file, "0000:3b:00.0", "0000:c9:00.1"))
			if code != 3 || scenario == "hgx-b200" && !strings.Contains(errs, "the ConnectX-7 function at 0000:c9:00.1 may lead to the NVSwitches") {
				t.Errorf("a function of the board by name: exit %d\n%s", code, errs)
			}
		})
	}
}

// GPUs together with PVRDMA adapters: applied, visible to another client, empty second plan, and rolled back.
func TestGPUBesidePVRDMA(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	l := openLab(t, lab.Options{Scenario: "gpu-pvrdma", Hosts: 2, VMs: 2, Dir: t.TempDir(),
		RebootTime: 100 * time.Millisecond})
	env, file := environment(l, t.TempDir()), filepath.Join(l.Dir(), "answers-gpudirect.yaml")
	start := hardware(t, env, file)
	out, errs, code := inProcess(env, "apply", "-f", file, "--yes")
	if code != 0 || !strings.Contains(out, "a PVRDMA adapter cannot access GPU memory") || !strings.Contains(out, "NCCL_NET_GDR_LEVEL=LOC") {
		t.Fatalf("apply: exit %d\n%s%s", code, out, errs)
	}
	for _, vm := range []string{"vm-01", "vm-02"} {
		seen := foreignVM(t, env, vm)
		if seen.pvrdma != 1 || !slices.Equal(seen.fixed, []string{"0000:3c:00.0"}) {
			t.Errorf("%s: %+v", vm, seen)
		}
		if seen.extra["pciPassthru.64bitMMIOSizeGB"] != "256" || seen.extra["pciPassthru.use64bitMMIO"] != "TRUE" ||
			seen.extra["pciPassthru.allowP2P"] != "" {
			t.Errorf("%s: %v", vm, seen.extra)
		}
	}
	out, _, _ = inProcess(env, "check", "-f", file, "-o", "json")
	var doc brokenDoc
	testclass.OK(t, json.Unmarshal([]byte(out), &doc))
	asked := map[string]bool{}
	for _, f := range doc.Results {
		if asked[f.ID] = true; f.Status == checks.Fail {
			t.Errorf("%s %s: %s", f.ID, f.Target, f.Evidence)
		}
	}
	for _, id := range []string{"HOST-VMKNIC-SET-001", "GST-NVSMI-027", "VM-MMIO-SIZE-024", "HOST-PT-ACTIVE-013"} { // of PVRDMA, and of GPUs
		if !asked[id] {
			t.Errorf("%s was not asked", id)
		}
	}
	succeeds(t, env, "plan", "-f", file, "--detailed-exitcode")
	succeeds(t, env, "rollback", "--yes")
	if diff := cmp.Diff(start, hardware(t, env, file)); diff != "" {
		t.Errorf("the rollback leaves:\n%s", diff)
	}
	_, errs, code = inProcess(env, "plan", "-f", edited(t, file, "mode: gpudirect", "mode: sriov"))
	if code != 2 || !strings.Contains(errs, "contradicts mode sriov") {
		t.Errorf("mode sriov: exit %d\n%s", code, errs)
	}
}

// vGPUs of the C series together with whole cards, with exactly the role of the mode: the host's graphics type, the device and its
// keys are set and visible to another client, GPU memory is measured, a second plan is empty, and a rollback undoes everything.
// vGPU types that NVIDIA does not document for GPUDirect RDMA, or that the host does not have, are refused.
func TestVGPUBesideCard(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	env, file := gpuLab(t, "vgpu-gdr")
	start := hardware(t, env, file)
	for wish, want := range map[string]string{
		"grid_a100d-4q, count: 1":  "not of the C series (NVIDIA AI Enterprise, GPUDirect RDMA",
		"grid_a100-40c, count: 1":  "esx-01 offers no vGPU grid_a100-40c",
		"grid_a100d-80c, count: 2": "esx-01 has no room for 1 of 2 vGPUs that are asked for there (grid_a100d-80c): 1 GPUs serve for vGPUs",
	} {
		if _, errs, code := inProcess(env, "plan", "-f", edited(t, file, "grid_a100d-80c, count: 1", wish)); code != 3 ||
			!strings.Contains(errs, want) {
			t.Errorf("%s: exit %d\n%s", wish, code, errs)
		}
	}
	out, errs, code := inProcess(env, "apply", "-f", file, "--yes")
	if code != 0 || !strings.Contains(out, "% of host memory's") || strings.Contains(out, "HOST-PT-ACTIVE-013") ||
		strings.Contains(out, "HOST-GPU-GFX-018") {
		t.Fatalf("apply: exit %d\n%s%s", code, out, errs)
	}
	for _, vm := range []string{"vm-01", "vm-02"} {
		seen := foreignVM(t, env, vm)
		if !slices.Equal(seen.vgpus, []string{"grid_a100d-80c"}) || !slices.Equal(seen.fixed, []string{"0000:3b:00.0"}) {
			t.Errorf("%s: %+v", vm, seen)
		}
		if seen.extra["pciPassthru.64bitMMIOSizeGB"] != "256" || seen.extra["pciPassthru.RelaxACSforP2P"] != "TRUE" {
			t.Errorf("%s: %v", vm, seen.extra)
		}
	}
	out, _, _ = inProcess(env, "check", "-f", file, "--only", "GST-VGPULIC-038,GST-VGPUDRV-041,HOST-GPU-GFX-018,HOST-VGPUMGR-019", "-o",
		"json")
	if strings.Count(out, `"status": "pass"`) != 8 {
		t.Errorf("license, drivers and graphics type:\n%s", out)
	}
	succeeds(t, env, "plan", "-f", file, "--detailed-exitcode")
	succeeds(t, env, "rollback", "--yes")
	if diff := cmp.Diff(start, hardware(t, env, file)); diff != "" {
		t.Errorf("the rollback leaves:\n%s", diff)
	}
}

// foreign is what an independent client sees of a VM.
type foreign struct {
	pvrdma       int
	fixed, vgpus []string
	groups       []string // NAME KEY/SEQUENCE ..
	extra        map[string]string
}

func foreignVM(t *testing.T, env map[string]string, name string) foreign {
	t.Helper()
	c := outsider(t.Context(), t, env)
	vm, err := find.NewFinder(c.Client).VirtualMachine(t.Context(), "/DC/vm/"+name)
	testclass.OK(t, err)
	var is mo.VirtualMachine
	if err := vm.Properties(t.Context(), vm.Reference(), []string{"config.hardware.device", "config.extraConfig", "config.deviceGroups"},
		&is); err != nil {
		t.Fatal(err)
	}
	out := foreign{extra: map[string]string{}}
	for _, d := range is.Config.Hardware.Device {
		switch d := d.(type) {
		case *types.VirtualVmxnet3Vrdma:
			out.pvrdma++
		case *types.VirtualPCIPassthrough:
			switch b := d.Backing.(type) {
			case *types.VirtualPCIPassthroughDeviceBackingInfo:
				out.fixed = append(out.fixed, b.Id)
			case *types.VirtualPCIPassthroughVmiopBackingInfo:
				out.vgpus = append(out.vgpus, b.Vgpu)
			}
		}
	}
	if is.Config.DeviceGroups != nil {
		for _, g := range is.Config.DeviceGroups.DeviceGroup {
			text := g.(*types.VirtualMachineVirtualDeviceGroupsVendorDeviceGroup).DeviceGroupName
			for _, d := range is.Config.Hardware.Device {
				if in := d.GetVirtualDevice().DeviceGroupInfo; in != nil &&
					in.GroupInstanceKey == g.GetVirtualMachineVirtualDeviceGroupsDeviceGroup().GroupInstanceKey {
					text += fmt.Sprintf(" %d/%d", in.GroupInstanceKey, in.SequenceId)
				}
			}
			out.groups = append(out.groups, text)
		}
	}
	for _, o := range is.Config.ExtraConfig {
		kv := o.GetOptionValue()
		out.extra[kv.Key] = fmt.Sprint(kv.Value)
	}
	return out
}

// The answers of the lab's default world can be applied without changes.
func TestDefaultLabAppliesGPUDirect(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	l := openLab(t, lab.Options{Dir: t.TempDir(), RebootTime: 100 * time.Millisecond})
	out, errs, code := inProcess(environment(l, t.TempDir()), "apply", "-f", filepath.Join(l.Dir(), "answers-gpudirect.yaml"), "--yes")
	if code != 0 {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

// The first comment of the answers names the exit code of apply if the scenario causes a refusal, and only then.
func TestLabAnswersNameTheExitCodeOfGPUScenarios(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	for _, scenario := range lab.Scenarios() {
		if !strings.HasPrefix(scenario, "gpu") && !strings.HasPrefix(scenario, "hgx") && scenario != "nouveau" &&
			!strings.HasPrefix(scenario, "vgpu") || strings.Contains(scenario, "broken") {
			continue
		}
		l, err := lab.Start(t.Context(), lab.Options{Scenario: scenario, Hosts: 2, VMs: 2, Dir: t.TempDir()})
		testclass.OK(t, err)
		file := filepath.Join(l.Dir(), "answers-gpudirect.yaml")
		b := testclass.Read(t, file)
		want := 0
		if first, _, _ := strings.Cut(string(b), "\n"); strings.HasPrefix(first, "# Expected exit code of apply: 3 (") {
			want = 3
		}
		if _, errs, code := inProcess(environment(l, t.TempDir()), "plan", "-f", file); code != want {
			t.Errorf("%s: plan exits with %d, the answers say %d\n%s", scenario, code, want, errs)
		}
		l.Close()
	}
}
