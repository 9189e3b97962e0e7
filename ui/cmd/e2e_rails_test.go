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

// Eight rails with GPUDirect: two VMs share the cards of a host as VFs, and its GPUs without overlap. Another client sees an
// adapter on the port of each rail, GPU memory is measured with a GPU near each rail, and a rollback undoes everything.
func TestE2EEightRails(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "rails-8", Hosts: 2, VMs: 3, RebootTime: 50 * time.Millisecond, BootTime: 50 * time.Millisecond})
	file := edited(t, filepath.Join(b.lab.Dir(), "answers-gpudirect.yaml"), "guest:\n  install",
		"measure: {latency: false}\nguest:\n  install")
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

// Eight rails with PVRDMA and with SR-IOV, from an unconfigured site to the evaluated measurement: another client sees an adapter
// of each VM on the port group of each rail, with SR-IOV from the port of that rail. Each rail is measured, then all at once; a
// second plan is empty, and a rollback undoes everything.
func TestE2EEightRailsWithoutGPUs(t *testing.T) {
	for _, mode := range []string{"pvrdma", "sriov"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, lab.Options{Scenario: "rails-8", Hosts: 2, VMs: 2, RebootTime: 50 * time.Millisecond, BootTime: 50 * time.Millisecond})
			file := edited(t, filepath.Join(b.lab.Dir(), "answers-"+mode+".yaml"), "guest:\n  install",
				"measure: {latency: false, pairs: all}\nguest:\n  install")
			b.must(0, "apply", "-f", file, "--yes")
			var pf []string
			b.lab.World().View(func(s *world.State) { pf = slices.Clone(s.Rails) })
			var want, rails []string
			for i, at := range pf {
				for _, vm := range []string{"vm-01", "vm-02"} {
					want = append(want, strings.TrimSpace(fmt.Sprintf("%s %s RDMA-PG-%d %s", vm, mode, i+1, map[string]string{"sriov": at}[mode])))
				}
				rails = append(rails, fmt.Sprintf("vm-01 rail-%d vm-02 rail-%d pass", i+1, i+1))
			}
			slices.Sort(want)
			if got := b.adapters(); !slices.Equal(got, want) {
				t.Errorf("another client sees\n%s", strings.Join(got, "\n"))
			}
			report, _ := b.must(0, "report", "-o", "json")
			got := measuredOn(t, report, "ib_send_bw")
			slices.Sort(got)
			if !slices.Equal(got, rails) {
				t.Errorf("measured %q", got)
			}
			if all := append(measuredOn(t, report, "ib_send_bw rails"), measuredOn(t, report, "ib_send_bw -q 4 rails")...); len(all) != 1 {
				t.Errorf("all rails at once: %q", all)
			}
			if code, _, said := b.run("plan", "-f", file, "--detailed-exitcode"); code != 0 {
				t.Errorf("the second plan: exit %d\n%s", code, said)
			}
			b.must(0, "rollback", "--yes")
			if got := b.adapters(); len(got) != 0 {
				t.Errorf("after the rollback: %q", got)
			}
			b.lab.World().View(func(s *world.State) {
				if len(s.Switches) != 0 {
					t.Errorf("after the rollback there are %d switches", len(s.Switches))
				}
				for _, h := range s.Hosts {
					for _, p := range h.PNICs[2:] {
						if p.ActiveVFs != 0 {
							t.Errorf("after the rollback %s of %s has %d VFs", p.Device, h.Name, p.ActiveVFs)
						}
					}
				}
			})
		})
	}
}

// Whole cards of eight rails for two VMs on each host, with answers that do not list adapters: each card and each GPU is assigned
// to one VM, those of one socket together. Every rail is measured, and a rollback undoes everything.
func TestE2EWholeCardsAreShared(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "rails-8", Hosts: 2, VMs: 4, RebootTime: 50 * time.Millisecond, BootTime: 50 * time.Millisecond})
	file := edited(t, filepath.Join(b.lab.Dir(), "answers-gpudirect.yaml"), "guest:\n  install",
		"measure: {latency: false}\nguest:\n  install")
	file = edited(t, file, "nic: sriov", "nic: passthrough")
	b.must(0, "apply", "-f", file, "--yes")
	owner := map[string]string{}
	b.lab.World().View(func(s *world.State) {
		for _, v := range s.VMs {
			node := map[int]int{}
			for _, d := range v.Devices {
				if other := owner[v.Host+d.PCI]; other != "" {
					t.Errorf("%s of %s is given to %s and %s", d.PCI, v.Host, other, v.Name)
				}
				owner[v.Host+d.PCI] = v.Name
				node[s.Host(v.Host).PCIDevice(d.PCI).NUMA]++
			}
			if len(v.Devices) != 8 || len(node) != 1 {
				t.Errorf("%s has %d devices on %d sockets", v.Name, len(v.Devices), len(node))
			}
		}
	})
	report, _ := b.must(0, "report", "-o", "json")
	got := measuredOn(t, report, "ib_write_bw --use_cuda")
	slices.Sort(got)
	if len(got) != 16 || got[0] != "vm-01 rail-1 vm-02 rail-1 pass" || got[15] != "vm-04 rail-8 vm-03 rail-8 pass" {
		t.Errorf("measured %q", got)
	}
	all := measuredOn(t, report, "ib_write_bw --use_cuda rails")
	slices.Sort(all)
	if !slices.Equal(all, []string{"vm-01  vm-02  pass", "vm-02  vm-01  pass", "vm-03  vm-04  pass", "vm-04  vm-03  pass"}) {
		t.Errorf("all rails at once: %q", all)
	}
	if code, _, said := b.run("plan", "-f", file, "--detailed-exitcode"); code != 0 {
		t.Errorf("the second plan: exit %d\n%s", code, said)
	}
	b.must(0, "rollback", "--yes")
	b.lab.World().View(func(s *world.State) {
		for _, v := range s.VMs {
			if len(v.Devices) > 0 {
				t.Errorf("after the rollback %s has %d devices", v.Name, len(v.Devices))
			}
		}
	})
}
