package sizing_test

import (
	"math"
	"testing"

	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

func near(a, b, by float64) bool { return math.Abs(a-b) <= by }

func TestIBMTU(t *testing.T) {
	for name, c := range map[string]struct{ eth, want int }{
		"MLNX2-117-1682kn: 1500":        {1500, 1024},
		"least for 1024 (ib_addr.h)":    {1120, 1024},
		"one less":                      {1119, 512},
		"least for 2048":                {2144, 2048},
		"below 4192":                    {4191, 2048},
		"least for 4096":                {4192, 4096},
		"MLNX2-117-1682kn: 4200":        {4200, 4096},
		"jumbo frames":                  {9000, 4096},
		"too small for any (below 352)": {300, 0},
	} {
		if got := sizing.IBMTU(c.eth); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestGoodput(t *testing.T) {
	for name, c := range map[string]struct {
		mtu  int
		vlan bool
		want float64
	}{
		"4096": {4096, false, 0.980}, "2048": {2048, false, 0.962}, "1024": {1024, false, 0.926}, "512": {512, false, 0.862},
		"4096 with a VLAN tag": {4096, true, 0.979}, "nothing": {0, false, 0},
	} {
		if got := sizing.Goodput(c.mtu, c.vlan); !near(got, c.want, 0.0006) {
			t.Errorf("%s: %.4f, want %.3f", name, got, c.want)
		}
	}
}

func TestExpect(t *testing.T) {
	for name, c := range map[string]struct {
		link sizing.Link
		want float64
	}{
		"100G at 4096":                        {sizing.Link{SpeedMbps: 100000, IBMTU: 4096}, 98.04},
		"92.6 % means an active MTU of 1024":  {sizing.Link{SpeedMbps: 100000, IBMTU: 1024}, 92.59},
		"100G in a Gen3 x8 slot":              {sizing.Link{SpeedMbps: 100000, IBMTU: 4096, PCIeGbps: sizing.PCIeGbps(3, 8)}, 54.8},
		"200G in a Gen3 x16 slot":             {sizing.Link{SpeedMbps: 200000, IBMTU: 4096, PCIeGbps: sizing.PCIeGbps(3, 16)}, 109.7},
		"200G in a Gen4 x16 slot is the link": {sizing.Link{SpeedMbps: 200000, IBMTU: 4096, PCIeGbps: sizing.PCIeGbps(4, 16)}, 196.07},
	} {
		if got := sizing.Expect(c.link); !near(got.Gbps, c.want, 0.1) || got.Why == "" {
			t.Errorf("%s: %+v, want %.2f", name, got, c.want)
		}
	}
}

func TestPCIe(t *testing.T) {
	for name, c := range map[string]struct {
		gen, lanes int
		want       float64
	}{
		"kernel text: Gen3 x16": {3, 16, 126.0}, "kernel text: Gen4 x16": {4, 16, 252.0}, "Gen5 x16": {5, 16, 504.1}, "Gen3 x8": {3, 8, 63.0},
		"unknown": {9, 16, 0},
	} {
		if got := sizing.PCIeGbps(c.gen, c.lanes); !near(got, c.want, 0.1) {
			t.Errorf("%s: %.2f", name, got)
		}
	}
}

func TestVerdicts(t *testing.T) {
	link := sizing.Link{SpeedMbps: 100000, IBMTU: 4096}
	for name, c := range map[string]struct {
		mode    string
		gbps    float64
		us      float64
		bw, lat sizing.Verdict
	}{
		"RoCE SR-IOV Setup and Performance Study, Figure 21 and 22": {"sriov", 96.73, 2.04, sizing.Pass, sizing.Pass},
		"MTU 1024":                    {"sriov", 92.6, 3.5, sizing.Warn, sizing.Warn},
		"far off":                     {"gpudirect", 60, 12, sizing.Fail, sizing.Fail},
		"PVRDMA sound":                {"pvrdma", 86, 7.9, sizing.Pass, sizing.Pass},
		"PVRDMA weak":                 {"pvrdma", 60, 15, sizing.Warn, sizing.Warn},
		"PVRDMA on TCP":               {"pvrdma", 25, 45, sizing.Fail, sizing.Fail},
		"limits belong to the better": {"sriov", 93, 3, sizing.Pass, sizing.Pass},
	} {
		b := sizing.BandsFor(c.mode)
		if got := b.Bandwidth(c.gbps, link); got != c.bw {
			t.Errorf("%s: bandwidth %s, want %s", name, got, c.bw)
		}
		if got := b.Latency(c.us, link); got != c.lat {
			t.Errorf("%s: latency %s, want %s", name, got, c.lat)
		}
	}
	if got := sizing.BandsFor("sriov").Latency(3.9, sizing.Link{Hops: 1}); got != sizing.Pass {
		t.Errorf("one more switch adds a microsecond; got %s", got)
	}
	if got := sizing.BandsFor("sriov").Bandwidth(10, sizing.Link{}); got != sizing.Fail {
		t.Errorf("a link without speed: %s", got)
	}
}

func TestQoS(t *testing.T) {
	if m, err := sizing.PFCMask(3); err != nil || m != 0x08 {
		t.Errorf("RoCE SR-IOV Setup and Performance Study and DOC-2581: priority 3 is 0x08, got %#x %v", m, err)
	}
	for _, p := range []int{-1, 8} {
		if _, err := sizing.PFCMask(p); err == nil {
			t.Errorf("priority %d is accepted", p)
		}
	}
	if sizing.TrafficClass(26, false) != 104 || sizing.TrafficClass(26, true) != 106 {
		t.Error("RFC 2474, RFC 3168: DSCP 26 is traffic class 104, with ECN 106")
	}
	if sizing.PingPayload(9000, false) != 8972 || sizing.PingPayload(9000, true) != 8952 {
		t.Error("RFC 791, RFC 8200: 8972 over IPv4, 8952 over IPv6")
	}
}

func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		hw   int
		u1   bool
		want int
	}{"KB 309986: 7.x": {19, false, 16}, "8.0": {20, false, 32}, "8.0 U1": {20, true, 64}, "8.0 U2": {21, true, 128}} {
		if got := sizing.PassthroughLimit(c.hw, c.u1); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if sizing.VectorsFor(1024) < sizing.VectorLimit || sizing.VectorsFor(1000) > sizing.VectorLimit {
		t.Error("vSphere Networking: 3X < 3072")
	}
}
