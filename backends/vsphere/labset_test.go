package vsphere_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	events "github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/settertest"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

var (
	dvs    = backends.Setting{Target: backends.SwitchRef("RDMA-DVS"), Kind: backends.KindSwitch}
	group  = backends.Setting{Target: backends.PortGroupRef("RDMA-PG"), Kind: backends.KindPortGroup}
	dvs1   = backends.SwitchSpec{Datacenter: "DC", Version: "8.0.0", Uplinks: 1, MTU: 9000, Discovery: "lldp listen"}
	group1 = backends.PortGroupSpec{Switch: "RDMA-DVS", Active: []string{"Uplink 1"}, Binding: "earlyBinding"}
)

func member(host string) backends.Setting {
	return backends.Setting{Target: backends.HostRef(host), Kind: backends.KindMember, Name: "RDMA-DVS"}
}

func mustSet(t *testing.T, set map[backends.Kind]backends.Setter, s backends.Setting, v any) {
	t.Helper()
	to, ok := v.(backends.Value)
	if !ok {
		to = backends.ValueOf(v)
	}
	if err := set[s.Kind].Set(t.Context(), s, to, nil); err != nil {
		t.Fatalf("%s: %v (%s)", s.ID(), err, backends.HintOf(err))
	}
}

// changes returns how many events of a kind there are, to check that setting a value twice writes once.
func changes(l *lab.Lab, what string) func() int {
	return func() int {
		n := 0
		for _, e := range l.World().Log.Events() {
			if e.What == what {
				n++
			}
		}
		return n
	}
}

func TestContractOnLab(t *testing.T) {
	testclass.Plain(t)
	l, c := startLab(t, lab.Options{})
	set := c.Setters()

	t.Run("switch", func(t *testing.T) {
		nioc, small := dvs1, dvs1
		nioc.NIOC, nioc.Discovery = true, "cdp both"
		small.MTU, small.Uplinks = 1500, 2
		settertest.Run(t, settertest.Case{
			Setter: set[dvs.Kind], Setting: dvs, Removes: true, Writes: changes(l, events.SwitchChanged),
			Values: []backends.Value{backends.ValueOf(dvs1), backends.ValueOf(nioc), backends.ValueOf(small), backends.ValueOf(dvs1)},
		})
	})
	t.Run("vmknic", func(t *testing.T) {
		vmknic := backends.Setting{Target: backends.HostRef("esx-01"), Kind: backends.KindVMKNic, Name: "10.1.0.11"}
		spec := backends.VMKSpec{PortGroup: "RDMA-PG", PrefixLen: 24, MTU: 9000}
		mustSet(t, set, dvs, dvs1)
		mustSet(t, set, group, group1)
		if err := set[vmknic.Kind].Set(t.Context(), vmknic, backends.ValueOf(spec), nil); err == nil {
			t.Error("created on a switch that the host is no member of")
		}
		mustSet(t, set, member("esx-01"), backends.MemberSpec{PNICs: []string{"vmnic2"}})
		writes := changes(l, events.HostNetwork)
		before := writes()
		for _, want := range []backends.Value{backends.ValueOf(spec), backends.Absent, backends.ValueOf(spec)} {
			mustSet(t, set, vmknic, want)
			if got, err := set[vmknic.Kind].Read(t.Context(), vmknic); got != want || err != nil {
				t.Errorf("read %s, %v, want %s", got, err, want)
			}
			before++
			if n := writes(); n != before {
				t.Errorf("%d writes for %s, want %d", n, want, before)
			}
		}
		spec.MTU = 1500
		if err := set[vmknic.Kind].Set(t.Context(), vmknic, backends.ValueOf(spec), nil); backends.KindOf(err) != backends.KindConflict {
			t.Errorf("one that differs was taken over: %v", err)
		}
		mustSet(t, set, vmknic, backends.Absent)
		mustSet(t, set, member("esx-01"), backends.Absent)
		mustSet(t, set, group, backends.Absent)
		mustSet(t, set, dvs, backends.Absent)
	})
	two := dvs1
	two.Uplinks = 2
	mustSet(t, set, dvs, two)
	t.Run("port group", func(t *testing.T) {
		tagged, standby := group1, group1
		tagged.VLAN = 100
		standby.Active = []string{"Uplink 2", "Uplink 1 (standby)"}
		settertest.Run(t, settertest.Case{
			Setter: set[group.Kind], Setting: group, Removes: true, Writes: changes(l, events.SwitchChanged),
			Values: []backends.Value{backends.ValueOf(group1), backends.ValueOf(tagged), backends.ValueOf(standby)},
		})
	})
	t.Run("member", func(t *testing.T) {
		s := member("esx-02")
		missing := s
		missing.Target = backends.HostRef("no-such-host")
		settertest.Run(t, settertest.Case{
			Setter: set[s.Kind], Setting: s, Removes: true, Writes: changes(l, events.SwitchChanged), Missing: missing,
			Values: []backends.Value{
				backends.ValueOf(backends.MemberSpec{PNICs: []string{"vmnic2"}}), backends.ValueOf(backends.MemberSpec{PNICs: []string{"vmnic3"}}),
				backends.ValueOf(backends.MemberSpec{PNICs: []string{"vmnic3", "vmnic2"}}), backends.ValueOf(backends.MemberSpec{PNICs: []string{}}),
			},
		})
	})
	t.Run("option", func(t *testing.T) {
		s := backends.Setting{Target: backends.HostRef("esx-02"), Kind: backends.KindOption, Name: option}
		missing := s
		missing.Name = "Net.NoSuchOption"
		settertest.Run(t, settertest.Case{
			Setter: set[s.Kind], Setting: s, Missing: missing, Values: []backends.Value{backends.ValueOf("vmk0"), backends.ValueOf("")},
		})
	})
	t.Run("firewall", func(t *testing.T) {
		s := backends.Setting{Target: backends.HostRef("esx-02"), Kind: backends.KindFirewall, Name: "pvrdma"}
		missing := s
		missing.Name = "no-such-ruleset"
		settertest.Run(t, settertest.Case{
			Setter: set[s.Kind], Setting: s, Missing: missing, Values: []backends.Value{backends.ValueOf(true), backends.ValueOf(false)},
		})
	})
}

func TestVMContractOnLab(t *testing.T) {
	testclass.Plain(t)
	l, c := startLab(t, lab.Options{Hosts: 2, VMs: 2})
	set := c.Setters()
	mustSet(t, set, dvs, dvs1)
	mustSet(t, set, group, group1)
	for _, h := range []string{"esx-01", "esx-02"} {
		mustSet(t, set, member(h), backends.MemberSpec{PNICs: []string{"vmnic2"}})
	}
	vm := backends.VMRef("vm-01")
	power := c.Brackets()[backends.BracketVMPower]
	on, err := power.State(t.Context(), vm)
	testclass.OK(t, err)
	testclass.OK(t, power.Open(t.Context(), vm, nil))
	writes := changes(l, events.VMDevices)
	t.Run("memory", func(t *testing.T) {
		s := backends.Setting{Target: vm, Kind: backends.KindMemory}
		settertest.Run(t, settertest.Case{Setter: set[s.Kind], Setting: s, Writes: writes, Values: []backends.Value{
			backends.ValueOf(backends.MemorySpec{Locked: true, ReservationMB: 8192}), backends.ValueOf(backends.MemorySpec{ReservationMB: 1024}),
		}})
	})
	t.Run("adapter", func(t *testing.T) {
		s := backends.Setting{Target: vm, Kind: backends.KindAdapter, Name: "RDMA-PG"}
		v2 := backends.AdapterSpec{Type: "pvrdma", PortGroup: "RDMA-PG", Switch: "RDMA-DVS", Protocol: "rocev2", Start: true}
		v1, plain := v2, v2
		v1.Protocol, v1.Start = "rocev1", false
		plain.Type, plain.Protocol = "vmxnet3", ""
		settertest.Run(t, settertest.Case{Setter: set[s.Kind], Setting: s, Writes: writes, Removes: true, Values: []backends.Value{
			backends.ValueOf(v2), backends.ValueOf(v1), backends.ValueOf(plain), backends.ValueOf(v2),
		}})
	})
	t.Run("adapter of a VM that is on", func(t *testing.T) {
		// The spec of the change edits the adapter that was read; the operation's read-back must not show that.
		s := backends.Setting{Target: vm, Kind: backends.KindAdapter, Name: "RDMA-PG"}
		v1 := backends.AdapterSpec{Type: "pvrdma", PortGroup: "RDMA-PG", Switch: "RDMA-DVS", Protocol: "rocev1", Start: true}
		v2 := v1
		v2.Protocol = "rocev2"
		mustSet(t, set, s, v1)
		testclass.OK(t, power.Close(t.Context(), vm, on, nil))
		ctx := backends.WithReads(t.Context())
		if now, err := set[s.Kind].Read(ctx, s); err != nil || now != backends.ValueOf(v1) {
			t.Fatalf("%s, %v", now, err)
		}
		if err := set[s.Kind].Set(ctx, s, backends.ValueOf(v2), nil); err == nil {
			t.Error("the adapter of a VM that is on was changed")
		}
		if now, err := set[s.Kind].Read(ctx, s); err != nil || now != backends.ValueOf(v1) {
			t.Errorf("after the refused change it reads %s, %v", now, err)
		}
		testclass.OK(t, power.Open(t.Context(), vm, nil))
	})
	t.Run("hardware", func(t *testing.T) {
		s := backends.Setting{Target: vm, Kind: backends.KindHardware}
		settertest.Run(t, settertest.Case{
			Setter: set[s.Kind], Setting: s, OneWay: true, Values: []backends.Value{backends.ValueOf(20), backends.ValueOf(21)}, Writes: writes,
			Missing: backends.Setting{Target: backends.VMRef("no-such-vm"), Kind: s.Kind},
		})
	})
}
