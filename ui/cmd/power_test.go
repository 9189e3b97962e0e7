package cmd_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab"
)

// A powerWatch is another client of the vCenter that looks at the power of all VMs ten times a second.
type powerWatch struct {
	stop func()

	mu      sync.Mutex
	most    int
	firsts  map[string]bool // VMs that were seen off
	alone   string          // the first VM that was seen off
	crowded bool            // another was seen off while the first one was the only one that had ever been off
	looks   int
}

func watchPower(t *testing.T, env map[string]string) *powerWatch {
	t.Helper()
	u, err := url.Parse(env["GOVC_URL"])
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(env["GOVC_USERNAME"], env["GOVC_PASSWORD"])
	ctx, cancel := context.WithCancel(t.Context())
	c, err := govmomi.NewClient(ctx, u, true)
	if err != nil {
		t.Fatal(err)
	}
	v, err := view.NewManager(c.Client).CreateContainerView(ctx, c.ServiceContent.RootFolder, []string{"VirtualMachine"}, true)
	if err != nil {
		t.Fatal(err)
	}
	w := &powerWatch{firsts: map[string]bool{}}
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
	off := 0
	for _, vm := range vms {
		if vm.Runtime.PowerState != types.VirtualMachinePowerStatePoweredOff {
			continue
		}
		off++
		w.firsts[vm.Name] = true
		if w.alone == "" {
			w.alone = vm.Name
		}
	}
	if len(w.firsts) == 2 && off == 2 && w.firsts[w.alone] { // the second one joined while the first was still off
		for _, vm := range vms {
			if vm.Name == w.alone && vm.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOff {
				w.crowded = true
			}
		}
	}
	w.most = max(w.most, off)
}

// TestVMsAreOffInWaves: 16 VMs, at most four of them off at the same time and one alone first, in apply and in rollback, as
// another client sees it. Resume: TestResumeCountsVMsThatAreStillOff of the engine.
func TestVMsAreOffInWaves(t *testing.T) {
	l, err := lab.Start(t.Context(), lab.Options{Hosts: 4, VMs: 16, Dir: t.TempDir(), BootTime: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	env := environment(l, t.TempDir())
	b, err := os.ReadFile(filepath.Join(l.Dir(), "answers-pvrdma.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "answers.yaml")
	if err := os.WriteFile(file, append(b, "measure: {bandwidth: false, latency: false}\nrun: {power: {max_unavailable: 4}}\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"apply", "-f", file, "--yes"}, {"rollback", "--yes"}} {
		w := watchPower(t, env)
		_, errs, code := inProcess(env, args...)
		w.stop()
		if code != 0 {
			t.Fatalf("%s: exit %d\n%.3000s", args[0], code, errs)
		}
		w.mu.Lock()
		if w.most > 4 || w.most < 2 || w.crowded || len(w.firsts) < 12 {
			t.Errorf("%s: at most %d VMs off at the same time, want 4; %s was not alone: %t; %d VMs seen off in %d looks",
				args[0], w.most, w.alone, w.crowded, len(w.firsts), w.looks)
		}
		w.mu.Unlock()
		if args[0] == "apply" && !strings.Contains(errs, "at most 4 of 16 VMs are off at the same time") {
			t.Errorf("the plan does not say it:\n%.3000s", errs)
		}
	}
}
