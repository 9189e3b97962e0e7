package form

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// twoSwitches is an inventory with two distributed switches, a port group on each, and two VMs on one host.
func twoSwitches() *backends.Inventory {
	inv := inventory()
	inv.Switches = []backends.Switch{{Name: "DVS-10", Datacenter: "DC", Version: "8.0.0", MTU: 9000},
		{Name: "DVS-2", Datacenter: "DC", Version: "7.0.3", MTU: 1500},
		{Name: "Elsewhere", Datacenter: "DC-2"}}
	inv.PortGroups = []backends.PortGroup{{Name: "PG-2", Switch: "DVS-2", VLAN: "100"}, {Name: "PG-10", Switch: "DVS-10"},
		{Name: "DVS-2-uplinks", Switch: "DVS-2", Uplink: true}}
	inv.VMs[1].Host = "esx-01"
	return inv
}

func atSwitch(t *testing.T, f *world) *keyboard {
	return sit(t, f, 80, 24).press("enter").write("right").press("enter", "enter", "enter", "enter").on("Switch and vmknic")
}

// Enter moves through the fields, F4 lists existing objects, and only port groups of the selected switch are listed.
func TestFieldsOfferWhatExists(t *testing.T) {
	still(t, func(t *testing.T) {
		k := atSwitch(t, &world{inv: twoSwitches()})
		k.shows("F4 list").press("f4").shows("DVS-2").shows("version 7.0.3, MTU 1500").shows("1 of 2").press("esc").shows("> RDMA-DVS")
		k.press("f4", "return", "return", "f4").shows("VLAN 100").shows("1 of 1").press("space").shows("> PG-2").press("return", "return").on(
			"Switch and vmknic")
		k.press("return").shows("Enter continue").press("7", "return").on("Switch and vmknic").shows(`no vmknic "vmk07"`).press("f4", "return",
			"return").on("VMs and guests")
		if s := k.w.Answers.Switch; s.Name != "DVS-2" || s.PortGroup != "PG-2" {
			t.Errorf("%+v", s)
		}
		inv := twoSwitches() // whose only suitable pNICs are on a switch already: the page before would refuse them under any other name
		for i := range inv.Hosts {
			inv.Hosts[i].NIC("vmnic2").Switch = "DVS-2"
		}
		atSwitch(t, &world{inv: inv}).shows("> DVS-2")
	})
}

// A field with a fixed set of values is not a text field, and a card is assigned to only one VM.
func TestAWholeCardIsGivenToOneVM(t *testing.T) {
	still(t, func(t *testing.T) {
		k := sit(t, &world{inv: twoSwitches(), shared: true}, 80, 24).press("enter").write("right").press("enter", "a", "enter", "down", "down",
			"enter", "enter").on("GPUs")
		k.press("x", "right").shows("> sriov").press("backspace", "ctrl+u", "p").shows("> passthrough").press("s").shows("> sriov").press("left").shows(
			"> passthrough")
		k.press("f4").shows("a VF for each VM").press("return", "enter").on("VMs and guests").press("space").shows("1 chosen")
		k.press("down", "space").shows("vm-02 cannot be chosen: the card on esx-01 is assigned to vm-01").press("a").shows("not all are chosen").
			shows("1 chosen")
		k.press("i").shows("1 chosen").press("enter").on("Preflight")
		if vms := k.w.Answers.VMs; len(vms) != 1 || vms[0].Name != "vm-02" || k.w.Answers.GPUDirect.NIC != "passthrough" {
			t.Errorf("%+v", vms)
		}
		_, text, _ := answer(&world{inv: twoSwitches()}, "", "", "esx-01", "gpudirect", "", "", "", "", "", "", "", "vm-01,vm-02", "vm-01")
		if want := "vm-02 cannot be chosen: the card on esx-01 is assigned to vm-01"; !strings.Contains(text, want) {
			t.Errorf("the plain questions do not say %q:\n%s", want, text)
		}
	})
}

// If the plan is refused, the wizard shows the page, and the row or field, that caused it.
func TestARefusalLeadsToItsAnswer(t *testing.T) {
	for target, where := range map[backends.Ref][3]string{
		backends.VMRef("vm-02"):       {"VMs and guests", "2 of 2", "choose another"},
		backends.SwitchRef("DVS-1"):   {"Switch and vmknic", "│ MTU", "set switch.mtu to 9000 or less"},
		backends.SwitchRef("DVS-2"):   {"Switch and vmknic", "│ Distributed switch", "choose another"},
		backends.PortGroupRef("PG"):   {"Switch and vmknic", "│ Port group", "choose another"},
		backends.HostRef("esx-02"):    {"pNICs", "3 of 4", "choose another"},
		backends.HostRef("esx-01"):    {"Switch and vmknic", "│ VLAN", "raise switch.vlan, or move VMs"},
		backends.ClusterRef("Island"): {"Hosts", "1 of 3", "choose another"},
	} {
		bubble(t, target.String(), func(t *testing.T) {
			f := &world{inv: twoSwitches(),
				refuse: &plan.Refused{Refusals: []plan.Refusal{{Target: target, Why: "it is no good", Remedy: where[2]}}}}
			atSwitch(t, f).press("enter", "enter").on("Preflight").shows("g go to the answer").press("g").on(where[0]).shows(where[1]).shows(
				"it is no good").shows(where[2])
		})
	}
}

// Blanks around pasted text are removed, and a field refuses what the plan would refuse.
func TestSwitchFieldsAreValidatedInPlace(t *testing.T) {
	still(t, func(t *testing.T) {
		k := atSwitch(t, &world{inv: twoSwitches()})
		long := strings.Repeat("n", 81)
		k.write(long).press("return").shows("is too long")
		for range long {
			k.press("backspace")
		}
		k.write("  ").press("return", "tab").shows("> 9000").press("backspace").write("1").press("return").shows(
			"a new switch gets at most 9000 bytes")
		k.press("backspace").write("0  ").press("return", "backspace").write(" 5 ").press("return").shows("Enter continue").write(" ").press(
			"return").on("VMs and guests")
		if s := k.w.Answers.Switch; s.Name != "RDMA-DVS" || s.MTU != 9000 || s.VLAN != 5 {
			t.Errorf("%+v", s)
		}
		// an existing switch may have more
		k.press("esc").press("f4", "return", "tab", "tab").press("backspace").write("1").press("return", "return").shows("Enter continue")
	})
}
