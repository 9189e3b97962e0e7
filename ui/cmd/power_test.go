package cmd_test

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// A powerWatch is another client of the vCenter that reads the power state of all VMs ten times a second.
type powerWatch struct {
	stop func()

	mu      sync.Mutex
	most    int
	firsts  map[string]bool // VMs that were seen off
	alone   string          // the first VM that was seen off
	crowded bool            // another VM was seen off while the first one was the only one seen off so far
	looks   int
	apart   []string // VMs of one anti-affinity rule
	both    bool     // two of them were seen off at the same time
}

func watchPower(t *testing.T, env map[string]string, apart ...string) *powerWatch {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := outsider(ctx, t, env)
	v, err := view.NewManager(c.Client).CreateContainerView(ctx, c.ServiceContent.RootFolder, []string{"VirtualMachine"}, true)
	testclass.OK(t, err)
	w := &powerWatch{firsts: map[string]bool{}, apart: apart}
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			var vms []mo.VirtualMachine
			if err := v.Retrieve(ctx, []string{"VirtualMachine"}, []string{"name", "runtime.powerState"}, &vms); err != nil {
				continue
			}
			w.see(vms)
		}
	}()
	w.stop = func() {
		cancel()
		<-done
		_ = c.Logout(context.Background())
		c.CloseIdleConnections()
	}
	return w
}

func (w *powerWatch) see(vms []mo.VirtualMachine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	off, apart := 0, 0
	for _, vm := range vms {
		if vm.Runtime.PowerState != types.VirtualMachinePowerStatePoweredOff {
			continue
		}
		off++
		w.firsts[vm.Name] = true
		if slices.Contains(w.apart, vm.Name) {
			apart++
		}
		if w.alone == "" {
			w.alone = vm.Name
		}
	}
	if len(w.firsts) == 2 && off == 2 && w.firsts[w.alone] { // the second VM was off while the first one was still off
		for _, vm := range vms {
			if vm.Name == w.alone && vm.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOff {
				w.crowded = true
			}
		}
	}
	w.most = max(w.most, off)
	w.both = w.both || apart > 1
}

// keepApart adds an anti-affinity rule of DRS for VMs, as an administrator does.
func keepApart(t *testing.T, env map[string]string, names ...string) {
	t.Helper()
	c := outsider(t.Context(), t, env)
	f := find.NewFinder(c.Client)
	rule := &types.ClusterAntiAffinityRuleSpec{ClusterRuleInfo: types.ClusterRuleInfo{Name: "pair", Enabled: types.NewBool(true)}}
	for _, name := range names {
		vm, err := f.VirtualMachine(t.Context(), name)
		testclass.OK(t, err)
		rule.Vm = append(rule.Vm, vm.Reference())
	}
	cluster, err := f.DefaultClusterComputeResource(t.Context())
	testclass.OK(t, err)
	task, err := cluster.Reconfigure(t.Context(), &types.ClusterConfigSpecEx{RulesSpec: []types.ClusterRuleSpec{
		{ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationAdd}, Info: rule}}}, true)
	testclass.OK(t, err)
	testclass.OK(t, task.Wait(t.Context()))
	_ = c.Logout(context.Background())
	c.CloseIdleConnections()
}

// TestVMsAreOffInWaves: of 10 VMs (40 in make e2e-full), another client sees at most four off at the same time and never two of one
// anti-affinity rule. This covers an apply that is killed while the canary is off, a resume that is killed half way, the next
// resume, and the rollback. No other VM is off until the canary is done, also in the first resume.
func TestVMsAreOffInWaves(t *testing.T) {
	t.Parallel()
	hosts, vms := 2, 10 // more than four VMs remain after a kill
	if testclass.Sized(t) {
		hosts, vms = 4, 40
	}
	b := newBench(t, lab.Options{Hosts: hosts, VMs: vms, BootTime: 600 * time.Millisecond}) // longer than a kill takes
	keepApart(t, b.env, "vm-02", "vm-03")
	file := edited(t, filepath.Join(b.lab.Dir(), "answers-pvrdma.yaml"), "mode: pvrdma",
		"mode: pvrdma\nmeasure: {bandwidth: false, latency: false}\nrun: {power: {max_unavailable: 4}}")
	held := true // the canary: the apply was killed before its VM was on again
	for _, c := range []struct {
		name  string
		args  []string
		kill  int // after this many VMs were seen off, perhaps one by one; 0: never
		alone bool
		least int // VMs seen off, in percent
	}{
		{"apply", []string{"apply", "-f", file, "--yes"}, 1, true, 0},
		{"resume of the canary", []string{"resume", "--yes"}, vms / 4, true, 15},
		{"resume", []string{"resume", "--yes"}, 0, false, 15},
		{"rollback", []string{"rollback", "--yes"}, 0, true, 50},
	} {
		w := watchPower(t, b.env, "vm-02", "vm-03")
		code, said := b.child(func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return c.kill > 0 && len(w.firsts) >= c.kill
		}, c.args...)
		w.stop()
		if want := min(0, -c.kill); code != max(want, -1) {
			t.Fatalf("%s: exit %d\n%s", c.name, code, said)
		}
		if w.most > 4 || c.kill == 0 && w.most < 2 || c.alone && held && w.crowded || len(w.firsts)*100 < c.least*vms {
			t.Errorf("%s: at most %d VMs off at the same time, want 4; %s was not alone: %t; %d VMs seen off in %d looks",
				c.name, w.most, w.alone, w.crowded, len(w.firsts), w.looks)
		}
		if w.both {
			t.Errorf("%s: both VMs of the rule were off at the same time", c.name)
		}
		if c.name == "apply" && !strings.Contains(said, fmt.Sprintf("at most 4 VMs off at a time, about 5 minutes each, %d in all", vms)) {
			t.Errorf("the plan does not say it:\n%s", said)
		}
		held = true
		if c.name == "apply" {
			b.lab.World().View(func(s *world.State) {
				held = slices.ContainsFunc(s.VMs, func(v *world.VM) bool { return !v.On })
			})
			t.Logf("the apply was killed while the canary was off: %t", held)
		}
	}
}

// child runs a command in a separate process and kills it when enough returns true; the exit status is then -1.
func (b *bench) child(enough func() bool, args ...string) (code int, output string) {
	b.t.Helper()
	c := exec.Command("rdma-setup", args...)
	for key, value := range b.env {
		c.Env = append(c.Env, key+"="+value)
	}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		b.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Wait()
	}()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return c.ProcessState.ExitCode(), out.String()
		case <-tick.C:
			if enough() {
				_ = c.Process.Kill()
			}
		}
	}
}
