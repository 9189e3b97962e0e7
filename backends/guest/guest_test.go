package guest_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/settertest"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

func systems() []string { return []string{"ubuntu-20.04", "ubuntu-22.04", "rhel-8", "rhel-9"} }

// fewer leaves of systems those that are named, one for each package manager, where the race detector is: it makes all of it
// several times as slow. make e2e-full runs every system without it.
func fewer(systems map[string]string, named ...string) map[string]string {
	if testclass.Small() {
		maps.DeleteFunc(systems, func(os, _ string) bool { return !slices.Contains(named, os) })
	}
	return systems
}

// wanted is what a plan asks of a guest of a system.
func wanted(m *machine, os string) []backends.Assignment {
	packages := []string{"ibverbs-providers", "ibverbs-utils", "infiniband-diags", "perftest", "rdma-core", "rdmacm-utils"}
	reload := "vmw_pvrdma"
	if strings.HasPrefix(os, "rhel") {
		packages = []string{"infiniband-diags", "libibverbs", "libibverbs-utils", "librdmacm-utils", "perftest", "rdma-core"}
		reload = ""
	}
	return []backends.Assignment{
		{Setting: m.setting(backends.KindPackages, "rdma"), To: backends.ValueOf(backends.PackageSpec{Installed: packages})},
		{Setting: m.setting(backends.KindModules, "rdma"), To: backends.ValueOf([]string{"ib_umad", "rdma_cm", "rdma_ucm", "vmw_pvrdma"})},
		{Setting: m.setting(backends.KindPersist, ""),
			To: backends.ValueOf(backends.Persist{Modules: []string{"ib_umad", "rdma_cm", "rdma_ucm"}, Reload: reload})},
		{Setting: m.setting(backends.KindAddress, m.group), To: backends.ValueOf(backends.AddressSpec{CIDR: "192.168.50.21/24", MTU: 9000})},
		{Setting: m.setting(backends.KindMemlock, ""), To: backends.ValueOf("unlimited")},
		{Setting: m.setting(backends.KindPort, m.group), To: backends.ValueOf("PORT_ACTIVE")},
	}
}

// The whole cycle: set everything up, find it in the survey, reboot, find it again, roll back, find nothing left.
func TestSetupAndRollback(t *testing.T) {
	testclass.Plain(t)
	for i, os := range systems() {
		t.Run(os, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, config{os: os, sudo: []string{"", "it's $ecret"}[i%2]})
			m.thereAndBack(t, wanted(m, os), "vmw_pvrdma")
			if n := m.commands(); n > commandsThereAndBack {
				t.Errorf("%d remote commands, at most %d", n, commandsThereAndBack)
			}
		})
	}
}

// commandsThereAndBack bounds the remote commands of TestSetupAndRollback: each costs a round trip.
const commandsThereAndBack = 92

// commands returns the number of remote commands of this program in the guest.
func (m *machine) commands() (n int) {
	for _, e := range m.world.Log.Events() {
		if e.What == world.Process && strings.Contains(e.Detail, " -c exec /bin/sh -c 'eval") {
			n++
		}
	}
	return n
}

// The same with a VF (RoCE SR-IOV Setup and Performance Study on vSphere 7.x, VMware, 2022, 2.4): its driver is there,
// its interface is found by the MAC, and what it sends is marked.
func TestSetupAndRollbackWithVF(t *testing.T) {
	testclass.Plain(t)
	for os, system := range fewer(map[string]string{"ubuntu-20.04": "netplan", "ubuntu-22.04": "netplan", "debian-12": "netplan",
		"rhel-8": "networkmanager", "rhel-9": "networkmanager"}, "debian-12", "rhel-8") {
		t.Run(os, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, config{os: os, vf: true})
			if got := m.Survey(t.Context(), m.vm).NetConfig; got != system {
				t.Errorf("the network of %s is kept by %s", os, got)
			}
			all := slices.DeleteFunc(wanted(m, os), func(a backends.Assignment) bool {
				return a.Kind == backends.KindModules || a.Kind == backends.KindPersist
			})
			modules := backends.Assignment{Setting: m.setting(backends.KindModules, "rdma"),
				To: backends.ValueOf([]string{"ib_umad", "rdma_cm", "rdma_ucm"})}
			persist := backends.Assignment{Setting: m.setting(backends.KindPersist, ""),
				To: backends.ValueOf(backends.Persist{Modules: []string{"ib_umad", "rdma_cm", "rdma_ucm"}})}
			class := backends.Assignment{Setting: m.setting(backends.KindTrafficClass, m.group), To: backends.ValueOf(106)}
			all = append(slices.Insert(all, 1, modules, persist), class, backends.Assignment{Setting: m.setting(backends.KindEnvironment, ""),
				To: backends.ValueOf(106)})
			m.thereAndBack(t, all, "mlx5_core")
		})
	}
}

func (m *machine) thereAndBack(t *testing.T, all []backends.Assignment, driver string) {
	t.Helper()
	before, disk := m.Survey(t.Context(), m.vm), m.disk(t)
	if before.Error != "" {
		t.Fatal(before.Error)
	}
	setters := m.Setters()
	kept := make([]backends.Kept, len(all))
	prior := make([]backends.Value, len(all))
	for i, a := range all {
		m.Want(a.Setting, a.To)
		s := setters[a.Kind]
		var err error
		if prior[i], err = s.Read(t.Context(), a.Setting); err != nil {
			t.Fatal(err)
		}
		if k, ok := backends.As[backends.Keeper](s); ok {
			if kept[i], err = k.Keep(t.Context(), a.Setting, a.To); err != nil {
				t.Fatalf("%s: keep: %v", a.ID(), err)
			}
			kept[i] = throughJSON(t, kept[i])
		}
		if err := s.Set(t.Context(), a.Setting, a.To, nil); err != nil {
			t.Fatalf("%s: %v\nhint: %s", a.ID(), err, backends.HintOf(err))
		}
	}
	m.holds(t, all)
	m.reboot(t)
	m.holds(t, all)
	after := m.Survey(t.Context(), m.vm)
	d := after.Verbs(m.mac)
	if d == nil || d.State != "PORT_ACTIVE" || d.Driver != driver ||
		!slices.ContainsFunc(d.GIDs, func(g backends.GID) bool { return g.IPv4 == "192.168.50.21" && g.Type == "RoCE v2" }) {
		t.Errorf("the RDMA device: %+v", d)
	}
	if marks := slices.ContainsFunc(all, func(a backends.Assignment) bool { return a.Kind == backends.KindTrafficClass }); d != nil &&
		marks != d.ClassKept {
		t.Errorf("traffic class %v, kept %t", d.Class, d.ClassKept)
	}
	if i := after.Interface(m.mac); i == nil || !i.Persistent || i.MTU != 9000 || !i.Up || !slices.Contains(i.Addresses, "192.168.50.21/24") {
		t.Errorf("the interface: %+v", i)
	}
	if after.MemlockKB != -1 || after.Perftest == "" || len(after.Persist.Modules) != 3 {
		t.Errorf("%+v", after)
	}

	for i, a := range slices.Backward(all) {
		s := setters[a.Kind]
		var err error
		if k, ok := backends.As[backends.Keeper](s); ok {
			err = k.Restore(t.Context(), a.Setting, kept[i], nil)
			if now, bad := k.Observe(t.Context(), a.Setting, kept[i].Bare()); bad != nil || len(backends.Differences(kept[i], now)) > 0 {
				t.Errorf("%s: restored, but %v, %v", a.ID(), backends.Differences(kept[i], now), bad)
			}
		} else {
			err = s.Set(t.Context(), a.Setting, prior[i], nil)
		}
		if err != nil {
			t.Fatalf("%s: back: %v", a.ID(), err)
		}
		if now, err := s.Read(t.Context(), a.Setting); a.Kind != backends.KindPort && (err != nil || now != prior[i]) {
			t.Errorf("%s: was %s, is %s, %v", a.ID(), prior[i], now, err)
		}
	}
	if d := cmp.Diff(strings.Split(disk, "\n"), strings.Split(m.disk(t), "\n")); d != "" {
		t.Errorf("left on the disk:\n%s", d)
	}
	m.reboot(t)
	again := m.Survey(t.Context(), m.vm)
	if d := cmp.Diff(before, again); d != "" {
		t.Errorf("not as before:\n%s", d)
	}
}

func throughJSON(t *testing.T, v backends.Kept) backends.Kept {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var back backends.Kept
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, v) {
		t.Fatalf("%v does not survive the journal: %v", v, err)
	}
	return back
}

func (m *machine) holds(t *testing.T, all []backends.Assignment) {
	t.Helper()
	for _, a := range all {
		if now, err := m.Setters()[a.Kind].Read(t.Context(), a.Setting); err != nil || now != a.To && now != readBack(a.To) {
			t.Errorf("%s is %s, want %s, %v", a.ID(), now, a.To, err)
		}
	}
}

func TestContracts(t *testing.T) {
	testclass.Plain(t)
	for _, os := range []string{"ubuntu-22.04", "rhel-9"} {
		m := newMachine(t, config{os: os})
		missing := func(s backends.Setting) backends.Setting {
			s.Target = backends.GuestRef("no-such-vm")
			return s
		}
		for _, c := range []struct {
			name    string
			setting backends.Setting
			values  []any
			removes bool
		}{
			{"memlock", m.setting(backends.KindMemlock, ""), []any{"unlimited", "1048576"}, false},
			{"persist", m.setting(backends.KindPersist, ""), []any{
				backends.Persist{Modules: []string{"ib_umad"}, Reload: "vmw_pvrdma"},
				backends.Persist{Modules: []string{"ib_umad", "rdma_ucm"}, Options: map[string]string{"ib_umad": "x=1 y=2"}}}, true},
			{"address", m.setting(backends.KindAddress, m.group), []any{
				backends.AddressSpec{CIDR: "192.168.50.31/24", MTU: 9000}, backends.AddressSpec{CIDR: "192.168.51.31/24", MTU: 4200},
				backends.AddressSpec{CIDR: "192.168.51.31/24", MTU: 4200, Table: 5002}}, true},
			{"arp", m.setting(backends.KindARP, m.group), []any{backends.OneSubnet(), backends.ARPSpec{Ignore: 2, Announce: 1}}, true},
			{"modules", m.setting(backends.KindModules, "rdma"), []any{
				[]string{"ib_umad", "rdma_cm", "rdma_ucm", "vmw_pvrdma"}, []string{"ib_umad", "vmw_pvrdma"}}, false},
			{"packages", m.setting(backends.KindPackages, "rdma"), []any{
				backends.PackageSpec{Installed: []string{"infiniband-diags", "perftest", "rdma-core"}},
				backends.PackageSpec{Installed: []string{"rdma-core"}}}, false},
		} {
			t.Run(os+"/"+c.name, func(t *testing.T) {
				var values []backends.Value
				for _, v := range c.values {
					values = append(values, backends.ValueOf(v))
				}
				m.Want(c.setting, values[0])
				settertest.Run(t, settertest.Case{Setter: m.Setters()[c.setting.Kind], Setting: c.setting, Values: values, Removes: c.removes,
					Missing: missing(c.setting)})
			})
		}
	}
}
