package perftest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// guests answer like perftest in VMs with a link of the given Gb/s; one queue pair reaches only a share of it.
type guests struct {
	gbps, one float64
	gpu       float64 // share of it that GPU memory reaches
	us        float64
	fail      string // a command line that contains this ends with status 1
	pinged    string
	silent    bool   // the server's port is filtered
	taken     string // port on which somebody else's server waits
	probed    atomic.Bool
	stop      func() // called by the client of the second test

	before, after map[string]string // counters by VM
	idle          map[string]string // instead of before, when they are read again before the first test
	series        []float64         // Gb/s of one test after the other, instead of gbps

	mu    sync.Mutex
	lines []string // of clients
	asked map[string]int
}

// counted returns the counters of a VM: before until the first test, after once it has run, and so on in turns; they stand still
// while no test runs, except for idle.
func (g *guests) counted(vm string) perftest.Output {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.asked == nil {
		g.asked = map[string]int{}
	}
	g.asked[vm]++
	switch {
	case g.asked[vm] == 2 && g.idle != nil:
		return perftest.Output{Stdout: g.idle[vm]}
	case len(g.lines)%2 == 0:
		return perftest.Output{Stdout: g.before[vm]}
	}
	return perftest.Output{Stdout: g.after[vm]}
}

func (g *guests) Exec(ctx context.Context, vm string, c perftest.Command) (perftest.Output, error) {
	if strings.Contains(c.Line, "ping -n") {
		return perftest.Output{Stdout: g.pinged}, nil
	}
	if strings.HasPrefix(c.Line, "set -- ") {
		return g.counted(vm), nil
	}
	if c.Line == "sleep 1" {
		return perftest.Output{}, ctx.Err()
	}
	if c.Line == "ss -ltn" {
		return perftest.Output{Stdout: "State  Recv-Q Send-Q Local Address:Port Peer Address:PortProcess\nLISTEN 0      10                 *:" +
			g.taken + "            *:*    \n"}, nil
	}
	if strings.Contains(c.Line, "/dev/tcp/") {
		g.probed.Store(true)
		if g.silent {
			return perftest.Output{Exit: 124}, nil
		}
		return perftest.Output{Exit: 1, Stderr: "bash: connect: Connection refused\n"}, nil
	}
	client := strings.HasSuffix(c.Line, "'10.0.0.2'")
	if !client {
		c.OnLine("* Waiting for client to connect... *")
		<-ctx.Done()
		return perftest.Output{}, ctx.Err()
	}
	g.mu.Lock()
	g.lines = append(g.lines, c.Line)
	n := len(g.lines)
	g.mu.Unlock()
	if g.stop != nil && n == 2 {
		g.stop()
		return perftest.Output{}, ctx.Err()
	}
	if g.fail != "" && strings.Contains(c.Line, g.fail) {
		return perftest.Output{Exit: 1, Stderr: " Couldn't allocate MR\n"}, nil
	}
	if strings.Contains(c.Line, "ib_send_lat") {
		us := g.us
		if strings.Contains(c.Line, "--use_cuda") {
			us /= g.gpu
		}
		return perftest.Output{Stdout: latency(c.Line, us)}, nil
	}
	rate := g.gbps * g.one
	if len(g.series) > 0 {
		rate = g.series[(n-1)%len(g.series)]
	}
	switch {
	case strings.Contains(c.Line, " -q 4 "):
		rate = g.gbps
	case strings.Contains(c.Line, " -b "):
		rate = g.gbps * g.one * 1.9
	}
	if strings.Contains(c.Line, "--use_cuda") {
		rate *= g.gpu
	}
	return perftest.Output{
		Stdout: fmt.Sprintf(" Mtu             : 4096[B]\n #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"+
			" 65536      1000             %.2f              %.2f                0.18\n----------\n", rate, rate)}, nil
}

func latency(line string, us float64) string {
	iterations, p999 := 1000, 9*us
	if strings.Contains(line, " -s 2 -n ") {
		_, rest, _ := strings.Cut(line, " -n ")
		fmt.Sscan(rest, &iterations)
		p999 = 2 * us
	}
	return fmt.Sprintf(
		" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99%% percentile[usec]   99.9%% "+
			"percentile[usec] \n"+
			" 2       %d          %.2f           %.2f         %.2f               %.2f          0.10            %.2f              %.2f\n----------\n",
		iterations, us, 9*us, us, us, us*1.1, p999)
}

func pairOf(mbps int) []perftest.Pair {
	end := func(n int) perftest.Node {
		return perftest.Node{VM: fmt.Sprintf("vm-%d", n), Host: fmt.Sprintf("esx-%d", n), Port: "vmnic2", IP: fmt.Sprintf("10.0.0.%d", n),
			Device: "mlx5_0", MTU: 4096, LinkMbps: mbps, User: true}
	}
	return []perftest.Pair{{Client: end(1), Server: end(2)}}
}

func measure(t *testing.T, g *guests, mbps int) []perftest.Measurement {
	t.Helper()
	r := perftest.Runner{Shell: g, Mode: "sriov", Bandwidth: true, Latency: true}
	all, err := r.Measure(context.Background(), pairOf(mbps))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// On links of 200G and more one queue pair may not reach line rate; both results are reported.
func TestFastLinksAreMeasuredWithMoreQueuePairsAndBothWays(t *testing.T) {
	for _, tt := range []struct {
		mbps int
		want []string
	}{
		{100_000, []string{perftest.SendBandwidth, perftest.SendLatency}},
		{200_000, []string{perftest.SendBandwidth, perftest.SendManyQPs, perftest.SendBothWays, perftest.SendLatency}},
		{400_000, []string{perftest.SendBandwidth, perftest.SendManyQPs, perftest.SendBothWays, perftest.SendLatency}},
	} {
		var got []string
		for _, m := range measure(t, &guests{gbps: float64(tt.mbps) / 1000 * 0.97, one: 1, us: 2}, tt.mbps) {
			got = append(got, m.Test)
			if m.Verdict != perftest.VerdictPass {
				t.Errorf("%d: %s %s %s", tt.mbps, m.Test, m.Verdict, m.Hint)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%d Mbps: %v", tt.mbps, got)
		}
	}
}

func TestOneSlowQueuePairIsNoBrokenPath(t *testing.T) {
	all := measure(t, &guests{gbps: 390, one: 0.6, us: 2}, 400_000)
	one, many, both := all[0], all[1], all[2]
	if one.Verdict != perftest.VerdictWarn || !strings.Contains(one.Hint, "four do (390.0 Gb/s)") {
		t.Errorf("%s: %s", one.Verdict, one.Hint)
	}
	if many.Verdict != perftest.VerdictPass || many.AchievedGbps != 390 {
		t.Errorf("%+v", many)
	}
	if both.Verdict != perftest.VerdictFail || both.ExpectedGbps < 700 || !strings.Contains(both.Why, "both ways 1.8 times") {
		t.Errorf("%s, %.1f expected: %s", both.Verdict, both.ExpectedGbps, both.Why)
	}
	// If several queue pairs are not faster, the path is slow.
	all = measure(t, &guests{gbps: 200, one: 1, us: 2}, 400_000)
	if all[0].Verdict != perftest.VerdictFail || all[1].Verdict != perftest.VerdictFail {
		t.Errorf("%s, %s", all[0].Verdict, all[1].Verdict)
	}
}

// PAIR-LAT-TAIL-009 requires the p99.9 of 100000 messages: in a sweep of a thousand messages that is the slowest one.
func TestTailIsMeasuredWithEnoughMessages(t *testing.T) {
	for _, tt := range []struct {
		us   float64
		want int64
	}{{2, 100_000}, {50, 50_000}, {2000, 10_000}} {
		g := &guests{gbps: 97, one: 1, us: tt.us}
		all := measure(t, g, 100_000)
		row := all[1].Rows[0]
		if row.Iterations != tt.want || row.P999Us != 2*tt.us {
			t.Errorf("%g us: %d messages, p99.9 %.1f", tt.us, row.Iterations, row.P999Us)
		}
		if !strings.Contains(all[1].Command, " -a ") {
			t.Errorf("the command is that of the sweep: %s", all[1].Command)
		}
	}
	all := measure(t, &guests{gbps: 97, one: 1, us: 2, fail: " -s 2 "}, 100_000)
	if m := all[1]; m.Verdict != perftest.VerdictPass || m.Rows[0].Iterations != 1000 || m.Error != "" {
		t.Errorf("a sample that failed took the sweep with it: %+v", m)
	}
}

func TestPathIsPingedBeforeItIsLoaded(t *testing.T) {
	for _, tt := range []struct {
		name, said string
		want       *perftest.Path
	}{
		{"no ping in the guest", "sh: ping: not found\n", nil},
		{"sound",
			"5 packets transmitted, 5 received, 0% packet loss, time 804ms\npayload 8972\n10.0.0.2 dev ens1 lladdr 00:50:56:AA:00:02 " +
				"REACHABLE\n10.0.0.22 dev ens1 lladdr 00:50:56:aa:00:22 STALE\n",
			&perftest.Path{Payload: 8972, PeerMAC: "00:50:56:aa:00:02"}},
		{"one lost, nothing large", "5 packets transmitted, 4 received, 20% packet loss, time 804ms\n10.0.0.2 dev ens1 INCOMPLETE\n",
			&perftest.Path{Loss: 20}},
		{"errors between", "5 packets transmitted, 0 received, +5 errors, 100% packet loss, time 804ms\n", &perftest.Path{Loss: 100}},
		{"nonsense", "99999999999999999999 packets transmitted, 1 received\n", nil},
	} {
		all := measure(t, &guests{gbps: 97, one: 1, us: 2, pinged: tt.said}, 100_000)
		if d := cmp.Diff(tt.want, all[0].Path); d != "" || all[1].Path != nil {
			t.Errorf("%s: (-want +got)\n%s", tt.name, d)
		}
	}
}

func TestProgressReportsItsCost(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	var seen []perftest.Progress
	r := perftest.Runner{
		Shell: &guests{gbps: 97, one: 1, us: 2}, Mode: "sriov", Bandwidth: true, Latency: true, Now: func() time.Time { return now },
		Progress: func(p perftest.Progress) { seen = append(seen, p); now = now.Add(2 * time.Second) },
	}
	if _, err := r.Measure(context.Background(), pairOf(100_000)); err != nil {
		t.Fatal(err)
	}
	first, last := seen[0], seen[len(seen)-1]
	if first.Left != r.Estimate(pairOf(100_000)) || first.Left < 5*time.Second || first.Left > 20*time.Second || first.Pairs != 1 ||
		first.Total != 2 {
		t.Errorf("%+v", first)
	}
	if last.Left != 0 || last.Done != 2 {
		t.Errorf("%+v", last)
	}
	if half := seen[1]; half.Done != 1 || half.Left != 2*time.Second {
		t.Errorf("%+v", half)
	}
}

// With a bound on concurrent pairs a round takes place in several parts, and the estimate is of all of them.
func TestPairsAtOnce(t *testing.T) {
	var nodes []perftest.Node
	for i := range 8 {
		nodes = append(nodes, perftest.Node{VM: fmt.Sprint("vm-", i), Host: fmt.Sprint("esx-", i), IP: fmt.Sprint("10.0.0.", 1+i%2),
			Port: "vmnic4", Device: "mlx5_0", LinkMbps: 100_000})
	}
	pairs := []perftest.Pair{{Client: nodes[0], Server: nodes[1]}, {Client: nodes[2], Server: nodes[3]}, {Client: nodes[4], Server: nodes[5]},
		{Client: nodes[6], Server: nodes[7]}}
	whole := perftest.Runner{Bandwidth: true}
	for atOnce, parts := range map[int]int{0: 1, 1: 4, 2: 2, 3: 2, 4: 1, 9: 1} {
		rounds := map[int]int{}
		r := perftest.Runner{Shell: &guests{gbps: 97, one: 1}, Mode: "sriov", Bandwidth: true, AtOnce: atOnce,
			Progress: func(p perftest.Progress) {
				if p.Result != nil {
					rounds[p.Round]++
				}
			}}
		got, err := r.Measure(t.Context(), pairs)
		if err != nil || len(got) != len(pairs) {
			t.Errorf("at once %d: %d results, %v", atOnce, len(got), err)
		}
		if len(rounds) != parts {
			t.Errorf("at once %d: %v tests by round, want %d rounds", atOnce, rounds, parts)
		}
		if got, want := r.Estimate(pairs), whole.Estimate(pairs)*time.Duration(parts); got != want {
			t.Errorf("at once %d: estimated %s, want %s", atOnce, got, want)
		}
	}
}

// An estimate grows with the rounds, not with the pairs of a round, and shrinks as the speed grows.
func TestEstimate(t *testing.T) {
	r := perftest.Runner{Bandwidth: true, Latency: true}
	of := func(n, mbps int) time.Duration {
		all := nodes(n, n)
		for i := range all {
			all[i].LinkMbps = mbps
		}
		pairs, err := perftest.Pairs(all, "all")
		if err != nil {
			t.Fatal(err)
		}
		return r.Estimate(pairs)
	}
	if one := of(2, 100_000); of(8, 100_000) != 7*one || of(2, 25_000) <= one || of(2, 0) <= of(2, 25_000) || of(0, 0) != 0 {
		t.Errorf("2 nodes %v, 8 nodes %v, 25G %v, unknown %v", one, of(8, 100_000), of(2, 25_000), of(2, 0))
	}
}

func TestResultsAreKeptWhenTheMeasurementIsStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := perftest.Runner{Shell: &guests{gbps: 97, one: 1, us: 2, stop: cancel}, Mode: "sriov", Bandwidth: true, Latency: true}
	all, err := r.Measure(ctx, pairOf(100_000))
	if !errors.Is(err, context.Canceled) || len(all) != 1 || all[0].Test != perftest.SendBandwidth || all[0].Verdict != perftest.VerdictPass {
		t.Errorf("%v, %v", all, err)
	}
}

// One of five runs is slow: the median is not affected, and the spread shows it.
func TestTheMedianOfRepeatedTestsCounts(t *testing.T) {
	r := perftest.Runner{Shell: &guests{series: []float64{97, 96, 60, 98, 96.5}}, Mode: "sriov", Bandwidth: true, Repeat: 5}
	all, err := r.Measure(context.Background(), pairOf(100_000))
	if err != nil {
		t.Fatal(err)
	}
	if m := all[0]; len(all) != 1 || m.AchievedGbps != 96.5 || m.Repeats != 5 || m.Verdict != perftest.VerdictPass || m.Spread < 39 ||
		m.Spread > 40 {
		t.Errorf("%.1f Gb/s of %d, spread %.1f %%, %s", m.AchievedGbps, m.Repeats, m.Spread, m.Verdict)
	}
}

// Client and server run the perftest that is the same in all guests, on the CPUs near their device; in a container neither applies.
func TestProgramAndCPUs(t *testing.T) {
	pairs := pairOf(100_000)
	c, s := &pairs[0].Client, &pairs[0].Server
	c.Dir, c.Bind, s.Dir, s.Bind = "/opt/perftest-same/bin", "taskset -c 8-15", "/opt/perftest-same/bin",
		"numactl --cpunodebind=1 --preferred=1"
	c.Engine, c.Image, s.Engine, s.Image = "docker", "image", "docker", "image"
	g := &guests{gbps: 97, one: 1, us: 2}
	r := &perftest.Runner{Shell: g, Bandwidth: true, Latency: true}
	if _, err := r.Measure(t.Context(), pairs); err != nil {
		t.Fatal(err)
	}
	for _, line := range g.lines {
		near := strings.Contains(line, " taskset -c 8-15 /opt/perftest-same/bin/ib_send_") ||
			strings.Contains(line, " numactl --cpunodebind=1 --preferred=1 /opt/perftest-same/bin/ib_send_")
		if container := strings.Contains(line, "docker run"); near == container {
			t.Errorf("%s", line)
		}
	}
	if len(g.lines) < 3 {
		t.Errorf("%q", g.lines)
	}
}
