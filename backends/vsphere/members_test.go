package vsphere_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
)

// memberships are assignments of vmnic2 on n hosts.
func memberships(n int) []backends.Assignment {
	var as []backends.Assignment
	for i := range n {
		as = append(as, backends.Assignment{
			Setting: member(fmt.Sprintf("esx-%02d", i+1)), To: backends.ValueOf(backends.MemberSpec{PNICs: []string{"vmnic2"}}),
		})
	}
	return as
}

func many(t *testing.T, set map[backends.Kind]backends.Setter, as []backends.Assignment) []error {
	t.Helper()
	errs := set[as[0].Kind].(backends.ManySetter).SetMany(t.Context(), as, nil)
	if len(errs) != len(as) {
		t.Fatalf("%d errors for %d assignments", len(errs), len(as))
	}
	return errs
}

func TestOneHostRefusesOthersJoin(t *testing.T) {
	_, c := startLab(t, lab.Options{Hosts: 4, VMs: 1})
	set := c.Setters()
	mustSet(t, set, dvs, dvs1)
	as := memberships(4)
	as[1].To = backends.ValueOf(backends.MemberSpec{PNICs: []string{"vmnic9"}}) // there is no such pNIC
	as[2].Target = backends.HostRef("no-such-host")
	as = append(as, memberships(4)[2])
	errs := many(t, set, as)
	for i, err := range errs {
		bad := i == 1 || i == 2
		if (err != nil) != bad {
			t.Errorf("%s: %v", as[i].ID(), err)
		}
	}
	if errs[1] != nil && !strings.HasPrefix(errs[1].Error(), "esx-02: ") {
		t.Errorf("the error does not name its host: %v", errs[1])
	}
	for _, i := range []int{0, 3, 4} {
		if v, err := set[as[i].Kind].Read(t.Context(), as[i].Setting); err != nil || v != as[i].To {
			t.Errorf("%s reads %s (%v)", as[i].ID(), v, err)
		}
	}
	if v, err := set[as[1].Kind].Read(t.Context(), as[1].Setting); err != nil || !v.IsAbsent() {
		t.Errorf("esx-02 reads %s (%v)", v, err)
	}
}

func TestSwitchOfOthersIsNotRemoved(t *testing.T) {
	_, c := startLab(t, lab.Options{Scenario: "done"})
	err := c.Setters()[dvs.Kind].Set(t.Context(), dvs, backends.Absent, nil)
	check(t, err, backends.KindRefused, "not created by rdma-setup")
}

func TestSwitchIsOurs(t *testing.T) {
	_, c := startLab(t, lab.Options{Hosts: 1, VMs: 1})
	mustSet(t, c.Setters(), dvs, dvs1)
	inv, err := c.Inventory(t.Context(), backends.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if s := inv.Switch("RDMA-DVS"); s == nil || !s.Ours() || s.Version != "8.0.0" || s.MTU != 9000 || s.NIOC || len(s.Uplinks) != 1 {
		t.Errorf("%+v", s)
	}
	newer := dvs1
	newer.Version = "8.0.3"
	mustSet(t, c.Setters(), dvs, newer)
	err = c.Setters()[dvs.Kind].Set(t.Context(), dvs, backends.ValueOf(dvs1), nil)
	check(t, err, backends.KindPermanent, "cannot be changed to 8.0.0")
}

func TestMemoryAndAdapterInOneReconfigure(t *testing.T) {
	l, c := startLab(t, lab.Options{Hosts: 1, VMs: 1})
	set := c.Setters()
	mustSet(t, set, dvs, dvs1)
	mustSet(t, set, group, group1)
	mustSet(t, set, member("esx-01"), backends.MemberSpec{PNICs: []string{"vmnic2"}})
	vm := backends.VMRef("vm-01")
	mem := backends.Assignment{Setting: backends.Setting{Target: vm, Kind: backends.KindMemory},
		To: backends.ValueOf(backends.MemorySpec{Locked: true, ReservationMB: 8192})}
	nic := backends.Assignment{
		Setting: backends.Setting{Target: vm, Kind: backends.KindAdapter, Name: "RDMA-PG"},
		To: backends.ValueOf(backends.AdapterSpec{Type: "pvrdma", PortGroup: "RDMA-PG", Switch: "RDMA-DVS", Protocol: "rocev2",
			Start: true}),
	}
	for _, err := range many(t, set, []backends.Assignment{mem, nic}) {
		check(t, err, backends.KindPermanent, "the VM is powered on")
	}
	if err := c.Brackets()[backends.BracketVMPower].Open(t.Context(), vm, nil); err != nil {
		t.Fatal(err)
	}
	before := l.World().Log.Calls()["ReconfigVM_Task"]
	for _, err := range many(t, set, []backends.Assignment{mem, nic}) {
		if err != nil {
			t.Error(err)
		}
	}
	if n := l.World().Log.Calls()["ReconfigVM_Task"] - before; n != 1 {
		t.Errorf("%d reconfigures", n)
	}
	mac, err := c.AdapterMAC(t.Context(), "vm-01", "RDMA-PG")
	if err != nil || !strings.HasPrefix(mac, "00:50:56:") {
		t.Errorf("MAC %q (%v)", mac, err)
	}

	// One of two is wrong: only that one returns an error, the other is done.
	mem.To = backends.ValueOf(backends.MemorySpec{ReservationMB: 2048})
	nic.To = backends.ValueOf(backends.AdapterSpec{Type: "token ring", PortGroup: "RDMA-PG", Switch: "RDMA-DVS", Start: true})
	errs := many(t, set, []backends.Assignment{mem, nic})
	if errs[0] != nil {
		t.Error(errs[0])
	}
	check(t, errs[1], backends.KindPermanent, "token ring")
}
