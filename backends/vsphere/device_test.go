package vsphere_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	events "github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/settertest"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
)

const gpu, otherGPU = "0000:af:00.0", "0000:3c:00.0"

// withGPUs enables passthrough for both A100 of a lab's host and powers off vm-01.
func withGPUs(t *testing.T) (*lab.Lab, *vsphere.Client, map[backends.Kind]backends.Setter) {
	t.Helper()
	l, c := startLab(t, lab.Options{Hosts: 1, VMs: 1})
	set := c.Setters()
	for _, pci := range []string{gpu, otherGPU} {
		mustSet(t, set, host1(backends.KindPassthrough, pci), true)
	}
	testclass.OK(t, c.Brackets()[backends.BracketVMPower].Open(t.Context(), backends.VMRef("vm-01"), nil))
	return l, c, set
}

func ofVM(kind backends.Kind, name string) backends.Setting {
	return backends.Setting{Target: backends.VMRef("vm-01"), Kind: kind, Name: name}
}

func a100(backing string) backends.Value {
	return backends.ValueOf(backends.DeviceSpec{Backing: backing, Vendor: "10de", Device: "20b5"})
}

func TestDeviceContractOnLab(t *testing.T) {
	testclass.Plain(t)
	l, _, set := withGPUs(t)
	s := ofVM(backends.KindDevice, gpu)
	settertest.Run(t, settertest.Case{Setter: set[s.Kind], Setting: s, Removes: true, Writes: changes(l, events.VMDevices),
		Values: []backends.Value{a100("fixed"), a100("dynamic")}})
	s = ofVM(backends.KindExtra, "pciPassthru.64bitMMIOSizeGB")
	missing := s
	missing.Target = backends.VMRef("no-such-vm")
	settertest.Run(t, settertest.Case{Setter: set[s.Kind], Setting: s, Removes: true, Writes: changes(l, events.VMDevices), Missing: missing,
		Values: []backends.Value{backends.ValueOf("256"), backends.ValueOf("512"), backends.ValueOf("a b; c=\"d\" <&>")}})
}

// VMX keys are compared case-insensitively, and an existing key keeps its spelling.
func TestExtraKeepsSpelling(t *testing.T) {
	l, _, set := withGPUs(t)
	err := l.World().Update(func(s *events.State) ([]events.Event, error) {
		s.VM("vm-01").Extra = map[string]string{"pciPassthru.relaxACSforP2P": "FALSE"}
		return []events.Event{{What: events.VMDevices, VM: "vm-01"}}, nil
	})
	testclass.OK(t, err)
	s := ofVM(backends.KindExtra, "pciPassthru.RelaxACSforP2P")
	if v := read(t, set, s); v != backends.ValueOf("FALSE") {
		t.Errorf("reads %s", v)
	}
	mustSet(t, set, s, "TRUE")
	l.World().View(func(w *events.State) {
		if x := w.VM("vm-01").Extra; len(x) != 1 || x["pciPassthru.relaxACSforP2P"] != "TRUE" {
			t.Errorf("%v", x)
		}
	})
}

// Two GPUs, their keys and the reservation are set in one reconfigure, and the VM starts with them.
func TestDevicesStart(t *testing.T) {
	l, c, set := withGPUs(t)
	many := set[backends.KindDevice].(backends.ManySetter)
	as := []backends.Assignment{
		{Setting: ofVM(backends.KindDevice, gpu), To: a100("fixed")}, {Setting: ofVM(backends.KindDevice, otherGPU), To: a100("fixed")},
		{Setting: ofVM(backends.KindMemory, ""), To: backends.ValueOf(backends.MemorySpec{Locked: true, ReservationMB: 8192})},
		{Setting: ofVM(backends.KindExtra, "pciPassthru.use64bitMMIO"), To: backends.ValueOf("FALSE")},
		{Setting: ofVM(backends.KindExtra, "pciPassthru.64bitMMIOSizeGB"), To: backends.ValueOf("128")},
	}
	for i, err := range many.SetMany(t.Context(), as, nil) {
		if err != nil {
			t.Fatalf("%s: %v", as[i].ID(), err)
		}
	}
	if n := changes(l, events.VMDevices)(); n != 1 {
		t.Errorf("%d reconfigures", n)
	}
	power := c.Brackets()[backends.BracketVMPower]
	on := backends.ValueOf("poweredOn")
	watched := c.Brackets(vsphere.BracketOptions{Tools: true})[backends.BracketVMPower]
	// vCenter names only a module; the pages are in vmware.log.
	err := power.Close(t.Context(), backends.VMRef("vm-01"), on, nil)
	check(t, err, backends.KindPermanent, "MMIO window is too small")
	if hint := backends.HintOf(err); !strings.Contains(hint, "use64bitMMIO to TRUE") {
		t.Errorf("hint %q", hint)
	}
	// With a window above 4 GB that is too small the VM powers off again (KB 323402).
	mustSet(t, set, as[3].Setting, "TRUE")
	err = watched.Close(t.Context(), backends.VMRef("vm-01"), on, nil)
	check(t, err, backends.KindPermanent, "firmware found no room")
	if hint := backends.HintOf(err); !strings.Contains(hint, "64bitMMIOSizeGB to 512 at least") {
		t.Errorf("hint %q", hint)
	}
	mustSet(t, set, as[4].Setting, "512")
	testclass.OK(t, power.Close(t.Context(), backends.VMRef("vm-01"), backends.ValueOf("poweredOn"), nil))
	inv := inventory(t, c, backends.Scope{Details: true})
	if got := inv.VMs[0].Passthrough; len(got) != 2 || got[0] != gpu {
		t.Errorf("the inventory shows %v", got)
	}
}

// A dynamic device has its address once the VM has been powered on.
func TestDynamicDevice(t *testing.T) {
	_, c, set := withGPUs(t)
	mustSet(t, set, ofVM(backends.KindDevice, gpu), a100("dynamic"))
	mustSet(t, set, ofVM(backends.KindMemory, ""), backends.MemorySpec{Locked: true, ReservationMB: 8192})
	mustSet(t, set, ofVM(backends.KindExtra, "pciPassthru.use64bitMMIO"), "TRUE")
	mustSet(t, set, ofVM(backends.KindExtra, "pciPassthru.64bitMMIOSizeGB"), "256")
	if err := c.Brackets()[backends.BracketVMPower].Close(t.Context(), backends.VMRef("vm-01"), backends.ValueOf("poweredOn"),
		nil); err != nil {
		t.Fatal(err)
	}
	// The first free A100, even if the plan expected another one.
	if a, b := read(t, set, ofVM(backends.KindDevice, otherGPU)), read(t, set, ofVM(backends.KindDevice, gpu)); a != a100("dynamic") ||
		!b.IsAbsent() {
		t.Errorf("%s reads %s, %s reads %s", otherGPU, a, gpu, b)
	}
}

func TestDeviceRefuses(t *testing.T) {
	_, _, set := withGPUs(t)
	for _, r := range []struct {
		name string
		s    backends.Setting
		to   backends.Value
		kind backends.ErrorKind
		text string
	}{
		{"not passed through", ofVM(backends.KindDevice, "0000:3b:00.0"),
			backends.ValueOf(backends.DeviceSpec{Backing: "fixed", Vendor: "15b3", Device: "1017"}),
			backends.KindPermanent, "does not pass 0000:3b:00.0 through"},
		{"another device stands there", ofVM(backends.KindDevice, gpu),
			backends.ValueOf(backends.DeviceSpec{Backing: "fixed", Vendor: "10de", Device: "2330"}),
			backends.KindConflict, "is 10de:20b5, not 10de:2330"},
		{"another device stands there, dynamic", ofVM(backends.KindDevice, gpu),
			backends.ValueOf(backends.DeviceSpec{Backing: "dynamic", Vendor: "10de", Device: "2330"}),
			backends.KindConflict, "is 10de:20b5, not 10de:2330"},
		{"no such device", ofVM(backends.KindDevice, "0000:99:00.0"), a100("dynamic"), backends.KindPermanent, "no PCI device 0000:99:00.0"},
		{"no such backing", ofVM(backends.KindDevice, gpu), a100("shared"), backends.KindPermanent, `backing "shared"`},
	} {
		t.Run(r.name, func(t *testing.T) {
			err := set[r.s.Kind].Set(t.Context(), r.s, r.to, nil)
			check(t, err, r.kind, r.text)
		})
	}
	many := set[backends.KindDevice].(backends.ManySetter)
	errs := many.SetMany(t.Context(), []backends.Assignment{{Setting: ofVM(backends.KindDevice, gpu), To: a100("dynamic")},
		{Setting: ofVM(backends.KindDevice, otherGPU), To: a100("dynamic")}}, nil)
	for _, err := range errs {
		check(t, err, backends.KindRefused, "are the same model")
	}
}

// Settings for low jitter; latency sensitivity high requires both reservations first.
func TestTuningContractOnLab(t *testing.T) {
	testclass.Plain(t)
	l, _, set := withGPUs(t)
	s := ofVM(backends.KindCPU, "")
	settertest.Run(t, settertest.Case{Setter: set[s.Kind], Setting: s, Writes: changes(l, events.VMDevices),
		Values: []backends.Value{backends.ValueOf(int64(2400)), backends.ValueOf(int64(9600))}})
	mustSet(t, set, s, int64(9600))
	mustSet(t, set, ofVM(backends.KindMemory, ""), backends.MemorySpec{Locked: true, ReservationMB: 8192})
	s = ofVM(backends.KindLatency, "")
	settertest.Run(t, settertest.Case{Setter: set[s.Kind], Setting: s, Writes: changes(l, events.VMDevices),
		Values: []backends.Value{backends.ValueOf("high"), backends.ValueOf("normal")}})
}
