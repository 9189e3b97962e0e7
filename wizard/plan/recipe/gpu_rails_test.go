package recipe_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
)

// fourCards adds two switches with two cards and two GPUs each to a host, replacing those of newGPUs: the cards are vmnic2 to
// vmnic5.
func fourCards(hosts int) *backends.Inventory {
	inv, sys := newGPUs(hosts), ready(newSRIOV(hosts))
	for i := range inv.Hosts {
		h := &inv.Hosts[i]
		gpu, cx := h.GPUs[0], *h.NIC("vmnic2")
		h.PCI, h.GPUs, h.NICs, h.System = nil, nil, h.NICs[:1], sys.Hosts[i].System
		cx.SRIOV = sys.Hosts[i].NIC("vmnic2").SRIOV
		bridge := func(at, parent string) {
			h.PCI = append(h.PCI, backends.PCIDevice{Address: at, Class: "0604", Parent: parent})
		}
		for n := range 4 {
			bus := 0x50 + n/2*0x20
			root, up := fmt.Sprintf("0000:%02x:00.0", bus), fmt.Sprintf("0000:%02x:00.0", bus+1)
			below := []string{fmt.Sprintf("0000:%02x:%02x.0", bus+2, n%2*2), fmt.Sprintf("0000:%02x:%02x.0", bus+2, n%2*2+1)}
			if n%2 == 0 {
				bridge(root, "")
				bridge(up, root)
			}
			bridge(below[0], up)
			bridge(below[1], up)
			g, c := gpu, cx
			c.Device, c.PCI, c.MAC, c.NUMA, g.NUMA = fmt.Sprintf("vmnic%d", n+2), fmt.Sprintf("0000:%02x:00.0", bus+8+n%2*2),
				fmt.Sprintf("b8:59:9f:01:%02x:%02x", i, n), n/2, n/2
			g.PCI, g.RootPort, g.Switches = fmt.Sprintf("0000:%02x:00.0", bus+9+n%2*2), root, []string{up, below[1]}
			h.NICs, h.GPUs = append(h.NICs, c), append(h.GPUs, g)
			h.PCI = append(h.PCI, backends.PCIDevice{Address: c.PCI, Vendor: "15b3", Device: "1021", Class: "0200", Parent: below[0], NUMA: n / 2,
				Capable: true},
				backends.PCIDevice{Address: g.PCI, Vendor: "10de", Device: "20b5", Class: "0302", Parent: below[1], NUMA: n / 2, Capable: true})
		}
	}
	return inv
}

// onFourRails returns answers for VFs of the four cards.
func onFourRails(inv *backends.Inventory) *answers.Answers {
	a := onRails(gpuAnswers(inv), port("rail-1", "vmnic2"), port("rail-2", "vmnic3"), port("rail-3", "vmnic4"), port("rail-4", "vmnic5"))
	a.GPUDirect.NIC, a.SRIOV.VFs = "sriov", 4
	return a
}

// gpusOf returns the devices that a VM gets, "vm-01 0000:59:00.0".
func gpusOf(p *plan.Plan) []string {
	var out []string
	for _, c := range p.Changes {
		if c.Kind == backends.KindDevice {
			out = append(out, c.Target.Name+" "+c.Name)
		}
	}
	slices.Sort(out)
	return out
}

// The GPUs of a host are divided among its VMs without overlap, each goes to the VM whose cards are nearest, and the plan names the
// card with which each is used.
func TestGPUsOfRailsAreShared(t *testing.T) {
	inv := fourCards(2)
	for i := range inv.VMs {
		inv.VMs[i].Host = "esx-01"
	}
	a := onFourRails(inv)
	p := mustBuild(t, a, inv, plan.Options{})
	if got := gpusOf(p); !slices.Equal(got, []string{"vm-01 0000:59:00.0", "vm-01 0000:79:00.0", "vm-02 0000:5b:00.0", "vm-02 0000:7b:00.0"}) {
		t.Errorf("VMs on every rail: %q", got)
	}
	notes := strings.Join(p.Notes, "\n")
	for _, want := range []string{
		"vm-01: pairs by PCI path: GPU 0000:59:00.0 with rail-1 at 0000:58:00.0 (one PCIe switch), GPU 0000:79:00.0 with rail-3 at " +
			"0000:78:00.0 (one PCIe switch)",
		"vm-02: pairs by PCI path: GPU 0000:5b:00.0 with rail-2 at 0000:5a:00.0 (one PCIe switch), GPU 0000:7b:00.0 with rail-4 at " +
			"0000:7a:00.0 (one PCIe switch)",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("%s is not in\n%s", want, notes)
		}
	}
	on := func(v int, rails ...string) {
		nets := a.Networks(a.VMs[v])
		a.VMs[v].IP, a.VMs[v].Adapters = answers.Address{},
			slices.DeleteFunc(nets, func(n answers.Adapter) bool { return !slices.Contains(rails, n.Rail) })
	}
	on(0, "rail-3", "rail-4")
	on(1, "rail-1", "rail-2")
	if got := gpusOf(mustBuild(t, a, inv, plan.Options{})); !slices.Equal(got, []string{"vm-01 0000:79:00.0", "vm-01 0000:7b:00.0",
		"vm-02 0000:59:00.0", "vm-02 0000:5b:00.0"}) {
		t.Errorf("VMs on rails of their own: %q", got)
	}
	a.GPUDirect.GPUs = map[string]answers.VMGPUs{"vm-01": {Whole: []answers.PCI{"0000:59:00.0"}},
		"vm-02": {Whole: []answers.PCI{"0000:5b:00.0"}}}
	r := refusals(t, a, inv, plan.Options{})
	if r[0].Check != "HOST-GPU-ROOT-016" || r[0].Target.Name != "vm-01" ||
		!strings.Contains(r[0].Why, "GPU 0000:59:00.0 and rail-3 at 0000:78:00.0 (different root complexes)") {
		t.Errorf("%+v", r)
	}
}

// Cards that the host's list of PCI devices does not identify as RDMA cards are not a reason to refuse the VM, and the plan says
// so.
func TestCardsOfRailsThatAreNotListed(t *testing.T) {
	inv := fourCards(2)
	a := onFourRails(inv)
	for i := range inv.Hosts {
		h := &inv.Hosts[i]
		h.PCI = slices.DeleteFunc(h.PCI, func(d backends.PCIDevice) bool { return d.Vendor == "15b3" })
	}
	p := mustBuild(t, a, inv, plan.Options{})
	if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes,
		"vm-01, vm-02: their hosts' lists of PCI devices have no card of their rails: it is not known whether their GPUs reach them by "+
			"peer-to-peer") {
		t.Error(notes)
	}
}

// Cards for passthrough are assigned to VMs by rail, GPUs to the VM whose cards are nearest, and a card that two VMs request is
// refused by name.
func TestPassedThroughCardsOfRails(t *testing.T) {
	inv := fourCards(2)
	for i := range inv.VMs {
		inv.VMs[i].Host = "esx-01"
	}
	a := onFourRails(inv)
	a.GPUDirect.NIC = "passthrough"
	for i := range a.Rails {
		a.Rails[i].NIC = answers.NIC{Device: inv.Hosts[0].NIC(fmt.Sprintf("vmnic%d", i+2)).PCI}
	}
	a.NIC = a.Rails[0].NIC
	shared := mustBuild(t, a, inv, plan.Options{}) // no answers list adapters: a card for one VM only, those of one switch together
	if got := gpusOf(shared); !slices.Equal(got, []string{"vm-01 0000:58:00.0", "vm-01 0000:59:00.0", "vm-01 0000:5a:00.0",
		"vm-01 0000:5b:00.0",
		"vm-02 0000:78:00.0", "vm-02 0000:79:00.0", "vm-02 0000:7a:00.0", "vm-02 0000:7b:00.0"}) {
		t.Errorf("dealt: %q", got)
	}
	if notes := strings.Join(shared.Notes, "\n"); !strings.Contains(notes,
		"esx-01: its VMs share its cards by PCI path, each card for one VM: vm-01 has rail-1, rail-2; vm-02 has rail-3, rail-4") {
		t.Error(notes)
	}
	inv.VM("vm-02").Passthrough = []string{"0000:5a:00.0"} // it keeps its card
	if d := recipe.Deal(a, inv); len(d.VMs[1].Adapters) != 2 || d.VMs[1].Adapters[0].Rail != "rail-2" || len(d.VMs[0].Adapters) != 2 ||
		len(a.VMs[1].Adapters) != 0 {
		t.Errorf("%+v", d.VMs)
	}
	inv.VM("vm-02").Passthrough = nil
	written := a.VMs
	a.VMs = slices.Clone(a.VMs)
	for i := range a.VMs { // both list all rails
		a.VMs[i].Adapters, a.VMs[i].IP = a.Networks(a.VMs[i]), answers.Address{}
	}
	r := refusals(t, a, inv, plan.Options{})
	if len(r) != 4 || r[0].Check != "HOST-PT-FREE-014" || r[0].Target.Name != "esx-01" ||
		!strings.Contains(r[0].Why, "vm-01 and vm-02 both request the card of rail-1 at 0000:58:00.0") {
		t.Errorf("%+v", r)
	}
	a.VMs = written
	on := func(v int, rails ...string) {
		nets := a.Networks(a.VMs[v])
		a.VMs[v].IP, a.VMs[v].Adapters = answers.Address{},
			slices.DeleteFunc(nets, func(n answers.Adapter) bool { return !slices.Contains(rails, n.Rail) })
	}
	on(0, "rail-1", "rail-3")
	on(1, "rail-4")
	p := mustBuild(t, a, inv, plan.Options{})
	if got := gpusOf(p); !slices.Equal(got, []string{"vm-01 0000:58:00.0", "vm-01 0000:59:00.0", "vm-01 0000:5b:00.0", "vm-01 0000:78:00.0",
		"vm-02 0000:79:00.0", "vm-02 0000:7a:00.0", "vm-02 0000:7b:00.0"}) {
		t.Errorf("%q", got)
	}
	if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes,
		"vm-02: pairs by PCI path: GPU 0000:79:00.0 with rail-4 at 0000:7a:00.0 (one PCIe switch)") {
		t.Error(notes)
	}
	for _, want := range []string{"guest/vm-01/address/hca 0000:58:00.0", "guest/vm-01/address/hca 0000:78:00.0",
		"guest/vm-02/port/hca 0000:7a:00.0"} {
		if !slices.ContainsFunc(p.Changes, func(c plan.Change) bool { return c.ID() == want }) {
			t.Errorf("there is no %s", want)
		}
	}
	inv.VM("vm-02").Devices = []backends.AssignedDevice{{PCI: "0000:58:00.0", Backing: backends.FixedBacking}}
	a.VMs = a.VMs[:1]
	r = refusals(t, a, inv, plan.Options{})
	if len(r) != 1 || !strings.Contains(r[0].Why, "the card of rail-1 at 0000:58:00.0 belongs to vm-02") {
		t.Errorf("%+v", r)
	}
}

// VMs keep the cards that they have: VMs that are added later, in any order of the answers, get the remaining cards, and are
// refused by name if none is left. The cards of VMs with adapters in the answers are not assigned.
func TestDealKeepsCards(t *testing.T) {
	of := func(held []string, order []int, edit func(*answers.Answers)) (shares []string, refused []plan.Refusal) {
		t.Helper()
		inv := fourCards(4)
		for i := range inv.VMs {
			inv.VMs[i].Host = "esx-01"
			if i < len(held) && held[i] != "" {
				inv.VMs[i].Passthrough = strings.Fields(held[i])
			}
		}
		a := onFourRails(inv)
		a.GPUDirect.NIC = "passthrough"
		for i := range a.Rails {
			a.Rails[i].NIC = answers.NIC{Device: inv.Hosts[0].NIC(fmt.Sprintf("vmnic%d", i+2)).PCI}
		}
		a.NIC = a.Rails[0].NIC
		all := slices.Clone(a.VMs)
		a.VMs = nil
		for _, i := range order {
			a.VMs = append(a.VMs, all[i])
		}
		if edit != nil {
			edit(a)
		}
		dealt := recipe.Deal(a, inv)
		for _, v := range dealt.VMs {
			text := v.Name
			for _, n := range v.Adapters {
				text += " " + n.Rail
			}
			shares = append(shares, text)
		}
		if again := recipe.Deal(dealt, inv); len(again.VMs) != len(a.VMs) {
			t.Errorf("%+v", again.VMs)
		}
		if _, err := recipe.Build(a, inv, plan.Options{}); err != nil {
			refused = refusals(t, a, inv, plan.Options{})
		}
		return shares, refused
	}
	const one, two, three, four = "0000:58:00.0", "0000:5a:00.0", "0000:78:00.0", "0000:7a:00.0"
	for name, c := range map[string]struct {
		held  []string
		order []int
		edit  func(*answers.Answers)
		want  []string
	}{
		"two VMs":                 {nil, []int{0, 1}, nil, []string{"vm-01 rail-1 rail-2", "vm-02 rail-3 rail-4"}},
		"the first has its cards": {[]string{one + " " + two}, []int{0, 1}, nil, []string{"vm-01 rail-1 rail-2", "vm-02 rail-3 rail-4"}},
		"the second has its cards": {[]string{"", three + " " + four}, []int{0, 1}, nil,
			[]string{"vm-01 rail-1 rail-2", "vm-02 rail-3 rail-4"}},
		"another order in the answers": {[]string{one + " " + two, three + " " + four}, []int{1, 0}, nil,
			[]string{"vm-02 rail-3 rail-4", "vm-01 rail-1 rail-2"}},
		"each of three gets one": {[]string{four}, []int{0, 1, 2}, nil, []string{"vm-01 rail-1 rail-4", "vm-02 rail-2", "vm-03 rail-3"}},
		"three, and one has three": {[]string{one + " " + two + " " + three}, []int{0, 1}, nil,
			[]string{"vm-01 rail-1 rail-2 rail-3", "vm-02 rail-4"}},
		"one writes its adapters": {nil, []int{0, 1, 2}, func(a *answers.Answers) {
			nets := a.Networks(a.VMs[0])
			a.VMs[0].IP, a.VMs[0].Adapters = answers.Address{}, nets[:1]
		}, []string{"vm-01 rail-1", "vm-02 rail-2 rail-3", "vm-03 rail-4"}},
		"an optional rail that the host lacks": {nil, []int{0, 1}, func(a *answers.Answers) {
			a.Rails[3].Optional, a.Rails[3].NIC.Device = true, "0000:99:00.0"
		}, []string{"vm-01 rail-1 rail-2", "vm-02 rail-3"}},
	} {
		if shares, refused := of(c.held, c.order, c.edit); !slices.Equal(shares, c.want) || len(refused) != 0 {
			t.Errorf("%s: %q, want %q; %+v", name, shares, c.want, refused)
		}
	}
	shares, refused := of([]string{one + " " + two, three + " " + four}, []int{2, 0, 1}, nil)
	if !slices.Equal(shares, []string{"vm-03", "vm-01 rail-1 rail-2", "vm-02 rail-3 rail-4"}) || len(refused) != 1 ||
		refused[0].Target.Name != "vm-03" ||
		!strings.Contains(refused[0].Why,
			"no card of esx-01 is left for it: vm-01 has rail-1, rail-2; vm-02 has rail-3, rail-4; a whole card can be given to one VM only") {
		t.Errorf("%q %+v", shares, refused)
	}
}
