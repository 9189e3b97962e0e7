package cmd_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
)

// adapters are the RDMA adapters of the VMs as another SOAP client sees them: "vm-01 sriov RDMA-PG-1 0000:3b:00.0".
func (b *bench) adapters() []string {
	b.t.Helper()
	ctx := b.t.Context()
	c := outsider(ctx, b.t, b.env)
	all, err := view.NewManager(c.Client).CreateContainerView(ctx, c.ServiceContent.RootFolder, nil, true)
	if err != nil {
		b.t.Fatal(err)
	}
	var groups []mo.DistributedVirtualPortgroup
	var vms []mo.VirtualMachine
	if err := all.Retrieve(ctx, []string{"DistributedVirtualPortgroup"}, []string{"name", "key"}, &groups); err != nil {
		b.t.Fatal(err)
	}
	if err := all.Retrieve(ctx, []string{"VirtualMachine"}, []string{"name", "config.hardware.device"}, &vms); err != nil {
		b.t.Fatal(err)
	}
	name := map[string]string{}
	for _, g := range groups {
		name[g.Key] = g.Name
	}
	var out []string
	for _, vm := range vms {
		for _, d := range vm.Config.Hardware.Device {
			on := ""
			if port, is := d.GetVirtualDevice().Backing.(*types.VirtualEthernetCardDistributedVirtualPortBackingInfo); is {
				on = name[port.Port.PortgroupKey]
			}
			switch card := d.(type) {
			case *types.VirtualVmxnet3Vrdma:
				out = append(out, fmt.Sprintf("%s pvrdma %s", vm.Name, on))
			case *types.VirtualSriovEthernetCard:
				out = append(out, fmt.Sprintf("%s sriov %s %s", vm.Name, on, card.SriovBacking.PhysicalFunctionBacking.Id))
			}
		}
	}
	slices.Sort(out)
	return out
}

// Two rails, from an unconfigured site to the evaluated measurement: one adapter for each rail on its port group, in mode sriov a
// VF of each port (the guide's max_vfs=0,0,8,7). Pairs are measured on each rail, a second plan is empty, and a rollback follows.
func TestTwoRails(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string][]string{
		"pvrdma": {"vm-01 pvrdma RDMA-PG-1", "vm-01 pvrdma RDMA-PG-2", "vm-02 pvrdma RDMA-PG-1", "vm-02 pvrdma RDMA-PG-2"},
		"sriov": {"vm-01 sriov RDMA-PG-1 0000:3b:00.0", "vm-01 sriov RDMA-PG-2 0000:3b:00.1",
			"vm-02 sriov RDMA-PG-1 0000:3b:00.0", "vm-02 sriov RDMA-PG-2 0000:3b:00.1"},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			system := map[string]string{"pvrdma": "ubuntu-22.04", "sriov": "rhel-9"}[mode] // ubuntu-22.04 is a guest without arping, rhel-9 has it
			b := newBench(t, lab.Options{Scenario: "rails", Hosts: 2, VMs: 2, Systems: []string{system},
				RebootTime: 50 * time.Millisecond, BootTime: 50 * time.Millisecond})
			file := filepath.Join(b.lab.Dir(), "answers-"+mode+".yaml")
			if mode == "sriov" {
				file = edited(t, file, "portgroup: RDMA-PG-2, uplinks: 1, mtu: 9000, vlan: 0}",
					"portgroup: RDMA-PG-2, uplinks: 1, mtu: 9000, vlan: 0}\n    sriov: {vfs: 7}")
			} else {
				file = edited(t, file, "portgroup: RDMA-PG-2, uplinks: 1, mtu: 9000, vlan: 0}",
					"portgroup: RDMA-PG-2, uplinks: 1, mtu: 4200, vlan: 20}")
			}
			file = edited(t, file, "guest:\n  install", "measure: {cross_rail: all}\nguest:\n  install")
			before := b.hardware()
			_, said := b.must(0, "apply", "-f", file, "--yes")
			for _, want := range []string{"then 4 tests between rails: about 3 s, 1024 bytes of ARP requests", "measured 4/4  cross_rail",
				"then 2 tests of all rails at once: about ", "measured 2/2  ib_send_bw rails  vm-0"} {
				if !strings.Contains(said, want) {
					t.Errorf("%q is not in\n%s", want, said)
				}
			}
			if got := b.adapters(); !slices.Equal(got, want) {
				t.Errorf("another client sees\n%s", strings.Join(got, "\n"))
			}
			if got := b.hardware()["max_vfs"]; mode == "sriov" && got != "0,0,8,7" {
				t.Errorf("max_vfs %q", got)
			}
			report, _ := b.must(0, "report", "-o", "json")
			var r struct {
				Measurements []struct {
					From, To, Test, Verdict string
					RailFrom                string `json:"rail_from"`
					RailTo                  string `json:"rail_to"`
					Reached                 *bool
					Error                   string
					Expected                string `json:"expected_reach"`
				}
			}
			if err := json.Unmarshal([]byte(report), &r); err != nil {
				t.Fatal(err)
			}
			var measured, between []string
			for _, m := range r.Measurements {
				if m.Test == perftest.CrossRail {
					between = append(between, fmt.Sprintf("%s %s -> %s %s, %s: %t, %s%s", m.From, m.RailFrom, m.To, m.RailTo, m.Expected,
						m.Reached != nil && *m.Reached, m.Verdict, m.Error))
				}
				if m.Test == "ib_send_bw" {
					measured = append(measured, fmt.Sprintf("%s %s -> %s %s: %s", m.From, m.RailFrom, m.To, m.RailTo, m.Verdict))
				}
			}
			slices.Sort(measured)
			if !slices.Equal(measured, []string{"vm-01 rail-1 -> vm-02 rail-1: pass", "vm-01 rail-2 -> vm-02 rail-2: pass",
				"vm-02 rail-1 -> vm-01 rail-1: pass", "vm-02 rail-2 -> vm-01 rail-2: pass"}) {
				t.Errorf("%q", measured)
			}
			apart := map[string]string{"pvrdma": "must not reach: false, pass", "sriov": "may reach: true, n/a"}[mode]
			if !slices.Equal(between, []string{"vm-01 rail-1 -> vm-02 rail-2, " + apart, "vm-01 rail-2 -> vm-02 rail-1, " + apart,
				"vm-02 rail-1 -> vm-01 rail-2, " + apart, "vm-02 rail-2 -> vm-01 rail-1, " + apart}) {
				t.Errorf("between rails: %q", between)
			}
			b.together(report)
			if text, _ := b.must(0, "report", "-o", "markdown"); !strings.Contains(text, "Rails: from the rail of the row") {
				t.Error(text)
			}
			if text, _ := b.must(0, "report"); !strings.Contains(text, "vm-01 (rail-2) -> vm-02 (rail-2)") {
				t.Error(text)
			}
			if code, _, said := b.run("plan", "-f", file, "--detailed-exitcode"); code != 0 {
				t.Errorf("the second plan: exit %d\n%s", code, said)
			}
			b.generated(mode, file)
			b.must(0, "rollback", "--yes")
			if got := b.adapters(); len(got) != 0 {
				t.Errorf("after the rollback: %q", got)
			}
			b.lab.World().View(func(s *world.State) {
				for _, d := range s.Switches {
					t.Errorf("after the rollback there is %s", d.Name)
				}
			})
			if after := b.hardware(); after["max_vfs"] != before["max_vfs"] {
				t.Errorf("after the rollback: max_vfs %q", after["max_vfs"])
			}
		})
	}
}

// together checks the measurements of all rails at once in a report: both ports belong to one card, whose PCIe 3.0 slot has less
// bandwidth than both ports.
func (b *bench) together(report string) {
	b.t.Helper()
	var r struct {
		Summary string
		Matrix  struct {
			Rails []string
			Rows  [][]struct{ From, To, Verdict, Text string }
		} `json:"rail_matrix"`
		Measurements []struct {
			From, To, Test, Load, Verdict, Why, Hint string
			Expected                                 float64 `json:"expected_gbps"`
			Achieved                                 float64 `json:"achieved_gbps"`
			Rails                                    []struct {
				Rail  string
				Alone float64 `json:"alone_gbps"`
			}
		}
	}
	if err := json.Unmarshal([]byte(report), &r); err != nil {
		b.t.Fatal(err)
	}
	if m := r.Matrix; !slices.Equal(m.Rails, []string{"rail-1", "rail-2"}) || len(m.Rows) != 2 || len(m.Rows[1]) != 2 ||
		m.Rows[1][1].Text != "2 of 2 pairs as expected" || m.Rows[0][1].To != "rail-2" || m.Rows[0][1].Text == "not tested" {
		b.t.Errorf("%+v", m)
	}
	b.t.Log(r.Summary)
	seen := 0
	for _, m := range r.Measurements {
		if m.Load != perftest.LoadRails {
			continue
		}
		seen++
		if m.Test != "ib_send_bw rails" || len(m.Rails) != 2 || m.Rails[1].Alone < 90 || m.Expected < 190 || m.Achieved < 105 ||
			m.Achieved > 150 || m.Verdict != "unknown" ||
			!strings.Contains(m.Hint, "rail-1 and rail-2 are ports of the card at 0000:3b:00.0 of esx-0") {
			b.t.Errorf("%+v", m)
		}
	}
	if seen != 2 {
		b.t.Errorf("%d measurements of all rails at once", seen)
	}
}

// If a host of eight rails has only one VM, the VM has a VF of each rail, and every GPU is paired with the card next to it.
func TestAloneOnEightRails(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "rails-8", Hosts: 2, VMs: 2})
	text, _ := b.must(0, "plan", "-f", filepath.Join(b.lab.Dir(), "answers-gpudirect.yaml"))
	text = strings.Join(strings.Fields(text), " ")
	for _, want := range []string{"GPU 0000:39:00.0 with rail-1 at 0000:38:00.0 (one PCIe switch)",
		"GPU 0000:bb:00.0 with rail-8 at 0000:ba:00.0 (one PCIe switch)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// generated checks the files for guests and switches: each rail has its MTU and its ports.
func (b *bench) generated(mode, file string) {
	b.t.Helper()
	if mode == "pvrdma" {
		text, _ := b.must(0, "generate", "netplan", "-f", file, "--vm", "vm-01")
		one, two, _ := strings.Cut(text, "rdma-setup-RDMA-PG-2.yaml")
		if !strings.Contains(one, "mtu: 9000") || !strings.Contains(two, "mtu: 4200") {
			b.t.Error(text)
		}
		if code, _, said := b.run("generate", "switch", "--os", "onyx", "-f", file, "--lossless", "none"); code != 2 ||
			!strings.Contains(said, "the rails have the VLANs 0 and 20") {
			b.t.Errorf("exit %d\n%s", code, said)
		}
		return
	}
	text, _ := b.must(0, "generate", "switch", "--os", "onyx", "-f", file)
	for _, want := range []string{": esx-01 vmnic2\n", ": esx-01 vmnic3\n", ": esx-02 vmnic3\n"} {
		if !strings.Contains(text, want) {
			b.t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// If the cables of two rails are swapped on one host, the result names the host, its pNICs and the switch ports. The other hosts
// pass, and RDMA is measured over the spine.
func TestSwappedCablesAreNamed(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	for _, mode := range []string{"pvrdma", "sriov"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, lab.Options{Scenario: "rails-swapped", Hosts: 3, VMs: 3, RebootTime: 50 * time.Millisecond,
				BootTime: 50 * time.Millisecond})
			file := filepath.Join(b.lab.Dir(), "answers-"+mode+".yaml")
			b.must(0, "apply", "-f", file, "--yes")
			_, out, said := b.run("check", "-f", file, "-o", "json")
			var doc struct{ Results []checks.Finding }
			if err := json.Unmarshal([]byte(out), &doc); err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			var got []string
			for _, f := range doc.Results {
				if f.ID == "SW-RAIL-015" {
					got = append(got, fmt.Sprintf("%s %s: %s", f.Status, f.Target.Name, f.Evidence))
				}
			}
			slices.Sort(got)
			want := []string{
				"pass esx-01: vmnic2 (rail-1) is on leaf-01 port Eth1/3, vmnic3 (rail-2) is on leaf-02 port Eth1/4",
				"pass esx-02: vmnic2 (rail-1) is on leaf-01 port Eth1/7, vmnic3 (rail-2) is on leaf-02 port Eth1/8",
				"warn esx-03: the cables of vmnic2 and vmnic3 are swapped: vmnic2 (rail-1) is on leaf-02 port Eth1/11, a switch of rail-2; " +
					"vmnic3 (rail-2) is on leaf-01 port Eth1/12, a switch of rail-1",
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s", strings.Join(got, "\n"))
			}
		})
	}
}
