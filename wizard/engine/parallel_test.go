package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

func TestManyTargetsRunInParallelWithinTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hosts, parallel, latency = 200, 16, 20 * time.Millisecond
		w, wishes := options(hosts)
		w.Latency = latency
		var mu sync.Mutex
		now, most := 0, 0
		w.Before = func(_ context.Context, c Call) {
			if c.Verb != "set" {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			now++
			most = max(most, now)
			time.AfterFunc(latency, func() {
				mu.Lock()
				defer mu.Unlock()
				now--
			})
		}
		jb, j := fresh(t, w, wishes)
		jb.Limits.Parallel = parallel
		begin := time.Now()
		res, err := engine.Run(t.Context(), jb)
		if err != nil || res.Status != engine.StatusDone {
			t.Fatalf("%s, %v", res.Status, err)
		}
		// Three calls for each of two settings of each host, 16 hosts at a time.
		if took, floor := time.Since(begin), 3*2*latency*hosts/parallel; took > floor*11/10 {
			t.Errorf("it took %s, the floor is %s", took, floor)
		}
		if most > parallel {
			t.Errorf("%d operations at once", most)
		}
		if c := w.Clashes(); len(c) > 0 {
			t.Errorf("at the same time on one target: %v", c)
		}
		if n := len(w.Calls("read", "set")); n != 3*2*hosts {
			t.Errorf("%d calls", n)
		}
		_ = j.Close() // inside the bubble
	})
}

func TestMembersOfOneSwitchGoInOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hosts = 100
		w := NewWorld()
		w.Latency = 20 * time.Millisecond
		wishes := []Wish{{Setting: setting(backends.SwitchRef(dvs), backends.KindSwitch, ""), To: val(9000)}}
		for i := range hosts {
			h := backends.HostRef(fmt.Sprintf("esx-%03d", i))
			// The option comes before the membership, so that the hosts reach the membership one after the other.
			wishes = append(wishes,
				Wish{Setting: setting(h, backends.KindOption, "x"), To: val(1)},
				Wish{Setting: setting(h, backends.KindMember, dvs), To: val("vmnic2"), After: []string{switchID}})
		}
		jb, j := fresh(t, w, wishes)
		res, err := engine.Run(t.Context(), jb)
		if err != nil || res.Status != engine.StatusDone {
			t.Fatalf("%s, %v", res.Status, err)
		}
		if many, reads := w.Calls("setmany"), w.Calls("readmany"); len(many) != 1 || many[0].Batch != hosts || len(reads) != 2 {
			t.Errorf("%d reconfigures and %d reads of the members: %v", len(many), len(reads), many)
		}
		_ = j.Close() // inside the bubble
	})
}

func TestAFailedHostDoesNotHoldTheOthersBack(t *testing.T) {
	w := NewWorld()
	wishes := []Wish{{Setting: setting(backends.SwitchRef(dvs), backends.KindSwitch, ""), To: val(9000)}}
	for i := range 3 {
		h := backends.HostRef(fmt.Sprintf("esx-%03d", i))
		wishes = append(wishes,
			Wish{Setting: setting(h, backends.KindOption, "Net.PVRDMAVmknic"), To: val(1)},
			Wish{Setting: setting(h, backends.KindMember, dvs), To: val("vmnic2"), After: []string{switchID}})
	}
	w.Fault = failing(optionID("esx-001"), backends.KindPermanent)
	jb, _ := fresh(t, w, wishes)
	res, err := engine.Run(t.Context(), jb)
	if err != nil || res.Status != engine.StatusPartial {
		t.Fatalf("%s, %v", res.Status, err)
	}
	if many := w.Calls("setmany"); len(many) != 1 || many[0].Batch != 2 {
		t.Errorf("reconfigures: %v", many)
	}
}

// Power cycles and guests wait for machines of their own: a hundred of them take as long as one, up to Limits.Apart, and run one at
// a time if that was requested.
func TestMachinesAreWaitedForTogether(t *testing.T) {
	const vms, boot, work = 100, 10 * time.Second, 2 * time.Second
	for _, c := range []struct {
		name   string
		limits engine.Limits
		most   int64
		want   time.Duration
	}{
		{"as it is", engine.Limits{}, vms, 2*boot + work},
		{"ten at a time", engine.Limits{Apart: 10}, 10, 10 * (2*boot + work)},
		{"one at a time", engine.Limits{Parallel: 1}, 1, vms * (2*boot + work)},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := NewWorld()
				var wishes []Wish
				for i := range vms {
					vm, guest := backends.VMRef(fmt.Sprintf("vm-%03d", i)), backends.GuestRef(fmt.Sprintf("vm-%03d", i))
					memory := setting(vm, backends.KindMemory, "")
					power := []backends.BracketKind{backends.BracketVMPower}
					wishes = append(wishes,
						Wish{Setting: memory, To: val(1), Within: power},
						Wish{Setting: setting(guest, backends.KindModules, "rdma"), To: val(1), After: []string{vm.String() + "/vm-power"}})
				}
				var now, most atomic.Int64
				w.Before = func(ctx context.Context, call Call) {
					d := boot
					switch {
					case call.Verb == "set" && call.Setting.Target.Type == backends.TypeGuest:
						d = work
					case call.Verb != "open" && call.Verb != "close":
						return
					}
					n := now.Add(1)
					defer now.Add(-1)
					for high := most.Load(); n > high && !most.CompareAndSwap(high, n); high = most.Load() {
					}
					select {
					case <-time.After(d):
					case <-ctx.Done():
					}
				}
				jb, j := fresh(t, w, wishes)
				jb.Limits = c.limits
				begin := time.Now()
				res, err := engine.Run(t.Context(), jb)
				if err != nil || res.Status != engine.StatusDone {
					t.Fatalf("%s, %v: %v", res.Status, err, states(res))
				}
				if took := time.Since(begin); took > c.want*11/10 {
					t.Errorf("it took %s, the floor is %s", took, c.want)
				}
				if most.Load() > c.most {
					t.Errorf("%d at once, bound %d", most.Load(), c.most)
				}
				_ = j.Close() // inside the bubble
			})
		})
	}
}

// With Limits.Finish, a guest with a change is continued before another one is begun, although the plan has the first change of each
// guest before the second changes.
func TestGuestsAreFinishedOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const guests, together = 12, 3
		w := NewWorld()
		w.Latency = time.Second
		var wishes []Wish
		for _, set := range []string{"rdma", "mofed", "gpu"} {
			for i := range guests {
				wishes = append(wishes, Wish{Setting: setting(backends.GuestRef(fmt.Sprintf("vm-%02d", i)), backends.KindModules, set), To: val(1)})
			}
		}
		jb, j := fresh(t, w, wishes)
		jb.Limits.Apart, jb.Limits.Finish = together, true
		res, err := engine.Run(t.Context(), jb)
		if err != nil || res.Status != engine.StatusDone {
			t.Fatalf("%s, %v: %v", res.Status, err, states(res))
		}
		done := map[string]int{}
		for _, c := range w.Calls("set") {
			done[c.Setting.Target.Name]++
			half := 0
			for _, n := range done {
				if n < 3 {
					half++
				}
			}
			if half > together {
				t.Fatalf("%d guests are half done: %v", half, done)
			}
		}
		if len(done) != guests {
			t.Errorf("changed %v", done)
		}
		_ = j.Close() // inside the bubble
	})
}

// A guest whose first change was skipped is not begun: it keeps its place.
func TestGuestsThatWereSkippedAreNotBegun(t *testing.T) {
	w := NewWorld()
	var wishes []Wish
	for _, set := range []string{"a", "b"} {
		for i := range 4 {
			wishes = append(wishes, Wish{Setting: setting(backends.GuestRef(fmt.Sprintf("vm-%d", i)), backends.KindModules, set), To: val(1)})
		}
	}
	jb, _ := fresh(t, w, wishes)
	jb.Limits.Apart, jb.Limits.Finish = 1, true
	jb.Skip = []string{wishes[2].Setting.ID(), wishes[3].Setting.ID()}
	if res, err := engine.Run(t.Context(), jb); err != nil || res.Status != engine.StatusPartial {
		t.Fatalf("%s, %v: %v", res.Status, err, states(res))
	}
	var got []string
	for _, c := range w.Calls("set") {
		got = append(got, c.Setting.Target.Name+c.Setting.Name)
	}
	if want := []string{"vm-0a", "vm-0b", "vm-1a", "vm-1b", "vm-2b", "vm-3b"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func BenchmarkRun(b *testing.B) {
	for _, hosts := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("hosts=%d", hosts), func(b *testing.B) {
			for b.Loop() {
				w, wishes := options(hosts)
				p := w.Plan(wishes)
				j, err := createBench(b, p)
				if err != nil {
					b.Fatal(err)
				}
				jb := job(w, wishes, j)
				if res, err := engine.Run(b.Context(), jb); err != nil || res.Status != engine.StatusDone {
					b.Fatal(res.Status, err)
				}
				if err := j.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(2*hosts), "us/change")
		})
	}
}
