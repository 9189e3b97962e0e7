package backends_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
)

// fit returns an eligible pNIC.
func fit() backends.NIC {
	return backends.NIC{
		Device: "vmnic2", Driver: "nmlx5_core", SpeedMbps: 100000, RDMADevice: "vmrdma0", RoCEv1: true, RoCEv2: true, RDMAState: "active",
	}
}

// TestWhatIsEligible: no wishes are set, as in discover.
func TestWhatIsEligible(t *testing.T) {
	for _, tt := range []struct {
		name string // with the source of the rule
		set  func(*backends.NIC)
		ok   bool
		says []string
	}{
		{"RoCE v2, link up, free", func(*backends.NIC) {}, true, []string{"vmrdma0", "100G", "free"}},
		{"state activeDefer counts as active (API HostRdmaDeviceConnectionState)", func(n *backends.NIC) { n.RDMAState = "activeDefer" }, true,
			nil},
		{"Intel E810 in RoCE v2 (irdman release notes)", func(n *backends.NIC) { n.Driver, n.RoCEv1 = "icen", false }, true, nil},
		{"uplink of a DVS that carries RDMA adapters only", func(n *backends.NIC) { n.Switch = "RDMA-DVS" }, true,
			[]string{"uplink of RDMA-DVS"}},
		{"odd speed", func(n *backends.NIC) { n.SpeedMbps = 2500 }, true, []string{"2.5G"}},

		{"no RDMA device, whatever the speed (PVRDMA and vSphere Bitfusion, VMware 2021)",
			func(n *backends.NIC) { n.RDMADevice, n.RoCEv1, n.RoCEv2 = "", false, false }, false, []string{"no RDMA device"}},
		{"RoCE v1 only", func(n *backends.NIC) { n.RoCEv2 = false }, false, []string{"RoCE v1 only"}},
		{"iWARP only (irdman release notes)", func(n *backends.NIC) {
			n.Driver, n.RoCEv1, n.RoCEv2, n.IWARP = "icen", false, false, true
		}, false, []string{"iWARP only"}},
		{"an RDMA device without any RoCE", func(n *backends.NIC) { n.RoCEv1, n.RoCEv2 = false, false }, false,
			[]string{"does not support RoCE"}},
		{"no link: linkSpeed is absent (API PhysicalNic)", func(n *backends.NIC) { n.SpeedMbps = 0 }, false, []string{"no link"}},
		{"link up, RDMA device down", func(n *backends.NIC) { n.RDMAState = "down" }, false, []string{"vmrdma0, which is down"}},
		{"RDMA device armed, which is not ready (API HostRdmaDeviceConnectionState)", func(n *backends.NIC) { n.RDMAState = "armed" }, false,
			[]string{"vmrdma0, which is armed"}},
		{"a driver that is not listed, while the host reports RoCE v2", func(n *backends.NIC) { n.Driver = "elxnet" }, true,
			[]string{"elxnet not listed (unverified)"}},
		{"management", func(n *backends.NIC) {
			n.Switch, n.Roles, n.Use.Standard, n.Use.VMKs = "vSwitch0", []string{"management", "vmotion"}, true, []string{"vmk0", "vmk1"}
		}, false, []string{"carries management, vmotion on vSwitch0 (vmk0, vmk1)"}},
		{"vmknic without a service", func(n *backends.NIC) {
			n.Switch, n.Roles, n.Use.VMKs = "DVS", []string{"vmkernel"}, []string{"vmk3"}
		}, false, []string{"carries vmkernel on DVS (vmk3)"}},
		{"NVMe over RDMA (HostRdmaHba.associatedRdmaDevice)", func(n *backends.NIC) {
			n.Roles, n.Use.Storage = []string{"storage"}, []string{"vmhba65"}
		}, false, []string{"carries storage", "vmhba65"}},
		{"standard switch with VMs", func(n *backends.NIC) { n.Switch, n.Use.Standard = "vSwitch1", true }, false,
			[]string{"standard switch vSwitch1"}},
		{"N-VDS of NSX (API HostNetworkInfo.opaqueSwitch)", func(n *backends.NIC) { n.Switch, n.Use.Opaque = "nvds-1", true }, false,
			[]string{"uplink of nvds-1, which NSX manages"}},
		{"DVS with VMs", func(n *backends.NIC) { n.Switch, n.Use.VMs = "DVS", []string{"db-01", "db-02"} }, false,
			[]string{"VM db-01 and 1 more"}},
		{"DVS with one VM", func(n *backends.NIC) { n.Switch, n.Use.VMs = "DVS", []string{"db-01"} }, false, []string{"carries VM db-01"}},
		{"enhanced data path (irdman release notes)", func(n *backends.NIC) { n.Switch, n.Use.ENS, n.Driver = "DVS", true, "icen" }, false,
			[]string{"enhanced data path", "irdman 1.4.4.0"}},
		{"enhanced data path, of which the maker does not say", func(n *backends.NIC) { n.Switch, n.Use.ENS = "DVS", true }, true, nil},
		{"DPU (pnic.dpuId)", func(n *backends.NIC) { n.DPU = "dpu-1" }, false, []string{"DPU"}},
		{"every reason is named", func(n *backends.NIC) {
			n.SpeedMbps, n.RDMADevice, n.Roles, n.Switch, n.Use.VMKs, n.Use.Standard = 0, "", []string{"management"}, "vSwitch0", []string{"vmk0"},
				true
		}, false, []string{"management", "no RDMA device", "no link"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := backends.Host{NICs: []backends.NIC{fit()}}
			tt.set(&h.NICs[0])
			v := backends.ChoosePNIC(&h, backends.PNICWish{Drivers: nic.Known{}}).Verdicts[0]
			ok, why := v.Eligible(), v.Why()
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

// The vmknic of PVRDMA does not make a pNIC ineligible: neither the one that the host's option names, nor one that this program
// creates.
func TestVMKNicOfPVRDMA(t *testing.T) {
	create := backends.VMKRange{PortGroup: "VMK", Network: netip.MustParsePrefix("10.1.0.0/24"), Start: netip.MustParseAddr("10.1.0.11")}
	for _, tt := range []struct {
		name   string
		change func(*backends.Host, *backends.PNICWish)
		free   bool
	}{
		{"nobody names it", func(*backends.Host, *backends.PNICWish) {}, false},
		{"the option names it", func(h *backends.Host, _ *backends.PNICWish) {
			h.Options = map[string]string{backends.VMKNICOption: "vmk3"}
		}, true},
		{"the option names another", func(h *backends.Host, _ *backends.PNICWish) {
			h.Options = map[string]string{backends.VMKNICOption: "vmk0"}
		}, false},
		{"the answers create it", func(_ *backends.Host, w *backends.PNICWish) { w.VMKs = create }, true},
		{"before the first address", func(h *backends.Host, w *backends.PNICWish) { w.VMKs, h.VMKs[0].IP = create, "10.1.0.10" }, false},
		{"it has a service", func(h *backends.Host, w *backends.PNICWish) {
			w.VMKs, h.VMKs[0].Roles, h.NICs[0].Roles = create, []string{"vmotion"}, []string{"vmotion"}
		}, false},
		{"beside another", func(h *backends.Host, w *backends.PNICWish) {
			w.VMKs, h.NICs[0].Use.VMKs = create, []string{"vmk3", "vmk4"}
			h.VMKs = append(h.VMKs, backends.VMKernelNIC{Device: "vmk4", IP: "10.2.0.1"})
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := backends.Host{NICs: []backends.NIC{fit()},
				VMKs: []backends.VMKernelNIC{{Device: "vmk3", IP: "10.1.0.11", PrefixLen: 24, PortGroup: "VMK"}}}
			n, w := &h.NICs[0], backends.PNICWish{Switch: "A", Drivers: nic.Known{}}
			n.Switch, n.Roles, n.Use.VMKs = "A", []string{backends.RoleVMKernel}, []string{"vmk3"}
			tt.change(&h, &w)
			if v := backends.ChoosePNIC(&h, w).Verdicts[0]; v.Eligible() != tt.free {
				t.Errorf("eligible %t: %s", v.Eligible(), v.Why())
			}
		})
	}
}

// TestFaultsOfAWish: the faults of one pNIC compared with a wish, the first of them in Main.
func TestFaultsOfAWish(t *testing.T) {
	card := backends.PCIDevice{Address: "0000:3b:00.0", Vendor: "15b3", Class: "0200"}
	for _, tt := range []struct {
		name  string
		set   func(*backends.NIC, *backends.PNICWish)
		fault backends.PNICFault
		check string // "": eligible
		says  string
		meant bool
	}{
		{"MAC in capitals", func(n *backends.NIC, w *backends.PNICWish) { w.MAC = strings.ToUpper(n.MAC) }, 0, "", "free", true},
		{"another MAC", func(_ *backends.NIC, w *backends.PNICWish) { w.MAC = "02:00:00:00:00:01" }, backends.WrongMAC, "HOST-PNIC-MAC-005",
			"has MAC 02:00", false},
		{"by name", func(_ *backends.NIC, w *backends.PNICWish) { w.Device = "vmnic2" }, 0, "", "free", true},
		{"by PCI address", func(_ *backends.NIC, w *backends.PNICWish) { w.Device = "0000:3B:00.0" }, 0, "", "free", true},
		{"another name", func(_ *backends.NIC, w *backends.PNICWish) { w.Device = "vmnic9" }, backends.WrongDevice, "HOST-PNIC-RDMA-001",
			"is not vmnic9", false},
		{"another name, where no check is about RDMA devices", func(_ *backends.NIC, w *backends.PNICWish) {
			w.Device, w.Purpose = "vmnic9",
				backends.VFParent
		},
			backends.WrongDevice, "HOST-PNIC-STATE-003", "is not vmnic9", false},
		{"another driver", func(_ *backends.NIC, w *backends.PNICWish) { w.Driver = "icen" }, backends.WrongDriver, "HOST-PNIC-DRIVER-006",
			"has driver nmlx5_core", false},
		{"another speed", func(_ *backends.NIC, w *backends.PNICWish) { w.SpeedMbps = 200000 }, backends.WrongSpeed, "HOST-PNIC-SPEED-004",
			"runs at 100G", false},
		{"no link, and it cannot run at that speed", func(n *backends.NIC, w *backends.PNICWish) {
			w.SpeedMbps, n.SpeedMbps, n.MaxSpeedMbps = 100000, 0, 25000
		},
			backends.WrongSpeed, "HOST-PNIC-SPEED-004", "up to 25G", false},
		{"no link, and it may be the one", func(n *backends.NIC, w *backends.PNICWish) { w.SpeedMbps, n.SpeedMbps = 100000, 0 }, backends.NoLink,
			"HOST-PNIC-STATE-003", "has no link", true},
		{"no link, and it is the one", func(n *backends.NIC, w *backends.PNICWish) {
			w.SpeedMbps, n.SpeedMbps, n.MaxSpeedMbps = 100000, 0, 100000
		},
			backends.NoLink, "HOST-PNIC-STATE-003", "has no link", true},
		{"the uplink of the switch runs slower than it can: it is the one that is meant, and is not eligible",
			func(n *backends.NIC, w *backends.PNICWish) {
				w.SpeedMbps, w.Switch, n.Switch, n.SpeedMbps, n.MaxSpeedMbps = 100000, "RDMA-DVS", "RDMA-DVS", 25000, 100000
			}, backends.Slow, "HOST-PNIC-SPEED-004", "runs at 25G", true},
		{"any other pNIC that runs slower is another pNIC", func(n *backends.NIC, w *backends.PNICWish) {
			w.SpeedMbps, n.SpeedMbps, n.MaxSpeedMbps = 100000, 25000, 100000
		},
			backends.WrongSpeed, "HOST-PNIC-SPEED-004", "runs at 25G", false},

		{"RoCE v1 asked for, and spoken", func(n *backends.NIC, w *backends.PNICWish) { w.Protocol, n.RoCEv2 = "rocev1", false }, 0, "",
			"RoCE v1", true},
		{"RoCE v1 asked for, not spoken", func(n *backends.NIC, w *backends.PNICWish) { w.Protocol, n.RoCEv1 = "rocev1", false },
			backends.WrongProtocol, "HOST-PNIC-ROCEV2-002", "RoCE v1", true},
		{"RoCE v1 asked for, iWARP spoken", func(n *backends.NIC, w *backends.PNICWish) {
			w.Protocol, n.RoCEv1, n.RoCEv2, n.IWARP = "rocev1", false, false, true
		}, backends.WrongProtocol, "HOST-PNIC-ROCEV2-002", "iWARP only", true},
		{"a driver that nobody knows, named by the operator", func(n *backends.NIC, w *backends.PNICWish) {
			n.Driver, w.Driver = "newnic",
				"newnic"
		}, 0, "", "free", true},
		{"a driver that nobody knows", func(n *backends.NIC, _ *backends.PNICWish) { n.Driver = "newnic" }, 0, "",
			"driver newnic not listed (unverified)", true},

		{"uplink of the switch", func(n *backends.NIC, w *backends.PNICWish) { n.Switch, w.Switch = "A", "A" }, 0, "", "uplink of A", true},
		{"uplink of the switch, which carries VMs: the operator named it",
			func(n *backends.NIC, w *backends.PNICWish) { n.Switch, w.Switch, n.Use.VMs = "A", "A", []string{"db"} }, 0, "", "uplink of A", true},
		{"uplink of the switch with a vmknic", func(n *backends.NIC, w *backends.PNICWish) {
			n.Switch, w.Switch, n.Roles = "A", "A", []string{"vmotion"}
		},
			backends.InUse, "HOST-PNIC-USED-012", "carries vmotion on A", true},
		{"uplink of another switch", func(n *backends.NIC, w *backends.PNICWish) { n.Switch, w.Switch = "B", "A" }, backends.InUse,
			"HOST-PNIC-USED-012", "is an uplink of B", true},
		{"ENS on the switch: the plan and a check of its own say so, and it can be skipped",
			func(n *backends.NIC, w *backends.PNICWish) { n.Switch, w.Switch, n.Use.ENS = "A", "A", true }, 0, "", "", true},
		{"ENS on another switch", func(n *backends.NIC, w *backends.PNICWish) {
			n.Switch, w.Switch, n.Use.ENS, n.Driver = "B", "A", true, "icen"
		}, backends.EnhancedPath, "HOST-ENS-017", "enhanced data path", true},

		{"VFs take no RDMA device of the host", func(n *backends.NIC, w *backends.PNICWish) {
			w.Purpose, n.RDMADevice, n.RoCEv2 = backends.VFParent, "", false
		}, 0, "", "nmlx5_core", true},
		{"VFs take a ConnectX card", func(n *backends.NIC, w *backends.PNICWish) { w.Purpose, n.Driver = backends.VFParent, "icen" },
			backends.NotCapable, "HOST-PNIC-DRIVER-006", "has driver icen", true},
		{"VFs of a DPU", func(n *backends.NIC, w *backends.PNICWish) { w.Purpose, n.DPU = backends.VFParent, "dpu-1" }, backends.OnDPU,
			"HOST-PNIC-STATE-003", "DPU dpu-1", true},
		{"a whole card is on no switch, not even on the one that the answers name", func(n *backends.NIC, w *backends.PNICWish) {
			w.Purpose, n.Switch, w.Switch = backends.WholeCard, "A", "A"
		},
			backends.InUse, "HOST-PNIC-USED-012", "is an uplink of A", true},
		{"a whole card that is in the list of PCI devices", func(_ *backends.NIC, w *backends.PNICWish) { w.Purpose = backends.WholeCard }, 0, "",
			"free", true},
		{"a whole card that is not a ConnectX card", func(n *backends.NIC, w *backends.PNICWish) {
			w.Purpose, n.PCI = backends.WholeCard,
				"0000:5e:00.0"
		},
			backends.NotCapable, "HOST-PNIC-DRIVER-006", "is not a ConnectX card", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, w := backends.Host{NICs: []backends.NIC{fit()}, PCI: []backends.PCIDevice{card}}, backends.PNICWish{Drivers: nic.Known{}}
			h.NICs[0].MAC, h.NICs[0].PCI = "02:00:00:aa:bb:cc", card.Address
			tt.set(&h.NICs[0], &w)
			v := backends.ChoosePNIC(&h, w).Verdicts[0]
			if main := v.Main(); v.Eligible() != (tt.check == "") || main.Check != tt.check || main.Fault != tt.fault && tt.check != "" {
				t.Errorf("eligible %t, %+v", v.Eligible(), main)
			}
			if v.Meant() != tt.meant || !strings.Contains(v.Why(), tt.says) {
				t.Errorf("meant %t: %q", v.Meant(), v.Why())
			}
			for _, r := range v.Against {
				if r.Remedy == "" || r.Why == "" {
					t.Errorf("a reason says what to do: %+v", r)
				}
			}
		})
	}
}

func TestNoPNICOfAHostThatIsAwayIsEligible(t *testing.T) {
	v := backends.ChoosePNIC(&backends.Host{State: "disconnected", NICs: []backends.NIC{fit()}}, backends.PNICWish{Drivers: nic.Known{}}).
		Verdicts[0]
	if v.Eligible() || v.Main().Check != "HOST-CONN-001" || !strings.Contains(v.Why(), "is on a host that is disconnected") {
		t.Errorf("%+v", v)
	}
}

// TestWhichIsChosen: three eligible pNICs; each case changes some of them. Chosen and nearest are named by device.
func TestWhichIsChosen(t *testing.T) {
	for _, tt := range []struct {
		name            string
		set             func(n []backends.NIC)
		chosen, nearest string
	}{
		{"several fit: none is chosen", func([]backends.NIC) {}, "", "a"},
		{"one fits", func(n []backends.NIC) { n[0].SpeedMbps, n[1].Roles = 0, []string{"vmotion"} }, "c", "c"},
		{"an uplink of the switch was chosen before", func(n []backends.NIC) { n[1].Switch = "RDMA" }, "b", "b"},
		{"an uplink that is down stays the one, though others fit", func(n []backends.NIC) { n[1].Switch, n[1].SpeedMbps = "RDMA", 0 }, "", "b"},
		{"of two uplinks the one that is up", func(n []backends.NIC) { n[1].Switch, n[1].SpeedMbps, n[2].Switch = "RDMA", 0, "RDMA" }, "c", "c"},
		{"an uplink that cannot do RDMA was not chosen for RDMA", func(n []backends.NIC) {
			n[0].Switch, n[0].RDMADevice, n[1].SpeedMbps = "RDMA", "", 0
		}, "c", "c"},
		{"none fits: in use is nearer than down and than no RDMA", func(n []backends.NIC) {
			n[0].RDMADevice, n[1].SpeedMbps, n[2].Roles = "", 0,
				[]string{"vsan"}
		}, "", "c"},
		{"none fits: up without RDMA is nearer than no link", func(n []backends.NIC) {
			n[0].SpeedMbps, n[1].RDMADevice, n[2].SpeedMbps = 0, "",
				0
		}, "", "b"},
		{"none fits: the uplink of the switch comes first", func(n []backends.NIC) {
			n[0].Roles, n[1].Roles, n[2].RDMADevice, n[2].Switch = []string{"vsan"}, []string{"vsan"}, "", "RDMA"
		}, "", "c"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := backends.Host{NICs: []backends.NIC{fit(), fit(), fit()}}
			for i, device := range []string{"a", "b", "c"} {
				h.NICs[i].Device = device
			}
			tt.set(h.NICs)
			c := backends.ChoosePNIC(&h, backends.PNICWish{Switch: "RDMA", Drivers: nic.Known{}})
			if chosen := map[bool]string{false: c.Nearest.NIC.Device}[c.Chosen == nil]; chosen != tt.chosen || c.Nearest.NIC.Device != tt.nearest {
				t.Errorf("chosen %q, nearest %s", chosen, c.Nearest.NIC.Device)
			}
			if c.Chosen != nil && c.Chosen != c.Nearest.NIC {
				t.Error("what is chosen is nearest")
			}
		})
	}
	if c := backends.ChoosePNIC(&backends.Host{}, backends.PNICWish{Drivers: nic.Known{}}); c.Chosen != nil || c.Nearest != nil ||
		c.Verdicts != nil {
		t.Errorf("a host without pNICs: %+v", c)
	}
}

// TestListedDriverIsPreferred: of two eligible pNICs, the one with a listed driver is chosen; if only the other one exists, it is
// chosen.
func TestListedDriverIsPreferred(t *testing.T) {
	unlisted := fit()
	unlisted.Device, unlisted.Driver, unlisted.PCI = "vmnic9", "newnic", "0000:5e:00.0"
	h := backends.Host{NICs: []backends.NIC{unlisted, fit()}}
	for _, want := range []string{fit().Device, unlisted.Device} {
		c := backends.ChoosePNIC(&h, backends.PNICWish{Drivers: nic.Known{}})
		if c.Chosen == nil || c.Chosen.Device != want || c.Nearest.Unlisted != (want == unlisted.Device) {
			t.Errorf("%s expected, chosen %+v", want, c.Chosen)
		}
		h.NICs = h.NICs[:1]
	}
}
