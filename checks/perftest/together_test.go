package perftest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
)

// narrow are guests whose rails reach 97 Gb/s each, and together no more than a PCIe link carries.
type narrow struct {
	mu     sync.Mutex
	link   float64 // Gb/s
	active map[string]int
	most   int // clients at work at once, of one VM
	lines  []string
}

func (n *narrow) Exec(ctx context.Context, vm string, c perftest.Command) (perftest.Output, error) {
	if !strings.Contains(c.Line, " '192.") {
		time.Sleep(time.Second)
		c.OnLine("* Waiting for client to connect... *")
		<-ctx.Done()
		return perftest.Output{}, ctx.Err()
	}
	n.mu.Lock()
	n.lines = append(n.lines, c.Line)
	n.active[vm]++
	n.most = max(n.most, n.active[vm])
	n.mu.Unlock()
	time.Sleep(3 * time.Second)
	n.mu.Lock()
	rate := min(97, n.link/float64(n.active[vm]))
	n.mu.Unlock()
	time.Sleep(3 * time.Second)
	n.mu.Lock()
	n.active[vm]--
	n.mu.Unlock()
	return perftest.Output{Stdout: fmt.Sprintf(" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"+
		" 65536      1000           0.00               %.2f              0.1\n", rate)}, nil
}

// onRails returns the pairs of a ring of VMs, each on a host of its own, on several rails, and the results of each rail alone: by
// test, and without a GPU by ib_send_bw if test is ib_write_bw.
func onRails(rails, vms int, test string, edit func(*perftest.Node)) (pairs []perftest.Pair, alone []perftest.Measurement) {
	for rail := range rails {
		all := loadNodes(vms)
		for i := range all {
			n := &all[i]
			n.Rail, n.Device, n.IP = fmt.Sprintf("rail-%d", rail+1), fmt.Sprintf("mlx5_%d", rail), fmt.Sprintf("192.0.%d.%d", rail+2, i+1)
			n.Port, n.Card = fmt.Sprintf("vmnic%d", rail+2), fmt.Sprintf("0000:%d0:00.0", rail+3)
			if edit != nil {
				edit(n)
			}
		}
		ring, _ := perftest.Pairs(all, "ring")
		for _, p := range ring {
			m := perftest.Measurement{From: p.Client.VM, To: p.Server.VM, RailFrom: p.Client.Rail, RailTo: p.Server.Rail, Test: test,
				AchievedGbps: 97}
			if p.Client.GPU == nil && strings.HasPrefix(test, perftest.WriteBandwidth) {
				m.Test = perftest.SendBandwidth
			}
			alone = append(alone, m)
		}
		pairs = append(pairs, ring...)
	}
	return pairs, alone
}

// The throughput of all rails at once is compared with the sum of the rails measured alone, limited by the PCIe links that they
// share; if their width is not known, less than the sum proves nothing.
func TestAllRailsAtOnce(t *testing.T) {
	oneCard := func(n *perftest.Node) { n.Card = "0000:3b:00.0" }
	gen3 := func(n *perftest.Node) {
		oneCard(n)
		n.Slot = perftest.Slot{Host: n.Host, Device: n.Port, Gen: 3, Lanes: 16}
	}
	below := func(gen int) func(*perftest.Node) {
		return func(n *perftest.Node) {
			n.PCIeSwitch, n.Slot = "0000:31:00.0", perftest.Slot{Host: n.Host, Device: n.Port, Gen: gen, Lanes: 16}
		}
	}
	gpus := func(n *perftest.Node) {
		below(3)(n)
		n.GPU = &perftest.GPU{Host: "one PCIe switch"}
	}
	farGPUs := func(n *perftest.Node) {
		below(3)(n)
		n.GPU = &perftest.GPU{Host: "one root complex, different root ports", Apart: true}
	}
	twoCards := func(n *perftest.Node) { // rail-1 and rail-2 on one, rail-3 and rail-4 on the other
		n.Card = map[bool]string{true: "0000:3b:00.0", false: "0000:5e:00.0"}[n.Rail < "rail-3"]
	}
	for _, c := range []struct {
		name      string
		link      float64
		test      string
		edit      func(*perftest.Node)
		want      float64
		verdict   perftest.Verdict
		why, hint string
	}{
		{"cards of their own", 1000, perftest.SendBandwidth, nil, 194, perftest.VerdictPass, "rail-1 and rail-2 reach 194.0 Gb/s one by one", ""},
		{"they take from each other", 150, perftest.SendBandwidth, nil, 194, perftest.VerdictFail,
			"", "take bandwidth from each other, most from rail-1 (75.0 of 97.0 Gb/s)"},
		{"ports of one card on Gen3 x16", 115, perftest.SendBandwidth, gen3, 109.65, perftest.VerdictPass,
			"rail-1 and rail-2 share Gen3 x16 at 0000:3b:00.0 of esx-00, which carries 109.6", ""},
		{"ports of one card on Gen3 x16 that gives half", 60, perftest.SendBandwidth, gen3, 109.65, perftest.VerdictFail,
			"", "take bandwidth from each other"},
		{"ports of one card whose link is not known", 115, perftest.SendBandwidth, oneCard, 194, perftest.VerdictUnknown,
			"", "the width of its PCIe link is not known"},
		{"ports of one card whose link is not known, and give less than one", 80, perftest.SendBandwidth, oneCard, 194, perftest.VerdictFail,
			"", "take bandwidth from each other"},
		{"ports of one card whose link is not known, and is wide", 220, perftest.SendBandwidth, oneCard, 194, perftest.VerdictPass, "", ""},
		{"below one PCIe switch", 115, perftest.SendBandwidth, below(3), 109.65, perftest.VerdictPass,
			"rail-1 and rail-2 share the uplink of the PCIe switch at 0000:31:00.0 of esx-00", ""},
		{"below one PCIe switch of Gen4", 500, perftest.SendBandwidth, below(4), 194, perftest.VerdictPass, "", ""},
		{"GPU memory below one PCIe switch", 200, perftest.WriteBandwidthGPU, gpus, 194, perftest.VerdictPass, "", ""},
		{"four queue pairs", 1000, perftest.SendManyQPs, nil, 194, perftest.VerdictPass, "", ""},
		{"ports of two cards whose links are not known, and give less than one port of each", 150, perftest.SendBandwidth, twoCards, 388,
			perftest.VerdictFail, "", "take bandwidth from each other"},
		{"GPU memory beyond the CPU", 115, perftest.WriteBandwidthGPU, farGPUs, 109.65, perftest.VerdictPass, "share the uplink", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rails := max(2, int(c.want/97)) // without a limit each reaches 97
				pairs, alone := onRails(rails, 2, c.test, c.edit)
				shell := &narrow{link: c.link, active: map[string]int{}}
				r := perftest.Runner{Shell: shell, Mode: "sriov", Bandwidth: true, Now: time.Now}
				tests, took := perftest.Bonds(pairs)
				began := time.Now()
				all, err := r.Together(context.Background(), pairs, alone)
				if err != nil || len(all) != 2 || tests != 2 || shell.most != rails {
					t.Fatalf("%v: %d of %d measurements, %d clients at once", err, len(all), tests, shell.most)
				}
				if spent := time.Since(began); spent > took*6/5 || spent < took*4/5 {
					t.Errorf("took %v, said %v", spent, took)
				}
				m := all[0]
				if m.Test != c.test+" "+perftest.LoadRails || m.Load != perftest.LoadRails || m.RailFrom != "" || len(m.Rails) != rails ||
					m.Rails[1].AloneGbps != 97 {
					t.Errorf("%+v", m)
				}
				if m.Verdict != c.verdict || m.ExpectedGbps < c.want-0.1 || m.ExpectedGbps > c.want+0.1 || !strings.Contains(m.Why, c.why) ||
					!strings.Contains(m.Hint, c.hint) || c.hint == "" && m.Hint != "" {
					t.Errorf("%s: %.1f of %.1f\nwhy %s\nhint %s", m.Verdict, m.AchievedGbps, m.ExpectedGbps, m.Why, m.Hint)
				}
				if cuda := strings.Contains(c.test, "--use_cuda"); cuda != (m.GPU != nil) ||
					cuda != strings.Contains(shell.lines[0], "ib_write_bw --use_cuda=0") {
					t.Error(shell.lines[0])
				}
			})
		})
	}
}

// No VM and no host port occurs twice in a round. VMs with one rail, VMs on one host, and VMs whose rail had no result alone are
// left out.
func TestWhichRailsAreMeasuredTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pairs, alone := onRails(2, 6, perftest.SendBandwidth, nil)
		alone = slices.DeleteFunc(alone, func(m perftest.Measurement) bool { return m.From == pairs[0].Client.VM && m.RailFrom == "rail-2" })
		shell := &narrow{link: 1000, active: map[string]int{}}
		r := perftest.Runner{Shell: shell, Mode: "sriov", Bandwidth: true}
		busy := map[int]map[string]bool{}
		r.Progress = func(p perftest.Progress) {
			if p.Result == nil {
				return
			}
			if busy[p.Round] == nil {
				busy[p.Round] = map[string]bool{}
			}
			for _, vm := range []string{p.Result.From, p.Result.To} {
				if busy[p.Round][vm] {
					t.Errorf("round %d: %s twice", p.Round, vm)
				}
				busy[p.Round][vm] = true
			}
		}
		all, err := r.Together(context.Background(), pairs, alone)
		if err != nil || len(all) != 5 || slices.ContainsFunc(all, func(m perftest.Measurement) bool { return m.From == pairs[0].Client.VM }) {
			t.Errorf("%v: %d", err, len(all))
		}
		if tests, _ := perftest.Bonds(pairs[:6]); tests != 0 {
			t.Errorf("one rail: %d", tests)
		}
		for i := range pairs {
			pairs[i].Server.Host = pairs[i].Client.Host
		}
		if tests, _ := perftest.Bonds(pairs); tests != 0 {
			t.Errorf("VMs of one host: %d", tests)
		}
	})
}

// If one rail has a GPU and the other has none, both are measured with host memory, by a test that both can run.
func TestRailsWithAndWithoutGPU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pairs, alone := onRails(2, 2, perftest.WriteBandwidthGPU, func(n *perftest.Node) {
			if n.Rail == "rail-1" {
				n.GPU = &perftest.GPU{Host: "one PCIe switch"}
			}
		})
		shell := &narrow{link: 1000, active: map[string]int{}}
		r := perftest.Runner{Shell: shell, Mode: "gpudirect", Bandwidth: true}
		all, err := r.Together(context.Background(), pairs, alone)
		if err != nil || len(all) != 2 || all[0].Test != perftest.WriteBandwidth+" "+perftest.LoadRails || all[0].GPU != nil ||
			all[0].Verdict != perftest.VerdictPass {
			t.Errorf("%v: %+v", err, all)
		}
		for _, line := range shell.lines {
			if !strings.Contains(line, "ib_write_bw ") || strings.Contains(line, "--use_cuda") {
				t.Error(line)
			}
		}
	})
}

// VMs of one host on different rails are measured in turn if the rails share a card: each would take bandwidth from the other.
func TestVMsThatShareACardTakeTurns(t *testing.T) {
	for card, want := range map[string]time.Duration{"one": 2, "their own": 1} {
		var pairs []perftest.Pair
		for rail := range 4 {
			node := func(end string) perftest.Node {
				vm := fmt.Sprintf("vm-%d-%s", rail%2, end) // one has the first port of both cards, the other the second
				n := perftest.Node{VM: vm, Host: end, Rail: fmt.Sprintf("rail-%d", rail), Device: "mlx5_0",
					Port: fmt.Sprintf("vmnic%d", rail), Card: fmt.Sprint(rail)}
				if card == "one" {
					n.Card = fmt.Sprint(rail / 2)
				}
				return n
			}
			pairs = append(pairs, perftest.Pair{Client: node("a"), Server: node("b")})
		}
		_, single := perftest.Bonds([]perftest.Pair{pairs[0], pairs[2]})
		if tests, took := perftest.Bonds(pairs); tests != 2 || took != want*single {
			t.Errorf("%s card: %d tests take %v, one takes %v", card, tests, took, single)
		}
	}
}
