package cmd_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// TestBystandersKeepRunning checks VMs of others on hosts that reboot, as another client sees them. vMotion moves billing-01, which
// DRS does not move, and it never restarts. VMs of vSphere Cluster Services, of either kind (KB 370222), do not stop a wave: only
// vCenter powers them off, and they are on again afterwards.
func TestBystandersKeepRunning(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	for scenario, c := range map[string]struct {
		run      string
		bystands string // prefix of its name
		moved    bool
	}{
		"sriov-drs-manual": {"run: {bystanders: migrate}", "billing-01", true},
		"sriov-vcls-eam":   {"run: {bystanders: drs}", "vCLS-", false},
		"sriov-vcls":       {"run: {bystanders: drs}", "vCLS-", false},
	} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, lab.Options{Scenario: scenario, Hosts: 3, VMs: 3, BootTime: 200 * time.Millisecond, RebootTime: 300 * time.Millisecond})
			file := edited(t, filepath.Join(b.lab.Dir(), "answers-sriov.yaml"), "mode: sriov",
				"mode: sriov\nmeasure: {bandwidth: false, latency: false}\n"+c.run)
			w := watchPower(t, b.env)
			before := runningVMs(t, b.env, c.bystands)
			code, _, said := b.run("apply", "-f", file, "--yes")
			w.stop()
			after := runningVMs(t, b.env, c.bystands)
			if code != 0 || len(before) == 0 || len(after) != len(before) {
				t.Fatalf("exit %d, %d of %d VMs run\n%s", code, len(after), len(before), said)
			}
			calls := b.lab.World().Log.Calls()
			if !c.moved {
				if calls["RelocateVM_Task"] != 0 || !strings.Contains(said, "are left to vCenter while their hosts reboot") {
					t.Errorf("calls %v\n%s", calls, said)
				}
				return
			}
			for name, was := range before {
				if now := after[name]; !now.Equal(was) || was.IsZero() || w.firsts[name] {
					t.Errorf("%s: it ran since %s, it runs since %s; seen off: %t", name, was, now, w.firsts[name])
				}
			}
			if calls["RelocateVM_Task"] == 0 {
				t.Errorf("calls %v", calls)
			}
		})
	}
}

// runningVMs returns since when the VMs with a prefix have been on.
func runningVMs(t *testing.T, env map[string]string, prefix string) map[string]time.Time {
	t.Helper()
	c := outsider(t.Context(), t, env)
	list, err := find.NewFinder(c.Client).VirtualMachineList(t.Context(), "*")
	testclass.OK(t, err)
	out := map[string]time.Time{}
	for _, vm := range list {
		var o mo.VirtualMachine
		testclass.OK(t, vm.Properties(t.Context(), vm.Reference(), []string{"name", "runtime"}, &o))
		if strings.HasPrefix(o.Name, prefix) && o.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn {
			out[o.Name] = time.Time{}
			if o.Runtime.BootTime != nil {
				out[o.Name] = *o.Runtime.BootTime
			}
		}
	}
	return out
}

// TestMovesAreProvenBeforeResumeAndRollback: after the apply, vCenter reports that a VM of others cannot move. Resume and rollback
// stop and name it before a VM is off or a host is out of service.
func TestMovesAreProvenBeforeResumeAndRollback(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	b, file := sriovBench(t, lab.Options{Scenario: "sriov-drs-manual", Hosts: 2, VMs: 2,
		Faults: []string{"method=RelocateVM_Task,nth=2,do=fault:NoPermission"}})
	file = edited(t, file, "vfs: 8", "vfs: 8\nmeasure: {bandwidth: false, latency: false}\nrun: {bystanders: migrate}")
	b.must(5, "apply", "-f", file, "--yes")
	for _, command := range []string{"resume", "rollback"} {
		testclass.OK(t, b.lab.World().Faults.Add("method=CheckMigrate_Task,do=task-fault:CpuIncompatible"))
		before := b.states()
		_, said := b.must(3, command, "--yes")
		if !strings.Contains(said, "has to reboot, and cannot be emptied: ") || !strings.Contains(said, "billing-01") {
			t.Errorf("%s does not name the VM:\n%s", command, said)
		}
		for key, now := range b.states() {
			if was := before[key]; was != now && !strings.HasPrefix(key, "event ") {
				t.Errorf("%s: %s is %s, was %s", command, key, now, was)
			}
		}
		b.lab.World().Faults.Clear()
		b.must(0, command, "--yes")
	}
}

// TestMovedVMsAreNamed: VMs that a run moves to other hosts are named at its end, and with run.return_vms they are moved back. A
// rollback says the same of its own.
func TestMovedVMsAreNamed(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	for run, says := range map[string]string{
		"run: {bystanders: migrate}":                   " during the run",
		"run: {bystanders: migrate, return_vms: true}": " during the run, and back at its end",
	} {
		t.Run(run, func(t *testing.T) {
			t.Parallel()
			b, file := sriovBench(t, lab.Options{Scenario: "sriov-drs-manual", Hosts: 2, VMs: 2})
			file = edited(t, file, "vfs: 8", "vfs: 8\nmeasure: {bandwidth: false, latency: false}\n"+run)
			at := func() map[string]string {
				out := map[string]string{}
				b.lab.World().View(func(s *world.State) {
					for _, v := range s.VMs {
						out[v.Name] = v.Host
					}
				})
				return out
			}
			for _, words := range [][]string{{"apply", "-f", file, "--yes", "--limit", "esx-01"}, {"rollback", "--yes"}} {
				before := at() // what others have moved since the run ended is not its business
				_, said := b.must(0, words...)
				after := at()
				for vm, host := range before {
					named := regexp.MustCompile(`\b`+vm+`\b.*: moved from `+host+` to \S+ during the run`).MatchString(said) || after[vm] == host
					if !named || strings.Contains(run, "return_vms") && after[vm] != host {
						t.Errorf("%s: %s was on %s and is on %s:\n%s", words[0], vm, host, after[vm], said)
					}
				}
				if words[0] == "apply" && !strings.Contains(said, says+"\n") {
					t.Errorf("it does not say %q:\n%s", says, said)
				}
			}
		})
	}
}
