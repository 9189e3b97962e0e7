package session

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// gpuWorld is two guests, each with a GPU and the RoCE v2 address at index 3.
func gpuWorld(mode answers.Mode) (*answers.Answers, *backends.Inventory) {
	a, inv := answers.Default(mode), &backends.Inventory{}
	for i := 1; i <= 2; i++ {
		name, ip := fmt.Sprintf("vm-%d", i), fmt.Sprintf("192.168.50.%d", i)
		vm := answers.DefaultVM(name)
		vm.IP.Prefix = netip.MustParsePrefix(ip + "/24")
		a.VMs = append(a.VMs, vm)
		inv.VMs = append(inv.VMs, backends.VM{Name: name, Passthrough: []string{"0000:3b:00.0", "0000:3c:00.0"},
			Extra: map[string]string{"pciPassthru.allowP2P": "TRUE"}})
		inv.Guests = append(inv.Guests, backends.Guest{VM: name, MemlockKB: -1,
			RDMA: []backends.VerbsDevice{{Name: "mlx5_0", Driver: "mlx5_core", MAC: "0c:42", State: "PORT_ACTIVE", RateGbps: 100, ActiveMTU: 4096,
				GIDs: []backends.GID{{Index: 3, Type: "RoCE v2", IPv4: ip}}}},
			CUDATests: &backends.CUDAPerftest{DMABuf: true, Dir: "/usr/local/bin"},
			NVIDIA: &backends.NVIDIA{GPUs: []string{"A", "B"}, Devices: []backends.GuestGPU{{Name: "A"}, {Name: "B"}}, DMABuf: true,
				Topology: map[string]string{"mlx5_0 GPU0": "SYS", "mlx5_0 GPU1": "PHB"}}})
	}
	return a, inv
}

func gpuMeasured(v perftest.Verdict, gbps float64, from, to string) []perftest.Measurement {
	return []perftest.Measurement{{From: "vm-1", To: "vm-2", Test: perftest.WriteBandwidthGPU, Verdict: v, AchievedGbps: gbps, HostGbps: 96,
		GPU: &perftest.Ends{From: perftest.GPU{Link: from}, To: perftest.GPU{Link: to}}}}
}

func TestNCCLSettingsFromMeasurements(t *testing.T) {
	for name, tt := range map[string]struct {
		mode     answers.Mode
		measured []perftest.Measurement
		change   func(a *answers.Answers, inv *backends.Inventory)
		env, why string
	}{
		"matches host memory": {answers.GPUDirect, gpuMeasured(perftest.VerdictPass, 95, "PIX", "PHB"), nil,
			"NCCL_IB_DISABLE=0 NCCL_NET_GDR_LEVEL=PHB NCCL_IB_HCA==mlx5_0 NCCL_IB_GID_INDEX=3", "match host memory"},
		"one switch": {answers.GPUDirect, gpuMeasured(perftest.VerdictPass, 95, "PIX", "PIX"),
			func(a *answers.Answers, _ *backends.Inventory) { a.QoS.Lossless = answers.LosslessPFC },
			"NCCL_IB_DISABLE=0 NCCL_NET_GDR_LEVEL=PIX NCCL_IB_HCA==mlx5_0 NCCL_IB_GID_INDEX=3 NCCL_IB_TC=106", ""},
		"staged": {answers.GPUDirect, gpuMeasured(perftest.VerdictFail, 28.8, "SYS", "SYS"), nil, "NCCL_NET_GDR_LEVEL=LOC",
			"30 % of the bandwidth of host memory"},
		"not measured": {answers.GPUDirect, []perftest.Measurement{{Test: perftest.WriteBandwidth, Verdict: perftest.VerdictPass}}, nil,
			"NCCL_NET_GDR_LEVEL=PHB", "not measured"},
		"vGPU beside PVRDMA (RDG Kubernetes with vGPU and PVRDMA)": {answers.PVRDMA, []perftest.Measurement{{Test: perftest.SendBandwidth}}, nil,
			"NCCL_NET_GDR_LEVEL=LOC", "cannot access GPU memory"},
		"vGPU beside a VF": {answers.SRIOV, []perftest.Measurement{{Test: perftest.SendBandwidth}},
			func(_ *answers.Answers, inv *backends.Inventory) {
				inv.VMs[1].Devices = []backends.AssignedDevice{{Backing: backends.VGPUBacking, Profile: "grid_a100-40c"}}
			}, "NCCL_NET_GDR_LEVEL=LOC", "not set up (mode gpudirect)"},
		"vGPU for graphics": {answers.GPUDirect, gpuMeasured(perftest.VerdictPass, 95, "PIX", "PIX"),
			func(_ *answers.Answers, inv *backends.Inventory) {
				inv.VMs[1].Devices = []backends.AssignedDevice{{Backing: backends.VGPUBacking, Profile: "grid_a100-40q"}}
			}, "NCCL_NET_GDR_LEVEL=LOC", "off for vm-2"},
		"a vGPU whose guest has no driver": {answers.PVRDMA, []perftest.Measurement{{Test: perftest.SendBandwidth}},
			func(_ *answers.Answers, inv *backends.Inventory) {
				inv.Guests[0].NVIDIA, inv.Guests[1].NVIDIA, inv.VMs[0].Passthrough = nil, nil, []string{"vgpu grid_a100-40c"}
			}, "NCCL_NET_GDR_LEVEL=LOC", "a vGPU's"},
		"no GPU": {answers.SRIOV, []perftest.Measurement{{Test: perftest.SendBandwidth}}, func(_ *answers.Answers, inv *backends.Inventory) {
			inv.Guests[0].NVIDIA, inv.Guests[1].NVIDIA = nil, nil
		}, "", ""},
		"nothing measured": {answers.GPUDirect, nil, nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, inv := gpuWorld(tt.mode)
			if tt.change != nil {
				tt.change(a, inv)
			}
			n := NCCLSettings(a, inv, tt.measured)
			if tt.env == "" {
				if n != nil {
					t.Fatalf("%+v", n)
				}
				return
			}
			var env []string
			for _, v := range n.Env {
				env = append(env, v.String())
			}
			if got := strings.Join(env, " "); !strings.Contains(got, tt.env) {
				t.Errorf("%s, want %s", got, tt.env)
			}
			if got := strings.Join(n.Why, "; "); !strings.Contains(got, tt.why) {
				t.Errorf("why %q, want %q", got, tt.why)
			}
		})
	}
}

// Only the guest reports a card in passthrough mode; the GPU nearest to it is measured.
func TestNodesWithGPUs(t *testing.T) {
	a, inv := gpuWorld(answers.GPUDirect)
	a.GPUDirect.RelaxACS = true
	inv.Guests[1].CUDATests = nil
	nodes := Nodes(a, inv)
	first, second := nodes[0], nodes[1]
	if first.Device != "mlx5_0" || first.GID != 3 || first.LinkMbps != 100_000 || first.MTU != 4096 {
		t.Errorf("%+v", first)
	}
	g := first.GPU
	if g.Index != 1 || g.Link != "PHB" || g.Name != "B" || !g.DMABuf || !g.Several || g.Dir != "/usr/local/bin" || g.Without != "" {
		t.Errorf("%+v", g)
	}
	if strings.Join(g.Keys, " ") != "pciPassthru.RelaxACSforP2P" {
		t.Errorf("keys %q", g.Keys)
	}
	if !strings.Contains(second.GPU.Without, "built with CUDA") || !strings.Contains(second.GPU.Remedy, "CUDA_H_PATH") {
		t.Errorf("%+v", second.GPU)
	}
	a.Mode = answers.SRIOV
	if Nodes(a, inv)[0].GPU != nil {
		t.Error("GPU memory is measured in mode gpudirect alone")
	}
}
