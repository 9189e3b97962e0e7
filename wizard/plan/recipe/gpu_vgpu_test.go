package recipe_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
)

// A host that lists no profile is refused, unless the vGPU Manager is to be installed and the GPUs are not of type Shared Direct
// yet.
func TestHostListsNoProfiles(t *testing.T) {
	manager := backends.FactOf(map[string]backends.VIB{"NVD-AIE_ESXi_8.0.0_Driver": {Version: "570.133.10"}})
	for name, c := range map[string]struct {
		vibs    backends.Fact[map[string]backends.VIB]
		active  string
		skip    []string
		refused string
		note    string
	}{
		"Shared Direct is not active": {vibs: manager, active: "shared", note: "lists no vGPU profile yet"},
		"Shared Direct is active": {vibs: manager, active: backends.SharedDirect,
			refused: "NVD-AIE_ESXi_8.0.0_Driver 570.133.10 is installed"},
		"the vGPU Manager is missing":      {vibs: backends.FactOf(map[string]backends.VIB{}), active: "basic", refused: "is not installed"},
		"the list of VIBs was not read":    {active: "basic", refused: "was not read"},
		"it was not read, but it is known": {active: "basic", skip: []string{"HOST-GPU-GFX-018"}, note: "HOST-GPU-GFX-018 skipped"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := newGPUs(1)
			h := &inv.Hosts[0]
			h.System, h.GraphicsType = &backends.HostSystem{VIBs: c.vibs}, "shared"
			for i := range h.GPUs {
				h.GPUs[i].Graphics = c.active
			}
			a := gpuAnswers(inv)
			a.GPUDirect.GPUs = map[string]answers.VMGPUs{"vm-01": {Profile: "grid_a100d-80c"}}
			p, err := recipe.Build(a, inv, plan.Options{Skip: c.skip})
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Fatalf("%v does not say %q", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, c.note) {
				t.Errorf("notes: %s", notes)
			}
			if p.Change(vmChange("vm-01", backends.KindVGPU, "grid_a100d-80c")) == nil {
				t.Error("the vGPU is not planned")
			}
		})
	}
}

// A guest that cannot use its vGPU is refused before anything is changed: one with the driver for whole GPUs, or that gets it, and one
// without a license, unless the vGPU is in its first minutes or the operator accepts it (flatcar/Flatcar, issue 1283; NVIDIA, Virtual
// GPU Client Licensing User Guide).
func TestGuestsServeTheirVGPU(t *testing.T) {
	licensed := func(status string) *backends.NVIDIA {
		return &backends.NVIDIA{Driver: "570.133.20", DMABuf: true, VGPUDriver: is(true),
			Devices: []backends.GuestGPU{{Name: "GRID A100D-80C", VGPU: true, License: status}}}
	}
	for name, c := range map[string]struct {
		guest   *backends.NVIDIA
		driver  string
		skip    string
		refused string
	}{
		"licensed":             {guest: licensed("Licensed (Expiry: 2027-1-31 11:32:22 GMT)")},
		"in its first minutes": {guest: licensed("Unlicensed (Unrestricted)")},
		"not licensed":         {guest: licensed("Unlicensed (Restricted)"), refused: "GST-VGPULIC-038"},
		"accepted":             {guest: licensed("Unlicensed (Restricted)"), skip: "GST-VGPULIC-038"},
		"no vGPU and no token": {guest: &backends.NVIDIA{Driver: "570.133.20", DMABuf: true, VGPUDriver: is(true), NoToken: true},
			refused: "GST-VGPULIC-038"},
		"the token is not read": {guest: &backends.NVIDIA{Driver: "570.133.20", DMABuf: true, VGPUDriver: is(true)}},
		"a driver for GPUs": {guest: &backends.NVIDIA{Driver: "570.133.20", DMABuf: true, VGPUDriver: is(false), NoToken: true},
			refused: "GST-VGPUDRV-041"},
		"which is not read":   {guest: &backends.NVIDIA{Driver: "570.133.20", DMABuf: true}},
		"no driver":           {refused: "GST-NVSMI-027"},
		"gets one for GPUs":   {driver: "nvidia-headless-570-server-open", refused: "GST-VGPUDRV-041"},
		"gets the right one":  {driver: "nvidia-linux-grid-570"},
		"gets an unknown one": {driver: "corp-gpu-guest"},
		".run for GPUs":       {driver: "/mnt/share/NVIDIA-Linux-x86_64-570.133.20.run", refused: "GST-VGPUDRV-041"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := newGPUs(1)
			h := &inv.Hosts[0]
			h.System, h.GraphicsType, h.GPUs[0].Graphics, h.Profiles = &backends.HostSystem{}, backends.SharedDirect, backends.SharedDirect,
				[]string{"grid_a100d-80c"}
			a := gpuAnswers(inv)
			a.GPUDirect.GPUs = map[string]answers.VMGPUs{"vm-01": {Profile: "grid_a100d-80c"}}
			if inv.Guests[0].NVIDIA = c.guest; c.driver != "" {
				a.GPUDirect.Driver = []string{c.driver}
			}
			if c.refused != "" {
				if all := refusals(t, a, inv, plan.Options{}); len(all) != 1 || all[0].Check != c.refused {
					t.Errorf("%+v", all)
				}
			} else if _, err := recipe.Build(a, inv, plan.Options{Skip: []string{c.skip}}); err != nil {
				t.Error(err)
			}
		})
	}
}

// NVSwitches of Blackwell boards need a component for ESXi (NVIDIA AI Enterprise 9.0, "NVIDIA NVSwitch").
func TestBlackwellBoardNeedsFabricManager(t *testing.T) {
	for generation, want := range map[string]bool{"Hopper": false, "Blackwell": true} {
		inv := newGPUs(1)
		h := &inv.Hosts[0]
		h.System, h.GraphicsType, h.GPUs[0].Graphics = &backends.HostSystem{}, backends.SharedDirect, backends.SharedDirect
		h.Baseboard, h.Profiles = &backends.Baseboard{Name: "HGX", Generation: generation, GPUs: 8}, []string{"grid_a100d-80c"}
		a := gpuAnswers(inv)
		a.GPUDirect.GPUs = map[string]answers.VMGPUs{"vm-01": {Profile: "grid_a100d-80c"}}
		p, err := recipe.Build(a, inv, plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if notes := strings.Join(p.Notes, "\n"); strings.Contains(notes, "Fabric Manager") != want {
			t.Errorf("%s: notes: %s", generation, notes)
		}
	}
}

// A running vGPU of another VM leaves no room for a vGPU of another size on its GPU, on the GPU that vCenter reports, and also if
// vCenter does not report it (VMware, What's New for GPUs in vSphere 8 Update 3). A VM that is off uses none.
func TestVGPUsOfOtherVMsAreCounted(t *testing.T) {
	near, far := []string{"ai-01"}, []string{"ai-02"}
	for name, c := range map[string]struct {
		gpus    [2][]string // VMs by GPU, as vCenter reports them
		power   string
		mode    string
		refused bool
	}{
		"one of the GPUs is free":         {gpus: [2][]string{near}, power: "poweredOn"},
		"both have vGPUs of another size": {gpus: [2][]string{near, far}, power: "poweredOn", refused: true},
		"vCenter does not say which":      {power: "poweredOn"}, // both may be on one GPU
		"both VMs are off":                {gpus: [2][]string{near, far}, power: "poweredOff"},
		"the GPUs are in mixed-size mode": {gpus: [2][]string{near, far}, power: "poweredOn", mode: "mixedSize"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := newGPUs(1)
			h := &inv.Hosts[0]
			h.Profiles, h.GraphicsType = []string{"grid_a100d-10c", "grid_a100d-40c"}, backends.SharedDirect
			for i := range h.GPUs {
				h.GPUs[i].Graphics, h.GPUs[i].SharedBy, h.GPUs[i].VGPUMode = backends.SharedDirect, c.gpus[i], c.mode
			}
			a := gpuAnswers(inv)
			for _, vm := range []string{"ai-01", "ai-02"} {
				inv.VMs = append(inv.VMs, backends.VM{Name: vm, Host: h.Name, Power: c.power,
					Devices: []backends.AssignedDevice{{Backing: backends.VGPUBacking, Profile: "grid_a100d-10c"}}})
			}
			a.GPUDirect.GPUs = map[string]answers.VMGPUs{"vm-01": {Profile: "grid_a100d-40c"}}
			_, err := recipe.Build(a, inv, plan.Options{})
			text := fmt.Sprint(err) // the host cannot reboot beside the other VMs, which is refused in each case
			if room := strings.Contains(text, "no room for 1 of 1 vGPUs"); room != c.refused ||
				room && !strings.Contains(text, "0000:af:00.0 has grid_a100d-10c of ai-02") {
				t.Errorf("%v, want refused: %v", err, c.refused)
			}
		})
	}
}
