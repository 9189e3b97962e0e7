package perftest_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
)

// loadNodes are nodes on a link of 100 Gb/s, each on a host of its own.
func loadNodes(n int) []perftest.Node {
	all := nodes(n, n)
	mask := 1 << 3
	for i := range all {
		all[i].Device, all[i].LinkMbps, all[i].MTU, all[i].PFC = "mlx5_0", 100_000, 4096, &mask
		all[i].IP = fmt.Sprintf("192.0.2.%d", i+1)
	}
	return all
}

// Each node receives once, and each port sends as often as every other. N rounds are the fewest in which N nodes receive once each,
// one at a time.
func TestIncastRounds(t *testing.T) {
	for _, n := range []int{3, 4, 9, 64} {
		rounds := perftest.Incast(loadNodes(n))
		if len(rounds) != n {
			t.Errorf("%d nodes: %d rounds", n, len(rounds))
		}
		receives, sends := map[string]int{}, map[string]int{}
		for _, round := range rounds {
			receives[round[0].Server.VM]++
			seen := map[string]bool{}
			for _, p := range round {
				if p.Server.VM != round[0].Server.VM || seen[p.Client.Host] || p.Client.Host == p.Server.Host {
					t.Errorf("%d nodes: %s", n, p)
				}
				seen[p.Client.Host] = true
				sends[p.Client.VM]++
			}
			if len(round) != min(8, n-1) {
				t.Errorf("%d nodes: %d senders", n, len(round))
			}
		}
		for _, node := range loadNodes(n) {
			if receives[node.VM] != 1 || sends[node.VM] != min(8, n-1) {
				t.Errorf("%d nodes: %s receives %d times and sends %d times", n, node.VM, receives[node.VM], sends[node.VM])
			}
		}
	}
	if r := perftest.Incast(loadNodes(2)); len(r) != 0 {
		t.Errorf("two nodes are a pair: %v", r)
	}
	if r := perftest.Incast(nodes(6, 2)); len(r) != 0 {
		t.Errorf("VMs of one host share a port, which is no incast: %v", r)
	}
}

// Each node of one half is paired with each of the other, and no port sends or receives twice in a round: the minimum is as many
// rounds as the larger half has nodes.
func TestBisectionRounds(t *testing.T) {
	for _, n := range []int{4, 5, 9, 64} {
		all := loadNodes(n)
		for i := range all {
			all[i].Leaf = fmt.Sprintf("leaf-%d", i%2) // the halves are the leaves, not the order of the VMs
		}
		rounds := perftest.Bisection(all)
		least := (n + 1) / 2
		if len(rounds) < least || len(rounds) > 2*least {
			t.Errorf("%d nodes: %d rounds, the least is %d", n, len(rounds), least)
		}
		met := map[string]int{}
		for _, round := range rounds {
			from, to := map[string]bool{}, map[string]bool{}
			for _, p := range round {
				if from[p.Client.VM] || to[p.Server.VM] {
					t.Errorf("%d nodes: %s twice in a round", n, p)
				}
				if n%2 == 0 && p.Client.Leaf == p.Server.Leaf {
					t.Errorf("%d nodes: %s stays on a leaf", n, p)
				}
				from[p.Client.VM], to[p.Server.VM] = true, true
				met[p.String()]++
			}
			if len(round) != 2*(n/2) {
				t.Errorf("%d nodes: %d flows in a round", n, len(round))
			}
		}
		if want := 2 * (n / 2) * least; len(met) != want || slices.Max(slices.Collect(maps.Values(met))) != 1 {
			t.Errorf("%d nodes: %d pairs met, want %d once each", n, len(met), want)
		}
	}
}

// busy are guests in which perftest sends for the requested time, at a fair share of the receiver's port. Counters change as the
// test sets them, by VM.
type busy struct {
	mu      sync.Mutex
	into    map[string]int // clients at work, by the server's address
	lines   []string
	began   []time.Time
	bytes   float64
	asked   map[string]int
	moved   func(vm string, line string) string // the counters after a test with the given last client line
	gbps    float64                             // of a receiving port; 0: 96
	noStart string                              // a client's VM whose test fails
	breaks  string                              // how it fails; "": it cannot begin
	zero    string                              // the counters before a test; "": those of loss, pause and ECN at 0
}

func (b *busy) Exec(ctx context.Context, vm string, c perftest.Command) (perftest.Output, error) {
	if strings.HasPrefix(c.Line, "set -- ") {
		time.Sleep(500 * time.Millisecond)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.asked[vm]++
		zero := "packet_seq_err 0\nout_of_sequence 0\nrx_prio3_pause 0\nnp_ecn_marked_roce_packets 0\n"
		if b.zero != "" {
			zero = b.zero
		}
		if b.asked[vm]%2 == 1 || b.moved == nil {
			return perftest.Output{Stdout: zero}, nil
		}
		return perftest.Output{Stdout: b.moved(vm, b.lines[len(b.lines)-1])}, nil
	}
	at := strings.LastIndex(c.Line, " '192.")
	if at < 0 {
		time.Sleep(time.Second)
		c.OnLine("* Waiting for client to connect... *")
		<-ctx.Done()
		return perftest.Output{}, ctx.Err()
	}
	server := c.Line[at:]
	b.mu.Lock()
	b.lines, b.began = append(b.lines, c.Line), append(b.began, time.Now())
	b.into[server]++
	b.mu.Unlock()
	time.Sleep(time.Second) // time to exchange keys
	b.mu.Lock()
	rate := 96.0
	if b.gbps > 0 {
		rate = b.gbps
	}
	rate /= float64(b.into[server])
	b.bytes += rate * 1e9 / 8 * 6
	b.mu.Unlock()
	time.Sleep(6 * time.Second)
	b.mu.Lock()
	b.into[server]--
	b.mu.Unlock()
	if vm == b.noStart {
		if b.breaks != "" {
			return perftest.Output{Exit: 1, Stderr: b.breaks}, nil
		}
		return perftest.Output{Exit: 1, Stderr: " Couldn't allocate MR\n"}, nil
	}
	return perftest.Output{
		Stdout: fmt.Sprintf(
			" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n 65536      %d           0.00               %.2f   "+
				"           0.1\n"+
				"---------------------------------------------------------------------------------------\n", int(rate*2e9/8/65536), rate)}, nil
}

func newBusy() *busy { return &busy{into: map[string]int{}, asked: map[string]int{}} }

// The time and bytes that are announced are correct within 20 %. The senders of a round begin together.
func TestLoadTakesTheAnnouncedTime(t *testing.T) {
	for _, load := range []string{perftest.LoadIncast, perftest.LoadBisection} {
		synctest.Test(t, func(t *testing.T) {
			b, all := newBusy(), loadNodes(64)
			plan := perftest.PlanLoad(load, all, true)
			began := time.Now()
			r := perftest.Runner{Shell: b, Mode: "sriov", Loss: true, Class: dscp26, Now: time.Now}
			rounds, last := 0, plan.Time+time.Hour
			r.Progress = func(p perftest.Progress) {
				flows := p.Flows
				if flows == nil { // a round begins
					if rounds++; p.Round != rounds || p.Rounds != plan.Rounds || p.Left >= last || rounds == 1 && p.Left != plan.Time {
						t.Errorf("%s: round %d of %d begins with %v left, after %v", load, p.Round, p.Rounds, p.Left, last)
					}
					last = p.Left
					return
				}
				b.mu.Lock()
				defer b.mu.Unlock()
				if len(b.began) != len(flows) || b.began[len(b.began)-1].Sub(b.began[0]) > 100*time.Millisecond {
					t.Errorf("%s: the %d senders began over %v", load, len(b.began), b.began[len(b.began)-1].Sub(b.began[0]))
				}
				b.began = nil
			}
			b.moved = func(string, string) string {
				return "packet_seq_err 0\nout_of_sequence 0\nrx_prio3_pause 900\nnp_ecn_marked_roce_packets 5\n"
			}
			flows, err := r.Load(context.Background(), load, all)
			if err != nil {
				t.Fatal(err)
			}
			if rounds != plan.Rounds {
				t.Errorf("%s: %d rounds of %d were told", load, rounds, plan.Rounds)
			}
			if load == perftest.LoadIncast && (plan.RaisedBytes*64 != plan.Bytes || plan.RaisedSeconds != 9) {
				t.Errorf("one more round: %d bytes of %d, %d s", plan.RaisedBytes, plan.Bytes, plan.RaisedSeconds)
			}
			if took := time.Since(began); took < plan.Time*8/10 || took > plan.Time*12/10 {
				t.Errorf("%s: %v, said %v", load, took, plan.Time)
			}
			if b.bytes < 0.8*float64(plan.Bytes) || b.bytes > 1.2*float64(plan.Bytes) {
				t.Errorf("%s: %.0f bytes, said %d", load, b.bytes, plan.Bytes)
			}
			for _, m := range flows {
				if m.Verdict != perftest.VerdictPass || m.Lossless.Verdict != perftest.VerdictPass || m.Load != load ||
					!strings.Contains(m.Command, "--tclass=106") {
					t.Fatalf("%s %s: %s", m.From, m.Verdict, m.Hint)
				}
			}
		})
	}
}

// Losslessness is judged by counters: pause frames at the sender, and losses that the sender counted.
func TestLosslessnessUnderLoad(t *testing.T) {
	const quiet = "packet_seq_err 0\nout_of_sequence 0\nrx_prio3_pause 0\nnp_ecn_marked_roce_packets 7\n"
	sender := func(lost, paused int) string {
		return fmt.Sprintf("packet_seq_err %d\nout_of_sequence 0\nrx_prio3_pause %d\nnp_ecn_marked_roce_packets 7\n", lost, paused)
	}
	for name, tc := range map[string]struct {
		counters  string // of vm-01, in the rounds in which it sends
		raised    string // likewise, once the load was raised
		gbps      float64
		pfc       int // mask of its host's DCB state; -1: not read
		verdict   perftest.Verdict
		lossless  perftest.Verdict
		says      string
		wasRaised bool
	}{
		"pause and no loss": {counters: sender(0, 500), pfc: 8, verdict: "pass", lossless: "pass", says: "received 500 pause frames"},
		"neither, also when raised": {counters: sender(0, 0), raised: sender(0, 0), pfc: 8, verdict: "pass", lossless: "unknown",
			says: "ECN or deep buffers absorbed it", wasRaised: true},
		"pause once it is raised": {counters: sender(0, 0), raised: sender(0, 300), pfc: 8, verdict: "pass", lossless: "pass",
			says: "received 300 pause frames", wasRaised: true},
		"loss, the host pauses": {counters: sender(40, 0), pfc: 8, verdict: "fail", lossless: "fail",
			says: "at the switch port of esx-01 vmnic2"},
		"loss, the host does not": {counters: sender(40, 0), pfc: 0, verdict: "fail", lossless: "fail",
			says: "at vmnic2 of esx-01: its DCB state does not have priority 3"},
		"loss, nobody knows": {counters: sender(40, 0), pfc: -1, verdict: "fail", lossless: "fail",
			says: "on one side of the cable of esx-01 vmnic2"},
		"loss in spite of pause": {counters: sender(40, 500), pfc: 8, verdict: "fail", lossless: "fail", says: "headroom"},
		"paused without an end": {counters: sender(0, 90000), gbps: 0.02, pfc: 8, verdict: "fail", lossless: "fail",
			says: "PFC deadlock is suspected"},
		"no counter of loss is read": {counters: "rx_prio3_pause 500\n", pfc: 8, verdict: "pass", lossless: "unknown", says: "could not be read"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, all := newBusy(), loadNodes(3)
				b.gbps = tc.gbps
				if all[1].PFC = &tc.pfc; tc.pfc < 0 {
					all[1].PFC = nil
				}
				b.moved = func(vm, line string) string {
					switch {
					case vm != "vm-01" || strings.Contains(line, "192.0.2.2"): // the others, and vm-01 as the receiver
						return quiet
					case strings.Contains(line, "-q 4"):
						return tc.raised
					}
					return tc.counters
				}
				r := perftest.Runner{Shell: b, Mode: "sriov", Loss: true, Class: dscp26}
				flows, err := r.Load(context.Background(), perftest.LoadIncast, all)
				if err != nil {
					t.Fatal(err)
				}
				var told *perftest.Measurement // the last round in which vm-01 sent
				raised := false
				for i, m := range flows {
					if m.From == "vm-01" {
						told = &flows[i]
					} else if m.Lossless.Verdict == perftest.VerdictFail && tc.gbps == 0 {
						t.Errorf("%s -> %s: %s", m.From, m.To, m.Lossless.Evidence)
					}
					raised = raised || m.Raised
				}
				if told.Verdict != tc.verdict || told.Lossless.Verdict != tc.lossless || raised != tc.wasRaised {
					t.Errorf("%s, lossless %s, raised %t: %s", told.Verdict, told.Lossless.Verdict, raised, told.Hint)
				}
				if words := told.Lossless.Words("lossless"); !strings.Contains(words, tc.says) ||
					tc.lossless == "fail" && !strings.Contains(words, "vm-01 -> vm-") {
					t.Errorf("%q does not say %q", words, tc.says)
				}
			})
		})
	}
}

// ECN that is configured but marks nothing while the sender is paused is a warning, as is a flow far below its share; a test that
// breaks off is an error of its own, and the others of the round are measured.
func TestLoadWarns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, all := newBusy(), loadNodes(3)
		b.noStart = "vm-02"
		b.moved = func(string, string) string {
			return "packet_seq_err 0\nout_of_sequence 0\nrx_prio3_pause 500\nnp_ecn_marked_roce_packets 0\n"
		}
		r := perftest.Runner{Shell: b, Mode: "sriov", Loss: true, Class: dscp26}
		flows, err := r.Load(context.Background(), perftest.LoadIncast, all)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range flows {
			switch {
			case m.From == "vm-02" && (m.Error == "" || m.Verdict != perftest.VerdictFail):
				t.Errorf("%s: %s %s", m.From, m.Verdict, m.Error)
			case m.From != "vm-02" && m.To != "vm-02" && m.Error != "":
				t.Errorf("%s: %s", m.From, m.Error)
			case m.From != "vm-02" && m.To == "vm-02" &&
				(m.Verdict != perftest.VerdictWarn || !strings.Contains(m.Hint, "ECN is configured but not active")):
				t.Errorf("%s -> %s: %s %s", m.From, m.To, m.Verdict, m.Hint)
			}
		}
	})
}

// A port carries no more than its rate: the report mentions figures with a larger sum, and a receiver that slows all senders
// equally. A port that is faster than its senders receives all they send.
func TestShareOfTheReceiversPort(t *testing.T) {
	for name, tc := range map[string]struct {
		gbps     float64 // of all senders
		receiver int     // Mbps; the senders have 100G
		moved    string
		verdict  perftest.Verdict
		apart    bool
		expected float64
		says     string
		lossless string
	}{
		"not together": {117.5, 100_000, "", "unknown", true, 49, "show 117.5 Gb/s together, more than the 98.0",
			"not all flows ran at the same time"},
		"apart and lossy": {117.5, 100_000, "packet_seq_err 40\nrx_prio3_pause 0\n", "fail", true, 49, "lost packets (packet_seq_err +40)",
			"lost packets"},
		"slow receiver": {28, 100_000, "", "warn", false, 49, "takes 28.0 of 98.0 Gb/s from all senders together, and none of them stands out",
			"absorbed"},
		"at the rate":     {98, 100_000, "", "pass", false, 49, "", "absorbed"},
		"faster receiver": {190, 400_000, "", "pass", false, 98, "", "absorbed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, all := newBusy(), loadNodes(3)
				b.gbps = tc.gbps
				for i := range all {
					all[i].LinkMbps = 100_000
				}
				all[0].LinkMbps = tc.receiver
				if tc.moved != "" {
					b.moved = func(string, string) string { return tc.moved }
				}
				r := perftest.Runner{Shell: b, Mode: "sriov", Loss: true, Class: dscp26}
				flows, err := r.Load(context.Background(), perftest.LoadIncast, all)
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range flows[:2] { // to the first node
					if m.Verdict != tc.verdict || m.Apart != tc.apart || m.ExpectedGbps < tc.expected-0.1 || m.ExpectedGbps > tc.expected+0.1 ||
						!strings.Contains(m.Hint, tc.says) || !strings.Contains(m.Lossless.Evidence, tc.lossless) {
						t.Errorf("%s, apart %t, expected %.1f: %s; %s", m.Verdict, m.Apart, m.ExpectedGbps, m.Hint, m.Lossless.Evidence)
					}
				}
				if c := perftest.Crowds(flows)[0]; c.Apart != tc.apart {
					t.Errorf("%+v", c)
				}
			})
		})
	}
}

// An interrupted load returns the rounds before, and nothing keeps running.
func TestLoadIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		r := perftest.Runner{Shell: newBusy(), Mode: "sriov"}
		r.Progress = func(p perftest.Progress) {
			if p.Round == 2 && p.Flows != nil {
				cancel()
			}
		}
		flows, err := r.Load(ctx, perftest.LoadIncast, loadNodes(4))
		if err == nil || len(flows) != 6 {
			t.Errorf("%d flows, %v", len(flows), err)
		}
	})
}
