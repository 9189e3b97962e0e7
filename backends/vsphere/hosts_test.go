package vsphere_test

import (
	"fmt"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
)

// onHosts are assignments of one setting to the first n hosts.
func onHosts(n int, kind backends.Kind, name string, to backends.Value) []backends.Assignment {
	var as []backends.Assignment
	for i := range n {
		s := backends.Setting{Target: backends.HostRef(fmt.Sprintf("esx-%02d", i+1)), Kind: kind, Name: name}
		as = append(as, backends.Assignment{Setting: s, To: to})
	}
	return as
}

func settingsOf(as []backends.Assignment) []backends.Setting {
	var ss []backends.Setting
	for _, a := range as {
		ss = append(ss, a.Setting)
	}
	return ss
}

// asEngine reads for the journal, sets, and reads back, for all hosts together.
func asEngine(t *testing.T, s backends.Setter, as []backends.Assignment) {
	t.Helper()
	reader, many := s.(backends.ManyReader), s.(backends.ManySetter)
	read := func() []backends.Value {
		values, errs := reader.ReadMany(t.Context(), settingsOf(as))
		for i, err := range errs {
			if err != nil {
				t.Fatalf("%s: %v", as[i].ID(), err)
			}
		}
		return values
	}
	for i, v := range read() {
		if v == as[i].To {
			t.Fatalf("%s is %s already", as[i].ID(), v)
		}
	}
	for i, err := range many.SetMany(t.Context(), as, nil) {
		if err != nil {
			t.Fatalf("%s: %v", as[i].ID(), err)
		}
	}
	for i, v := range read() {
		if v != as[i].To {
			t.Fatalf("%s reads back as %s", as[i].ID(), v)
		}
	}
}

func TestCostOfSettingManyHosts(t *testing.T) {
	testclass.Plain(t)
	const n = 60
	_, c := startLab(t, lab.Options{Hosts: n, VMs: 1})
	if _, err := c.Inventory(t.Context(), backends.Scope{}); err != nil {
		t.Fatal(err)
	}
	set := c.Setters(vsphere.SetterOptions{Parallel: 16})
	for _, as := range [][]backends.Assignment{
		onHosts(n, backends.KindOption, option, backends.ValueOf("vmk0")),
		onHosts(n, backends.KindFirewall, "pvrdma", backends.ValueOf(true)),
	} {
		before := c.Calls()
		asEngine(t, set[as[0].Kind], as)
		if calls := c.Calls() - before; calls > n+20 {
			t.Errorf("%s on %d hosts: %d calls, bound %d", as[0].Kind, n, calls, n+20)
		}
	}
}

// A setting that one host refuses, or that does not exist there, is an error of that host alone.
func TestManyHostsFailEachForItself(t *testing.T) {
	_, c := startLab(t, lab.Options{Hosts: 4, VMs: 1, Faults: []string{
		"host=esx-02,method=UpdateOptions,do=fault:NoPermission", "host=esx-03,method=EnableRuleset,do=fault:NoPermission",
	}})
	set := c.Setters()
	for _, tc := range []struct {
		kind backends.Kind
		name string
		to   backends.Value
		bad  int
	}{
		{backends.KindOption, option, backends.ValueOf("vmk0"), 1},
		{backends.KindFirewall, "pvrdma", backends.ValueOf(true), 2},
	} {
		as := append(onHosts(4, tc.kind, tc.name, tc.to), backends.Assignment{
			Setting: backends.Setting{Target: backends.HostRef("no-such-host"), Kind: tc.kind, Name: tc.name}, To: tc.to,
		})
		as = append(as, onHosts(1, tc.kind, "No.Such", tc.to)...)
		s := set[tc.kind].(backends.ManySetter)
		errs := s.SetMany(t.Context(), as, nil)
		values, readErrs := s.(backends.ManyReader).ReadMany(t.Context(), settingsOf(as))
		for i, a := range as {
			gone := i >= 4
			if failed := errs[i] != nil; failed != (gone || i == tc.bad) {
				t.Errorf("set %s: %v", a.ID(), errs[i])
			}
			if i == tc.bad && backends.KindOf(errs[i]) != backends.KindPermission {
				t.Errorf("set %s: kind %s", a.ID(), backends.KindOf(errs[i]))
			}
			if (readErrs[i] != nil) != gone || !gone && (values[i] == tc.to) == (i == tc.bad) {
				t.Errorf("read %s: %s, %v", a.ID(), values[i], readErrs[i])
			}
		}
	}
}

// If a server does not return single elements of a list, each host is queried separately, with the same results.
func TestManyHostsOnStock(t *testing.T) {
	w := start(t, nil, listOption)
	s := w.dial(t).Setters()[backends.KindOption]
	var as []backends.Assignment
	for i := range 2 {
		host := backends.HostRef(fmt.Sprintf("DC0_C0_H%d", i))
		as = append(as, backends.Assignment{Setting: backends.Setting{Target: host, Kind: backends.KindOption, Name: option},
			To: backends.ValueOf("vmk0")})
	}
	asEngine(t, s, as)
}

func TestOneReadForAllSettingsOfAVM(t *testing.T) {
	_, c := startLab(t, lab.Options{Hosts: 1, VMs: 1})
	s := c.Setters()[backends.KindMemory].(backends.ManyReader)
	vm := backends.VMRef("vm-01")
	ss := []backends.Setting{
		{Target: vm, Kind: backends.KindMemory}, {Target: vm, Kind: backends.KindAdapter, Name: "no-such-group"},
		{Target: backends.VMRef("no-such-vm"), Kind: backends.KindMemory}, {Target: vm, Kind: backends.KindMemory},
	}
	if _, errs := s.ReadMany(t.Context(), ss); errs[0] != nil || errs[1] != nil || errs[2] == nil { // finds the VM and its networks
		t.Fatal(errs)
	}
	before := c.Calls()
	values, errs := s.ReadMany(t.Context(), []backends.Setting{ss[0], ss[3]})
	if n := c.Calls() - before; n != 1 || errs[0] != nil || values[0].IsAbsent() || values[0] != values[1] {
		t.Errorf("%d calls, %v, %v", n, values, errs)
	}
}
