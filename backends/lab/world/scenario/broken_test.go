package scenario_test

import (
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
	for name, want := range map[string]string{"broken-nothing": "broken-no-rdma", "broken-no-rdma": "does not fit this site"} {
		if err := scenario.Break(&world.State{Hosts: []*world.Host{{}}}, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
