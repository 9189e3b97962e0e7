package recipe_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
)

const nearGPU, farGPU = "0000:3c:00.0", "0000:af:00.0"

// newGPUs is the healthy data centre with two A100 80 GB in each host, one below the PCIe switch of the ConnectX-5 and one on the
// other socket; hosts rebind devices, as 7.0 and later do.
func newGPUs(hosts int) *backends.Inventory {
	inv := newInventory(hosts)
	for i := range inv.Hosts {
		h := &inv.Hosts[i]
		h.PowerPolicy, h.PowerPolicies, h.Rebind = "static", []string{"static", "dynamic"}, true
		h.PCI = []backends.PCIDevice{
			{Address: "0000:37:00.0", Class: "0604"}, {Address: "0000:38:00.0", Class: "0604", Parent: "0000:37:00.0"},
			{Address: "0000:39:00.0", Class: "0604", Parent: "0000:38:00.0"}, {Address: "0000:39:01.0", Class: "0604", Parent: "0000:38:00.0"},
			{Address: "0000:ae:00.0", Class: "0604"},
			{Address: portCX5, Vendor: "15b3", Device: "1017", Class: "0200", Parent: "0000:39:00.0", Capable: true},
			{Address: "0000:3b:00.1", Vendor: "15b3", Device: "1017", Class: "0200", Parent: "0000:39:00.0", Capable: true},
			{Address: nearGPU, Vendor: "10de", Device: "20b5", Class: "0302", Parent: "0000:39:01.0", Capable: true},
			{Address: farGPU, Vendor: "10de", Device: "20b5", Class: "0302", Parent: "0000:ae:00.0", Capable: true},
		}
		gpu := backends.GPU{PCI: nearGPU, Model: "A100", Vendor: "10de", Device: "20b5", MemoryMB: 81920, Capable: true, RootPort: "0000:37:00.0",
			Switches: []string{"0000:38:00.0", "0000:39:01.0"}}
		far := gpu
		far.PCI, far.RootPort, far.Switches = farGPU, "0000:ae:00.0", nil
		h.GPUs = []backends.GPU{gpu, far}
		inv.VMs[i].Extra = map[string]string{}
	}
	for i := range inv.Guests {
		inv.Guests[i].Available = append(inv.Guests[i].Available, "mlx5_core", "mlx5_ib", "nvidia_peermem")
		inv.Guests[i].NVIDIA = &backends.NVIDIA{Driver: "570.86.15", DMABuf: true}
	}
	return inv
}

func gpuAnswers(inv *backends.Inventory) *answers.Answers {
	a := newAnswers(inv)
	d := answers.Default(answers.GPUDirect)
	a.Mode, a.QoS, a.GPUDirect = d.Mode, d.QoS, d.GPUDirect
	return a
}

// The devices wait for the host, which is rebooted once for the network card; the GPU keys are set with them (Reference
// Deployment Guide for RoCE accelerated HPC or ML applications with GPUDirect RDMA on vSphere 6.7, NVIDIA/Mellanox).
func TestGPUDirectPlan(t *testing.T) {
	inv := newGPUs(1)
	p := mustBuild(t, gpuAnswers(inv), inv, plan.Options{})
	for id, want := range map[string]any{
		vmChange("vm-01", backends.KindExtra, recipe.KeyUse64):  "TRUE",
		vmChange("vm-01", backends.KindExtra, recipe.KeySize64): "512",
		vmChange("vm-01", backends.KindExtra, recipe.KeyP2P):    "TRUE",
		vmChange("vm-01", backends.KindExtra, recipe.KeyACS):    "TRUE",
		vmChange("vm-01", backends.KindMemory, ""): backends.MemorySpec{
			Locked: true, ReservationMB: 16384},
		vmChange("vm-01", backends.KindDevice, portCX5): backends.DeviceSpec{
			Backing: "fixed", Vendor: "15b3", Device: "1017"},
		vmChange("vm-01", backends.KindDevice, nearGPU): backends.DeviceSpec{
			Backing: "fixed", Vendor: "10de", Device: "20b5"},
		vmChange("vm-01", backends.KindDevice, farGPU): backends.DeviceSpec{
			Backing: "fixed", Vendor: "10de", Device: "20b5"},
		hostChange("esx-01", backends.KindPassthrough, portCX5):      true,
		hostChange("esx-01", backends.KindPassthrough, nearGPU):      true,
		hostChange("esx-01", backends.KindActivePassthrough, farGPU): true,
		backends.Setting{Target: backends.GuestRef("vm-01"), Kind: backends.KindAddress, Name: backends.WholeHCA}.ID(): backends.AddressSpec{
			CIDR: "192.168.50.10/24", MTU: 9000},
	} {
		c := p.Change(id)
		if c == nil {
			t.Errorf("not planned: %s", id)
			continue
		}
		if c.To != backends.ValueOf(want) {
			t.Errorf("%s: to %s, want %v", id, c.To, want)
		}
		if c.Kind == backends.KindDevice &&
			(!slices.Contains(c.Disrupts, plan.NoVMotion) || !slices.Contains(c.Disrupts, plan.NoSuspend) ||
				!slices.Contains(c.Disrupts, plan.NoHA)) {
			t.Errorf("%s does not say what is lost: %v", id, c.Disrupts)
		}
	}
	for _, c := range p.Changes {
		if c.Kind == backends.KindSwitch || c.Kind == backends.KindPortGroup || c.Kind == backends.KindMember || c.Kind == backends.KindAdapter {
			t.Errorf("a whole card needs no %s", c.ID())
		}
	}
	if n := reboots(p, "esx-01"); n != 1 {
		t.Errorf("%d reboots", n)
	}
	g, err := p.Graph()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{plan.OpenID("vm/vm-01/vm-power"), plan.OpenID("host/esx-01/host-reboot"),
		hostChange("esx-01", backends.KindPassthrough, portCX5), "host/esx-01/host-reboot",
		hostChange("esx-01", backends.KindActivePassthrough, portCX5), vmChange("vm-01", backends.KindDevice, portCX5), "vm/vm-01/vm-power"}
	at := -1
	for _, id := range want {
		i := slices.Index(g.Order, id)
		if i <= at {
			t.Errorf("%s stands at %d, after %d", id, i, at)
		}
		at = i
	}
	if !slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, farGPU) && strings.Contains(n, "no peer-to-peer") }) {
		t.Errorf("no note names the GPU on the other socket: %q", p.Notes)
	}
}

// GPUs alone need no reboot if the host rebinds devices; existing settings are left unchanged.
func TestGPUDirectReboots(t *testing.T) {
	passed := func(inv *backends.Inventory, active bool, addresses ...string) {
		for i := range inv.Hosts {
			h := &inv.Hosts[i]
			for k := range h.PCI {
				if slices.Contains(addresses, h.PCI[k].Address) {
					h.PCI[k].Enabled, h.PCI[k].Active = true, active
				}
			}
			for k := range h.GPUs {
				if slices.Contains(addresses, h.GPUs[k].PCI) {
					h.GPUs[k].Enabled, h.GPUs[k].Active = true, active
				}
			}
			if active && slices.Contains(addresses, portCX5) {
				h.NICs = slices.DeleteFunc(h.NICs, func(n backends.NIC) bool { return n.PCI == portCX5 })
			}
		}
	}
	for name, c := range map[string]struct {
		edit func(*backends.Inventory)
		want int
	}{
		"bare":                                {func(*backends.Inventory) {}, 1},
		"the card is there, GPUs are rebound": {func(inv *backends.Inventory) { passed(inv, true, portCX5) }, 0},
		"old host, GPUs only at a boot":       {func(inv *backends.Inventory) { passed(inv, true, portCX5); inv.Hosts[0].Rebind = false }, 1},
		"all is there": {func(inv *backends.Inventory) {
			passed(inv, true, portCX5, nearGPU, farGPU)
			inv.Hosts[0].Rebind = false
		}, 0},
		"enabled, nobody has rebooted the host": {func(inv *backends.Inventory) { passed(inv, false, portCX5, nearGPU, farGPU) }, 1},
	} {
		inv := newGPUs(1)
		c.edit(inv)
		p := mustBuild(t, gpuAnswers(inv), inv, plan.Options{})
		if n := reboots(p, "esx-01"); n != c.want {
			t.Errorf("%s: %d reboots, want %d", name, n, c.want)
		}
		if p.Change(vmChange("vm-01", backends.KindDevice, portCX5)) == nil {
			t.Errorf("%s: the card is not given to the VM", name)
		}
	}
}

func TestGPUDirectRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		edit        func(*backends.Inventory, *answers.Answers)
		check, want string
	}{
		"KB 323402: the guide's size for 80 GB cards": {func(_ *backends.Inventory, a *answers.Answers) { a.GPUDirect.MMIO = "guide" },
			"VM-MMIO-SIZE-024", "512 GB is the least"},
		"too small a number": {func(_ *backends.Inventory, a *answers.Answers) { a.GPUDirect.MMIO = "128" },
			"VM-MMIO-SIZE-024", "too small"},
		"rules 1.3: a guest installed with BIOS": {func(inv *backends.Inventory, _ *answers.Answers) { inv.VMs[0].Firmware = "bios" },
			"VM-FIRMWARE-022", "BIOS firmware"},
		"snapshots": {func(inv *backends.Inventory, _ *answers.Answers) { inv.VMs[0].Snapshots = 2 }, "VM-SNAP-005", "2 snapshots"},
		"a vGPU (RDG Kubernetes with vGPU and PVRDMA)": {func(inv *backends.Inventory, _ *answers.Answers) {
			inv.VMs[0].Devices = []backends.AssignedDevice{{Backing: "vgpu", Profile: "grid_a100-40c"}}
		}, "HOST-GPU-GFX-018", "grid_a100-40c"},
		"no tool that sets PFC": {func(inv *backends.Inventory, a *answers.Answers) {
			a.QoS.Lossless, inv.Guests[0].NoQoSTool = answers.LosslessPFC, true
		}, "GST-QOS-035", "neither mlnx_qos nor dcb"},
		"no IOMMU": {func(inv *backends.Inventory, _ *answers.Answers) {
			for k := range inv.Hosts[0].PCI {
				inv.Hosts[0].PCI[k].Capable = false
			}
		}, "HOST-IOMMU-005", "cannot be passed through"},
		"the group has a port of the host": {func(inv *backends.Inventory, _ *answers.Answers) {
			inv.Hosts[0].GPUs[0].Dependents = []string{"0000:1a:00.0"}
		}, "HOST-PT-DEPEND-015", "vmnic0"},
		"the GPUs belong to others": {func(inv *backends.Inventory, _ *answers.Answers) {
			other := newVM(9, "esx-01")
			other.Devices = []backends.AssignedDevice{{PCI: nearGPU, Backing: "fixed"}, {PCI: farGPU, Backing: "fixed"}}
			inv.VMs = append(inv.VMs, other)
		}, "HOST-PT-FREE-014", "belongs to vm-09 (powered on"},
		"the card belongs to another VM": {func(inv *backends.Inventory, _ *answers.Answers) {
			other := newVM(9, "esx-01")
			other.Path, other.Power, other.Devices = "/DC/vm/Rendering/vm-09", "poweredOff",
				[]backends.AssignedDevice{{PCI: portCX5, Backing: "fixed"}}
			inv.VMs = append(inv.VMs, other)
			inv.Hosts[0].NICs = slices.DeleteFunc(inv.Hosts[0].NICs, func(n backends.NIC) bool { return n.PCI == portCX5 })
		}, "HOST-PT-FREE-014", "the RDMA card at 0000:3b:00.0 belongs to vm-09 (powered off, in /DC/vm/Rendering)"},
		"the only GPU is below another root complex": {func(_ *backends.Inventory, a *answers.Answers) {
			a.GPUDirect.GPUs = map[string]answers.VMGPUs{"vm-01": {Whole: []answers.PCI{farGPU}}}
		}, "HOST-GPU-ROOT-016", "no GPU of this VM can reach the RDMA card"},
		"a GPU that is not there": {func(_ *backends.Inventory, a *answers.Answers) {
			a.GPUDirect.GPUs = map[string]answers.VMGPUs{"vm-01": {Whole: []answers.PCI{"0000:99:00.0"}}}
		}, "HOST-PT-FREE-014", "no GPU at 0000:99:00.0"},
		"GPUs for other VMs": {func(_ *backends.Inventory, a *answers.Answers) {
			a.GPUDirect.GPUs = map[string]answers.VMGPUs{"vm-07": {Whole: []answers.PCI{nearGPU}}}
		}, "", "none for this one"},
		"two VMs and one card": {func(inv *backends.Inventory, a *answers.Answers) {
			inv.VMs = append(inv.VMs, newVM(2, "esx-01"))
			*a = *gpuAnswers(inv)
		}, "HOST-PT-FREE-014", "one VM"},
		"the card is on a switch": {func(inv *backends.Inventory, _ *answers.Answers) { inv.Hosts[0].NIC("vmnic2").Switch = "RDMA-DVS" },
			"HOST-PNIC-USED-012", "uplink of RDMA-DVS"},
		"an unknown GPU": {func(inv *backends.Inventory, _ *answers.Answers) {
			g := &inv.Hosts[0].GPUs[0]
			g.Device, g.MemoryMB = "ffff", 0
		}, "VM-MMIO-SIZE-024", "not in the table"},
		"a key stands twice": {func(inv *backends.Inventory, _ *answers.Answers) {
			inv.VMs[0].Extra = map[string]string{"pciPassthru.allowP2P": "TRUE", "pcipassthru.allowp2p": "TRUE"}
		}, "VM-EXTRAKEYS-029", "both"},
		"KB 309986: too many devices": {func(inv *backends.Inventory, _ *answers.Answers) {
			for i := range 16 {
				inv.VMs[0].Devices = append(inv.VMs[0].Devices, backends.AssignedDevice{PCI: fmt.Sprintf("0000:c%x:00.0", i), Backing: "fixed"})
			}
		}, "VM-PTCOUNT-026", "hardware version 19 takes 16"},
		"dynamic, two of one make": {func(_ *backends.Inventory, a *answers.Answers) { a.GPUDirect.Backing = "dynamic" }, "", "the same model"},
		"dynamic, old hardware version": {func(inv *backends.Inventory, a *answers.Answers) {
			a.GPUDirect.Backing, inv.VMs[0].Hardware = "dynamic", 15
		}, "VM-HWVER-DDIO-003", "17"},
		"dynamic, to a hardware version that is too old": {func(inv *backends.Inventory, a *answers.Answers) {
			a.GPUDirect.Backing, inv.VMs[0].Hardware, a.VMs[0].Hardware = "dynamic", 15, "16"
		}, "VM-HWVER-DDIO-003", "has hardware version 16"},
	} {
		inv := newGPUs(1)
		a := gpuAnswers(inv)
		c.edit(inv, a)
		_, err := recipe.Build(a, inv, plan.Options{})
		r, is := err.(*plan.Refused)
		if !is || !slices.ContainsFunc(r.Refusals, func(x plan.Refusal) bool {
			return x.Check == c.check && strings.Contains(x.Why, c.want) && (x.Remedy != "")
		}) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCardWithoutItsModule: a card that was set up, and has no RDMA device since the kernel changed, keeps its address and file: its
// module is loaded. The file of an ordinary adapter is still refused.
func TestCardWithoutItsModule(t *testing.T) {
	for name, mac := range map[string]string{"": "b8:59:9f:00:00:02", "GST-IPPERSIST-018": ""} {
		inv := newGPUs(1)
		v, g := &inv.VMs[0], &inv.Guests[0]
		v.Passthrough, v.Devices = []string{portCX5}, []backends.AssignedDevice{{PCI: portCX5, Backing: "fixed"}}
		g.Interfaces = append(g.Interfaces, backends.Interface{Name: "ens224", MAC: cmp.Or(mac, v.Adapters[0].MAC), MTU: 9000, Persistent: true,
			Addresses: []string{"192.168.50.10/24"}, Config: "/etc/netplan/60-rdma-setup-" + backends.Slug(backends.WholeHCA) + ".yaml"})
		p, err := recipe.Build(gpuAnswers(inv), inv, plan.Options{})
		if name != "" {
			if r, is := err.(*plan.Refused); !is || !slices.ContainsFunc(r.Refusals, func(x plan.Refusal) bool { return x.Check == name }) {
				t.Errorf("%v", err)
			}
		} else if err != nil {
			t.Error(err)
		} else if p.Change(guestID("vm-01", backends.KindModules, "rdma")) == nil || p.Change(guestID("vm-01", backends.KindPort,
			backends.WholeHCA)) == nil || p.Change(guestID("vm-01", backends.KindAddress, backends.WholeHCA)) != nil {
			t.Errorf("planned: %v", p.Changes)
		}
	}
}

// Dynamic DirectPath I/O needs hardware version 17: a VM that the answers upgrade is judged by its new version.
func TestDynamicDevicesAfterAnUpgrade(t *testing.T) {
	for wish, want := range map[answers.Hardware]int{answers.HardwareUpgrade: 17, "18": 18} {
		inv := newGPUs(1)
		a := gpuAnswers(inv)
		a.GPUDirect.GPUs = map[string]answers.VMGPUs{"vm-01": {Whole: []answers.PCI{nearGPU}}}
		a.GPUDirect.Backing, inv.VMs[0].Hardware, a.VMs[0].Hardware = "dynamic", 15, wish
		if c := mustBuild(t, a, inv, plan.Options{}).Change(vmChange("vm-01", backends.KindHardware, "")); c == nil ||
			c.To != backends.ValueOf(want) {
			t.Errorf("%s: %+v", wish, c)
		}
	}
}

// The size of a model that the table lacks is stated in the answers; BAR1 as a guest reads it wins over both.
func TestGPUDirectSizesOfModels(t *testing.T) {
	const unknown = "2fff"
	inv := newGPUs(1)
	for k := range inv.Hosts[0].GPUs {
		inv.Hosts[0].GPUs[k].Device, inv.Hosts[0].GPUs[k].MemoryMB = unknown, 0
	}
	a := gpuAnswers(inv)
	a.GPUDirect.GPUs = map[string]answers.VMGPUs{"vm-01": {Whole: []answers.PCI{nearGPU}}}
	a.GPUDirect.Models = map[string]answers.GPUModel{"10de:" + unknown: {Framebuffer: 48}}
	size := func() backends.Value {
		return mustBuild(t, a, inv, plan.Options{}).Change(vmChange("vm-01", backends.KindExtra, recipe.KeySize64)).To
	}
	if got := size(); got != backends.ValueOf("128") {
		t.Errorf("48 GB stated: %v", got)
	}
	inv.VMs[0].Devices = []backends.AssignedDevice{{PCI: nearGPU, Backing: "fixed", Vendor: "10de", Device: unknown}}
	inv.Guests[0].NVIDIA.Devices = []backends.GuestGPU{{Name: "x", BAR1MB: 128 << 10}}
	if got := size(); got != backends.ValueOf("256") {
		t.Errorf("BAR1 of 128 GB read: %v", got)
	}
	inv = newGPUs(1)
	a = gpuAnswers(inv)
	a.GPUDirect.MMIO = "1048576"
	if r := refusals(t, a, inv, plan.Options{}); r[0].Check != "VM-MMIO-SIZE-024" || !strings.Contains(r[0].Why, "46 bits") {
		t.Errorf("1 PB: %+v", r)
	}
}

// A size that is too small is written all the same if the operator skips the check by name.
func TestGPUDirectForcedWindow(t *testing.T) {
	inv := newGPUs(1)
	a := gpuAnswers(inv)
	a.GPUDirect.MMIO = "guide"
	p := mustBuild(t, a, inv, plan.Options{Skip: []string{"VM-MMIO-SIZE-024"}})
	if c := p.Change(vmChange("vm-01", backends.KindExtra, recipe.KeySize64)); c == nil || c.To != backends.ValueOf("256") {
		t.Errorf("%+v", c)
	}
}

// Existing keys keep their spelling; values in quotes, as a guide has them, are cleaned; a larger window stays.
func TestGPUDirectKeys(t *testing.T) {
	inv := newGPUs(1)
	inv.VMs[0].Extra = map[string]string{"pciPassthru.relaxACSforP2P": `"TRUE"`, "pciPassthru.64bitMMIOSizeGB": "1024",
		"pciPassthru.use64bitMMIO": "true", "pciPassthru.allowP2P": "“TRUE”"}
	a := gpuAnswers(inv)
	p := mustBuild(t, a, inv, plan.Options{})
	var got []string
	for _, c := range p.Changes {
		if c.Kind == backends.KindExtra {
			got = append(got, c.Name+"="+c.To.String())
		}
	}
	slices.Sort(got)
	if want := []string{"pciPassthru.allowP2P=TRUE", "pciPassthru.relaxACSforP2P=TRUE"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	a.GPUDirect.MMIO = "512"
	p = mustBuild(t, a, inv, plan.Options{})
	if c := p.Change(vmChange("vm-01", backends.KindExtra, "pciPassthru.64bitMMIOSizeGB")); c == nil || c.To != backends.ValueOf("512") {
		t.Errorf("a number is set as it is: %+v", c)
	}
}

// T4s map 256 MB: no window is needed, so BIOS guests work (frankdenneman.nl 2023/05).
func TestGPUDirectSmallBARs(t *testing.T) {
	inv := newGPUs(1)
	for k := range inv.Hosts[0].GPUs {
		inv.Hosts[0].GPUs[k].Device = "1eb8"
	}
	inv.VMs[0].Firmware = "bios"
	p := mustBuild(t, gpuAnswers(inv), inv, plan.Options{})
	if p.Change(vmChange("vm-01", backends.KindExtra, recipe.KeySize64)) != nil ||
		p.Change(vmChange("vm-01", backends.KindExtra, recipe.KeyP2P)) == nil {
		t.Error("T4s need peer-to-peer keys and no window")
	}
}

// With VFs several VMs share a host: each has GPUs of its own, and the nearest are assigned first.
func TestGPUDirectOnVFs(t *testing.T) {
	inv := ready(newSRIOV(1))
	gpus := newGPUs(1)
	inv.Hosts[0].PCI, inv.Hosts[0].GPUs, inv.Hosts[0].Rebind = gpus.Hosts[0].PCI, gpus.Hosts[0].GPUs, true
	inv.VMs = append(inv.VMs, newVM(2, "esx-01"))
	inv.Guests = append(inv.Guests, newGuest(2))
	inv.Guests[1].Available = append(inv.Guests[1].Available, "mlx5_core", "mlx5_ib")
	for i := range inv.Guests {
		inv.Guests[i].NVIDIA = &backends.NVIDIA{Driver: "570.86.15", DMABuf: true}
	}
	for i := range inv.VMs {
		inv.VMs[i].Extra = map[string]string{}
	}
	a := gpuAnswers(inv)
	a.GPUDirect.NIC = "sriov"
	p := mustBuild(t, a, inv, plan.Options{Skip: []string{"HOST-GPU-ROOT-016"}})
	for vm, gpu := range map[string]string{"vm-01": nearGPU, "vm-02": farGPU} {
		if p.Change(vmChange(vm, backends.KindDevice, gpu)) == nil || p.Change(vmChange(vm, backends.KindAdapter, "RDMA-PG")) == nil {
			t.Errorf("%s has no %s or no VF", vm, gpu)
		}
		if c := p.Change(vmChange(vm, backends.KindExtra, recipe.KeySize64)); c == nil || c.To != backends.ValueOf("256") {
			t.Errorf("%s: window %+v", vm, c)
		}
	}
	if n := reboots(p, "esx-01"); n != 0 {
		t.Errorf("%d reboots, and GPUs are rebound", n)
	}
	if !slices.ContainsFunc(p.Notes, func(n string) bool { return strings.HasPrefix(n, "vm-02: no GPU of this VM can reach") }) {
		t.Errorf("vm-02 has no pair that does peer-to-peer: %q", p.Notes)
	}
}
