package form

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
)

// withoutHCA is the default inventory, but the second host has no RDMA card.
func withoutHCA() *backends.Inventory {
	inv := inventory()
	h := &inv.Hosts[1]
	h.NICs[1] = backends.NIC{Device: "vmnic4", MAC: h.NICs[1].MAC, SpeedMbps: 10000, Driver: "ixgben", Why: "has no RDMA device"}
	return inv
}

// A host without an RDMA card has a row of its own, which no key but Space selects.
func TestAHostWithoutAnRDMACardIsAccepted(t *testing.T) {
	still(t, func(t *testing.T) {
		f := &world{inv: withoutHCA()}
		k := sit(t, f, 120, 40)
		k.press("enter").write("right").press("enter").on("Hosts").press("down", "space").shows("2 chosen").press("enter", "enter").on("pNICs")
		k.shows("no RDMA card; TCP")
		k.press("enter").on("pNICs").shows("no pNIC is chosen on esx-02")
		k.press("down", "down", "down", "space").shows("2 chosen")
		k.golden("5-pnics-no-hca")
		k.press("enter").on("Switch and vmknic").press("enter").on("VMs and guests").press("enter").on("Preflight")
		if !k.w.Answers.NoHCA() {
			t.Errorf("%+v", k.w.Answers.PVRDMA)
		}
		if err := k.w.Answers.Validate(); err != nil {
			t.Error(err)
		}
		k.press("esc", "esc", "esc").on("pNICs").shows("2 chosen").press("esc").on("Mode").press("down", "enter").on("pNICs").shows("1 chosen")
		if strings.Contains(k.screen(), "no RDMA card") {
			t.Error("mode sriov offers a host without an RDMA card")
		}
	})
}

// The plain questions ask the same; if the answer is no, they ask for the hosts again.
func TestQuestionsAboutAHostWithoutAnRDMACard(t *testing.T) {
	lines := []string{"", "", "esx-01,esx-02", "", "yes"}
	f := &world{inv: withoutHCA()}
	_, text, err := answer(f, append(append(lines, make([]string, 8)...), "yes")...)
	if err != nil || f.saved == nil || !f.saved.NoHCA() || len(f.saved.Hosts.Names) != 2 ||
		!strings.Contains(text, "proposed: vmnic2 on esx-01\n") {
		t.Fatalf("%v\n%s", err, text)
	}
	f = &world{inv: withoutHCA()}
	_, text, err = answer(f, append(append(lines[:4:4], "", "esx-01"), defaults()[3:]...)...)
	if err != nil || f.saved == nil || f.saved.NoHCA() || len(f.saved.Hosts.Names) != 1 ||
		!strings.Contains(text, "then name the hosts without esx-02") {
		t.Fatalf("%v\n%s", err, text)
	}
}
