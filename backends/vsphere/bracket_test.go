package vsphere_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	events "github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
)

func stateOf(t *testing.T, b backends.Bracket, r backends.Ref) backends.Value {
	t.Helper()
	v, err := b.State(t.Context(), r)
	testclass.OK(t, err)
	return v
}

// through opens and closes a bracket, each twice, as resume does after a crash.
func through(t *testing.T, b backends.Bracket, r backends.Ref, open backends.Value) {
	t.Helper()
	before := stateOf(t, b, r)
	for range 2 {
		if err := b.Open(t.Context(), r, nil); err != nil {
			t.Fatalf("open: %v", err)
		}
	}
	if !open.IsAbsent() {
		if v := stateOf(t, b, r); v != open {
			t.Errorf("open it is %s, want %s", v, open)
		}
	}
	for range 2 {
		if err := b.Close(t.Context(), r, before, nil); err != nil {
			t.Fatalf("close: %v", err)
		}
	}
}

func TestVMPower(t *testing.T) {
	l, c := startLab(t, lab.Options{Hosts: 1, VMs: 2})
	b := c.Brackets(vsphere.BracketOptions{Tools: true})[backends.BracketVMPower]
	vm := backends.VMRef("vm-01")
	through(t, b, vm, backends.ValueOf("poweredOff"))
	if v := stateOf(t, b, vm); v != backends.ValueOf("poweredOn") {
		t.Errorf("closed it is %s", v)
	}
	if calls := l.World().Log.Calls(); calls["PowerOffVM_Task"] != 0 || calls["ShutdownGuest"] != 1 || calls["PowerOnVM_Task"] != 1 {
		t.Errorf("calls: %v", calls)
	}
	// It was shut down a moment ago, but is on again.
	if off, err := c.GoingOff(t.Context(), vm.Name, time.Time{}); off || err != nil {
		t.Errorf("it is going off: %t, %v", off, err)
	}
	// If it is off it stays off.
	testclass.OK(t, b.Open(t.Context(), vm, nil))
	through(t, b, vm, backends.ValueOf("poweredOff"))
	if v := stateOf(t, b, vm); v != backends.ValueOf("poweredOff") {
		t.Errorf("a VM that was off is %s", v)
	}
}

// A guest that another run has powered on a moment ago is waited for; a guest whose VMware Tools do not start is not.
func TestGuestIsStarting(t *testing.T) {
	l, c := startLab(t, lab.Options{Hosts: 1, VMs: 1, BootTime: 300 * time.Millisecond})
	vm := backends.VMRef("vm-01")
	for _, do := range []func(string) error{l.World().PowerOff, l.World().PowerOn} {
		testclass.OK(t, do("vm-01"))
	}
	testclass.OK(t, c.Brackets()[backends.BracketVMPower].Open(t.Context(), vm, nil))
	l, c = startLab(t, lab.Options{Hosts: 1, VMs: 1, BootTime: time.Hour})
	for _, do := range []func(string) error{l.World().PowerOff, l.World().PowerOn} {
		testclass.OK(t, do("vm-01"))
	}
	short := c.Brackets(vsphere.BracketOptions{PowerOn: time.Second})[backends.BracketVMPower]
	check(t, short.Open(t.Context(), vm, nil), backends.KindRefused, "VMware Tools do not run in it")
}

func TestGuestDoesNotShutDown(t *testing.T) {
	l, c := startLab(t, lab.Options{Hosts: 1, VMs: 1, Faults: []string{"method=ShutdownGuest,do=fault:ToolsUnavailable"}})
	vm := backends.VMRef("vm-01")
	err := c.Brackets()[backends.BracketVMPower].Open(t.Context(), vm, nil)
	check(t, err, backends.KindRefused, "open-vm-tools")
	if n := l.World().Log.Calls()["PowerOffVM_Task"]; n != 0 {
		t.Error("the power was cut without consent")
	}
	consent := c.Brackets(vsphere.BracketOptions{PowerOff: true})[backends.BracketVMPower]
	testclass.OK(t, consent.Open(t.Context(), vm, nil))
	if v := stateOf(t, consent, vm); v != backends.ValueOf("poweredOff") {
		t.Errorf("it is %s", v)
	}
}

func TestMaintenance(t *testing.T) {
	l, c := startLab(t, lab.Options{Hosts: 3, VMs: 3})
	host := backends.HostRef("esx-02")
	through(t, c.Brackets()[backends.BracketMaintenance], host, backends.ValueOf("maintenance"))
	if v := stateOf(t, c.Brackets()[backends.BracketMaintenance], host); v != backends.ValueOf("normal") {
		t.Errorf("closed it is %s", v)
	}
	if n := l.World().Log.Calls()["EnterMaintenanceMode_Task"]; n != 1 {
		t.Errorf("entered %d times", n)
	}
}

func TestReboot(t *testing.T) {
	l, c := startLab(t, lab.Options{Hosts: 3, VMs: 3, RebootTime: 100 * time.Millisecond})
	host := backends.HostRef("esx-02")
	for n := 1; n <= 2; n++ { // the second follows immediately
		through(t, c.Brackets()[backends.BracketReboot], host, backends.Absent)
		if is := len(l.World().Log.Outages()); is != n {
			t.Errorf("%d outages, want %d: closing twice must not reboot twice", is, n)
		}
	}
	if v := stateOf(t, c.Brackets()[backends.BracketMaintenance], host); v != backends.ValueOf("normal") {
		t.Errorf("afterwards it is %s", v)
	}
	for _, e := range l.World().Log.Events() {
		if e.What == events.HostDown && e.Host != "esx-02" {
			t.Errorf("%s went down", e.Host)
		}
	}
}

// A bracket whose opening was interrupted before anything was sent can be closed: vCenter reboots no host outside maintenance mode.
func TestRebootThatWasNeverOpened(t *testing.T) {
	l, c := startLab(t, lab.Options{Hosts: 3, VMs: 3, RebootTime: 100 * time.Millisecond})
	host := backends.HostRef("esx-02")
	b := c.Brackets()[backends.BracketReboot]
	if err := b.Close(t.Context(), host, stateOf(t, b, host), nil); err != nil || len(l.World().Log.Outages()) != 1 {
		t.Errorf("%d outages, %v", len(l.World().Log.Outages()), err)
	}
	if v := stateOf(t, c.Brackets()[backends.BracketMaintenance], host); v != backends.ValueOf("normal") {
		t.Errorf("afterwards it is %s", v)
	}
}

func TestRebootNeverEnds(t *testing.T) {
	_, c := startLab(t, lab.Options{Hosts: 2, VMs: 1, RebootTime: time.Second, Faults: []string{"host=esx-02,do=reboot-never"}})
	host := backends.HostRef("esx-02")
	b := c.Brackets(vsphere.BracketOptions{Reboot: 2 * time.Second})[backends.BracketReboot]
	before := stateOf(t, b, host)
	testclass.OK(t, b.Open(t.Context(), host, nil))
	check(t, b.Close(t.Context(), host, before, nil), backends.KindUnreachable, "has not come back within 2s")
}

func TestHostThatCannotBeEvacuated(t *testing.T) {
	l, c := startLab(t, lab.Options{Hosts: 1, VMs: 1}) // no other host
	host := backends.HostRef("esx-01")
	b := c.Brackets(vsphere.BracketOptions{Evacuate: time.Second})[backends.BracketMaintenance]
	check(t, b.Open(t.Context(), host, nil), backends.KindTransient, "not empty after 1s")
	if v := stateOf(t, b, host); v != backends.ValueOf("normal") {
		t.Errorf("it slipped into %s", v)
	}
	if l.World().Log.Calls()["EnterMaintenanceMode_Task"] != 1 {
		t.Error("it was tried more than once")
	}
}

// A host is not evacuated while vSAN resynchronizes objects: vCenter would refuse it.
func TestRebootWaitsForVSAN(t *testing.T) {
	_, c := startLab(t, lab.Options{Hosts: 2, VMs: 1, Scenario: "sriov-vsan", RebootTime: 500 * time.Millisecond})
	b := c.Brackets(vsphere.BracketOptions{Look: 200 * time.Millisecond})[backends.BracketReboot]
	through(t, b, backends.HostRef("esx-02"), backends.Absent)
	impatient := c.Brackets(vsphere.BracketOptions{Look: 50 * time.Millisecond, Evacuate: 200 * time.Millisecond})[backends.BracketReboot]
	check(t, impatient.Open(t.Context(), backends.HostRef("esx-01"), nil), backends.KindTransient, "vSAN still has 4294967296 bytes to copy")
	through(t, b, backends.HostRef("esx-01"), backends.Absent)
}

// A host of a vSAN cluster that does not report how much is left to resynchronize is not evacuated: unreadable is not zero.
func TestUnreadableResyncKeepsAHostInService(t *testing.T) {
	l, c := startLab(t, lab.Options{Hosts: 2, VMs: 1, Scenario: "sriov-vsan",
		Faults: []string{"host=esx-02,command=esxcli vsan debug resync,do=fail:Unable to connect to vSAN"}})
	b := c.Brackets(vsphere.BracketOptions{Look: 16 * time.Millisecond})[backends.BracketMaintenance]
	err := b.Open(t.Context(), backends.HostRef("esx-02"), nil)
	check(t, err, backends.KindRefused, "what vSAN still has to copy cannot be read")
	if l.World().Log.Calls()["EnterMaintenanceMode_Task"] != 0 {
		t.Error("it was evacuated all the same")
	}
	through(t, b, backends.HostRef("esx-01"), backends.Absent)
}

func TestSSH(t *testing.T) {
	l, c := startLab(t, lab.Options{Hosts: 2, VMs: 1})
	host := backends.HostRef("esx-02")
	b := c.Brackets()[backends.BracketSSH]
	through(t, b, host, backends.ValueOf(map[string]bool{"running": true, "open": true}))
	if v := stateOf(t, b, host); v != backends.ValueOf(map[string]bool{"running": false, "open": true}) {
		t.Errorf("closed it is %s", v)
	}
	if calls := l.World().Log.Calls(); calls["StartService"] != 1 || calls["StopService"] != 1 ||
		calls["EnableRuleset"]+calls["DisableRuleset"] != 0 {
		t.Errorf("calls: %v", calls)
	}
	// Services that were running keep running, and services that were stopped are stopped again.
	testclass.OK(t, l.World().SetService("esx-02", "TSM-SSH", true))
	testclass.OK(t, l.World().SetRuleset("esx-02", "sshServer", false))
	through(t, b, host, backends.ValueOf(map[string]bool{"running": true, "open": true}))
	if v := stateOf(t, b, host); v != backends.ValueOf(map[string]bool{"running": true, "open": false}) {
		t.Errorf("closed it is %s", v)
	}
}

func TestSSHInLockdown(t *testing.T) {
	l, c := startLab(t, lab.Options{Hosts: 2, VMs: 1, Scenario: "sriov-lockdown"})
	host := backends.HostRef("esx-02")
	err := c.Brackets()[backends.BracketSSH].Open(t.Context(), host, nil)
	check(t, err, backends.KindRefused, "normal lockdown mode and root is not one of its exception users")
	if hint := backends.HintOf(err); hint == "" {
		t.Error("no way out is told")
	}
	l.World().View(func(s *events.State) {
		if h := s.Host("esx-02"); h.Service("TSM-SSH").Running || h.Lockdown != "lockdownNormal" {
			t.Error("something was changed")
		}
		s.Host("esx-02").Exceptions = []string{"rdma"}
	})
	b := c.Brackets(vsphere.BracketOptions{ShellUser: "rdma"})[backends.BracketSSH]
	if err := b.Open(t.Context(), host, nil); err != nil {
		t.Error(err)
	}
}

func TestSSHFaults(t *testing.T) {
	for _, fault := range []string{"method=StartService,nth=1,do=drop-after", "method=StartService,nth=1,do=fault:InvalidState",
		"method=StartService,nth=1,do=drop", "method=RefreshServices,nth=1,do=drop", "method=RefreshServices,nth=1,do=drop-after",
		"method=EnableRuleset,nth=1,do=drop-after"} {
		t.Run(fault, func(t *testing.T) {
			_, c := startLab(t, lab.Options{Hosts: 1, VMs: 1, Faults: []string{fault}})
			host, b := backends.HostRef("esx-01"), c.Brackets()[backends.BracketSSH]
			before := stateOf(t, b, host)
			err := b.Open(t.Context(), host, nil)
			if running := stateOf(t, b, host) == backends.ValueOf(map[string]bool{"running": true, "open": true}); running != (err == nil) ||
				err != nil && !strings.Contains(fault, "fault:") {
				t.Fatalf("running %t, %v", running, err)
			}
			if err := b.Open(t.Context(), host, nil); err != nil {
				t.Fatalf("again: %v", err)
			}
			testclass.OK(t, b.Close(t.Context(), host, before, nil))
			if v := stateOf(t, b, host); v != before {
				t.Errorf("closed it is %s, before %s", v, before)
			}
		})
	}
	_, c := startLab(t, lab.Options{Hosts: 1, VMs: 1, Faults: []string{"method=StartService,do=fault:NoPermission"}})
	check(t, c.Brackets()[backends.BracketSSH].Open(t.Context(), backends.HostRef("esx-01"), nil), backends.KindPermission,
		"start the SSH service")
}

// A host is asked to look at its devices before they are read: a lost answer to that costs nothing.
func TestLostAnswerToARefresh(t *testing.T) {
	for _, do := range []string{"drop", "drop-after"} {
		l, c := startLab(t, lab.Options{Hosts: 1, VMs: 1, Faults: []string{"method=Refresh,nth=1,do=" + do}})
		var pci string
		l.World().View(func(s *events.State) { pci = s.Hosts[0].PNICs[2].PCI })
		read := backends.Setting{Kind: backends.KindActivePassthrough, Target: backends.HostRef("esx-01"), Name: pci}
		if v, err := c.Setters()[read.Kind].Read(t.Context(), read); err != nil || v != backends.ValueOf(false) {
			t.Errorf("%s: %s, %v", do, v, err)
		}
	}
}
