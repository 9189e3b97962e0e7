package nic_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
)

// eachCard is a host with a card of each family, whose vmnic numbers run against the order of PCI addresses.
func eachCard() *backends.Host {
	known := func(params ...string) backends.Fact[backends.Module] {
		return backends.ReadFact(backends.Module{Known: params, Params: map[string]string{}}, nil)
	}
	return &backends.Host{
		NICs: []backends.NIC{
			{Device: "vmnic3", Driver: "icen", PCI: "0000:5e:00.0", RDMADevice: "vmrdma2", RoCEv2: true, SpeedMbps: 100000},
			{Device: "vmnic2", Driver: "icen", PCI: "0000:5e:00.1"},
			{Device: "vmnic1", Driver: "nmlx5_core", PCI: "0000:3b:00.0", RDMADevice: "vmrdma0", RoCEv1: true, RoCEv2: true, SpeedMbps: 100000},
			{Device: "vmnic0", Driver: "nmlx5_core", PCI: "0000:3b:00.1", Roles: []string{"vsan"}},
			{Device: "vmnic5", Driver: "bnxtnet", PCI: "0000:d8:00.0", RDMADevice: "vmrdma3", RoCEv2: true, SpeedMbps: 100000},
			{Device: "vmnic4", Driver: "bnxtnet", PCI: "0000:d8:00.1"},
		},
		System: &backends.HostSystem{Modules: map[string]backends.Fact[backends.Module]{
			"nmlx5_core": known("max_vfs", "pfctx", "pfcrx", "trust_state", "ecn"), "nmlx5_rdma": known("dscp_force"), "icen": known("max_vfs"),
			"irdman": known(), "bnxtnet": known(), "bnxtroce": known(),
		}},
	}
}

// TestFamilies calls every method of every family that plans, checks and screens use.
func TestFamilies(t *testing.T) {
	h := eachCard()
	for _, c := range []struct {
		driver, vendor, rdma string
		ports                []string
		noVFs                string // why no VFs are created, with its source
		lossless, firmware   bool
	}{
		{"nmlx5_core", "15b3", "nmlx5_rdma", []string{"0000:3b:00.0", "0000:3b:00.1"}, "", true, true},
		{"icen", "8086", "irdman", []string{"0000:5e:00.0", "0000:5e:00.1"}, "drivers/infiniband/hw/irdma", false, false},
		{"bnxtnet", "14e4", "bnxtroce", []string{"0000:d8:00.0", "0000:d8:00.1"}, "NetXtreme-E User's Manual, Broadcom, UG100, SR-IOV", false,
			false},
	} {
		f := nic.Of(c.driver)
		if f == nil || nic.OfCard(c.vendor) != f || f.RDMA() != c.rdma || f.Name() == "" || f.Cards() == "" || len(f.VIBs()) == 0 {
			t.Errorf("%s: %+v", c.driver, f)
			continue
		}
		if got := nic.Addresses(h, f); !slices.Equal(got, c.ports) {
			t.Errorf("%s: KB 309346: ports in PCI order, got %v", c.driver, got)
		}
		why, remedy := nic.Known{}.NoVFs(c.driver)
		if (why == "") != (c.noVFs == "") || !strings.Contains(why, c.noVFs) || (why == "") != (remedy == "") {
			t.Errorf("%s: VFs: %q, %q", c.driver, why, remedy)
		}
		if (f.Lossless() != nil) != c.lossless || (nic.FirmwareOf(f) != nil) != c.firmware || (len(nic.Tools(f)) > 0) != c.firmware {
			t.Errorf("%s: lossless %v, firmware %v", c.driver, f.Lossless(), nic.FirmwareOf(f))
		}
		if !(nic.Known{}).RoCE(c.driver) || !slices.Contains(nic.RDMAModules(), c.rdma) {
			t.Errorf("%s is not known to do RoCE", c.driver)
		}
	}
	if got := nic.Modules(h); !slices.Equal(got, []string{"nmlx5_core", "nmlx5_rdma", "icen", "irdman", "bnxtnet", "bnxtroce"}) {
		t.Errorf("modules to read: %v", got)
	}
	if nic.Of("ntg3") != nil || nic.OfCard("1077") != nil || (nic.Known{}).RoCE("ntg3") || nic.Dropped("nmlx4_core") != "ConnectX-3" {
		t.Error("ntg3 is no RDMA driver; nmlx4_core is that of ConnectX-3")
	}
	if why, _ := (nic.Known{}).NoVFs("qedentv"); !strings.Contains(why, "ConnectX cards (nmlx5_core) only") {
		t.Errorf("a driver without a family: %q", why)
	}
	if got := nic.WithLossless(); got != "nmlx5_core" {
		t.Errorf("PFC by parameters of %q", got)
	}
}

// TestE810: the irdman 1.4.4.0 release notes about the modules, as they appear in reasons against a pNIC and in a check.
func TestE810(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*backends.NIC)
		says string
	}{
		"RDMA is off in icen": {func(n *backends.NIC) { n.RDMADevice, n.RoCEv2 = "", false },
			"esxcli system module parameters set -a -m icen -p RDMA=1,1 "},
		"iWARP": {func(n *backends.NIC) { n.RoCEv2, n.IWARP = false, true }, "set the protocol of module irdman back to RoCE v2"},
		"RoCE v1 is not there, which needs no module": {func(n *backends.NIC) { n.RoCEv2 = false }, "choose another pNIC"},
	} {
		h := eachCard()
		c.set(&h.NICs[0])
		v := backends.ChoosePNIC(h, backends.PNICWish{Drivers: nic.Known{}}).Verdicts[0]
		if v.Eligible() || !strings.Contains(v.Main().Remedy, c.says) {
			t.Errorf("%s: %+v", name, v.Main())
		}
	}
	for version, want := range map[string]string{"1.3.3.0-1OEM.700.1.0.15843807": "1.4.0.20", "1.4.0.20-1OEM.700.1.0.15843807": "",
		"1.14.2.0-1OEM.800.1.0.20613240": ""} {
		if got := nic.TooOld(&backends.NIC{Driver: "icen", DriverVersion: version}); got != want {
			t.Errorf("icen %s is older than %q, want %q", version, got, want)
		}
	}
	if got := nic.TooOld(&backends.NIC{Driver: "nmlx5_core", DriverVersion: "4.17.13.8"}); got != "" {
		t.Errorf("nmlx5_core: %q", got)
	}
}

// TestNetXtremeE: a port without an RDMA device may have it disabled in the NVRAM (kernel, bnxt_devlink.c), which no plan changes. Of
// Broadcom's cards, those in rdma-core's table (providers/bnxt_re/main.c) have RDMA.
func TestNetXtremeE(t *testing.T) {
	h := eachCard()
	h.NICs = h.NICs[4:5]
	if c := backends.ChoosePNIC(h, backends.PNICWish{Drivers: nic.Known{}}); c.Chosen == nil || c.Verdicts[0].Unlisted {
		t.Errorf("with an RDMA device: %s", c.Verdicts[0].Why())
	}
	h.NICs[0].RDMADevice, h.NICs[0].RoCEv2 = "", false
	c := backends.ChoosePNIC(h, backends.PNICWish{Drivers: nic.Known{}})
	if m := c.Verdicts[0].Main(); c.Chosen != nil ||
		!strings.Contains(m.Remedy, "load module bnxtroce, and enable RDMA for the port in the card's NVRAM") ||
		!strings.Contains(m.Remedy, "(unverified)") {
		t.Errorf("without: chosen %v, %+v", c.Chosen, m)
	}
	if nic.MayBeOff(h) || nic.RDMAOff(h, &h.NICs[0]) {
		t.Error("no parameter of bnxtnet shows it")
	}
	h.PCI = []backends.PCIDevice{
		{Address: "0000:19:00.0", Vendor: "14e4", Device: "165f", Class: "0200", Name: "BCM5720"},
		{Address: "0000:d9:00.0", Vendor: "14e4", Device: "1750", Class: "0200", Name: "BCM57508"},
	}
	if got := nic.Hidden(h); len(got) != 1 || got[0].PCI != "0000:d9:00.0" || got[0].Hidden != "is a PCI function without a driver" {
		t.Errorf("functions that no driver has claimed: %+v", got)
	}
}

// TestRDMAOff: a port whose driver was configured without RDMA is eligible, because a plan can change that; a port whose state is
// unknown is not.
func TestRDMAOff(t *testing.T) {
	off := func(value string, read bool) *backends.Host {
		h := eachCard()
		h.NICs = h.NICs[:2]
		h.NICs[0].RDMADevice, h.NICs[0].RoCEv2 = "", false
		m := backends.Module{Known: []string{"RDMA", "max_vfs"}, Params: map[string]string{"max_vfs": "0,0"}}
		if value != "" {
			m.Params["RDMA"] = value
		}
		h.System.Modules["icen"] = backends.ReadFact(m, nil)
		if !read {
			h.System = nil
		}
		return h
	}
	for name, c := range map[string]struct {
		h      *backends.Host
		v1     bool
		chosen bool
	}{
		"off":                     {off("0,0", true), false, true},
		"unset":                   {off("", true), false, true},
		"on, and still no device": {off("1,0", true), false, false},
		"nobody asked":            {off("0,0", false), false, false},
		"RoCE v1 never comes":     {off("0,0", true), true, false},
	} {
		w := backends.PNICWish{Drivers: nic.Known{}}
		if c.v1 {
			w.Protocol = "rocev1"
		}
		choice := backends.ChoosePNIC(c.h, w)
		if (choice.Chosen != nil) != c.chosen || choice.Verdicts[0].Eligible() {
			t.Errorf("%s: chosen %v, %s", name, choice.Chosen, choice.Verdicts[0].Why())
		}
	}
	h := off("0,0", true)
	if got := nic.WithRDMA(h, &h.NICs[0]); got["RDMA"] != "1,0" || got["max_vfs"] != "0,0" {
		t.Errorf("%v", got)
	}
	if h = off("", true); nic.WithRDMA(h, &h.NICs[0])["RDMA"] != "1,0" {
		t.Errorf("%v", nic.WithRDMA(h, &h.NICs[0]))
	}
	h.NICs[1].RDMADevice = "vmrdma1"
	if got := nic.WithRDMA(h, &h.NICs[0]); got["RDMA"] != "1,1" {
		t.Errorf("the other port has RDMA: %v", got)
	}
	if !nic.MayBeOff(h) || nic.MayBeOff(&backends.Host{NICs: []backends.NIC{{Driver: "nmlx5_core"}}}) {
		t.Error("icen tells by a parameter, nmlx5_core does not")
	}
}

// TestConnectX: the values in VMware's and Mellanox's guides (RoCE SR-IOV Setup and Performance Study; DOC-2581).
func TestConnectX(t *testing.T) {
	h, f := eachCard(), nic.Of("nmlx5_core")
	core, rdma, missing := nic.Lossless(h, f, nic.Class{Mask: 0x08, DSCP: 26, ECN: true})
	for key, want := range map[string]string{"pfctx": "0x08", "pfcrx": "0x08", "trust_state": "2", "ecn": "1"} {
		if core[key] != want {
			t.Errorf("%s=%s, want %s", key, core[key], want)
		}
	}
	if rdma["dscp_force"] != "26" || len(missing) > 0 {
		t.Errorf("%v, missing %v", rdma, missing)
	}
	if off, was := nic.WithoutPFC(f, core); !was || off["pfctx"] != "0x00" || off["ecn"] != "1" {
		t.Errorf("without PFC: %v", off)
	}
	if got := nic.Pausing(h, f, &h.NICs[2]); !slices.Equal(got, []string{"vmnic0 (vsan)"}) {
		t.Errorf("storage that relies on global pause: %v", got)
	}
	params, err := nic.WithVFs(h, f, nil, nic.Wish{VFs: map[string]int{"0000:3b:00.0": 8}})
	if err != nil || params["max_vfs"] != "8,0" {
		t.Errorf("%v %v", params, err)
	}
	keys, err := nic.FirmwareKeys(f, []nic.Port{{PCI: "0000:3b:00.0", VFs: 8}, {PCI: "0000:3b:00.1"}})
	if err != nil ||
		nic.FirmwareWhy(f,
			keys) != "LINK_TYPE_P1=2 where the card has it, LINK_TYPE_P2=2 where the card has it, NUM_OF_VFS at least 9, SRIOV_EN=1" {
		t.Errorf("%s %v", nic.FirmwareWhy(f, keys), err)
	}
	if got := nic.FirmwareCommand("3b:00.0",
		map[string]string{"SRIOV_EN": "1", "NUM_OF_VFS": "9"}); got != "/opt/mellanox/bin/mlxconfig -d 3b:00.0 -y set NUM_OF_VFS=9 SRIOV_EN=1" {
		t.Errorf("%q", got)
	}
}

// TestMergeFirmware: an Ethernet-only card with one port has no protocol setting, and keeps more VFs than requested.
func TestMergeFirmware(t *testing.T) {
	want := map[string]string{"SRIOV_EN": "1", "NUM_OF_VFS": "9", "LINK_TYPE_P1": "2"}
	got, err := nic.MergeFirmware("esx-01", "0000:3b:00.0", want, map[string]string{"SRIOV_EN": "0", "NUM_OF_VFS": "16"})
	if err != nil || got["NUM_OF_VFS"] != "16" || got["SRIOV_EN"] != "1" || len(got) != 2 {
		t.Errorf("%v %v", got, err)
	}
	if _, err := nic.MergeFirmware("esx-01", "0000:3b:00.0", want,
		map[string]string{"SRIOV_EN": "0"}); backends.KindOf(err) != backends.KindRefused {
		t.Errorf("a card without NUM_OF_VFS: %v", err)
	}
	if _, err := nic.MergeFirmware("esx-01", "0000:3b:00.0", map[string]string{"ATS_ENABLED": "1"},
		map[string]string{"SRIOV_EN": "0"}); backends.KindOf(err) != backends.KindRefused {
		t.Errorf("a card without ATS: %v", err)
	}
}

// TestNoFirmwareTools: a family without firmware settings has the same methods as any other, and refuses.
func TestNoFirmwareTools(t *testing.T) {
	f := nic.Of("icen")
	if f == nil || f.Firmware() != nil {
		t.Fatal("E810 has firmware tools: nothing is tried")
	}
	if keys, err := nic.FirmwareKeys(f, []nic.Port{{PCI: "0000:3b:00.0", VFs: 8}}); err == nil || len(keys) > 0 ||
		!strings.Contains(err.Error(), "no firmware tools for driver icen") {
		t.Errorf("%v %v", keys, err)
	}
	if nic.OEM(f, "DEL0000000004") || nic.FirmwareWhy(f, map[string]string{"SRIOV_EN": "1"}) != "SRIOV_EN=1" || len(nic.Tools(f)) > 0 ||
		!nic.ToolsRun(f, &backends.HostSystem{}) {
		t.Error("a family without tools has an OEM's board, or tools that have to run")
	}
	if nic.OEM(nil, "DEL0000000004") || !nic.OEM(nic.Of("nmlx5_core"), "DEL0000000004") || nic.OEM(nic.Of("nmlx5_core"), "MT_0000000009") {
		t.Error("OEM boards by PSID")
	}
	if f.Tools(nil) != nil || nic.FirmwareTools(nil) == nil {
		t.Error("which family has firmware tools")
	}
}
