package network_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/network"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// A switch belongs to the rail that most of its hosts connect to it; only hosts that connect a single rail to it count (ibdiagnet,
// Rail Optimized Topology Validation, judges the servers of a switch in the same way).
func TestCablesOfRails(t *testing.T) {
	for _, c := range []struct {
		name  string
		hosts []string // by host, the switch of each rail; "-": no neighbour, "": no link
		want  []string // by host, status and a part of the evidence
	}{
		{"one switch for all", []string{"a a", "a a", "a a"}, []string{"pass vmnic0 (rail-1) is on a port 1/0, vmnic1 (rail-2) is on a port 1/1",
			"pass", "pass"}},
		{"a switch for each rail", []string{"a b", "a b", "a b"},
			[]string{"pass vmnic0 (rail-1) is on a port 1/0, vmnic1 (rail-2) is on b port 1/1", "pass", "pass"}},
		{"two cables swapped", []string{"a b", "a b", "b a"}, []string{"pass", "pass",
			"warn the cables of vmnic0 and vmnic1 are swapped: vmnic0 (rail-1) is on b port 1/0, a switch of rail-2; vmnic1 (rail-2) is on a port " +
				"1/1, a switch of rail-1"}},
		{"two of three swapped", []string{"a b c", "a c b", "a b c"}, []string{"pass", "warn the cables of vmnic1 and vmnic2 are swapped",
			"pass"}},
		{"three in a circle", []string{"a b c", "b c a", "a b c"}, []string{"pass",
			"warn vmnic0 (rail-1) is on b port 1/0, a switch of rail-2; vmnic1 (rail-2) is on c port 1/1, a switch of rail-3; vmnic2 (rail-3) is " +
				"on a port 1/2, a switch of rail-1", "pass"}},
		{"one cable astray", []string{"a b", "a b", "a a"},
			[]string{"pass", "pass", "warn vmnic1 (rail-2) is on a port 1/1, a switch of rail-1"}},
		{"a switch for each rack", []string{"a a", "a a", "b b", "b b"}, []string{"pass", "pass", "pass", "pass"}},
		{"one of a rack reaches out", []string{"a a", "a a", "a b"},
			[]string{"pass", "pass", "pass vmnic0 (rail-1) is on a port 1/0, vmnic1 (rail-2) is on b"}},
		{"two switches for each rack", []string{"a b", "a b", "c d", "c d", "d c"},
			[]string{"pass", "pass", "pass", "pass", "warn the cables of vmnic0 and vmnic1"}},
		{"no majority", []string{"a b", "b a"}, []string{"unknown where no rail has most of the hosts", "unknown"}},
		{"a silent port", []string{"a b", "a b", "a -"}, []string{"pass", "pass", "unknown the switch port of vmnic1 (rail-2) is not known"}},
		{"a silent port beside a stray", []string{"a b", "a b", "b -"}, []string{"pass", "pass", "warn vmnic0 (rail-1) is on b"}},
		{"one cable alone has no vote", []string{"a a", "a ", "a ", "a "}, []string{"pass", "pass", "pass", "pass"}},
	} {
		inv := &backends.Inventory{}
		rails := make([]answers.Rail, strings.Count(c.hosts[0], " ")+1)
		for i := range rails {
			rails[i] = answers.Rail{Name: fmt.Sprintf("rail-%d", i+1), NIC: answers.NIC{Device: fmt.Sprintf("vmnic%d", i)}}
		}
		for i, on := range c.hosts {
			h := backends.Host{Name: fmt.Sprintf("esx-%02d", i+1), State: "connected"}
			heard := map[string]backends.Neighbour{}
			for k, leaf := range strings.Split(on, " ") {
				n := backends.NIC{Device: fmt.Sprintf("vmnic%d", k), PCI: fmt.Sprintf("0000:3b:00.%d", k), MaxSpeedMbps: 100000, Driver: "nic_driver",
					RDMADevice: "vmrdma0", RoCEv2: true}
				if leaf != "" {
					n.SpeedMbps = 100000
				}
				if leaf != "" && leaf != "-" {
					heard[n.Device] = backends.Neighbour{Switch: leaf, Port: fmt.Sprintf("1/%d", k)}
				}
				h.NICs = append(h.NICs, n)
			}
			h.System = &backends.HostSystem{Neighbours: backends.FactOf(heard)}
			inv.Hosts = append(inv.Hosts, h)
		}
		a := answers.Default(answers.SRIOV)
		a.FromRails(rails)
		got := checks.Ask(t.Context(), network.Checks(), &checks.Facts{Answers: a, Inventory: inv},
			checks.Selection{Only: []string{"SW-RAIL-015"}})
		if len(got) != len(c.want) {
			t.Errorf("%s: %d findings, want %d: %v", c.name, len(got), len(c.want), got)
			continue
		}
		for i, f := range got {
			status, evidence, _ := strings.Cut(c.want[i], " ")
			if string(f.Status) != status || !strings.Contains(f.Evidence, evidence) || f.Target != backends.HostRef(inv.Hosts[i].Name) {
				t.Errorf("%s: %s %s %q, want %q", c.name, f.Target, f.Status, f.Evidence, c.want[i])
			}
		}
	}
}
