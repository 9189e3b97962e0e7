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
			inv.Hosts[0].System.Firmware = map[string]backends.Firmware{cardCX5: {PSID: "MT_0000000011", Next: map[string]string{"SRIOV_EN": "0", "NUM_OF_VFS": "8"}}}
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
			if u.Irreversible == "" || !slices.Contains(u.After, hostChange("esx-01", backends.KindFirmware, cardCX5)) || !slices.Equal(u.Within, []string{"host/esx-01/host-ssh"}) {
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
