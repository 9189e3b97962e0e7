package checks_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Evidence about a target that is identical for every rail is reported once; otherwise each answer names its rail. A host without a
// port for an optional rail is not judged on it.
func TestRowsOfEachRail(t *testing.T) {
	port := func(device, pci string, speed int) backends.NIC {
		return backends.NIC{Device: device, PCI: pci, SpeedMbps: speed, MaxSpeedMbps: 100000, Driver: "nic_driver", RDMADevice: "vmrdma0",
			RoCEv2: true}
	}
	inv := &backends.Inventory{Hosts: []backends.Host{
		{Name: "esx-01", State: "connected", NICs: []backends.NIC{port("vmnic2", "0000:3b:00.0", 100000),
			port("vmnic3", "0000:3b:00.1", 100000)}},
		{Name: "esx-02", State: "connected", NICs: []backends.NIC{port("vmnic2", "0000:3b:00.0", 100000), port("vmnic3", "0000:3b:00.1", 0)}},
	}}
	a := answers.Default(answers.PVRDMA)
	a.FromRails([]answers.Rail{{Name: "rail-1", NIC: answers.NIC{Device: "vmnic2"}}, {Name: "rail-2", NIC: answers.NIC{Device: "vmnic3"},
		Optional: true}})
	each := func(say func(*backends.NIC) string) func(*checks.Facts) []checks.Answer {
		return func(f *checks.Facts) []checks.Answer {
			var out []checks.Answer
			for _, h := range f.Connected() {
				out = append(out, checks.Answer{Target: backends.HostRef(h.Name), Status: checks.Pass, Evidence: say(f.NIC(h))})
			}
			return out
		}
	}
	rows := []checks.Check{
		{ID: "A", Run: each(func(n *backends.NIC) string { return n.Device })},
		{ID: "B", Run: each(func(*backends.NIC) string { return "the same" })},
	}
	ask := func() string {
		var got []string
		for _, f := range checks.Ask(t.Context(), rows, &checks.Facts{Answers: a, Inventory: inv}, checks.Selection{}) {
			got = append(got, f.ID+" "+f.Target.Name+" "+f.Evidence)
		}
		return strings.Join(got, "\n")
	}
	want := "A esx-01 rail-1: vmnic2\nA esx-01 rail-2: vmnic3\nA esx-02 vmnic2\nB esx-01 the same\nB esx-02 the same"
	if got := ask(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	// A port that went down after its host had joined the rail is judged.
	inv.Hosts[1].NICs[1].Switch = "RDMA-DVS-2"
	inv.Switches = []backends.Switch{{Name: "RDMA-DVS-2", Members: map[string]backends.Member{"esx-02": {PNICs: []string{"vmnic3"}}}}}
	if got := ask(); !strings.Contains(got, "A esx-02 rail-2: vmnic3") {
		t.Error(got)
	}
}

// A VM is judged on the rails on which it has adapters, also if its guest is not set up here.
func TestVMsOfEachRail(t *testing.T) {
	unmanaged := false
	inv := &backends.Inventory{VMs: []backends.VM{{Name: "vm-01"}, {Name: "vm-02"}, {Name: "vm-03"}}}
	a := answers.Default(answers.PVRDMA)
	a.FromRails([]answers.Rail{{Name: "rail-1"}, {Name: "rail-2"}})
	a.VMs = []answers.VM{
		{Name: "vm-01", IP: answers.Address{Prefix: netip.MustParsePrefix("192.168.50.11/24")}},
		{Name: "vm-02", Adapters: []answers.Adapter{{Rail: "rail-2", IP: answers.Address{Prefix: netip.MustParsePrefix("192.168.51.12/24")}}}},
		{Name: "vm-03", Adapters: []answers.Adapter{{Rail: "rail-1"}}, Guest: answers.VMGuest{Manage: &unmanaged}},
	}
	row := checks.Check{ID: "A", Run: func(f *checks.Facts) (out []checks.Answer) {
		found, missing := f.VMs()
		if len(missing) > 0 {
			t.Errorf("missing: %q", missing)
		}
		for _, v := range found {
			var on []string
			for _, n := range f.Networks(v.Name) {
				on = append(on, n.PortGroup)
			}
			out = append(out, checks.Answer{Target: backends.VMRef(v.Name), Status: checks.Pass, Evidence: strings.Join(on, " ")})
		}
		return out
	}}
	got := []string{}
	for _, f := range checks.Ask(t.Context(), []checks.Check{row}, &checks.Facts{Answers: a, Inventory: inv}, checks.Selection{}) {
		got = append(got, f.Target.Name+" "+f.Evidence)
	}
	want := "vm-01 rail-1: RDMA-PG-1\nvm-01 rail-2: RDMA-PG-2\nvm-03 RDMA-PG-1\nvm-02 RDMA-PG-2"
	if strings.Join(got, "\n") != want {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}
