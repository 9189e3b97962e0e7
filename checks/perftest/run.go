package perftest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// The tests, as their command lines begin.
const (
	SendBandwidth = "ib_send_bw"
	SendLatency   = "ib_send_lat"
	SendBothWays  = "ib_send_bw -b"   // both directions at once
	SendManyQPs   = "ib_send_bw -q 4" // four queue pairs
)

// A Shell runs commands in guests.
type Shell interface {
	// Exec runs one POSIX shell command line in the guest of a VM. A non-zero exit status is not an error; an error means that the
	// guest could not be reached or the connection was lost. Cancelling ctx ends the remote command.
	Exec(ctx context.Context, vm string, c Command) (Output, error)
}

// A Command is a command line for a guest.
type Command struct {
	Line   string
	Sudo   bool
	OnLine func(line string) // called for each line of stdout as it arrives; may be nil
}

// Output is what a command printed and how it ended.
type Output struct {
	Stdout, Stderr string
	Exit           int
}

// A Runner runs measurements. Zero values of Port and Limit mean the defaults.
type Runner struct {
	Shell     Shell
	Mode      string // pvrdma, sriov, gpudirect: determines the expectation
	Bandwidth bool
	Latency   bool
	Simulated bool
	Port      int           // first TCP port of the control connection; default 18515
	Limit     time.Duration // per test; default 3 minutes

	AtOnce int // concurrent pairs; default: all of a round

	Repeat int // how often each test runs; the median counts; 0 means once

	Class *Class // configured class of RDMA; nil: none
	Loss  bool   // read the counters of lost packets in the guests before and after each test
	// HostCounters reads the counters of a host's pNIC; nil if no channel exists.
	HostCounters func(ctx context.Context, host, port string) (map[string]int64, error)

	// HostIdle reads what a host's pNIC has carried by counters of which is not known whether they contain the traffic of a test: they
	// are read while none runs; nil if no channel exists.
	HostIdle func(ctx context.Context, host, port string) (map[string]int64, error)

	EthernetMTU int // Ethernet MTU that the fabric must support, in bytes; 9000
	Now         func() time.Time
	// Counters reads how many packets the RDMA device of a host port has sent and received; nil if no channel exists. If they do
	// not increase under load, the traffic used TCP.
	Counters func(ctx context.Context, host, port string) (int64, error)
	// Between is how many tests between rails follow (Cross), for Progress.
	Between int
	// Bonds and BondTime are how many measurements of all rails at once follow (Together), and their estimated time, for
	// Progress.
	Bonds    int
	BondTime time.Duration
	// Progress is called when a pair, or a round of a load, starts and ends, never concurrently; may be nil.
	Progress func(Progress)
}

// Progress is one step of a measurement.
type Progress struct {
	Pairs         int
	Round, Rounds int
	Done, Total   int           // tests
	Left          time.Duration // estimated remaining time; 0 unknown
	Pair          Pair
	Test          string
	Between       int // tests between rails that follow
	Bonds         int // measurements of all rails at once that follow
	BondTime      time.Duration
	Result        *Measurement // nil at the start
	Waits         string       // "": not waiting; else for whom, and nothing else is set

	// For a round of a load, which Load names: Pair is its first flow, Pairs the number of senders, Flows the results; nil at the
	// start.
	Load  string
	Flows []Measurement
}

// Flowing describes the senders in a round of a load: "incast of 3 senders to vm-01", "bisection of 4 senders".
func (p Progress) Flowing() string {
	s := fmt.Sprintf("%s of %d senders", p.Load, p.Pairs)
	if p.Load == LoadIncast {
		s += " to " + p.Pair.Server.VM
	}
	return s
}

// fast is the speed from which one queue pair may not fill a link, so that several queue pairs and both directions are measured
// too (ConnectX-7 firmware 28.39.5050, known issue 3795140).
const fast = 200_000 // Mbps

// tests returns the tests between the two ends of a pair.
func (r *Runner) tests(p Pair) []string {
	if p.Client.GPU != nil && p.Server.GPU != nil {
		return r.chosen([]string{WriteBandwidth, WriteBandwidthGPU}, []string{SendLatency, SendLatencyGPU})
	}
	bandwidth := []string{SendBandwidth}
	if p.linkMbps() >= fast && !p.SameHost() {
		bandwidth = append(bandwidth, SendManyQPs, SendBothWays)
	}
	tests := r.chosen(bandwidth, []string{SendLatency})
	if p.Client.Image != "" && p.Server.Image != "" {
		tests = append(tests, r.chosen([]string{SendBandwidthContainer}, []string{SendLatencyContainer})...)
	}
	return tests
}

func (r *Runner) chosen(bandwidth, latency []string) []string {
	var tests []string
	if r.Bandwidth {
		tests = append(tests, bandwidth...)
	}
	if r.Latency {
		tests = append(tests, latency...)
	}
	return tests
}

// Measure runs the tests of every pair, round by round; the pairs of a round run concurrently. If ctx is cancelled, it returns
// the results so far with ctx's error.
func (r *Runner) Measure(ctx context.Context, pairs []Pair) ([]Measurement, error) {
	rounds := r.rounds(pairs)
	total := 0
	for _, p := range pairs {
		total += len(r.tests(p))
	}
	var (
		mu   sync.Mutex
		all  []Measurement
		ways []Fabric // of all pairs
		done int
	)
	left := r.remaining(pairs, total)
	tell := func(round int, p Pair, test string, m *Measurement, f Fabric) {
		mu.Lock()
		defer mu.Unlock()
		if m != nil {
			all, ways = append(all, *m), append(ways, f)
			done++
		}
		if r.Progress != nil {
			r.Progress(Progress{Pairs: len(pairs), Left: left(done), Round: round + 1, Rounds: len(rounds), Done: done, Total: total, Pair: p,
				Test:    test,
				Between: r.Between, Bonds: r.Bonds, BondTime: r.BondTime, Result: m})
		}
	}
	err := inRounds(ctx, rounds, 0, func(i, k int, p Pair) error {
		ctx := backends.WithReads(ctx)
		var path *Path
		silent, watched := false, false
		p.Client.Idle = r.idle(ctx, p, i > 0, func() { // the rounds before used the same ports
			path, silent = r.path(ctx, p), p.Refusal() == "" && r.silent(ctx, p, r.port()+k)
		})
		way := path
		host := map[string]*Measurement{} // what GPU memory is compared with
		for _, test := range r.tests(p) {
			if err := ctx.Err(); err != nil {
				return err
			}
			tell(i, p, test, nil, Fabric{})
			var m Measurement
			var f Fabric
			base, gpu := strings.CutSuffix(test, useCUDA)
			switch {
			case silent:
				m = r.unheard(p, test, r.port()+k)
			case !strings.HasSuffix(test, inContainer) && p.Refusal() != "":
				m = r.blank(p, test)
				m.refused(p)
			case gpu:
				m = r.measureGPU(ctx, p, test, r.port()+k, host[base])
			default:
				m, f = r.repeated(ctx, p, test, r.port()+k)
				host[test] = &m
			}
			if !silent && m.suspect() { // once more without a test: the load may have begun meanwhile
				if !watched {
					watched, p.Client.Idle = true, worse(p.Client.Idle, r.idle(ctx, p, true, func() {}))
				}
				m.IdleGbps = p.Client.Idle
				if m.Error == "" && m.GPU == nil {
					r.judge(&m, f)
				} else {
					m.judgeBeside(sizing.BandsFor(r.Mode))
				}
			}
			if err := ctx.Err(); err != nil {
				return err // an interrupted test has no result
			}
			m.smallFrames(way, p)
			m.Path, path = path, nil // once per pair
			tell(i, p, test, &m, f)
		}
		return nil
	})
	if err != nil {
		return all, err
	}
	r.rejudge(all, ways)
	compare(all, r.Mode)
	return all, nil
}

// rounds returns the pairs that are measured concurrently.
func (r *Runner) rounds(pairs []Pair) [][]Pair {
	var out [][]Pair
	for _, round := range Rounds(pairs) {
		out = slices.AppendSeq(out, slices.Chunk(round, cmp.Or(r.AtOnce, len(round))))
	}
	return out
}

func (r *Runner) port() int { return cmp.Or(r.Port, 18515) }

func (r *Runner) limit() time.Duration { return cmp.Or(r.Limit, 3*time.Minute) }

// blank returns a measurement before its test.
func (r *Runner) blank(p Pair, test string) Measurement {
	m := Measurement{
		From: p.Client.VM, To: p.Server.VM, RailFrom: p.Client.Rail, RailTo: p.Server.Rail, FromHost: p.Client.Host, ToHost: p.Server.Host,
		Test:   test,
		Device: p.Client.Device, GIDIndex: p.Client.GID, MTU: min(p.Client.MTU, p.Server.MTU), Simulated: r.Simulated, Rows: []Row{},
		IdleGbps: p.Client.Idle,
	}
	if strings.HasSuffix(test, inContainer) {
		m.Image = p.Client.Image
	}
	if r.Class != nil {
		m.TrafficClass = r.Class.TrafficClass
	}
	if r.Now != nil {
		m.Started = r.Now()
	}
	return m
}

// measure runs one test and judges it.
func (r *Runner) measure(ctx context.Context, p Pair, test string, port int) (Measurement, Fabric) {
	m := r.blank(p, test)
	fabric := p.fabric()
	if p.Client.Device == "" || p.Server.Device == "" {
		m.Verdict = VerdictFail
		m.Error, m.Hint = p.missingDevice().noDevice()
		return m, fabric
	}
	moved := r.moving(ctx, p)
	before, beforeErr := r.counters(ctx, p.Client)
	began := time.Now()
	out, err := r.exchange(ctx, p, test, sweep, port, &m)
	m.Counters = moved(ctx)
	took := time.Since(began)
	after, afterErr := r.counters(ctx, p.Client)
	if r.Counters != nil && beforeErr == nil && afterErr == nil && after >= before { // a counter that decreased was reset
		fabric.Counted, fabric.Packets = true, after-before
		m.Packets = &fabric.Packets
	}
	if err != nil {
		m.containerHint(m.broken(test, r.Mode, err))
		return m, fabric
	}
	r.read(test, out, &m)
	m.containerHint(errorCode(test, out))
	if m.Error == "" && test == SendLatency {
		r.tail(ctx, p, port, &m)
	}
	if m.Error == "" {
		m.OtherGbps = m.other(took, fabric.LinkMbps)
		r.judge(&m, fabric)
	}
	return m, fabric
}

// judge judges the figures of a test, then its counters.
func (r *Runner) judge(m *Measurement, f Fabric) {
	Judge(m, r.Mode, f)
	m.prove(r.Class)
	m.judgeLoss()
	m.judgeBeside(sizing.BandsFor(r.Mode))
}

// moving reads the counters of both ends; the returned function reads them again and returns the increases, nil if nothing could
// be read.
func (r *Runner) moving(ctx context.Context, p Pair) func(context.Context) *Sides {
	if !r.Loss && r.HostCounters == nil || p.SameHost() {
		return func(context.Context) *Sides { return nil }
	}
	before := r.both(ctx, p)
	return func(ctx context.Context) *Sides {
		after := r.both(ctx, p)
		moved := Sides{From: after.From.since(before.From, r.Class), To: after.To.since(before.To, r.Class)}
		if !moved.known() {
			return nil
		}
		return &moved
	}
}

// rejudge judges the bandwidth of each pair again with the measured latency between the two, which determines the rate of small
// messages.
func (r *Runner) rejudge(all []Measurement, ways []Fabric) {
	latency := map[string]float64{}
	for _, m := range all {
		if m.Test == SendLatency && m.Error == "" {
			latency[m.Pair()] = m.AchievedUs
		}
	}
	for i := range all {
		m := &all[i]
		if us := latency[m.Pair()]; us > 0 && m.Error == "" && m.GPU == nil && !m.isLatency() && len(m.Rows) > 0 {
			ways[i].LatencyUs = us
			r.judge(m, ways[i])
		}
	}
}

// missingDevice returns the node without a device.
func (p Pair) missingDevice() Node {
	if p.Client.Device == "" {
		return p.Client
	}
	return p.Server
}

// noDevice says why nothing can be measured with a node, and what to do.
func (n Node) noDevice() (why, hint string) {
	if n.Unread != "" {
		return n.Unread, n.Remedy
	}
	return "no RDMA device with an active port in " + n.VM, "see the checks of the guest: driver, port state, address"
}

func (r *Runner) counters(ctx context.Context, n Node) (int64, error) {
	if r.Counters == nil {
		return 0, nil
	}
	return backends.Again(ctx, "packets", func() (int64, error) { return r.Counters(ctx, n.Host, n.Port) })
}

// sweep measures every message size up to 8 MiB, a thousand messages each.
const sweep = "-a"

// line returns the command line of one side; peer is empty for the server. perftest hangs forever if its peer ends unexpectedly,
// hence timeout, in the process group by which the command is ended, and it buffers its output without a terminal, hence stdbuf.
func (r *Runner) line(test, sizes string, n Node, port int, peer string) string {
	limit := int(r.limit().Seconds())
	test, container := strings.CutSuffix(test, inContainer)
	environment, test := n.gpuLine(test)
	if !container {
		test = n.near(test)
	}
	line := fmt.Sprintf("%sstdbuf -oL timeout --foreground -k 5 %d %s -d %s -i 1 -x %d -p %d -F %s", environment, limit, test, quote(n.Device),
		n.GID, port, sizes) + r.Class.option()
	if !strings.Contains(test, SendLatency) {
		line += " --report_gbits"
	}
	if peer != "" {
		line += " " + quote(peer)
	}
	switch {
	case container:
		return n.containerLine(limit, line)
	case !n.User:
		return "ulimit -l unlimited; " + line
	}
	return line
}

// near returns the command of a test by its path, on the CPUs near the device.
func (n Node) near(test string) string {
	if n.Dir != "" && !strings.Contains(test, "/") {
		test = n.Dir + "/" + test
	}
	if n.Bind != "" {
		test = n.Bind + " " + test
	}
	return test
}

// quote quotes s as one word for a POSIX shell.
func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
