package scenario_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

// The fault of a scenario can be applied to another site if the site has the object that the fault changes.
func TestOneFault(t *testing.T) {
	var s world.State
	if err := scenario.Build(&s, scenario.Spec{Scenario: "healthy", Hosts: 2, VMs: 2}); err != nil {
		t.Fatal(err)
	}
	if err := scenario.Break(&s, "broken-no-rdma"); err != nil || s.Hosts[1].PNICs[2].RDMA != nil || s.Hosts[0].PNICs[2].RDMA == nil {
		t.Errorf("%v: the first host %+v, the last %+v", err, s.Hosts[0].PNICs[2].RDMA, s.Hosts[1].PNICs[2].RDMA)
	}
	for name, want := range map[string]string{"broken-nothing": "breaks nothing at another site", "broken-no-rdma": "does not fit this site"} {
		if err := scenario.Break(&world.State{Hosts: []*world.Host{{}}}, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// The memory regions of GPUs: recorded from a real H100 and a real H200 (lspci, resource files of sysfs), the others by their rule.
func TestRegionsOfGPUs(t *testing.T) {
	old := func(mb int64) []world.BAR {
		return []world.BAR{{MB: 16}, {Index: 1, MB: mb, Wide: true}, {Index: 3, MB: 32, Wide: true}}
	}
	hopper := func(mb int64) []world.BAR {
		return []world.BAR{{MB: 16, Wide: true}, {Index: 2, MB: mb, Wide: true}, {Index: 4, MB: 32, Wide: true}}
	}
	for device, want := range map[uint16][]world.BAR{0x2330: hopper(128 << 10), 0x2335: hopper(256 << 10), 0x2901: hopper(256 << 10),
		0x20b5: old(128 << 10), 0x1b38: old(32 << 10)} {
		d := world.PCIDevice{Vendor: 0x10de, Device: device, Class: 0x0302}
		if !scenario.Know(&d) || !slices.Equal(d.BARs, want) {
			t.Errorf("10de:%04x: %+v, want %+v", device, d.BARs, want)
		}
	}
}
