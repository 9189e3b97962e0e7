package survey_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/survey"
)

// fit is a pNIC with nothing against it.
func fit() backends.NIC {
	return backends.NIC{
		Device: "vmnic2", Driver: "nmlx5_core", SpeedMbps: 100000, RDMADevice: "vmrdma0", RoCEv1: true, RoCEv2: true, RDMAState: "active",
	}
}

func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		name string // with the source of the rule
		set  func(*backends.NIC, *survey.Position)
		ok   bool
		says []string
	}{
		{"RoCE v2, link up, free", func(*backends.NIC, *survey.Position) {}, true, []string{"vmrdma0", "100 Gbps", "free"}},
		{"state activeDefer is as good as active (API HostRdmaDeviceConnectionState)", func(n *backends.NIC, _ *survey.Position) { n.RDMAState = "activeDefer" }, true, nil},
		{"Intel E810 in RoCE v2 (irdman release notes)", func(n *backends.NIC, _ *survey.Position) { n.Driver, n.RoCEv1 = "icen", false }, true, nil},
		{"uplink of a DVS that carries RDMA adapters only", func(n *backends.NIC, _ *survey.Position) { n.Switch = "RDMA-DVS" }, true, []string{"uplink of RDMA-DVS"}},
		{"odd speed", func(n *backends.NIC, _ *survey.Position) { n.SpeedMbps = 2500 }, true, []string{"2500 Mbps"}},

		{"no RDMA device, whatever the speed (guide 000, contradiction C6)", func(n *backends.NIC, _ *survey.Position) { n.RDMADevice, n.RoCEv1, n.RoCEv2 = "", false, false }, false, []string{"no RDMA device"}},
		{"RoCE v1 only", func(n *backends.NIC, _ *survey.Position) { n.RoCEv2 = false }, false, []string{"RoCE v1 only"}},
		{"iWARP only (irdman release notes)", func(n *backends.NIC, _ *survey.Position) {
			n.Driver, n.RoCEv1, n.RoCEv2, n.IWARP = "icen", false, false, true
		}, false, []string{"iWARP only"}},
		{"an RDMA device without any RoCE", func(n *backends.NIC, _ *survey.Position) { n.RoCEv1, n.RoCEv2 = false, false }, false, []string{"does no RoCE"}},
		{"no link: linkSpeed is absent (API PhysicalNic)", func(n *backends.NIC, _ *survey.Position) { n.SpeedMbps = 0 }, false, []string{"no link"}},
		{"link up, RDMA device down", func(n *backends.NIC, _ *survey.Position) { n.RDMAState = "down" }, false, []string{"vmrdma0 is down"}},
		{"unknown driver", func(n *backends.NIC, _ *survey.Position) { n.Driver = "elxnet" }, false, []string{"elxnet"}},
		{"management", func(n *backends.NIC, at *survey.Position) {
			n.Switch, n.Roles, at.Standard, at.VMKs = "vSwitch0", []string{"management", "vmotion"}, true, []string{"vmk0", "vmk1"}
		}, false, []string{"carries management, vmotion (vmk0, vmk1 on vSwitch0)"}},
		{"vmknic without a service", func(n *backends.NIC, at *survey.Position) {
			n.Switch, n.Roles, at.VMKs = "DVS", []string{"vmkernel"}, []string{"vmk3"}
		}, false, []string{"carries vmkernel (vmk3 on DVS)"}},
		{"NVMe over RDMA (HostRdmaHba.associatedRdmaDevice)", func(n *backends.NIC, at *survey.Position) {
			n.Roles, at.Storage = []string{"storage"}, []string{"vmhba65"}
		}, false, []string{"carries storage", "vmhba65"}},
		{"standard switch with VMs", func(n *backends.NIC, at *survey.Position) { n.Switch, at.Standard = "vSwitch1", true }, false, []string{"standard switch vSwitch1"}},
		{"DVS with VMs", func(n *backends.NIC, at *survey.Position) { n.Switch, at.VMs = "DVS", []string{"db-01", "db-02"} }, false, []string{"VM db-01 and 1 more"}},
		{"DVS with one VM", func(n *backends.NIC, at *survey.Position) { n.Switch, at.VMs = "DVS", []string{"db-01"} }, false, []string{"carries VM db-01"}},
		{"enhanced data path (irdman release notes)", func(n *backends.NIC, at *survey.Position) { n.Switch, at.ENS = "DVS", true }, false, []string{"enhanced data path"}},
		{"DPU (pnic.dpuId)", func(_ *backends.NIC, at *survey.Position) { at.DPU = true }, false, []string{"DPU"}},
		{"every reason is named", func(n *backends.NIC, at *survey.Position) {
			n.SpeedMbps, n.RDMADevice, n.Roles, n.Switch, at.VMKs, at.Standard = 0, "", []string{"management"}, "vSwitch0", []string{"vmk0"}, true
		}, false, []string{"management", "no RDMA device", "no link"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, at := fit(), survey.Position{}
			tt.set(&n, &at)
			ok, why := survey.Judge(n, at)
			if ok != tt.ok {
				t.Errorf("eligible %v: %s", ok, why)
			}
			for _, words := range tt.says {
				if !strings.Contains(why, words) {
					t.Errorf("%q does not say %q", why, words)
				}
			}
		})
	}
}
