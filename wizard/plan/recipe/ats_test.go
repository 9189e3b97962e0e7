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

// ATS is set while the host still has the card, before the reboot that passes it through; if the tools are missing, they cost one
// more reboot. Nothing is claimed to be known about a card that already belongs to its VM.
func TestATS(t *testing.T) {
	firmware := hostChange("esx-01", backends.KindFirmware, portCX5)
	bare := newGPUs(1)
	bare.Hosts[0].System = newSRIOV(1).Hosts[0].System
	bare.Hosts[0].System.Offers = nil
	wanted := gpuAnswers(bare)
	wanted.GPUDirect.ATS = true
	if _, err := recipe.Build(wanted, bare, plan.Options{}); err == nil || !strings.Contains(err.Error(), "mft and nmst is not installed") {
		t.Errorf("no tools: %v", err)
	}
	for name, c := range map[string]struct {
		edit    func(inv *backends.Inventory, a *answers.Answers)
		reboots int
		planned bool
		note    string
	}{
		"not asked for": {func(_ *backends.Inventory, a *answers.Answers) { a.GPUDirect.ATS = false }, 1, false, ""},
		"tools there":   {func(*backends.Inventory, *answers.Answers) {}, 1, true, "SSH is started before any change, to test the login"},
		"tools to be installed": {func(inv *backends.Inventory, _ *answers.Answers) { inv.Hosts[0].System = newSRIOV(1).Hosts[0].System }, 2,
			true, ""},
		"the card is passed through": {func(inv *backends.Inventory, _ *answers.Answers) {
			h := &inv.Hosts[0]
			for k := range h.PCI {
				h.PCI[k].Enabled, h.PCI[k].Active = true, true
			}
			h.NICs = slices.DeleteFunc(h.NICs, func(n backends.NIC) bool { return n.PCI == portCX5 })
			h.PCI = slices.DeleteFunc(h.PCI, func(d backends.PCIDevice) bool { return d.Address == "0000:3b:00.1" })
		}, 0, false, "ATS_ENABLED of its RDMA card was not read"},
	} {
		inv := newGPUs(1)
		inv.Hosts[0].System = withTools(newSRIOV(1)).Hosts[0].System
		a := gpuAnswers(inv)
		a.GPUDirect.ATS = true
		c.edit(inv, a)
		p := mustBuild(t, a, inv, plan.Options{})
		ch := p.Change(firmware)
		if n := reboots(p, "esx-01"); n != c.reboots || (ch != nil) != c.planned || !strings.Contains(strings.Join(p.Notes, "\n"), c.note) {
			t.Errorf("%s: %d reboots, firmware %+v, notes %q", name, n, ch, p.Notes)
		}
		if !c.planned {
			continue
		}
		g, err := p.Graph()
		if err != nil {
			t.Fatal(err)
		}
		last := hostChange("esx-01", backends.KindPassthrough, portCX5)
		if at := slices.Index(g.Order, firmware); at < slices.Index(g.Order, plan.OpenID("host/esx-01/host-ssh")) ||
			at > slices.Index(g.Order, last) {
			t.Errorf("%s: firmware stands at %d of %q", name, at, g.Order)
		}
		if _, err := plan.Resolve(*ch, backends.ValueOf(map[string]string{"SRIOV_EN": "1"})); err == nil ||
			!strings.Contains(backends.HintOf(err), "gpudirect.ats to false") {
			t.Errorf("a card without the key: %v", err)
		}
		if to, err := plan.Resolve(*ch, backends.ValueOf(map[string]string{"SRIOV_EN": "1", "ATS_ENABLED": "0"})); err != nil ||
			to != backends.ValueOf(map[string]string{"SRIOV_EN": "1", "ATS_ENABLED": "1"}) {
			t.Errorf("resolved to %s: %v", to, err)
		}
	}
}
