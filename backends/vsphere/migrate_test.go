package vsphere_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	labworld "github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
)

// TestMoveVMsAway: which hosts receive the VMs of a host that DRS does not evacuate, and what keeps a VM from leaving. vm-01 and
// vm-04 run on esx-01, vm-02 on esx-02, vm-03 on esx-03. A refusal moves nothing at all.
func TestMoveVMsAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit    func(*labworld.State)
		to      map[string]string // of vm-01 and vm-04, if that is certain
		placed  bool              // DRS was asked for a host
		refused string
	}{
		"DRS recommends": {func(s *labworld.State) { s.Services.DRS = "manual" }, nil, true, ""},
		"without DRS":    {func(s *labworld.State) { s.Services.NoDRS = true }, nil, false, ""},
		"a VM of their anti-affinity rule is on esx-02": {func(s *labworld.State) {
			s.Services.NoDRS = true
			s.Services.Rules = []labworld.Rule{{Key: 1, Name: "apart", Apart: true, VMs: []string{"vm-01", "vm-02"}}}
		}, map[string]string{"vm-01": "esx-03"}, false, ""},
		"the same, and DRS recommends": {func(s *labworld.State) {
			s.Services.DRS = "manual"
			s.Services.Rules = []labworld.Rule{{Key: 1, Name: "apart", Apart: true, VMs: []string{"vm-01", "vm-02"}}}
		}, map[string]string{"vm-01": "esx-03"}, true, ""},
		"they belong together": {func(s *labworld.State) {
			s.Services.NoDRS = true
			s.Services.Rules = []labworld.Rule{{Key: 1, Name: "near", VMs: []string{"vm-01", "vm-04"}},
				{Key: 2, Name: "apart", Apart: true, VMs: []string{"vm-01", "vm-03"}}}
		}, map[string]string{"vm-01": "esx-02", "vm-04": "esx-02"}, false, ""},
		"they belong together, and one host has room for one only": {func(s *labworld.State) {
			s.Services.NoDRS = true
			s.Services.Rules = []labworld.Rule{{Key: 1, Name: "near", VMs: []string{"vm-01", "vm-04"}}}
			s.VM("vm-02").MemoryMB = s.Hosts[1].MemoryMB - s.VM("vm-01").MemoryMB - s.VM("vm-04").MemoryMB/2
			s.VM("vm-02").Reserved = s.VM("vm-02").MemoryMB
			s.VM("vm-03").MemoryMB = s.Hosts[2].MemoryMB - s.VM("vm-01").MemoryMB - s.VM("vm-04").MemoryMB/2
			s.VM("vm-03").Reserved = s.VM("vm-03").MemoryMB
		}, nil, false, "move vm-01 and vm-04 away together, as a DRS rule wants them: no other host of its cluster can run it: esx-02 has "},
		"a VM of their anti-affinity rule is off": {func(s *labworld.State) {
			s.Services.NoDRS = true
			s.Services.Rules = []labworld.Rule{{Key: 1, Name: "apart", Apart: true, VMs: []string{"vm-04", "vm-02"}},
				{Key: 2, Name: "licence", Must: true, VMs: []string{"vm-04"}, Hosts: []string{"esx-01", "esx-02"}}}
			s.VM("vm-02").On = false
		}, map[string]string{"vm-04": "esx-02"}, false, ""},
		"a mandatory rule names the host": {func(s *labworld.State) {
			s.Services.NoDRS = true
			s.Services.Rules = []labworld.Rule{{Key: 1, Name: "licence", Must: true, VMs: []string{"vm-04"}, Hosts: []string{"esx-01", "esx-03"}}}
		}, map[string]string{"vm-04": "esx-03"}, false, ""},
		"they are apart everywhere": {func(s *labworld.State) {
			s.Services.NoDRS = true
			s.Services.Rules = []labworld.Rule{{Key: 1, Name: "apart", Apart: true, VMs: []string{"vm-04", "vm-02", "vm-03"}}}
		}, nil, false,
			"move vm-04 away: no other host of its cluster can run it: esx-02 is excluded by the DRS rule apart; esx-03 is excluded by the DRS " +
				"rule apart"},
		"a full host": {func(s *labworld.State) {
			s.Services.NoDRS = true
			s.VM("vm-02").MemoryMB = s.Hosts[1].MemoryMB
			s.VM("vm-02").Reserved = s.Hosts[1].MemoryMB
		}, map[string]string{"vm-01": "esx-03", "vm-04": "esx-03"}, false, ""},
		"a local disk": {func(s *labworld.State) {
			s.Services.NoDRS = true
			s.VM("vm-04").Local = true
		}, nil, false, "move vm-04 away: no other host of its cluster can run it: esx-02 does not reach all its datastores"},
		"a shared SCSI bus, which vCenter tells": {func(s *labworld.State) {
			s.Services.NoDRS = true
			s.VM("vm-04").Sharing = "physicalSharing"
		}, nil, false, "The virtual machine is configured to use a SCSI controller with bus sharing."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, cl := startLab(t, lab.Options{Hosts: 3, VMs: 4})
			err := l.World().Update(func(s *labworld.State) ([]labworld.Event, error) {
				c.edit(s)
				events := []labworld.Event{{What: labworld.Inventory, Detail: "cluster"}}
				for _, v := range s.VMs {
					events = append(events, labworld.Event{What: labworld.VMDevices, VM: v.Name})
				}
				for _, h := range s.Hosts {
					events = append(events, labworld.Event{What: labworld.HostVMs, Host: h.Name})
				}
				return events, nil
			})
			testclass.OK(t, err)
			b := cl.Brackets(vsphere.BracketOptions{Migrate: true, Evacuate: 20 * time.Second})[backends.BracketMaintenance]
			err = b.Open(t.Context(), backends.HostRef("esx-01"), nil)
			at := map[string]string{}
			l.World().View(func(s *labworld.State) {
				for _, v := range s.VMs {
					at[v.Name] = v.Host
					if !v.On && v.Name != "vm-02" {
						t.Errorf("%s is off", v.Name)
					}
				}
			})
			calls := l.World().Log.Calls()
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) || backends.KindOf(err) != backends.KindRefused {
					t.Errorf("want %q, got %v", c.refused, err)
				}
				if at["vm-01"] != "esx-01" || at["vm-04"] != "esx-01" || calls["EnterMaintenanceMode_Task"] != 0 {
					t.Errorf("something moved: %v", at)
				}
				return
			}
			testclass.OK(t, err)
			for _, vm := range []string{"vm-01", "vm-04"} {
				if want := c.to[vm]; at[vm] == "esx-01" || want != "" && at[vm] != want {
					t.Errorf("%s is on %s, want %s", vm, at[vm], want)
				}
			}
			if calls["RelocateVM_Task"] != 2 || (calls["PlaceVm"] > 0) != c.placed {
				t.Errorf("calls %v", calls)
			}
		})
	}
}

// TestMovesWaitForEachOther: how a host that is being evacuated affects another one. A host whose VMs could not leave accepts those
// of another host afterwards; a host that leaves maintenance mode does not wait for the moves of another; and a host that waits for
// its turn stops waiting with its context.
func TestMovesWaitForEachOther(t *testing.T) {
	t.Parallel()
	l, cl := startLab(t, lab.Options{Hosts: 3, VMs: 3})
	err := l.World().Update(func(s *labworld.State) ([]labworld.Event, error) {
		s.Services.NoDRS = true
		s.VM("vm-02").Local = true // it keeps esx-02 from being evacuated
		return []labworld.Event{{What: labworld.Inventory, Detail: "cluster"}, {What: labworld.VMDevices, VM: "vm-02"}}, nil
	})
	testclass.OK(t, err)
	b := cl.Brackets(vsphere.BracketOptions{Migrate: true, Evacuate: 20 * time.Second})[backends.BracketMaintenance]
	if err := b.Open(t.Context(), backends.HostRef("esx-02"), nil); err == nil {
		t.Fatal("esx-02 was emptied")
	}
	testclass.OK(t, b.Open(t.Context(), backends.HostRef("esx-03"), nil))
	testclass.OK(t, l.World().Faults.Add("method=RelocateVM_Task,do=hang"))
	moving, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Open(moving, backends.HostRef("esx-01"), nil) }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !slices.ContainsFunc(l.World().Log.Events(), func(e labworld.Event) bool { return e.What == labworld.FaultApplied }) {
		select {
		case err := <-ended:
			t.Fatalf("no VM of esx-01 is on its way: %v", err)
		case <-tick.C:
		}
	}
	if err := b.Close(t.Context(), backends.HostRef("esx-03"), backends.ValueOf("normal"), nil); err != nil {
		t.Errorf("esx-03 waits for the moves of esx-01: %v", err)
	}
	waiting, giveUp := context.WithCancel(t.Context())
	giveUp()
	if err := b.Open(waiting, backends.HostRef("esx-02"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a host that waits for its turn: %v", err)
	}
	stop()
	<-ended
}
