package cmd_test

import (
	"bytes"
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// TestHAAgentHoldsTheNextWave: the HA agent of the first host does not start after its reboot. The second host stays in service,
// also in the resume, until the agent is running again.
func TestHAAgentHoldsTheNextWave(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	b, file := sriovBench(t, lab.Options{Scenario: "sriov-ha-agent", Hosts: 2, VMs: 2})
	file = edited(t, file, "vfs: 8", "vfs: 8\nmeasure: {bandwidth: false, latency: false}\nrun: {reboot: {timeout: 1m}}")
	b.hurry()
	for _, args := range [][]string{{"apply", "-f", file, "--yes"}, {"resume", "--yes"}} {
		_, said := b.must(5, args...)
		for _, want := range []string{"waiting  ", "the HA agent of esx-01 is not back (initializationError)",
			"not taken out of service, because"} {
			if !strings.Contains(said, want) {
				t.Errorf("%s does not say %q:\n%s", args[0], want, said)
			}
		}
		b.wentDown("esx-01")
	}
	b.change(world.Event{What: world.HostHardware, Host: "esx-01"}, func(s *world.State) {
		s.Hosts[0].HAAgent, s.Hosts[0].HALater = "", ""
	})
	b.must(0, "resume", "--yes")
	b.wentDown("esx-01", "esx-02")
}

// TestUnhealthyHostHoldsTheNextWave: after its reboot the first host has a dead storage path, an NSX switch that is down, or a red
// alarm. The others stay in service, and the run waits once for their common cause, not once per host. Conditions from before the
// run do not block it.
func TestUnhealthyHostHoldsTheNextWave(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	problems := map[world.HostProblem]string{
		world.DeadPath:   "storage path vmhba64:C0:T1:L1 of esx-01 is dead",
		world.SwitchDown: "NSX switch nvds-overlay of esx-01 is not up",
		world.RedAlarm:   `alarm "Host hardware fan status" is red on esx-01`,
	}
	withProblems := func(t *testing.T, before, after []world.HostProblem) (*bench, []string) {
		t.Parallel()
		b, file := sriovBench(t, lab.Options{Scenario: "sriov-half", Hosts: 3, VMs: 3})
		b.change(world.Event{What: world.HostHardware, Host: "esx-01"}, func(s *world.State) {
			h := s.Hosts[0]
			h.Opaque = append(h.Opaque, &world.OpaqueSwitch{ID: world.UUID("opaque", 0), Name: "nvds-overlay", Uplinks: []string{"vmnic3"}})
			h.Problems, h.ProblemsLater = before, after
		})
		return b,
			[]string{"apply", "-f", edited(t, file, "vfs: 8", "vfs: 8\nmeasure: {bandwidth: false, latency: false}\nrun: {reboot: {timeout: 2m}}"),
				"--yes"}
	}
	for problem, says := range problems {
		t.Run(string(problem), func(t *testing.T) {
			b, apply := withProblems(t, nil, []world.HostProblem{problem})
			b.hurry()
			_, said := b.must(5, apply...)
			if !strings.Contains(said, says) {
				t.Errorf("it does not say %q:\n%s", says, said)
			}
			b.wentDown("esx-01")
			if n := strings.Count(said, "waiting  "); n != 1 {
				t.Errorf("it waits %d times:\n%s", n, said)
			}
		})
	}
	t.Run("before the run", func(t *testing.T) {
		all := slices.Collect(maps.Keys(problems))
		b, apply := withProblems(t, all, all)
		b.must(0, apply...)
	})
}

// TestBackupHoldsItsVM: a backup program reads the disks of a VM from a snapshot. The VM stays on until the snapshot is removed.
func TestBackupHoldsItsVM(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	b := newBench(t, lab.Options{Hosts: 2, VMs: 2, BootTime: 50 * time.Millisecond})
	backup := func(snapshots ...world.Snapshot) {
		b.change(world.Event{What: world.VMDevices, VM: "vm-01"}, func(s *world.State) { s.VMs[0].Snaps = snapshots })
	}
	backup(world.Snapshot{ID: 1, Name: "VEEAM BACKUP TEMPORARY SNAPSHOT"}) // Veeam KB 1790
	b.hurry()
	file := edited(t, filepath.Join(b.lab.Dir(), "answers-pvrdma.yaml"), "mode: pvrdma",
		"mode: pvrdma\nmeasure: {bandwidth: false, latency: false}\nrun: {reboot: {timeout: 1m}}")
	_, said := b.must(5, "apply", "-f", file, "--yes")
	if want := `a backup reads the snapshot "VEEAM BACKUP TEMPORARY SNAPSHOT" of vm-01`; !strings.Contains(said, want) {
		t.Errorf("it does not say %q:\n%s", want, said)
	}
	b.stayedOn("vm-01")
	backup()
	b.must(0, "resume", "--yes")
}

// TestSnapshotTaskHoldsItsVM: while the gate waits for the second VM, another client starts a snapshot of it. The gate waits for
// the task too, then the run continues without input. The preflight would have refused a task that was already running.
func TestSnapshotTaskHoldsItsVM(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Hosts: 2, VMs: 2, BootTime: 50 * time.Millisecond,
		Faults: []string{"vm=vm-01,do=disconnect", "method=CreateSnapshot_Task,do=task-stay"}})
	file := edited(t, filepath.Join(b.lab.Dir(), "answers-pvrdma.yaml"), "mode: pvrdma",
		"mode: pvrdma\nmeasure: {bandwidth: false, latency: false}")
	file = edited(t, file, "guest: {", "guest: {manage: false, ")
	said := newReader()
	end := b.begin(io.Discard, said, "apply", "-f", file, "--yes")
	said.wait(t, "of vm-01 is not connected", 1)
	c := outsider(t.Context(), t, b.env)
	vm, err := find.NewFinder(c.Client).VirtualMachine(t.Context(), "/DC/vm/vm-02")
	testclass.OK(t, err)
	task, err := vm.CreateSnapshot(t.Context(), "before", "", false, false)
	testclass.OK(t, err)
	b.change(world.Event{What: world.VMDevices, VM: "vm-01"}, func(s *world.State) { s.VM("vm-01").Adapters[1].Connected = true })
	said.wait(t, "vm-02: task CreateSnapshot_Task by vpxd", 1)
	b.stayedOn("vm-02")
	b.lab.World().Faults.Clear()
	testclass.OK(t, task.Wait(t.Context()))
	if code := end(); code != 0 {
		t.Errorf("exit %d\n%s", code, said.String())
	}
}

// TestVMThatIsOffAgainHoldsTheNextWave: while the gate waits for the adapter of the first VM, which it has seen running, somebody
// powers that VM off. The second VM stays on until the first one runs again.
func TestVMThatIsOffAgainHoldsTheNextWave(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Hosts: 2, VMs: 2, BootTime: 50 * time.Millisecond, Faults: []string{"vm=vm-01,do=disconnect"}})
	file := edited(t, filepath.Join(b.lab.Dir(), "answers-pvrdma.yaml"), "mode: pvrdma",
		"mode: pvrdma\nmeasure: {bandwidth: false, latency: false}")
	file = edited(t, file, "guest: {", "guest: {manage: false, ")
	said := newReader()
	end := b.begin(io.Discard, said, "apply", "-f", file, "--yes")
	said.wait(t, "of vm-01 is not connected", 1)
	vm, err := find.NewFinder(outsider(t.Context(), t, b.env).Client).VirtualMachine(t.Context(), "/DC/vm/vm-01")
	testclass.OK(t, err)
	power := func(start func(context.Context) (*object.Task, error)) {
		t.Helper()
		task, err := start(t.Context())
		if err == nil {
			err = task.Wait(t.Context())
		}
		testclass.OK(t, err)
	}
	power(vm.PowerOff)
	said.wait(t, "vm-01 is not running", 1)
	b.stayedOn("vm-02")
	b.lab.World().Faults.Clear()
	power(vm.PowerOn)
	b.change(world.Event{What: world.VMDevices, VM: "vm-01"}, func(s *world.State) { s.VM("vm-01").Adapters[1].Connected = true })
	if code := end(); code != 0 {
		t.Errorf("exit %d\n%s", code, said.String())
	}
}

// TestGuestFirstMetInTheRun: a VM that is off when the run is planned has a file that decides for any adapter. The guest is refused with
// its name when it is first met, and nothing is written there; the other VM is set up.
func TestGuestFirstMetInTheRun(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	dir := t.TempDir()
	etc := filepath.Join(dir, "vm-01", "etc", "netplan")
	testclass.OK(t, os.MkdirAll(etc, 0o755))
	rival := "network:\n  version: 2\n  ethernets:\n    \"!-a\":\n      match: {name: \"e*\"}\n      dhcp4: true\n"
	testclass.Write(t, filepath.Join(etc, "10-all.yaml"), rival)
	b := newBench(t, lab.Options{Hosts: 2, VMs: 2, BootTime: 50 * time.Millisecond, GuestFiles: dir})
	b.enter("vm-01", "ls -l /etc/netplan >/root/before")
	testclass.OK(t, b.lab.World().PowerOff("vm-01"))
	file := edited(t, filepath.Join(b.lab.Dir(), "answers-pvrdma.yaml"), "mode: pvrdma",
		"mode: pvrdma\nmeasure: {bandwidth: false, latency: false}")
	_, said := b.must(5, "apply", "-f", file, "--yes")
	if !strings.Contains(said, "vm-01: /etc/netplan/10-all.yaml: it decides for") {
		t.Errorf("no file is named:\n%s", said)
	}
	b.enter("vm-01", `[ "$(ls -l /etc/netplan)" = "$(cat /root/before)" ]`)
	b.enter("vm-02", "ls /etc/netplan/*rdma-setup*")
}

// TestVMThatGoesOffWhileItIsReadHoldsTheNextWave: the first VM is powered off after the gate has read that it runs, and before the gate
// reads its adapters. One that is off has no adapter that should be connected.
func TestVMThatGoesOffWhileItIsReadHoldsTheNextWave(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Hosts: 2, VMs: 2, BootTime: 50 * time.Millisecond, Faults: []string{"vm=vm-01,do=disconnect"}})
	file := edited(t, filepath.Join(b.lab.Dir(), "answers-pvrdma.yaml"), "mode: pvrdma",
		"mode: pvrdma\nmeasure: {bandwidth: false, latency: false}")
	file = edited(t, file, "guest: {", "guest: {manage: false, ")
	proxy := between(t, *b.lab.URL())
	b.env["GOVC_TLS_CA_CERTS"] = proxy.ca
	said := newReader()
	end := b.begin(io.Discard, said, "apply", "-f", file, "--yes", "--url", proxy.URL+"/sdk")
	said.wait(t, "of vm-01 is not connected", 1)
	var once sync.Once
	proxy.mu.Lock()
	proxy.before = func(call []byte) {
		if bytes.Contains(call, []byte("<pathSet>runtime.powerState</pathSet><pathSet>config.hardware.device</pathSet></propSet>")) {
			once.Do(func() {
				if err := b.lab.World().PowerOff("vm-01"); err != nil {
					t.Error(err)
				}
			})
		}
	}
	proxy.mu.Unlock()
	said.wait(t, "vm-01 is not running", 1)
	b.stayedOn("vm-02")
	b.lab.World().Faults.Clear()
	testclass.OK(t, b.lab.World().PowerOn("vm-01"))
	b.change(world.Event{What: world.VMDevices, VM: "vm-01"}, func(s *world.State) { s.VM("vm-01").Adapters[1].Connected = true })
	if code := end(); code != 0 {
		t.Errorf("exit %d\n%s", code, said.String())
	}
}

// stayedOn fails the test if a VM was powered off.
func (b *bench) stayedOn(vm string) {
	b.t.Helper()
	for _, e := range b.lab.World().Log.Events() {
		if e.What == world.VMPower && e.VM == vm && e.Detail == "off" {
			b.t.Errorf("%s was powered off", vm)
		}
	}
}

// hurry makes the clock of the program run twenty times as fast.
func (b *bench) hurry() {
	begin := time.Now()
	b.now = func() time.Time { return begin.Add(20 * time.Since(begin)) }
}

// TestAdapterThatDoesNotConnectHoldsTheNextWave: the run does not log in to guests, and the RDMA adapter of the canary does not
// connect when the VM is powered on again. The other VM stays on, also in the resume, until vCenter shows the adapter as connected.
func TestAdapterThatDoesNotConnectHoldsTheNextWave(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	b := newBench(t, lab.Options{Hosts: 2, VMs: 2, BootTime: 50 * time.Millisecond, Faults: []string{"vm=vm-01,do=disconnect"}})
	b.hurry()
	file := edited(t, filepath.Join(b.lab.Dir(), "answers-pvrdma.yaml"), "mode: pvrdma",
		"mode: pvrdma\nmeasure: {bandwidth: false, latency: false}\nrun: {reboot: {timeout: 1m}}")
	file = edited(t, file, "guest: {", "guest: {manage: false, ")
	for _, args := range [][]string{{"apply", "-f", file, "--yes"}, {"resume", "--yes"}} {
		_, said := b.must(5, args...)
		if want := "Network adapter 2 of vm-01 is not connected: connect it in the settings of the VM"; !strings.Contains(said, want) {
			t.Errorf("%s does not say %q:\n%s", args[0], want, said)
		}
		b.stayedOn("vm-02")
	}
	b.change(world.Event{What: world.VMDevices, VM: "vm-01"}, func(s *world.State) { s.VM("vm-01").Adapters[1].Connected = true })
	b.now = nil
	b.must(0, "resume", "--yes")
}
