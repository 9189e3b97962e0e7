package recipe_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
)

const newImage = "/vmfs/volumes/shared-01/fw-ConnectX5-rel-16_35_8008-MCX556A-ECU_Ax-UEFI-14.29.15-FlexBoot-3.6.902.bin"

// The card's firmware is updated after its keys and before the one reboot, and only where it is older than a file for its chip.
func TestFirmwareUpdate(t *testing.T) {
	id := hostChange("esx-01", backends.KindFirmwareImage, cardCX5)
	for name, c := range map[string]struct {
		edit    func(*backends.Inventory, *answers.Answers)
		updated bool
		refused string
	}{
		"older":                      {func(*backends.Inventory, *answers.Answers) {}, true, ""},
		"for a VM that is untrusted": {func(_ *backends.Inventory, a *answers.Answers) { a.VMs[0].Trust = answers.Untrusted }, true, ""},
		"vulnerable image, untrusted VM": {func(_ *backends.Inventory, a *answers.Answers) {
			a.VMs[0].Trust = answers.Untrusted
			a.SRIOV.Firmware["MT_0000000009"] = strings.Replace(newImage, "16_35_8008", "16_35_8002", 1)
		}, false, "would get from"},
		"as new": {func(inv *backends.Inventory, _ *answers.Answers) { inv.Hosts[0].NIC("vmnic2").Firmware = "16.35.8008" }, false, ""},
		"a file for another chip": {func(_ *backends.Inventory, a *answers.Answers) {
			a.SRIOV.Firmware = map[string]string{"MT_0000000359": strings.Replace(newImage, "16_35_8008", "22_46_3048", 1)}
		}, false, ""},
		"another board of the maker": {func(inv *backends.Inventory, _ *answers.Answers) {
			inv.Hosts[0].System.Firmware = map[string]backends.Firmware{cardCX5: {PSID: "MT_0000000011",
				Next: map[string]string{"SRIOV_EN": "0", "NUM_OF_VFS": "8"}}}
		}, false, ""},
		"an OEM's board": {func(inv *backends.Inventory, _ *answers.Answers) {
			inv.Hosts[0].System.Firmware = map[string]backends.Firmware{cardCX5: {PSID: "DEL0000000027"}}
		}, false, "comes from the server's vendor alone"},
		"a hardware support manager": {func(inv *backends.Inventory, _ *answers.Answers) {
			imaged(inv).Hardware = []string{"com.dell.omevv"}
		}, false, "com.dell.omevv owns the firmware of its hosts"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := withTools(newSRIOV(1))
			n := inv.Hosts[0].NIC("vmnic2")
			n.Vendor, n.PCIDeviceID, n.Firmware = "15b3", "1017", "16.35.4030"
			a := sriovAnswers(inv)
			a.SRIOV.Firmware = map[string]string{"MT_0000000009": newImage}
			c.edit(inv, a)
			if c.refused != "" {
				if _, err := recipe.Build(a, inv, plan.Options{}); !strings.Contains(refusedText(err), c.refused) {
					t.Errorf("%s", refusedText(err))
				}
				return
			}
			p := mustBuild(t, a, inv, plan.Options{})
			u := p.Change(id)
			if (u != nil) != c.updated || reboots(p, "esx-01") != 1 {
				t.Fatalf("%+v, %d reboots", u, reboots(p, "esx-01"))
			}
			if u == nil {
				return
			}
			if u.Irreversible == "" || !slices.Contains(u.After, hostChange("esx-01", backends.KindFirmware, cardCX5)) ||
				!slices.Equal(u.Within, []string{"host/esx-01/host-ssh"}) {
				t.Errorf("%+v", u)
			}
			for _, b := range p.Brackets {
				if b.ID() == "host/esx-01/host-reboot" && !slices.Contains(b.After, id) {
					t.Errorf("the reboot does not wait for it: %q", b.After)
				}
			}
			to, err := plan.Resolve(*u, backends.ValueOf(backends.FirmwareImage{PSID: "MT_0000000009", Version: "16.35.4030"}))
			if err != nil || to != backends.ValueOf(backends.FirmwareImage{PSID: "MT_0000000009", Version: "16.35.8008", File: newImage}) {
				t.Errorf("%s, %v", to, err)
			}
		})
	}
}

// The files are compared with the oldest firmware that is documented for the driver: RoCE SR-IOV Setup and Performance Study on
// vSphere 7.x (VMware, 2022), Fig. 9, pairs driver 4.21.71.101 with 16.29.1016 for the ConnectX-5.
func TestFirmwareFitsTheDriver(t *testing.T) {
	oldest := "at least 16.29.1016 is documented for " + connectX.Driver() + " 4.21.71.101"
	for name, c := range map[string]struct {
		driver, image  string
		refused, noted string
	}{
		"documented": {"4.21.71.101-1OEM.702.0.0.17630552", "16_29_1016", "", ""},
		"too old":    {"4.21.71.101-1OEM.702.0.0.17630552", "16_28_4000", oldest, ""},
		"a later driver": {"4.23.6.2-1OEM.803.0.0.24022510", "16_35_8008", "",
			oldest + "; that 4.23.6.2-1OEM.803.0.0.24022510 needs no newer one is unverified"},
		"later and too old": {"4.23.6.2-1OEM.803.0.0.24022510", "16_28_4000", "", "16.28.4000 is too old: " + oldest},
		"an earlier driver": {"4.19.16.8-2vmw.703.0.20.19193900", "16_35_8008", "", "is not checked (unverified)"},
	} {
		inv := withTools(newSRIOV(1))
		n := inv.Hosts[0].NIC("vmnic2")
		n.Vendor, n.PCIDeviceID, n.Firmware, n.DriverVersion = "15b3", "1017", "16.26.4012", c.driver
		a := sriovAnswers(inv)
		a.SRIOV.Firmware = map[string]string{"MT_0000000009": strings.Replace(newImage, "16_35_8008", c.image, 1)}
		p, err := recipe.Build(a, inv, plan.Options{})
		if text := refusedText(err); (c.refused == "") != (err == nil) || !strings.Contains(text, c.refused) {
			t.Errorf("%s: %v %s", name, err, text)
		}
		if err != nil {
			continue
		}
		notes := strings.Join(p.Notes, "\n")
		if !strings.Contains(notes, c.noted) || c.noted == "" && strings.Contains(notes, "documented for") {
			t.Errorf("%s: %s", name, notes)
		}
	}
}

// Firmware that was written but not loaded is neither written again nor a reason for another reboot: VMs wait until it is checked.
// A BlueField is checked after each reboot that follows a change of its firmware settings.
func TestFirmwareIsChecked(t *testing.T) {
	image, active := hostChange("esx-01", backends.KindFirmwareImage, cardCX5), hostChange("esx-01", backends.KindActiveFirmware, cardCX5)
	build := func(device string, files map[string]string, o plan.Options) *plan.Plan {
		inv := withTools(newSRIOV(1))
		n := inv.Hosts[0].NIC("vmnic2")
		n.Vendor, n.PCIDeviceID, n.Firmware = "15b3", device, "16.35.4030"
		a := sriovAnswers(inv)
		a.SRIOV.Firmware = files
		return mustBuild(t, a, inv, o)
	}
	files := map[string]string{"MT_0000000009": newImage}
	held := map[string]backends.FirmwareImage{image: {PSID: "MT_0000000009", Version: "16.35.8008"}}
	for name, c := range map[string]struct {
		p             *plan.Plan
		burnt, looked bool
	}{
		"written":         {build("1017", files, plan.Options{}), true, true},
		"waits for power": {build("1017", files, plan.Options{Flashed: held}), false, true},
		"another file since": {build("1017", map[string]string{"MT_0000000009": strings.Replace(newImage, "8008", "9000", 1)},
			plan.Options{Flashed: held}), true, true},
		"settings alone":            {build("1017", nil, plan.Options{}), false, false},
		"settings of a BlueField-2": {build("a2d6", nil, plan.Options{}), false, true},
	} {
		look := c.p.Change(active)
		if (c.p.Change(image) != nil) != c.burnt || (look != nil) != c.looked {
			t.Errorf("%s: %v, %v", name, c.p.Change(image), look)
		}
		vfs := c.p.Change(hostChange("esx-01", backends.KindActiveVFs, portCX5))
		if look != nil && (!look.State || !slices.Equal(look.Within, []string{"host/esx-01/host-ssh/2"}) || !slices.Contains(vfs.After, active)) {
			t.Errorf("%s: %+v, VFs after %q", name, look, vfs.After)
		}
	}
}
