package cmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A plan that is saved and read again has the same hash, whatever its changes and brackets contain; a plan without changes too.
func TestSavedPlanKeepsItsHash(t *testing.T) {
	host, vm := backends.HostRef("esx-01"), backends.VMRef("a/b <c>")
	full := plan.Plan{Mode: "sriov", Changes: []plan.Change{
		{Setting: backends.Setting{Target: host, Kind: backends.KindModuleParams, Name: "nic_driver"}, From: backends.ValueOf("unknown until x"),
			To: backends.ValueOf("a=1 <b>&\u2028"), Late: backends.ValueOf(map[string]any{"b": 1.5, "a": nil})},
		{Setting: backends.Setting{Target: vm, Kind: backends.KindAdapter, Name: "PG"}, To: backends.Unknown("x"), Within: []string{"w"},
			State: true, Irreversible: "no way back"},
	}, Brackets: []plan.Bracket{{Kind: backends.BracketVMPower, Target: vm, Why: "w", After: []string{"a"}, Round: 2,
		Effect: plan.VMPowerCycle}}}
	for name, p := range map[string]plan.Plan{"full": full, "empty": {Mode: "pvrdma"},
		"no brackets": {Mode: "pvrdma", Changes: full.Changes}} {
		path := filepath.Join(t.TempDir(), "plan.json")
		b, err := json.MarshalIndent(planDocument(&planned{plan: &p}, 7), "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		doc, err := savedPlan(path)
		if err != nil || doc.Hash != p.Hash() {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, c := range doc.Changes {
			if want := p.Changes[i]; c.From != want.From || c.To != want.To || c.Late != want.Late {
				t.Errorf("%s: %s is read as %+v", name, want.ID(), c)
			}
		}
	}
}
