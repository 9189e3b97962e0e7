package perftest_test

import (
	"fmt"
	"testing"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
)

func nodes(vms, hosts int) []perftest.Node {
	var all []perftest.Node
	for i := range vms {
		all = append(all, perftest.Node{VM: fmt.Sprintf("vm-%02d", i), Host: fmt.Sprintf("esx-%02d", i*hosts/vms), Port: "vmnic2"})
	}
	return all
}

func TestAllPairsRounds(t *testing.T) {
	for _, tt := range []struct{ vms, hosts, rounds int }{
		{2, 2, 1}, {3, 3, 3}, {4, 4, 3}, {5, 5, 5}, {8, 8, 7}, {9, 9, 9}, {64, 64, 63}, {1, 1, 0}, {0, 1, 0},
	} {
		pairs, err := perftest.Pairs(nodes(tt.vms, tt.hosts), "all")
		if err != nil {
			t.Fatal(err)
		}
		rounds := perftest.Rounds(pairs)
		if len(rounds) != tt.rounds {
			t.Errorf("%d nodes on %d hosts: %d rounds, want %d", tt.vms, tt.hosts, len(rounds), tt.rounds)
		}
		complete(t, pairs, rounds)
	}
}

func TestRoundsShareNoPortAndNoGuest(t *testing.T) {
	for _, how := range []string{"ring", "all"} {
		for vms := 2; vms < 14; vms++ {
			for hosts := 1; hosts <= vms; hosts++ {
				pairs, err := perftest.Pairs(nodes(vms, hosts), how)
				if err != nil {
					t.Fatal(err)
				}
				complete(t, pairs, perftest.Rounds(pairs))
			}
		}
	}
}

// complete checks that every pair is measured once and that no round contains a guest or a host port twice.
func complete(t *testing.T, pairs []perftest.Pair, rounds [][]perftest.Pair) {
	t.Helper()
	seen := map[string]int{}
	for r, round := range rounds {
		busy := map[string]bool{}
		for _, p := range round {
			seen[p.String()]++
			keys := []string{p.Client.VM, p.Server.VM}
			if !p.SameHost() {
				keys = append(keys, "port of "+p.Client.Host, "port of "+p.Server.Host)
			}
			for _, k := range keys {
				if busy[k] {
					t.Errorf("round %d has %s twice", r, k)
				}
				busy[k] = true
			}
		}
	}
	for _, p := range pairs {
		if seen[p.String()] != 1 {
			t.Errorf("%s measured %d times", p, seen[p.String()])
		}
	}
	if len(seen) != len(pairs) {
		t.Errorf("%d pairs measured, want %d", len(seen), len(pairs))
	}
}

func TestRingKeepsNeighboursApart(t *testing.T) {
	for _, tt := range []struct{ vms, hosts int }{{2, 2}, {8, 4}, {6, 3}, {4, 2}, {12, 5}} {
		pairs, err := perftest.Pairs(nodes(tt.vms, tt.hosts), "ring")
		if err != nil {
			t.Fatal(err)
		}
		if len(pairs) != tt.vms {
			t.Errorf("%d nodes: %d pairs", tt.vms, len(pairs))
		}
		for _, p := range pairs {
			if p.SameHost() {
				t.Errorf("%d VMs on %d hosts: %s stays on one host", tt.vms, tt.hosts, p)
			}
		}
	}
}

func TestPairsByName(t *testing.T) {
	all := nodes(3, 3)
	pairs, err := perftest.Pairs(all, "vm-02:vm-00")
	if err != nil || len(pairs) != 1 || pairs[0].String() != "vm-02 -> vm-00" {
		t.Errorf("got %v, %v", pairs, err)
	}
	for _, bad := range []string{"some", "vm-00:vm-09", "vm-09:vm-00", "vm-01:vm-01"} {
		if _, err := perftest.Pairs(all, bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestOnceTakesEachEndOnce(t *testing.T) {
	for _, c := range []struct {
		vms  int
		how  string
		want int
	}{{0, "ring", 0}, {2, "ring", 1}, {3, "ring", 2}, {8, "ring", 4}, {400, "ring", 200}, {8, "all", 4}, {9, "all", 5}} {
		pairs, err := perftest.Pairs(nodes(c.vms, 4), c.how)
		if err != nil {
			t.Fatal(err)
		}
		given, seen := map[string]bool{}, map[string]int{}
		for _, p := range pairs {
			given[p.String()] = true
		}
		some := perftest.Once(pairs)
		for _, p := range some {
			seen[p.Client.VM]++
			seen[p.Server.VM]++
			if !given[p.String()] {
				t.Errorf("%d %s: %s is none of the pairs", c.vms, c.how, p)
			}
		}
		if len(some) != c.want || len(seen) != c.vms {
			t.Errorf("%d %s: %d pairs with %d VMs, want %d pairs with all", c.vms, c.how, len(some), len(seen), c.want)
		}
	}
}
