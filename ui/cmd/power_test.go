package cmd_test

import (
	"context"
	"fmt"
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

// TestVMsAreOffInWaves: 40 VMs, at most four of them off at the same time, as another client sees it: in an apply that is
// interrupted half way, in its resume and in the rollback; apply and rollback begin with one VM alone. Resume after a kill:
// TestResumeCountsVMsThatAreStillOff of the engine.
func TestVMsAreOffInWaves(t *testing.T) {
	t.Parallel()
	hosts, vms := 4, 40
	if memoryFactor > 1 {
		hosts, vms = 2, 10 // the detector makes all of it several times as slow; what an interrupt leaves is still more than four
	}
	b := newBench(t, lab.Options{Hosts: hosts, VMs: vms, BootTime: 200 * time.Millisecond})
	file := edited(t, filepath.Join(b.lab.Dir(), "answers-pvrdma.yaml"), "mode: pvrdma", "mode: pvrdma\nmeasure: {bandwidth: false, latency: false}\nrun: {power: {max_unavailable: 4}}")
	interrupt := make(chan os.Signal, 1)
	for _, c := range []struct {
		name  string
		args  []string
		exit  int
		alone bool
		least int // VMs seen off, in percent
	}{
		{"apply", []string{"apply", "-f", file, "--yes"}, 130, true, 15},
		{"resume", []string{"resume", "--yes"}, 0, false, 15},
		{"rollback", []string{"rollback", "--yes"}, 0, true, 50},
	} {
		w := watchPower(t, b.env)
		ended := make(chan struct{})
		if c.exit == 130 {
			go func() {
				for {
					select {
					case <-ended:
						return
					case <-time.After(50 * time.Millisecond):
					}
					w.mu.Lock()
					enough := len(w.firsts) >= vms/4
					w.mu.Unlock()
					if enough {
						interrupt <- os.Interrupt
						return
					}
				}
			}()
			b.interrupts = interrupt
		}
		code, _, said := b.run(c.args...)
		close(ended)
		b.interrupts = nil
		w.stop()
		w.mu.Lock()
		if code != c.exit {
			t.Fatalf("%s: exit %d, want %d\n%.3000s", c.name, code, c.exit, said)
		}
		if w.most > 4 || w.most < 2 || c.alone && w.crowded || len(w.firsts)*100 < c.least*vms {
			t.Errorf("%s: at most %d VMs off at the same time, want 4; %s was not alone: %t; %d VMs seen off in %d looks",
				c.name, w.most, w.alone, w.crowded, len(w.firsts), w.looks)
		}
		w.mu.Unlock()
		if c.name == "apply" && !strings.Contains(said, fmt.Sprintf("at most 4 of %d VMs are off at the same time", vms)) {
			t.Errorf("the plan does not say it:\n%.3000s", said)
		}
	}
}
