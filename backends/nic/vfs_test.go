package nic_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/backends/nic/mlx5"
)

// rules are those of ConnectX.
var rules = mlx5.Family{}.VFs()

func TestNumOfVFs(t *testing.T) {
	for name, c := range map[string]struct {
		current int
		ports   []int
		want    int
	}{
		"RoCE SR-IOV Setup and Performance Study: 8 + 7 + 1": {0, []int{8, 7}, 16},
		"a card at 64 stays at 64":                           {64, []int{8, 7}, 64},
		"at most 127":                                        {0, []int{100, 100}, 127},
		"single-port card":                                   {0, []int{4}, 5},
	} {
		if got, err := nic.NumOfVFs(rules, c.current, c.ports); err != nil || got != c.want {
			t.Errorf("%s: %d %v, want %d", name, got, err, c.want)
		}
	}
	if _, err := nic.NumOfVFs(rules, 0, []int{128}); err == nil {
		t.Error("128 VFs on a port are accepted")
	}
	if !nic.EnoughVFs(8, []int{4, 4}) || !nic.EnoughVFs(2, []int{2, 2}) || nic.EnoughVFs(7, []int{8, 7}) {
		t.Error("NUM_OF_VFS counts per port (SmartX 8 with 4,4; sriov-network-operator PR 218)")
	}
}

func TestMaxVFs(t *testing.T) {
	lx0, lx1 := nic.Port{PCI: "0000:1a:00.0", VFs: -1}, nic.Port{PCI: "0000:1a:00.1", VFs: -1}
	cx0, cx1 := nic.Port{PCI: "0000:3b:00.0", VFs: 8}, nic.Port{PCI: "0000:3b:00.1", VFs: 7}
	for name, c := range map[string]struct {
		ports   []nic.Port
		current string
		want    string
	}{
		"RoCE SR-IOV Setup and Performance Study: two cards": {[]nic.Port{lx0, lx1, cx0, cx1}, "", "0,0,8,7"},
		"KB 309346: order of PCI, not of the list":           {[]nic.Port{cx1, lx1, cx0, lx0}, "", "0,0,8,7"},
		"cards the other way round": {[]nic.Port{{PCI: "0000:5e:00.0", VFs: -1}, {PCI: "0000:5e:00.1", VFs: -1}, cx0,
			cx1}, "", "8,7,0,0"},
		"another card's entries stay":            {[]nic.Port{lx0, lx1, cx0, cx1}, "2,3", "2,3,8,7"},
		"bus above 9 is hexadecimal":             {[]nic.Port{{PCI: "0000:af:00.0", VFs: 1}, {PCI: "0000:5e:00.0", VFs: 2}}, "", "2,1"},
		"segment first, and short addresses":     {[]nic.Port{{PCI: "0001:02:00.0", VFs: 1}, {PCI: "ff:00.0", VFs: 2}}, "", "2,1"},
		"a single number was for the first port": {[]nic.Port{lx0, cx0}, "4", "4,8"},
	} {
		if got, err := nic.MaxVFs(rules, c.ports, c.current); err != nil || got != c.want {
			t.Errorf("%s: %q %v, want %q", name, got, err, c.want)
		}
	}
	for name, c := range map[string]struct {
		ports   []nic.Port
		current string
	}{
		"function twice": {[]nic.Port{cx0, cx0}, ""}, "no address": {[]nic.Port{{PCI: "vmnic2"}}, ""}, "no numbers": {[]nic.Port{cx0}, "a,b"},
		"too many": {[]nic.Port{{PCI: "3b:00.0", VFs: 200}}, ""},
	} {
		if got, err := nic.MaxVFs(rules, c.ports, c.current); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
	if nic.LowFunctionEmpty([]int{0, 10}) != true || nic.LowFunctionEmpty([]int{0, 7}) || nic.LowFunctionEmpty([]int{8, 7}) {
		t.Error("KB 2039824: later port only, more than 8")
	}
}
