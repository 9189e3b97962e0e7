package world_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newWorld(t *testing.T, spec scenario.Spec) *world.World {
	t.Helper()
	if spec.Timing.VMBoot == 0 {
		spec.Timing = world.Timing{HostReboot: 20 * time.Millisecond, VMBoot: 20 * time.Millisecond, Shutdown: time.Millisecond}
	}
	w, err := scenario.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// heard returns a channel with the calls of a VM's power hook.
func heard(w *world.World, vm string) <-chan bool {
	ch := make(chan bool, 16)
	w.OnPower(vm, func(on bool) { ch <- on })
	return ch
}

func expect(t *testing.T, ch <-chan bool, want ...bool) {
	t.Helper()
	for _, on := range want {
		select {
		case got := <-ch:
			if got != on {
				t.Fatalf("guest is up: %t, want %t", got, on)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("no word that the guest is up: %t", on)
		}
	}
}

func TestPower(t *testing.T) {
	w := newWorld(t, scenario.Spec{})
	ch := heard(w, "vm-01")
	if err := w.PowerOn("vm-01"); err == nil {
		t.Error("a VM that is on was powered on")
	}
	if err := w.ShutdownGuest("vm-01"); err != nil {
		t.Fatal(err)
	}
	expect(t, ch, false)
	if err := w.ShutdownGuest("vm-01"); err == nil {
		t.Error("a VM that is off was shut down")
	}
	if err := w.PowerOn("vm-01"); err != nil {
		t.Fatal(err)
	}
	if err := w.RebootGuest("vm-01"); err == nil {
		t.Error("a guest that has not booted was restarted")
	}
	expect(t, ch, true)
	if err := w.RebootGuest("vm-01"); err != nil {
		t.Fatal(err)
	}
	expect(t, ch, false, true)
	w.View(func(s *world.State) {
		if g := s.VM("vm-01").Guest; g.Boots != 3 || len(g.NICs) != 1 {
			t.Errorf("guest %+v", g)
		}
	})
}

func TestBootIsCancelledByALaterPowerChange(t *testing.T) {
	w := newWorld(t, scenario.Spec{})
	ch := heard(w, "vm-01")
	for range 3 {
		if err := w.PowerOff("vm-01"); err != nil {
			t.Fatal(err)
		}
		if err := w.PowerOn("vm-01"); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, ch, false, false, false, true)
	w.View(func(s *world.State) {
		if n := s.VM("vm-01").Guest.Boots; n != 2 {
			t.Errorf("%d boots, want 2", n)
		}
	})
}

func TestHostReboot(t *testing.T) {
	w := newWorld(t, scenario.Spec{Hosts: 2, VMs: 2})
	ch := heard(w, "vm-01")
	if err := w.SetModule("esx-01", "nmlx5_core", "max_vfs=0,0,8,7 pfctx=8"); err != nil {
		t.Fatal(err)
	}
	active := func() string {
		var v string
		w.View(func(s *world.State) { v = s.Host("esx-01").Module("nmlx5_core").Parameter("max_vfs").Active })
		return v
	}
	if active() != "" {
		t.Error("a module parameter acts before the reboot")
	}
	up := make(chan struct{}, 4)
	w.Watch(func(e world.Event) {
		if e.What == world.HostUp {
			up <- struct{}{}
		}
	})
	if err := w.RebootHost("esx-01"); err != nil {
		t.Fatal(err)
	}
	expect(t, ch, false)
	if err := w.PowerOn("vm-01"); err == nil {
		t.Error("a VM was powered on on a host that is away")
	}
	<-up
	if active() != "0,0,8,7" {
		t.Errorf("max_vfs is %q after the reboot", active())
	}
	if n := w.Log.MaxDown(); n != 1 {
		t.Errorf("%d hosts down at once", n)
	}
}

func TestRebootNever(t *testing.T) {
	w := newWorld(t, scenario.Spec{Hosts: 2, VMs: 2, Faults: []string{"host=esx-02,do=reboot-never"}})
	if err := w.RebootHost("esx-02"); err != nil {
		t.Fatal(err)
	}
	if out := w.Log.Outages(); len(out) != 1 || !out[0].To.IsZero() {
		t.Errorf("outages %+v", out)
	}
	if err := w.RestoreHost("esx-02"); err != nil {
		t.Fatal(err)
	}
	if out := w.Log.Outages(); out[0].To.IsZero() {
		t.Error("the outage has no end")
	}
}

func TestSettingsRefused(t *testing.T) {
	w := newWorld(t, scenario.Spec{})
	for name, err := range map[string]error{
		"unknown option":    w.SetOption("esx-01", "Net.NoSuch", "x"),
		"unknown ruleset":   w.SetRuleset("esx-01", "nosuch", true),
		"unknown service":   w.SetService("esx-01", "nosuch", true),
		"unknown module":    w.SetModule("esx-01", "nosuch", ""),
		"unknown parameter": w.SetModule("esx-01", "nmlx5_core", "nosuch=1"),
		"unknown pNIC":      w.SetLink("esx-01", "vmnic99", true),
	} {
		if !errors.Is(err, world.ErrUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"number for a text":    w.SetOption("esx-01", "Net.PVRDMAVmknic", int64(1)),
		"parameter without =":  w.SetModule("esx-01", "nmlx5_core", "pfctx"),
		"parameter that is ''": w.SetModule("esx-01", "nmlx5_core", "pfctx="),
	} {
		if !errors.Is(err, world.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := w.SetRuleset("esx-99", "pvrdma", true); err == nil {
		t.Error("a host that does not exist was changed")
	}
	if err := w.SetMaintenance("esx-01", true); err == nil {
		t.Error("a host with running VMs went into maintenance mode")
	}
}

func TestScenarios(t *testing.T) {
	for _, s := range scenario.All() {
		for _, hosts := range []int{0, 1, 3} {
			t.Run(fmt.Sprintf("%s/%d", s.Name, hosts), func(t *testing.T) {
				w := newWorld(t, scenario.Spec{Scenario: s.Name, Hosts: hosts})
				w.View(func(st *world.State) { sound(t, st) })
			})
		}
	}
	if _, err := scenario.New(scenario.Spec{Scenario: "nosuch"}); err == nil {
		t.Error("an unknown scenario was built")
	}
}

// sound checks the invariants of a world.
func sound(t *testing.T, s *world.State) {
	t.Helper()
	seen := map[string]string{}
	once := func(what, who string) {
		if other, twice := seen[what]; twice {
			t.Errorf("%s: both %s and %s", what, other, who)
		}
		seen[what] = who
	}
	for _, h := range s.Hosts {
		once(h.Address, h.Name)
		once(h.UUID, h.Name)
		for _, p := range h.PNICs {
			once(p.MAC, h.Name+"/"+p.Device)
			if h.PCIDevice(p.PCI) == nil {
				t.Errorf("%s %s: no PCI device at %s", h.Name, p.Device, p.PCI)
			}
		}
		for _, d := range h.PCI {
			if d.Parent != "" && h.PCIDevice(d.Parent) == nil {
				t.Errorf("%s: %s hangs under nothing", h.Name, d.Address)
			}
		}
	}
	for _, v := range s.VMs {
		once(v.UUID, v.Name)
		once(v.Guest.RDMAAddr, v.Name)
		if s.Host(v.Host) == nil {
			t.Errorf("%s is on no host", v.Name)
		}
		for _, a := range v.Adapters {
			once(a.MAC, v.Name)
		}
	}
}

func TestMixedLeavesTwoGoodHosts(t *testing.T) {
	w := newWorld(t, scenario.Spec{Scenario: "mixed"})
	w.View(func(s *world.State) {
		if len(s.Hosts) != 6 {
			t.Fatalf("%d hosts", len(s.Hosts))
		}
		var good []string
		for _, h := range s.Hosts {
			p := h.PNIC("vmnic2")
			if p.RDMA != nil && p.RDMA.RoCEv2 && p.LinkUp && h.VSwitchOf("vmnic2") == nil {
				good = append(good, h.Name)
			}
		}
		if !slices.Equal(good, []string{"esx-01", "esx-02"}) {
			t.Errorf("good hosts %v", good)
		}
	})
}

func TestRDMAMTU(t *testing.T) {
	for ethernet, want := range map[int]int{1500: 1024, 2143: 1024, 2144: 2048, 4191: 2048, 4192: 4096, 9000: 4096, 1119: 512} {
		if got := world.RDMAMTU(ethernet); got != want {
			t.Errorf("Ethernet %d: %d, want %d (rules of iboe_get_mtu)", ethernet, got, want)
		}
	}
}

func TestEvacuate(t *testing.T) {
	w := newWorld(t, scenario.Spec{Scenario: "done", Hosts: 3, VMs: 3})
	w.View(func(s *world.State) { s.Switch("RDMA-DVS").Members = s.Switch("RDMA-DVS").Members[:2] })
	w.Evacuate("esx-01")
	w.View(func(s *world.State) {
		if h := s.VM("vm-01").Host; h != "esx-02" {
			t.Errorf("vm-01 went to %s, which is not on its switch", h)
		}
	})
}

// DRS moves VMs to hosts of the same cluster, and each cluster has its own settings.
func TestDRSStaysInTheCluster(t *testing.T) {
	w, err := scenario.New(scenario.Spec{Hosts: 4, VMs: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	if err := w.Update(func(s *world.State) ([]world.Event, error) {
		s.Clusters = []world.Cluster{{Name: "one host"}, {Name: "manual", Services: world.Services{DRS: "manual"}}}
		s.Hosts[2].Cluster, s.Hosts[3].Cluster = 1, 2
		return nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"esx-01", "esx-03", "esx-04"} {
		w.Evacuate(host)
	}
	w.View(func(s *world.State) {
		for vm, want := range map[string]string{"vm-01": "esx-02", "vm-02": "esx-02", "vm-03": "esx-03", "vm-04": "esx-04"} {
			if got := s.VM(vm).Host; got != want {
				t.Errorf("%s is on %s, want %s", vm, got, want)
			}
		}
	})
}

// The log drops old argument lists that contain long scripts, but keeps events that changed the world.
func TestLogForgetsLongTexts(t *testing.T) {
	var l world.Log
	l.Note(world.Event{What: world.VMAdded, VM: "vm-01"})
	for i := range 200 {
		l.Note(world.Event{What: world.Process, VM: "vm-01", Detail: fmt.Sprint(i, strings.Repeat("x", 1<<20))})
	}
	size, last := 0, ""
	events := l.Events()
	for _, e := range events {
		if e.What == world.Process {
			size, last = size+len(e.Detail), e.Detail
		}
	}
	if size > 64<<20 || !strings.HasPrefix(last, "199x") || events[0].What != world.VMAdded {
		t.Errorf("%d MB of arguments, the first event %s, the last %.5s", size>>20, events[0].What, last)
	}
}

// Without its log of programs and calls, a world still logs what changes it.
func TestAWorldThatLogsNoPrograms(t *testing.T) {
	w, err := world.New(world.Options{Unlogged: true}, func(*world.State) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{world.Process, world.Call, world.FaultApplied} {
		w.Log.Note(world.Event{What: what})
	}
	if events := w.Log.Events(); len(events) != 1 || events[0].What != world.FaultApplied {
		t.Errorf("%+v", events)
	}
}
