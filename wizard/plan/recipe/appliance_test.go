package recipe_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
)

func TestCheckAppliance(t *testing.T) {
	inv := &backends.Inventory{
		VMs: []backends.VM{{Name: "taken"}},
		PortGroups: []backends.PortGroup{{Name: "RDMA-A", Switch: "D", Free: 4}, {Name: "RDMA-B", Switch: "D", Free: -1},
			{Name: "RDMA-C", Switch: "D", Free: 1},
			{Name: "Full", Switch: "D"}, {Name: "D-Uplinks", Switch: "D", Uplink: true, Free: 2}},
	}
	server := backends.Appliance{Name: "server", Product: "Bitfusion", Networks: []string{"Network 1"}, Adapters: []string{"Network 1"},
		Properties: []backends.Property{{Key: "ip", Asked: true}, {Key: "password", Asked: true, Needed: true, Secret: true}, {Key: "fixed"}}}
	plain := server
	plain.Product = "Something else"
	bare := plain
	bare.Networks, bare.Adapters = nil, nil
	optional := server
	optional.Properties = []backends.Property{{Key: "password", Asked: true, Secret: true}}
	for _, tc := range []struct {
		name  string
		of    backends.Appliance
		alter func(w *recipe.ApplianceWish)
		why   string // "" when it may be deployed
	}{
		{"as the guide has it", server, func(w *recipe.ApplianceWish) { w.RDMA = []string{"RDMA-A"} }, ""},
		{"four adapters (PVRDMA and vSphere Bitfusion, Creating a Bitfusion Server)", server,
			func(w *recipe.ApplianceWish) { w.RDMA = []string{"RDMA-A", "RDMA-B", "RDMA-C"} }, ""},
		{"five adapters", server, func(w *recipe.ApplianceWish) { w.RDMA = []string{"RDMA-A", "RDMA-B", "RDMA-C", "RDMA-A"} },
			"5 adapters are more than the 4"},
		{"five adapters of another appliance", plain, func(w *recipe.ApplianceWish) { w.RDMA = []string{"RDMA-A", "RDMA-B", "RDMA-C", "RDMA-A"} },
			"asked for twice"},
		{"PVRDMA first", bare, func(w *recipe.ApplianceWish) { w.RDMA, w.Networks = []string{"RDMA-A"}, nil },
			"first adapter would be a PVRDMA one"},
		{"one network for two adapters", server, func(w *recipe.ApplianceWish) {
			w.RDMA, w.Networks = []string{"RDMA-A"}, map[string]string{"Network 1": "RDMA-A"}
		}, "by network Network 1"},
		{"no such port group", server, func(w *recipe.ApplianceWish) { w.RDMA = []string{"RDMA-X"} }, "no distributed port group RDMA-X"},
		{"uplinks", server, func(w *recipe.ApplianceWish) { w.RDMA = []string{"D-Uplinks"} }, "is the uplink port group of D"},
		{"no free port", server, func(w *recipe.ApplianceWish) { w.RDMA = []string{"Full"} }, "has no free port"},
		{"name taken", server, func(w *recipe.ApplianceWish) { w.Name = "taken" }, "exists already"},
		{"network forgotten", server, func(w *recipe.ApplianceWish) { w.Networks = nil }, `network "Network 1"`},
		{"network misspelt", server, func(w *recipe.ApplianceWish) { w.Networks["Network l"] = "VM Network" }, `has no network "Network l"`},
		{"property forgotten", server, func(w *recipe.ApplianceWish) { w.Properties = nil }, "password () must not be empty"},
		{"empty password", optional, func(w *recipe.ApplianceWish) { w.Properties["password"] = "" }, "is a password and empty"},
		{"optional password left out", optional, func(w *recipe.ApplianceWish) { w.Properties = nil }, ""},
		{"property misspelt", server, func(w *recipe.ApplianceWish) { w.Properties["pasword"] = "x" }, `no property "pasword"`},
		{"property not to be set", server, func(w *recipe.ApplianceWish) { w.Properties["fixed"] = "x" }, "cannot be set by users"},
		{"no such configuration", server, func(w *recipe.ApplianceWish) { w.Configuration = "large" }, `no configuration "large"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := recipe.ApplianceWish{Deployment: backends.Deployment{Name: "bf", Networks: map[string]string{"Network 1": "VM Network"},
				Properties: map[string]string{"password": "x"}}}
			tc.alter(&w)
			err := recipe.CheckAppliance(tc.of, w, inv)
			if tc.why == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var refused *plan.Refused
			if !errors.As(err, &refused) {
				t.Fatalf("%v, want a refusal", err)
			}
			var all []string
			for _, r := range refused.Refusals {
				all = append(all, r.Why)
				if r.Remedy == "" {
					t.Errorf("%s: no remedy", r.Why)
				}
			}
			if !strings.Contains(strings.Join(all, "\n"), tc.why) {
				t.Errorf("%q, want %q", all, tc.why)
			}
		})
	}
}

func TestApplianceSummaryShowsNoSecret(t *testing.T) {
	a := backends.Appliance{Name: "server", Properties: []backends.Property{{Key: "password", Asked: true, Secret: true}}}
	w := recipe.ApplianceWish{Deployment: backends.Deployment{Name: "bf", Properties: map[string]string{"password": "hunter2"}}}
	if s := recipe.ApplianceSummary(a, w, &backends.Inventory{}, true, false); strings.Contains(s, "hunter2") ||
		!strings.Contains(s, "password = (not shown)") {
		t.Error(s)
	}
}

// The memory of an appliance is reserved for PVRDMA adapters alone, and an ordinary adapter in the RDMA network is pointed out.
func TestApplianceSummaryWithoutPVRDMA(t *testing.T) {
	a := backends.Appliance{Name: "server", Adapters: []string{"Network 1"}}
	inv := &backends.Inventory{VMs: []backends.VM{{Name: "vm-01", Adapters: []backends.Adapter{{Type: "pvrdma", PortGroup: "RDMA-A"}}}}}
	w := recipe.ApplianceWish{Deployment: backends.Deployment{Name: "bf", Networks: map[string]string{"Network 1": "RDMA-A"}}}
	if s := recipe.ApplianceSummary(a, w, inv, true, false); strings.Contains(s, "reserved") ||
		!strings.Contains(s, "an ordinary adapter without RDMA") {
		t.Error(s)
	}
	w.Networks, w.RDMA = map[string]string{"Network 1": "VM Network"}, []string{"RDMA-A"}
	if s := recipe.ApplianceSummary(a, w, inv, true, false); !strings.Contains(s, "memory is reserved") ||
		strings.Contains(s, "ordinary adapter") {
		t.Error(s)
	}
}
