package appliance

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
)

func TestChoosesAHostThatFits(t *testing.T) {
	n := need{groups: []string{"VM Network", "RDMA-PG"}, datastore: "ds-1", memory: 32 << 30}
	fits := candidate{name: "esx-01", connected: true, networks: []string{"VM Network", "RDMA-PG"}, datastores: []string{"ds-1"},
		memory: 64 << 30, used: 32 << 30}
	with := func(change func(*candidate)) candidate { c := fits; change(&c); return c }
	emptier := with(func(c *candidate) { c.name, c.used = "esx-02", 0 })
	if got, err := choose([]candidate{fits, emptier}, n); err != nil || got.name != "esx-02" {
		t.Errorf("%s, %v", got.name, err)
	}
	for says, c := range map[string]candidate{
		"it has no port group RDMA-PG":                 with(func(c *candidate) { c.networks = c.networks[:1] }),
		"it is not connected":                          with(func(c *candidate) { c.connected = false }),
		"it is in maintenance mode":                    with(func(c *candidate) { c.maintenance = true }),
		"it has no access to the datastore":            with(func(c *candidate) { c.datastores = nil }),
		"it has 16 GiB of memory, the VM needs 32 GiB": with(func(c *candidate) { c.memory = 16 << 30 }),
	} {
		if _, err := choose([]candidate{c}, n); backends.KindOf(err) != backends.KindRefused || !strings.Contains(err.Error(), "esx-01: "+says) {
			t.Errorf("%v; want %s", err, says)
		}
		if got, err := choose([]candidate{c, emptier}, n); err != nil || got.name != "esx-02" {
			t.Errorf("%s beside one that fits: %s, %v", says, got.name, err)
		}
	}
}

// TestThickDisksOnSharedStorage: datastores on which a thick disk takes its full size at once.
func TestThickDisksOnSharedStorage(t *testing.T) {
	for kind, want := range map[string]bool{"VMFS": true, "OTHER": true, "": true, "vsan": false, "NFS": false, "NFS41": false,
		"VVOL": false} {
		if got := allocates(kind); got != want {
			t.Errorf("%q: %t, want %t", kind, got, want)
		}
	}
}
