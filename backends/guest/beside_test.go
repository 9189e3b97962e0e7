package guest_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// Network and files of an address are observed in one command, whose answers are kept for the rest of the operation, and no longer.
func TestObserveAddressInOneCommand(t *testing.T) {
	t.Parallel()
	m := newMachine(t, config{os: "ubuntu-22.04", preset: true})
	var mu sync.Mutex
	var ran []string
	traced := m.ssh
	traced.Trace = func(c backends.Call) {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasPrefix(c.Method, "ssh read ") {
			ran = append(ran, strings.TrimPrefix(c.Method, "ssh read "))
		}
	}
	pool, err := ssh.NewPool(traced)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	guests := guest.New(pool, m.targets, m, guest.Options{})
	t.Cleanup(func() { guests.Close() })
	s := m.setting(backends.KindAddress, m.group)
	setter := guests.Setters()[backends.KindAddress]
	keeper, _ := backends.As[backends.Keeper](setter)
	to := backends.ValueOf(backends.AddressSpec{CIDR: "192.168.50.77/24", MTU: 9000})
	kept, err := keeper.Keep(t.Context(), s, to)
	if err != nil {
		t.Fatal(err)
	}
	reads := func(what string, do func(), want ...string) {
		t.Helper()
		mu.Lock()
		ran = nil
		mu.Unlock()
		do()
		mu.Lock()
		defer mu.Unlock()
		if len(ran) != len(want) {
			t.Errorf("%s: %q", what, ran)
			return
		}
		for i, end := range want {
			if !strings.HasSuffix(ran[i], end) {
				t.Errorf("%s: %q, want one that ends with %q", what, ran[i], end)
			}
		}
	}
	observed := func(op func() (backends.Kept, error)) (now backends.Kept) {
		t.Helper()
		now, err := op()
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	ctx := backends.WithReads(t.Context())
	var first, again, fresh backends.Kept
	observe := func() (backends.Kept, error) { return keeper.Observe(ctx, s, kept.Bare()) }
	reads("observed", func() { first = observed(observe) }, "rttables, state")
	reads("observed again and read", func() {
		again = observed(observe)
		if _, err := setter.Read(ctx, s); err != nil {
			t.Error(err)
		}
	})
	reads("outside the operation", func() {
		fresh = observed(func() (backends.Kept, error) { return keeper.Observe(t.Context(), s, kept.Bare()) })
	}, "rttables, state")
	values := cmpopts.EquateComparable(backends.Value{})
	if diff := cmp.Diff(first, again, values) + cmp.Diff(first, fresh, values); diff != "" {
		t.Error(diff)
	}
	if _, err := guests.Run(ctx, m.vm, ssh.Command{Script: ":"}); err != nil { // anything that is run may change what was read
		t.Fatal(err)
	}
	reads("read, then observed", func() {
		if _, err := setter.Read(ctx, s); err != nil {
			t.Error(err)
		}
		observed(observe)
	}, "rttables", "the current state of what a change may affect")
	if len(first.Items) != 2 {
		t.Errorf("observed %v", first.Items)
	}
}
