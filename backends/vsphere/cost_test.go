package vsphere_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
)

// The bounds on calls apply to any number of hosts; each further page of 200 hosts costs only one more call.
func TestCostOfReading(t *testing.T) {
	testclass.Plain(t)
	for _, hosts := range []int{4, 60} {
		t.Run(fmt.Sprint(hosts, " hosts"), func(t *testing.T) {
			_, c := startLab(t, lab.Options{Hosts: hosts, VMs: 8})
			plain, err := c.Inventory(t.Context(), backends.Scope{})
			testclass.OK(t, err)
			if n := c.Calls() + 1; n > 10 { // and the log-out
				t.Errorf("overview: %d calls", n)
			}
			var early *backends.Inventory
			all, err := c.Inventory(t.Context(), backends.Scope{Names: func(inv *backends.Inventory) { early = inv }})
			testclass.OK(t, err)
			if n := all.APICalls; n != plain.APICalls+1 {
				t.Errorf("with names first: %d calls, without %d", n, plain.APICalls)
			}
			for i, h := range early.Hosts {
				if like := all.Hosts[i]; h.Name != like.Name || h.State != like.State || h.Cluster != like.Cluster || h.Version != like.Version ||
					h.Datacenter != like.Datacenter || len(h.NICs) > 0 {
					t.Errorf("%+v first, then %+v", h, like)
				}
			}
			if len(early.Hosts) != len(all.Hosts) {
				t.Errorf("%d hosts first, then %d", len(early.Hosts), len(all.Hosts))
			}
			before := c.Calls()
			inv, err := c.Inventory(t.Context(), backends.Scope{Details: true})
			testclass.OK(t, err)
			if n := c.Calls() - before + 3; n > 12 { // as in a separate command
				t.Errorf("details: %d calls", n)
			}
			if len(inv.Hosts) != hosts || inv.Hosts[hosts-1].Options[option] != "" || inv.Hosts[hosts-1].Firewall["pvrdma"].Enabled {
				t.Errorf("%d hosts, the last: %+v", len(inv.Hosts), inv.Hosts[len(inv.Hosts)-1].Options)
			}
			if inv.APICalls != c.Calls()-before {
				t.Errorf("the inventory says %d calls, it was %d", inv.APICalls, c.Calls()-before)
			}
		})
	}
}

func TestCostOfSetting(t *testing.T) {
	testclass.Plain(t)
	for _, hosts := range []int{4, 60} {
		t.Run(fmt.Sprint(hosts, " hosts"), func(t *testing.T) {
			_, c := startLab(t, lab.Options{Hosts: hosts, VMs: 1})
			set := c.Setters()

			// As the engine does it: each value is read for the journal, then set.
			before := c.Calls()
			read(t, set, dvs)
			mustSet(t, set, dvs, dvs1)
			read(t, set, group)
			mustSet(t, set, group, group1)
			as := memberships(hosts)
			for _, a := range as {
				read(t, set, a.Setting)
			}
			for i, err := range many(t, set, as) {
				if err != nil {
					t.Fatalf("%s: %v", as[i].ID(), err)
				}
			}
			if n, bound := c.Calls()-before, 40+hosts/50; n > bound {
				t.Errorf("switch, port group and %d hosts: %d calls, bound %d", hosts, n, bound)
			}

			before = c.Calls()
			optionOnAll(t, c, hosts)
			if n, bound := c.Calls()-before, 3*hosts+10; n > bound {
				t.Errorf("option on %d hosts: %d calls, bound %d", hosts, n, bound)
			}
		})
	}
}

func read(t *testing.T, set map[backends.Kind]backends.Setter, s backends.Setting) backends.Value {
	t.Helper()
	v, err := set[s.Kind].Read(t.Context(), s)
	if err != nil {
		t.Fatalf("%s: %v", s.ID(), err)
	}
	return v
}

// optionOnAll sets the option on every host, 16 at a time.
func optionOnAll(t *testing.T, c *vsphere.Client, hosts int) {
	t.Helper()
	set := c.Setters()[backends.KindOption]
	var wg sync.WaitGroup
	slots := make(chan struct{}, 16)
	for i := range hosts {
		s := backends.Setting{Target: backends.HostRef(fmt.Sprintf("esx-%02d", i+1)), Kind: backends.KindOption, Name: option}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if _, err := set.Read(t.Context(), s); err != nil {
				t.Error(err)
			}
			if err := set.Set(t.Context(), s, backends.ValueOf("vmk0"), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
