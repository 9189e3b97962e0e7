//go:build e2e

package cmd_test

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
)

// TestE2EFixRowByRow shows that check --fix repairs every row with an automatic fix. In each scenario, after an apply where one is
// named and something that goes wrong then, each finding with the fix "automatic" passes after check --fix; a second one repairs what
// only the first one made visible.
func TestE2EFixRowByRow(t *testing.T) {
	const sriov, first, all = "\nsriov:", "    guest: {", "esx-01,esx-02,esx-03"
	fixed := map[string]bool{}
	for _, c := range []struct {
		scenario, mode string
		edits          []string // of the answers for check: old, new
		apply          string   // the hosts that are set up before
		wrong          func(s *world.State) []world.Event
	}{
		{scenario: "healthy", mode: "pvrdma"}, {scenario: "drifted", mode: "pvrdma"}, {scenario: "sriov-ready", mode: "sriov"},
		{scenario: "gpudirect", mode: "gpudirect"},
		{scenario: "gpudirect-broken-window-off", mode: "gpudirect"}, {scenario: "gpudirect-broken-window-small", mode: "gpudirect"},
		{scenario: "gpudirect-broken-p2p", mode: "gpudirect"}, {scenario: "gpudirect-broken-persistence", mode: "gpudirect"},
		{scenario: "broken-protocol-mixed", mode: "pvrdma"}, {scenario: "broken-uplink-missing", mode: "pvrdma"},
		{scenario: "broken-guest-mtu", mode: "pvrdma"}, {scenario: "broken-wrong-address", mode: "pvrdma"},
		{scenario: "broken-pg-vlan", mode: "pvrdma"}, {scenario: "broken-not-member", mode: "pvrdma"},
		{scenario: "broken-address-lost", mode: "pvrdma"},
		{scenario: "gpudirect-old", mode: "pvrdma", edits: []string{first, "    hardware: upgrade\n" + first}},
		{scenario: "no-pause", mode: "pvrdma", edits: []string{"\nvms:", "\nqos: {lossless: pause}\nvms:"}},
		{scenario: "containers", mode: "pvrdma",
			edits: []string{"\nvms:", "\ncontainer: {image: \"tensorrt-pvrdma:20.12\", base: \"nvcr.io/nvidia/tensorrt:20.12-py3\"}\nvms:"}},
		{scenario: "sriov-ready", mode: "sriov", apply: all, edits: []string{sriov, "\ntuning: {latency: high}" + sriov},
			wrong: func(s *world.State) (told []world.Event) {
				for _, v := range s.Asked() {
					for _, a := range v.Adapters {
						a.GuestMTU = false
					}
					told = append(told, world.Event{What: world.VMDevices, VM: v.Name})
				}
				s.Asked()[0].Latency, s.Asked()[1].CPUMHz = "normal", 0
				return told
			}},
		{scenario: "gpudirect-done", mode: "gpudirect", edits: []string{"\nvms:", "\nqos: {lossless: pfc}\nvms:"}},
		{scenario: "healthy", mode: "pvrdma", apply: all, wrong: func(s *world.State) (told []world.Event) {
			for _, d := range s.Switches {
				told = append(told, world.Event{What: world.SwitchChanged, Switch: d.Name})
				d.NIOC = true
			}
			return told
		}},
		{scenario: "rails", mode: "pvrdma",
			edits: []string{"ip: 192.168.50.11/24", "adapters: [{rail: rail-1, ip: 192.168.50.11/24}, {rail: rail-2, ip: 192.168.50.21/24}]",
				"ip: 192.168.50.12/24", "adapters: [{rail: rail-1, ip: 192.168.50.12/24}, {rail: rail-2, ip: 192.168.50.22/24}]",
				"ip: 192.168.50.13/24", "adapters: [{rail: rail-1, ip: 192.168.50.13/24}, {rail: rail-2, ip: 192.168.50.23/24}]"}},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			b := newBench(t, lab.Options{Scenario: c.scenario, Hosts: 3, VMs: 3, RebootTime: 100 * time.Millisecond})
			file := filepath.Join(b.lab.Dir(), "answers-"+c.mode+".yaml")
			for i := 0; i < len(c.edits); i += 2 {
				file = edited(t, file, c.edits[i], c.edits[i+1])
			}
			if c.apply != "" {
				succeeds(t, b.env, "apply", "-f", file, "--yes", "--limit", c.apply)
			}
			if c.wrong != nil {
				if err := b.lab.World().Update(func(s *world.State) ([]world.Event, error) { return c.wrong(s), nil }); err != nil {
					t.Fatal(err)
				}
			}
			look := func() map[string]checks.Finding { // what is amiss
				out, errs, _ := inProcess(b.env, "check", "-f", file, "-o", "json")
				var doc struct{ Results []checks.Finding }
				if err := json.Unmarshal([]byte(out), &doc); err != nil {
					t.Fatalf("%v: %s%s", err, out, errs)
				}
				found := map[string]checks.Finding{}
				for _, f := range doc.Results {
					if s := f.State(); s == checks.Fail || s == checks.Warn {
						found[f.ID+" of "+f.Target.String()] = f
					}
				}
				return found
			}
			before := look()
			for round := range 3 {
				maps.DeleteFunc(before, func(_ string, f checks.Finding) bool { return f.Fix != string(checks.Automatic) })
				if len(before) == 0 && round > 0 {
					return
				}
				out, errs, code := inProcess(b.env, "check", "-f", file, "--fix", "--yes")
				after := look()
				for _, what := range slices.Sorted(maps.Keys(before)) {
					// a hardware version is raised as far as needed
					if f, still := after[what]; still && (f.State() == checks.Fail || before[what].State() == checks.Warn) {
						t.Errorf("%s is not fixed", what)
					} else {
						fixed[before[what].ID] = true
					}
				}
				if len(before) == 0 || code > 2 || t.Failed() {
					t.Fatalf("round %d: %d findings with an automatic fix, exit %d\n%.3000s%s", round+1, len(before), code, out, errs)
				}
				before = after
			}
		})
	}
	for _, c := range catalogue.Checks() {
		if c.Fix == checks.Automatic && !fixed[c.ID] {
			t.Errorf("%s: no scenario shows that check --fix repairs it", c.ID)
		}
	}
}
