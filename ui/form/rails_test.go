package form

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// twoPorts is the usual inventory with a second RDMA pNIC in each host, and a third in the first.
func twoPorts() *backends.Inventory {
	inv := inventory()
	for i := range inv.Hosts {
		h := &inv.Hosts[i]
		for n := range 1 + (3-i)/3 {
			more := h.NICs[1]
			more.Device, more.MAC, more.RDMADevice = fmt.Sprintf("vmnic%d", n+3), fmt.Sprintf("0c:42:a1:00:0%d:0%d", i+1, n+3),
				fmt.Sprintf("vmrdma%d", n+1)
			h.NICs = append(h.NICs, more)
		}
		for n, pci := range []string{"", "0000:3b:00.0", "0000:3b:00.1", "0000:af:00.0"}[:len(h.NICs)] {
			h.NICs[n].PCI = pci
		}
	}
	return inv
}

func saved(t *testing.T, f *world) string {
	t.Helper()
	var out bytes.Buffer
	if f.saved == nil {
		t.Fatal("no answers were saved")
	}
	testclass.OK(t, answers.Save(&out, f.saved))
	return out.String()
}

// A rail is added on the pNIC page, which shows the port of each rail; the next page asks for its network.
func TestRailsAreAdded(t *testing.T) {
	testclass.Plain(t)
	still(t, func(t *testing.T) {
		f := &world{inv: twoPorts()}
		k := sit(t, f, 120, 40)
		k.press("enter").write("right").press("enter").on("Hosts").press("enter").on("Mode").press("enter").on("pNICs")
		k.press("r").on("pNICs").shows("serve rail-2 (rail 2 of 2)").shows("serves rail-1")
		k.golden("5-pnics-rails")
		k.press("r").on("pNICs").shows("it has no other pNIC that can be used")
		k.press("enter").on("Switch and vmknic").write("-x").press("tab", "tab", "tab", "tab", "tab").write("10.9.0.1/24").press("enter").on(
			"Switch and vmknic").shows("expected a network")
		for range 4 {
			k.press("backspace")
		}
		k.write("0/24")
		k.golden("6-switch-rails")
		k.press("enter").on("VMs and guests").press("enter").on("Preflight")
		r := k.w.Answers.AllRails()
		if len(r) != 2 || r[0].NIC.Device != "0000:3b:00.0" || r[1].NIC.Device != "0000:3b:00.1" || r[0].Switch.Name != "RDMA-DVS-x" ||
			r[1].Switch.Name != "RDMA-DVS-x-2" || r[1].Switch.PortGroup != "RDMA-PG-2" || r[1].Switch.MTU != r[0].Switch.MTU {
			t.Errorf("%+v", r)
		}
		if got := k.w.Answers.Networks(k.w.Answers.VMs[1])[1].IP.String(); got != "10.9.0.12/24" {
			t.Errorf("vm-02 has %s on rail-2", got)
		}
		if err := k.w.Answers.Validate(); err != nil {
			t.Error(err)
		}
	})
}

// A different pNIC can be selected for a rail, but not one that another rail uses. Removing a rail restores the earlier answers.
func TestRailsAreChosenAndRemoved(t *testing.T) {
	still(t, func(t *testing.T) {
		k := sit(t, &world{inv: twoPorts()}, 120, 40)
		k.press("enter").write("right").press("enter").on("Hosts").press("enter").on("Mode").press("enter").on("pNICs")
		k.press("r").shows("rail 2 of 2").press("up", "space").shows("serves rail-1").press("down", "down", "space", "tab").shows("rail 1 of 2")
		if r := k.w.Answers.Rails[1].NIC; r.MACs["esx-01"] != "0c:42:a1:00:01:04" || r.MACs["esx-02"] != "0c:42:a1:00:02:03" {
			t.Errorf("%+v", r)
		}
		k.press("d").shows("carry RDMA?")
		if a := k.w.Answers; len(a.Rails) != 0 || a.Switch.Name != "RDMA-DVS" {
			t.Errorf("%+v", a)
		}
	})
}

// Removing rails also removes the adapters that the answers list for a VM; if one rail is left, its VFs are removed too.
func TestListedAdaptersFollowTheRails(t *testing.T) {
	f, inv := &world{}, twoPorts()
	a := answers.Default(answers.SRIOV)
	a.Hosts.Names = []string{"esx-01", "esx-02"}
	v := answers.DefaultVM("vm-01")
	v.IP = answers.Address{}
	ip := func(text string) answers.Address { return answers.Address{Prefix: netip.MustParsePrefix(text)} }
	v.Adapters = []answers.Adapter{{IP: ip("192.168.50.11/24"), PortGroup: a.Switch.PortGroup}}
	a.VMs = []answers.VM{v}
	listed := func(want int, rail string) {
		t.Helper()
		if got := a.VMs[0].Adapters; len(got) != want || want > 0 && got[0].Rail != rail {
			t.Errorf("%+v, want %d, the first on %q", got, want, rail)
		}
		if err := a.Validate(); err != nil {
			t.Error(err)
		}
	}
	testclass.OK(t, entry.AddRail(a, inv, f.Choose))
	listed(1, "rail-1")
	a.VMs[0].Adapters = append(a.VMs[0].Adapters, answers.Adapter{Rail: "rail-2", IP: ip("192.168.51.11/24"),
		PortGroup: a.Rails[1].Switch.PortGroup})
	a.Rails[0].SRIOV.VFs = 4
	listed(2, "rail-1")
	entry.DropRail(a)
	listed(1, "")
	if a.SRIOV.VFs != 4 || a.Rails != nil {
		t.Errorf("%d VFs, %+v", a.SRIOV.VFs, a.Rails)
	}
}

// The plain questions offer another rail if every host has a pNIC for it, and produce the same answers as the screen.
func TestQuestionsAddARail(t *testing.T) {
	f := &world{inv: twoPorts()}
	lines := slices.Insert(slices.Insert(defaults(), 5, "yes", ""), 12, "10.9.0.0/24")
	_, text, err := answer(f, lines...)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	byQuestions := saved(t, f)
	for _, want := range []string{"proposed for rail-2: vmnic3 on esx-01, esx-02", "Network of rail-2"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	still(t, func(t *testing.T) {
		f := &world{inv: twoPorts()}
		k := sit(t, f, 120, 40)
		k.press("enter").write("right").press("enter", "enter", "enter").on("pNICs").press("r", "enter").on("Switch and vmknic")
		k.press("tab", "tab", "tab", "tab", "tab").write("10.9.0.0/24").press("enter").on("VMs and guests").press("enter").on("Preflight").press(
			"enter").on("Plan")
		k.press("enter")
		if onScreen := saved(t, f); onScreen != byQuestions {
			t.Errorf("screen:\n%s\nquestions:\n%s", onScreen, byQuestions)
		}
	})
}
