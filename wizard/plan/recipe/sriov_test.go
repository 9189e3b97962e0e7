package recipe_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
)

// As few reboots as possible (RoCE SR-IOV Setup and Performance Study on vSphere 7.x, VMware, 2022: at most three): two
// without the tools, one with them, none when nothing differs.
func TestRebootBudget(t *testing.T) {
	for name, c := range map[string]struct {
		inv     *backends.Inventory
		edit    func(*answers.Answers)
		reboots int
		has     []string // ids that are planned on esx-01
		not     []string
	}{
		"bare: tools, then firmware and driver": {newSRIOV(2), nil, 2, []string{
			hostChange("esx-01", backends.KindComponent, "mft"), hostChange("esx-01", backends.KindComponent, "nmst"),
			hostChange("esx-01", backends.KindFirmware, cardCX5), hostChange("esx-01", backends.KindModuleParams, connectX.Driver()),
			hostChange("esx-01", backends.KindActiveVFs, portCX5), hostChange("esx-01", backends.KindPower, "")}, nil},
		"tools are there": {withTools(newSRIOV(2)), nil, 1, []string{hostChange("esx-01", backends.KindFirmware, cardCX5)},
			[]string{hostChange("esx-01", backends.KindComponent, "mft")}},
		"MFT is there alone, and older than what is named": {func() *backends.Inventory {
			inv := newSRIOV(2)
			for i := range inv.Hosts {
				inv.Hosts[i].System.VIBs.Value["mft"] = backends.VIB{Version: "4.18.1-1"}
			}
			return inv
		}(), nil, 2, []string{hostChange("esx-01", backends.KindComponent, "mft"), hostChange("esx-01", backends.KindComponent, "nmst")}, nil},
		"firmware is proven by what the port offers: no tools, no SSH": {withFirmware(newSRIOV(2), 16), nil, 1,
			[]string{hostChange("esx-01", backends.KindModuleParams, connectX.Driver())},
			[]string{hostChange("esx-01", backends.KindFirmware, cardCX5), hostChange("esx-01", backends.KindComponent, "mft")}},
		"active VFs prove the firmware, nothing differs": {ready(newSRIOV(2)), nil, 0, nil, []string{
			hostChange("esx-01", backends.KindFirmware, cardCX5), hostChange("esx-01", backends.KindModuleParams, connectX.Driver()),
			hostChange("esx-01", backends.KindComponent, "mft"), hostChange("esx-01", backends.KindPower, "")}},
		"parameters are set, nobody has rebooted": {func() *backends.Inventory {
			inv := ready(newSRIOV(2))
			for i := range inv.Hosts {
				*inv.Hosts[i].NIC("vmnic2").SRIOV = backends.SRIOV{Capable: true, Max: 16}
			}
			return inv
		}(), nil, 1, []string{hostChange("esx-01", backends.KindActiveVFs, portCX5)},
			[]string{hostChange("esx-01", backends.KindModuleParams, connectX.Driver())}},
		"other QoS than the host's": {ready(newSRIOV(2)), func(a *answers.Answers) { a.QoS.ECN = false }, 1,
			[]string{hostChange("esx-01", backends.KindModuleParams, connectX.Driver())},
			[]string{hostChange("esx-01", backends.KindActiveVFs, portCX5)}},
		"applications are told the class where that is asked for": {ready(newSRIOV(2)), func(a *answers.Answers) { a.Guest.Environment = true },
			0,
			[]string{"guest/vm-01/environment"}, nil},
		"applications are not told it without being asked": {ready(newSRIOV(2)), nil, 0, []string{"guest/vm-01/traffic-class/RDMA-PG"},
			[]string{"guest/vm-01/environment"}},
		"no class, nothing to tell": {ready(newSRIOV(2)), func(a *answers.Answers) {
			a.Guest.Environment, a.QoS.Lossless = true, answers.LosslessNone
		}, 0, nil, []string{"guest/vm-01/environment"}},
		"no lossless QoS: what is set stays": {ready(newSRIOV(2)), func(a *answers.Answers) { a.QoS.Lossless = answers.LosslessNone }, 0, nil,
			nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := sriovAnswers(c.inv)
			if c.edit != nil {
				c.edit(a)
			}
			p, err := recipe.Build(a, c.inv, plan.Options{})
			testclass.OK(t, err)
			if n := reboots(p, "esx-01"); n != c.reboots || p.Ceiling().HostReboots != 2*c.reboots {
				t.Errorf("%d reboots of esx-01 and %d in all", n, p.Ceiling().HostReboots)
			}
			for _, id := range c.has {
				if p.Change(id) == nil {
					t.Errorf("not planned: %s", id)
				}
			}
			for _, id := range c.not {
				if p.Change(id) != nil {
					t.Errorf("planned: %s", id)
				}
			}
		})
	}
}

// From a bare host the order is: tools, reboot, firmware over SSH, reboot for the parameters, proof, VF in the VM, guest.
func TestOrderFromBare(t *testing.T) {
	inv := newSRIOV(1)
	p, err := recipe.Build(sriovAnswers(inv), inv, plan.Options{})
	testclass.OK(t, err)
	g, err := p.Graph()
	testclass.OK(t, err)
	adapter := backends.Setting{Target: backends.VMRef("vm-01"), Kind: backends.KindAdapter, Name: "RDMA-PG"}.ID()
	reboot := "host/esx-01/host-reboot"
	want := []string{
		plan.OpenID("vm/vm-01/vm-power"), plan.OpenID(reboot), hostChange("esx-01", backends.KindComponent, "mft"), reboot,
		plan.OpenID("host/esx-01/host-ssh"), hostChange("esx-01", backends.KindFirmware, cardCX5), "host/esx-01/host-ssh",
		plan.OpenID(reboot + "/2"), hostChange("esx-01", backends.KindModuleParams, connectX.Driver()), reboot + "/2",
		hostChange("esx-01", backends.KindActiveVFs, portCX5), adapter, "vm/vm-01/vm-power",
		backends.Setting{Target: backends.GuestRef("vm-01"), Kind: backends.KindAddress, Name: "RDMA-PG"}.ID(),
	}
	at := -1
	for _, id := range want {
		i := slices.Index(g.Order, id)
		if i <= at && id != "host/esx-01/host-ssh" {
			t.Errorf("%s stands at %d, not after %d", id, i, at)
		}
		at = max(i, at)
	}
	if n := p.Ceiling().PowerCycles; n != 1 {
		t.Errorf("%d power cycles of one VM", n)
	}
	fw := p.Change(hostChange("esx-01", backends.KindFirmware, cardCX5))
	if fw.To.Known() || !strings.HasPrefix(fw.To.String(), "unknown until host/esx-01/host-ssh") {
		t.Errorf("the firmware becomes %s", fw.To)
	}
	got, err := plan.Resolve(*fw,
		backends.ValueOf(map[string]string{"SRIOV_EN": "0", "NUM_OF_VFS": "8", "LINK_TYPE_P1": "1", "LINK_TYPE_P2": "1"}))
	if err != nil || got != backends.ValueOf(map[string]string{"SRIOV_EN": "1", "NUM_OF_VFS": "9", "LINK_TYPE_P1": "2", "LINK_TYPE_P2": "2"}) {
		t.Errorf("%s, %v", got, err)
	}
	var vf backends.AdapterSpec
	if c := p.Change(adapter); c == nil || c.To.Decode(&vf) != nil || vf != (backends.AdapterSpec{
		Type: "sriov", PortGroup: "RDMA-PG", Switch: "RDMA-DVS", Start: true, GuestMTU: true, PF: portCX5}) {
		t.Errorf("adapter %+v", vf)
	}
}

// max_vfs has one number for each port of the driver, in the order of PCI addresses (KB 309346); numbers set by others stay.
func TestMaxVFsOfTheHost(t *testing.T) {
	type port struct{ device, pci string }
	for name, c := range map[string]struct {
		ports   []port
		chosen  string
		params  map[string]string
		want    string
		numVFs  string
		current string
	}{
		"ConnectX-4 Lx and ConnectX-5, 7 more on the second port": {[]port{{"vmnic0", "0000:1a:00.0"}, {"vmnic1", "0000:1a:00.1"},
			{"vmnic2", "0000:3b:00.0"}, {"vmnic3", "0000:3b:00.1"}},
			"vmnic2", map[string]string{"max_vfs": "0,0,0,7", "RSS": "4"}, "0,0,8,7", "16", "8"},
		"a card at 64 stays": {[]port{{"vmnic0", "0000:1a:00.0"}, {"vmnic1", "0000:1a:00.1"}, {"vmnic2", "0000:3b:00.0"},
			{"vmnic3", "0000:3b:00.1"}},
			"vmnic2", map[string]string{"max_vfs": "0,0,0,7"}, "0,0,8,7", "64", "64"},
		"cards the other way round": {[]port{{"vmnic0", "0000:d8:00.0"}, {"vmnic1", "0000:d8:00.1"}, {"vmnic2", "0000:3b:00.1"},
			{"vmnic3", "0000:3b:00.0"}},
			"vmnic2", nil, "0,8,0,0", "9", "8"},
		"vmnic numbers that follow nothing": {[]port{{"vmnic5", "0000:3b:00.0"}, {"vmnic0", "0000:3b:00.1"}, {"vmnic9", "0000:1a:00.0"},
			{"vmnic2", "0000:1a:00.1"}},
			"vmnic5", nil, "0,0,8,0", "9", "8"},
		"single port card": {[]port{{"vmnic0", "0000:1a:00.0"}, {"vmnic2", "0000:3b:00.0"}}, "vmnic2", nil, "0,8", "9", "8"},
		"a third card, added before the others": {[]port{{"vmnic4", "0000:18:00.0"}, {"vmnic0", "0000:1a:00.0"}, {"vmnic2", "0000:3b:00.0"}},
			"vmnic2", map[string]string{"max_vfs": "0,8"}, "0,0,8", "9", "8"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := withTools(newSRIOV(1))
			h := &inv.Hosts[0]
			h.NICs = nil
			for _, p := range c.ports {
				n := backends.NIC{Device: p.device, PCI: p.pci, Driver: connectX.Driver(), SRIOV: &backends.SRIOV{Capable: true}}
				if p.device == c.chosen {
					n.SpeedMbps, n.RDMADevice, n.RoCEv2 = 100000, "vmrdma0", true
				}
				h.NICs = append(h.NICs, n)
			}
			m := h.System.Modules[connectX.Driver()]
			m.Value.Params = c.params
			h.System.Modules[connectX.Driver()] = m
			p, err := recipe.Build(sriovAnswers(inv), inv, plan.Options{})
			testclass.OK(t, err)
			var to map[string]string
			if err := p.Change(hostChange("esx-01", backends.KindModuleParams, connectX.Driver())).To.Decode(&to); err != nil ||
				to["max_vfs"] != c.want || to["RSS"] != c.params["RSS"] {
				t.Errorf("parameters %v, %v", to, err)
			}
			for _, ch := range p.Changes {
				if ch.Kind != backends.KindFirmware {
					continue
				}
				got, err := plan.Resolve(ch, backends.ValueOf(map[string]string{"SRIOV_EN": "0", "NUM_OF_VFS": c.current}))
				if err != nil || got != backends.ValueOf(map[string]string{"SRIOV_EN": "1", "NUM_OF_VFS": c.numVFs}) {
					t.Errorf("firmware %s, %v", got, err)
				}
			}
		})
	}
}

// Advanced PCI settings are changed only if requested, and only if the card has them.
func TestAdvancedPCISettings(t *testing.T) {
	for _, asked := range []bool{false, true} {
		inv := withTools(newSRIOV(1))
		a := sriovAnswers(inv)
		a.SRIOV.ResetPCI = asked
		fw := mustBuild(t, a, inv, plan.Options{}).Change(hostChange("esx-01", backends.KindFirmware, cardCX5))
		for _, there := range []bool{false, true} {
			now := map[string]string{"SRIOV_EN": "0", "NUM_OF_VFS": "8"}
			want := map[string]string{"SRIOV_EN": "1", "NUM_OF_VFS": "9"}
			if there {
				now["ADVANCED_PCI_SETTINGS"], want["ADVANCED_PCI_SETTINGS"] = "1", map[bool]string{false: "1", true: "0"}[asked]
			}
			if got, err := plan.Resolve(*fw, backends.ValueOf(now)); err != nil || got != backends.ValueOf(want) {
				t.Errorf("asked %t, there %t: %s, %v", asked, there, got, err)
			}
		}
	}
}

// VFs that vCenter configures stay configured by vCenter: the two methods must not be mixed on one port.
func TestVFsByVCenterStayVCenters(t *testing.T) {
	inv := withFirmware(newSRIOV(1), 16)
	*inv.Hosts[0].NIC("vmnic2").SRIOV = backends.SRIOV{Capable: true, Enabled: true, Active: true, Max: 16, Requested: 8, VFs: 8}
	a := sriovAnswers(inv)
	p, err := recipe.Build(a, inv, plan.Options{})
	testclass.OK(t, err)
	var to map[string]string
	if err := p.Change(hostChange("esx-01", backends.KindModuleParams, connectX.Driver())).To.Decode(&to); err != nil || to["max_vfs"] != "" ||
		to["pfctx"] != "0x08" {
		t.Errorf("parameters %v, %v", to, err)
	}
	if !slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, "must not be mixed on one port") }) {
		t.Errorf("nothing is said of the method: %q", p.Notes)
	}
	a.SRIOV.VFs = 12
	if p, err = recipe.Build(a, inv, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	if c := p.Change(hostChange("esx-01", backends.KindVFs, portCX5)); c == nil ||
		c.To != backends.ValueOf(backends.VFSpec{Enabled: true, VFs: 12}) {
		t.Errorf("%+v", c)
	}
}

// PFC with PVRDMA: one reboot for the module parameters, no VFs.
func TestPVRDMAWithPFC(t *testing.T) {
	inv := newSRIOV(2)
	a := newAnswers(inv)
	a.QoS.Lossless = answers.LosslessPFC
	p, err := recipe.Build(a, inv, plan.Options{})
	testclass.OK(t, err)
	c := p.Change(hostChange("esx-01", backends.KindModuleParams, connectX.Driver()))
	if c == nil || c.To != backends.ValueOf(map[string]string{"pfctx": "0x08", "pfcrx": "0x08", "trust_state": "2", "ecn": "1"}) {
		t.Errorf("%+v", c)
	}
	if reboots(p, "esx-01") != 1 || p.Change(hostChange("esx-01", backends.KindFirmware, cardCX5)) != nil ||
		p.Change(hostChange("esx-01", backends.KindPower, "")) != nil {
		t.Errorf("%d reboots, %d changes", reboots(p, "esx-01"), len(p.Changes))
	}
	if !slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, "vmnic0 (management)") }) {
		t.Errorf("the service NIC is not named: %q", p.Notes)
	}
}

// Global pause applies only to the chosen pNIC, whatever its driver; PFC is disabled before it (Mellanox DOC-2581).
func TestGlobalPause(t *testing.T) {
	off := map[string]backends.PauseSpec{"vmnic2": {}, "vmnic0": {}}
	for name, c := range map[string]struct {
		edit    func(*backends.Inventory)
		core    map[string]string // nil: no change
		reboots int
	}{
		"off": {func(*backends.Inventory) {}, nil, 0},
		"PFC was set": {func(inv *backends.Inventory) {
			inv.Hosts[0].System.Modules[connectX.Driver()].Value.Params["pfctx"] = "0x08"
		}, map[string]string{"pfctx": "0x00"}, 1},
		"other driver": {func(inv *backends.Inventory) { inv.Hosts[0].NIC("vmnic2").Driver = "bnxtnet" }, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inv := newSRIOV(1)
			a := newAnswers(inv)
			inv.Hosts[0].System.Pause = backends.FactOf(off)
			a.QoS.Lossless = answers.LosslessPause
			c.edit(inv)
			p := mustBuild(t, a, inv, plan.Options{})
			set := p.Change("host/esx-01/pause/vmnic2")
			if set == nil || set.To != backends.ValueOf(backends.PauseSpec{Rx: true, Tx: true}) {
				t.Fatalf("%+v", set)
			}
			if n := p.Ceiling().HostReboots; n != c.reboots {
				t.Errorf("%d reboots", n)
			}
			params := p.Change("host/esx-01/module-params/" + connectX.Driver())
			if (params == nil) != (c.core == nil) ||
				params != nil && (params.To != backends.ValueOf(c.core) || !slices.Contains(set.After, "host/esx-01/host-reboot")) {
				t.Errorf("%+v, then %q", params, set.After)
			}
		})
	}
}
