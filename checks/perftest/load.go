package perftest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// The loads: patterns of simultaneous senders.
const (
	LoadNone   = "none"
	LoadIncast = "incast" // several senders to one receiver, which fills the queue of its switch port
	// every node of one half with one of the other half in both directions, which fills the links between the halves
	LoadBisection = "bisection"
	LoadAll       = "all" // both
)

// Loads returns the single loads that a request such as LoadAll means.
func Loads(wish string) []string {
	switch wish {
	case LoadIncast, LoadBisection:
		return []string{wish}
	case LoadAll:
		return []string{LoadIncast, LoadBisection}
	}
	return nil
}

const (
	// incastMost bounds the senders to one receiver: two already fill its port, and more fill the buffers of a switch faster.
	incastMost = 8
	// loadTime is how long a round sends. perftest excludes the first and the last two seconds from the figures
	// (linux-rdma/perftest, --margin: 2 s by default).
	loadTime = 6 * time.Second
	// asWide bounds how many nodes' counters are read at once; one read takes about askTime.
	asWide    = 16
	askTime   = 500 * time.Millisecond
	loadSizes = "-s 65536 -D 6"
	// raisedSizes are the options of the raised load, used if the first one did not cause congestion.
	raisedSizes = "-s 65536 -D 6 -q 4 -t 512"
)

// Incast returns the rounds in which each node receives once, from up to eight others on as many host ports. The senders rotate
// from round to round, so that each port sends equally often.
func Incast(nodes []Node) [][]Pair {
	var rounds [][]Pair
	for i, to := range nodes {
		ports := map[string]bool{to.hostPort(): true}
		var round []Pair
		for k := 1; k < len(nodes) && len(round) < incastMost; k++ {
			from := nodes[(i+k)%len(nodes)]
			if ports[from.hostPort()] || from.Host == to.Host {
				continue
			}
			ports[from.hostPort()] = true
			round = append(round, Pair{from, to})
		}
		if len(round) > 1 {
			rounds = append(rounds, round)
		}
	}
	return rounds
}

// Bisection returns the rounds in which the halves send to each other, in both directions and all at once: one node for each host
// port, with those of one leaf together if leaves are known. Each node of one half is paired with each of the other half once.
func Bisection(nodes []Node) [][]Pair {
	seen := map[string]bool{}
	var list []Node
	for _, n := range nodes {
		if !seen[n.hostPort()] {
			seen[n.hostPort()] = true
			list = append(list, n)
		}
	}
	slices.SortStableFunc(list, func(a, b Node) int { return cmp.Compare(a.Leaf, b.Leaf) })
	left, right := list[:len(list)/2], list[len(list)/2:]
	if len(left) < 2 { // two nodes are a pair, which is measured without this
		return nil
	}
	var rounds [][]Pair
	for shift := range right {
		var round []Pair
		for i, a := range left {
			if b := right[(i+shift)%len(right)]; a.Host != b.Host {
				round = append(round, Pair{a, b}, Pair{b, a})
			}
		}
		if len(round) > 0 {
			rounds = append(rounds, round)
		}
	}
	return rounds
}

// A LoadPlan is the cost of a load.
type LoadPlan struct {
	Load     string        `json:"load"`
	Rounds   int           `json:"rounds"`
	Senders  int           `json:"senders"` // maximum number of simultaneous senders
	Bytes    int64         `json:"bytes"`   // estimated, over all rounds
	Time     time.Duration `json:"-"`       // estimated
	Seconds  int           `json:"seconds"`
	PeakGbps float64       `json:"peak_gbps"` // maximum rate of all receivers together

	// Raised is the additional cost of the raised round, with more queue pairs, if the rounds of an incast have not caused
	// congestion; 0: there is none.
	RaisedBytes   int64 `json:"raised_bytes,omitempty"`
	RaisedSeconds int   `json:"raised_seconds,omitempty"`
}

// PlanLoad returns the cost of a load between nodes; class reports whether a class is configured; without one no load is raised.
func PlanLoad(load string, nodes []Node, class bool) LoadPlan {
	p := LoadPlan{Load: load}
	for _, round := range loadRounds(load, nodes) {
		into := map[string]float64{}
		for _, pair := range round {
			mbps := pair.linkMbps()
			if mbps <= 0 {
				mbps = unknownMbps
			}
			port := pair.Server.hostPort()
			into[port] = min(into[port]+float64(mbps), float64(max(pair.Server.LinkMbps, mbps)))
		}
		vms := map[string]bool{}
		for _, pair := range round {
			vms[pair.Client.VM], vms[pair.Server.VM] = true, true
		}
		asked := 2 * time.Duration((len(vms)+asWide-1)/asWide) * askTime // before and after
		took := startUp + asked + loadTime
		p.Time += took
		sum := 0.0
		for _, mbps := range into {
			sum += mbps
		}
		bytes := int64(sum * 1e6 / 8 * loadTime.Seconds())
		p.Bytes += bytes
		if load == LoadIncast && class && len(round) > p.Senders {
			p.RaisedBytes, p.RaisedSeconds = bytes, int(took.Seconds())
		}
		p.PeakGbps = max(p.PeakGbps, sum/1000)
		p.Senders = max(p.Senders, len(round))
		p.Rounds++
	}
	p.Seconds = int(p.Time.Seconds())
	return p
}

func loadRounds(load string, nodes []Node) [][]Pair {
	able := slices.DeleteFunc(slices.Clone(nodes), func(n Node) bool { return n.Device == "" || n.NoHCA })
	if load == LoadIncast {
		return Incast(able)
	}
	return Bisection(able)
}

// Load runs the rounds of a load one after the other; the senders of a round start together. Progress is called at the start and
// end of each round; a raised round comes last. If ctx is cancelled, it returns the results so far with ctx's error.
func (r *Runner) Load(ctx context.Context, load string, nodes []Node) ([]Measurement, error) {
	rounds := loadRounds(load, nodes)
	var all []Measurement
	most := 0
	each := PlanLoad(load, nodes, false).Time / time.Duration(max(1, len(rounds)))
	tell := func(i, rounds int, round []Pair, flows []Measurement) {
		if r.Progress == nil {
			return
		}
		done := i - 1
		if flows != nil {
			done = i
		}
		r.Progress(Progress{Load: load, Round: i, Rounds: rounds, Left: each * time.Duration(rounds-done), Pairs: len(round), Pair: round[0],
			Flows: flows})
	}
	for i, round := range rounds {
		if len(round) > len(rounds[most]) {
			most = i
		}
		tell(i+1, len(rounds), round, nil)
		flows := r.loadRound(ctx, load, round, loadSizes)
		if err := ctx.Err(); err != nil {
			return all, err
		}
		all = append(all, flows...)
		tell(i+1, len(rounds), round, flows)
	}
	if load != LoadIncast || r.Class == nil || len(all) == 0 ||
		slices.ContainsFunc(all, func(m Measurement) bool { return m.Error != "" || !m.uncongested(*r.Class) }) {
		return all, nil
	}
	more := len(rounds) + 1
	tell(more, more, rounds[most], nil)
	flows := r.loadRound(ctx, load, rounds[most], raisedSizes)
	if err := ctx.Err(); err != nil {
		return all, err
	}
	for i := range flows {
		flows[i].Raised = true
	}
	tell(more, more, rounds[most], flows)
	return append(all, flows...), nil
}

// uncongested reports whether counters of the sender were read and show neither pause frames nor loss.
func (m *Measurement) uncongested(c Class) bool {
	lost, _, ok := m.senderLost()
	return ok && lost == 0 && m.Counters.From.paused(c.Priority) == 0
}

// nodeCounters reads the counters of all nodes of a round, by VM.
func (r *Runner) nodeCounters(ctx context.Context, round []Pair) map[string]Counters {
	var nodes []Node
	for _, p := range round {
		for _, n := range []Node{p.Client, p.Server} {
			if !slices.ContainsFunc(nodes, func(o Node) bool { return o.VM == n.VM }) {
				nodes = append(nodes, n)
			}
		}
	}
	out := map[string]Counters{}
	var mu sync.Mutex
	_ = inRounds(ctx, [][]Node{nodes}, asWide, func(_, _ int, n Node) error {
		c, _ := r.readCounters(ctx, n) // unreadable counters are left out
		mu.Lock()
		defer mu.Unlock()
		out[n.VM] = c
		return nil
	})
	return out
}

// loadRound runs the tests of a round concurrently and judges them.
func (r *Runner) loadRound(ctx context.Context, load string, round []Pair, sizes string) []Measurement {
	test := WriteBandwidth + " " + load
	flows := make([]Measurement, len(round))
	stalled := make([]bool, len(round)) // interrupted while sending
	for i, p := range round {
		flows[i] = r.blank(p, test)
		flows[i].Load = load
		for _, q := range round {
			if q.Server.hostPort() == p.Server.hostPort() {
				flows[i].Senders++
			}
		}
	}
	var before map[string]Counters
	if r.Loss || r.HostCounters != nil {
		before = r.nodeCounters(ctx, round)
	}
	r.begin(ctx, round, flows, WriteBandwidth, sizes, r.port(), func(i int, out Output) {
		stalled[i] = out.Exit == timedOut || errorCode(WriteBandwidth, out) == "completion_error"
	})
	if before != nil {
		after := r.nodeCounters(ctx, round)
		for i, p := range round {
			moved := Sides{From: after[p.Client.VM].since(before[p.Client.VM], r.Class), To: after[p.Server.VM].since(before[p.Server.VM], r.Class)}
			if moved.known() {
				flows[i].Counters = &moved
			}
		}
	}
	r.judgeLoad(round, flows, stalled)
	return flows
}

// begin runs a test of every pair of a round, with all clients starting together, and stores their results in flows; ended is
// called with each output. Errors are stored in the flows.
func (r *Runner) begin(ctx context.Context, round []Pair, flows []Measurement, test, sizes string, port int,
	ended func(i int, out Output)) {
	ready, start := sync.WaitGroup{}, make(chan struct{})
	ready.Add(len(round))
	go func() {
		ready.Wait()
		close(start)
	}()
	var g errgroup.Group
	for i, p := range round {
		g.Go(func() error {
			m := &flows[i]
			if p.Refusal() != "" {
				ready.Done()
				m.refused(p)
				return nil
			}
			out, err := r.atOnce(ctx, p, test, sizes, port+i, m, ready.Done, start)
			if err != nil {
				m.broken(test, r.Mode, err)
				return nil
			}
			r.read(test, out, m)
			ended(i, out)
			return nil
		})
	}
	_ = g.Wait() // errors are stored in the flows
}

// atOnce runs one test of a round: the server first, then, when all servers of the round wait, the client.
func (r *Runner) atOnce(ctx context.Context, p Pair, test, sizes string, port int, m *Measurement, ready func(),
	start <-chan struct{}) (Output, error) {
	s := r.server(ctx, p, test, sizes, port)
	defer func() {
		s.stop()
		<-s.ended
	}()
	failed := s.await(ctx, p, test, port)
	ready()
	if failed != nil {
		return Output{}, failed
	}
	select {
	case <-start:
	case <-ctx.Done():
		return Output{}, ctx.Err()
	}
	m.Command = r.line(test, sizes, p.Client, port, p.Server.IP)
	clientCtx, stopClient := context.WithCancel(ctx)
	defer stopClient()
	over := s.attend(stopClient)
	out, err := r.client(clientCtx, s, p, test, Command{Line: m.Command, Sudo: !p.Client.User})
	if stopped := over(); stopped && ctx.Err() == nil {
		return Output{}, s.cause(p, test, port)
	}
	if err == nil && out.Exit != 0 {
		if cause := s.lost(p, test, port, errorCode(test, out)); cause != nil {
			return Output{}, cause
		}
	}
	return out, err
}

// senderLoss are the counters that increase at the sender of a lost packet; the others increase at receivers. If several senders
// have one receiver, only these show whose packets were lost.
var senderLoss = []string{
	"packet_seq_err", "local_ack_timeout_err", "implied_nak_seq_err", "roce_adp_retrans", "roce_slow_restart",
	"rcvd_seq_err", "completer_retry_err", "retry_exceeded_err",
}

// senderLost returns how many losses the sender of a flow saw, and the counter; ok is false if it has none of them.
func (m *Measurement) senderLost() (n int64, counter string, ok bool) {
	if m.Counters == nil {
		return 0, "", false
	}
	for _, name := range senderLoss {
		v, there := m.Counters.From[name]
		ok = ok || there
		n += v
		if v > 0 && (counter == "" || v > m.Counters.From[counter]) {
			counter = name
		}
	}
	return n, counter, ok
}

// summary describes a load in hints: "incast of 3 senders to vm-01".
func (m *Measurement) summary() string {
	if m.Load == LoadIncast {
		return fmt.Sprintf("incast of %d senders to %s", m.Senders, m.To)
	}
	return strings.TrimSpace(m.Load + " " + m.From + " -> " + m.To)
}
