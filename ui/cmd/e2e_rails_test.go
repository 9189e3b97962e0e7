//go:build e2e

package cmd_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// Eight rails with GPUDirect: two VMs share the cards of a host as VFs, and its GPUs without overlap; another client sees an adapter
// on the port of each rail, GPU memory is measured with a GPU near each rail, and a rollback takes all of it back.
func TestE2EEightRails(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "rails-8", Hosts: 2, VMs: 3, RebootTime: 50 * time.Millisecond, BootTime: 50 * time.Millisecond})
	file := edited(t, filepath.Join(b.lab.Dir(), "answers-gpudirect.yaml"), "guest:\n  install", "measure: {latency: false}\nguest:\n  install")
	b.must(0, "apply", "-f", file, "--yes")
	var pf []string
	b.lab.World().View(func(s *world.State) { pf = slices.Clone(s.Rails) })
	var want []string
	for _, vm := range []string{"vm-01", "vm-02", "vm-03"} {
		for i, at := range pf {
			want = append(want, fmt.Sprintf("%s sriov RDMA-PG-%d %s", vm, i+1, at))
		}
	}
	if got := b.adapters(); !slices.Equal(got, want) {
		t.Errorf("another client sees\n%s", strings.Join(got, "\n"))
	}
	b.lab.World().View(func(s *world.State) {
		owner := map[string]string{}
		for _, v := range s.VMs {
			for _, d := range s.Given(v) {
				if other := owner[v.Host+d.Address]; other != "" {
					t.Errorf("%s of %s is given to %s and %s", d.Address, v.Host, other, v.Name)
				}
				owner[v.Host+d.Address] = v.Name
			}
		}
		if len(owner) != 16 {
			t.Errorf("%d of 16 GPUs are given to VMs", len(owner))
		}
	})
	if code, _, said := b.run("plan", "-f", file, "--detailed-exitcode"); code != 0 {
		t.Errorf("the second plan: exit %d\n%s", code, said)
	}
	b.must(0, "rollback", "--yes")
	if got := b.adapters(); len(got) != 0 {
		t.Errorf("after the rollback: %q", got)
	}
	b.lab.World().View(func(s *world.State) {
		for _, v := range s.VMs {
			if len(v.Devices) > 0 {
				t.Errorf("after the rollback %s has %d devices", v.Name, len(v.Devices))
			}
		}
	})
}
