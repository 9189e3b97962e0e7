package perftest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// LoadRails is the load of all rails between two VMs at once.
const LoadRails = "rails"

// A RailShare is the throughput of one rail while the other rails of the same two VMs were in use, and its throughput alone.
type RailShare struct {
	Rail      string  `json:"rail"`
	Gbps      float64 `json:"gbps"`
	AloneGbps float64 `json:"alone_gbps"`
}

// A bond is two VMs with the pairs of all rails that they share.
type bond []Pair

// Bonds returns how many measurements of all rails at once the pairs allow, and their estimated time.
func Bonds(pairs []Pair) (tests int, took time.Duration) {
	rounds := firstFit(bonds(pairs, func(Pair) bool { return true }), bond.shared)
	for _, round := range rounds {
		tests += len(round)
	}
	return tests, time.Duration(len(rounds)) * (startUp + loadTime)
}

// bonds groups the pairs of several rails by their VMs; which reports whether a pair is included. VMs on one host share no cable.
func bonds(pairs []Pair, which func(Pair) bool) []bond {
	whole := slices.DeleteFunc(slices.Clone(pairs), func(p Pair) bool {
		return p.Client.Rail == "" || p.SameHost() || p.Client.Device == "" || p.Server.Device == "" || !which(p)
	})
	var out []bond
	for _, b := range grouped(whole, func(p Pair) [2]string { return [2]string{p.Client.VM, p.Server.VM} }) {
		if len(b) > 1 {
			out = append(out, b)
		}
	}
	return out
}

// shared returns what two concurrent bonds must not share: VMs, host ports, cards and PCIe switches.
func (b bond) shared() []string {
	var keys []string
	for _, p := range b {
		for _, n := range []Node{p.Client, p.Server} {
			keys = append(keys, "vm "+n.VM, n.hostPort(), "card "+n.Host+" "+cmp.Or(n.Card, n.hostPort()),
				"switch "+n.Host+" "+cmp.Or(n.PCIeSwitch, n.hostPort()))
		}
	}
	return keys
}

// Together measures all rails between two VMs at once, for every two VMs whose rails were measured alone: alone are those
// measurements. If ctx is cancelled, it returns the results so far with ctx's error.
func (r *Runner) Together(ctx context.Context, pairs []Pair, alone []Measurement) ([]Measurement, error) {
	if !r.Bandwidth {
		return nil, nil
	}
	own := map[string]float64{}
	for _, m := range alone {
		if m.Error == "" && m.Load == "" {
			own[m.Pair()+" "+m.Test] = m.AchievedGbps
		}
	}
	all := bonds(pairs, func(p Pair) bool { return own[p.String()+" "+r.best(p, own)] > 0 })
	rounds := firstFit(all, bond.shared)
	var mu sync.Mutex
	var out []Measurement
	tell := func(round int, b bond, m *Measurement) {
		mu.Lock()
		defer mu.Unlock()
		if m != nil {
			out = append(out, *m)
		}
		if r.Progress != nil {
			shown := b[0]
			shown.Client.Rail, shown.Server.Rail = "", ""
			r.Progress(Progress{Pairs: len(all), Left: time.Duration(len(rounds)-round) * (startUp + loadTime), Round: round + 1,
				Rounds: len(rounds),
				Done:   len(out), Total: len(all), Pair: shown, Test: r.common(b, own) + " " + LoadRails, Result: m})
		}
	}
	err := inRounds(ctx, rounds, 0, func(i, k int, b bond) error {
		tell(i, b, nil)
		test, port := r.common(b, own), r.port()
		for _, before := range rounds[i][:k] {
			port += len(before)
		}
		m := r.bond(ctx, b, port, test, func(p Pair) float64 {
			return cmp.Or(own[p.String()+" "+test], own[p.String()+" "+r.best(p, own)])
		})
		if err := ctx.Err(); err != nil {
			return err // an interrupted test has no result
		}
		tell(i, b, &m)
		return nil
	})
	return out, err
}

// best returns the bandwidth test with the highest result of a rail alone: with GPU memory if that was measured.
func (r *Runner) best(p Pair, own map[string]float64) string {
	tests := []string{SendBandwidth, SendManyQPs}
	if p.Client.GPU != nil && p.Server.GPU != nil {
		tests = []string{WriteBandwidth}
		if own[p.String()+" "+WriteBandwidthGPU] > 0 {
			return WriteBandwidthGPU
		}
	}
	return slices.MaxFunc(tests, func(a, b string) int {
		return cmp.Compare(own[p.String()+" "+a], own[p.String()+" "+b])
	})
}

// common returns the test by which all rails of a bond are measured: the best of each if that is the same for all. If some rails
// have no usable GPU, it is a test with host memory, which every pair can run.
func (r *Runner) common(b bond, own map[string]float64) string {
	first := r.best(b[0], own)
	same, cuda := true, false
	for _, p := range b {
		best := r.best(p, own)
		gpu := strings.HasSuffix(best, useCUDA)
		same, cuda = same && best == first, cuda || gpu || best == WriteBandwidth
	}
	switch {
	case same:
		return first
	case cuda:
		return WriteBandwidth
	}
	return SendManyQPs // it fills a link that one queue pair does not
}

// bond measures all rails between two VMs at once with one test, and judges the sum.
func (r *Runner) bond(ctx context.Context, b bond, port int, test string, of func(Pair) float64) Measurement {
	m := r.blank(b[0], test+" "+LoadRails)
	m.RailFrom, m.RailTo, m.Load, m.Senders = "", "", LoadRails, 1
	if strings.HasSuffix(test, useCUDA) {
		m.GPU = &Ends{From: *b[0].Client.GPU, To: *b[0].Server.GPU}
	}
	before := r.bondCounters(ctx, b)
	flows := backends.Each(b, func(p Pair) Measurement { return r.blank(p, test) })
	r.begin(ctx, b, flows, test, loadSizes, port, func(int, Output) {})
	after := r.bondCounters(ctx, b)
	var moved Sides
	for i, p := range b {
		moved.From, moved.To = moved.From.plus(after[i].From.since(before[i].From, r.Class)),
			moved.To.plus(after[i].To.since(before[i].To, r.Class))
		f := flows[i]
		m.Command = cmp.Or(m.Command, f.Command)
		if f.Error != "" {
			m.Verdict, m.Error, m.Hint = f.Verdict, p.Client.Rail+": "+f.Error, f.Hint
			continue
		}
		last := f.Rows[len(f.Rows)-1]
		m.Rails = append(m.Rails, RailShare{p.Client.Rail, last.AvgGbps, of(p)})
		m.AchievedGbps += last.AvgGbps
		if len(m.Rows) == 0 {
			m.Rows = append(m.Rows, Row{Bytes: last.Bytes})
		}
		m.Rows[0].AvgGbps, m.Rows[0].Iterations = m.AchievedGbps, m.Rows[0].Iterations+last.Iterations
	}
	if moved.known() {
		m.Counters = &moved
	}
	if m.Error != "" {
		m.AchievedGbps = 0
		return m
	}
	m.judgeBond(r.Mode, b, of)
	m.judgeLoss()
	return m
}

// plus adds the counters of two devices.
func (c Counters) plus(more Counters) Counters {
	out := Counters{}
	for _, c := range []Counters{c, more} {
		for name, n := range c {
			out[name] += n
		}
	}
	return out
}

// bondCounters reads the counters of both ends of each pair.
func (r *Runner) bondCounters(ctx context.Context, b bond) []Sides {
	out := make([]Sides, len(b))
	if !r.Loss && r.HostCounters == nil {
		return out
	}
	_ = inRounds(ctx, [][]Pair{b}, asWide, func(_, i int, p Pair) error {
		out[i] = r.both(ctx, p)
		return nil
	})
	return out
}

// judgeBond compares the throughput of all rails together with the sum of each rail alone, limited by the PCIe links. If the
// width of a shared link is not known, less than the sum proves nothing.
func (m *Measurement) judgeBond(mode string, b bond, of func(Pair) float64) {
	gpu := strings.HasSuffix(m.Test, useCUDA+" "+LoadRails)
	var names []string
	sum := 0.0
	for _, p := range b {
		sum += of(p)
		names = append(names, p.Client.Rail)
	}
	m.ExpectedGbps = sum
	m.Why = fmt.Sprintf("%s reach %.1f Gb/s one by one", joined(names), sum)
	blind, sure := "", sum
	for _, end := range []func(Pair) Node{func(p Pair) Node { return p.Client }, func(p Pair) Node { return p.Server }} {
		got, certain, why, unknown := ceiling(b, end, of, gpu)
		sure = min(sure, certain)
		if got < m.ExpectedGbps {
			m.ExpectedGbps, m.Why = got, fmt.Sprintf("%s reach %.1f Gb/s one by one; %s", joined(names), sum, why)
		}
		blind = cmp.Or(blind, unknown)
	}
	bands := sizing.BandsFor(mode)
	share := m.AchievedGbps / m.ExpectedGbps
	least := slices.MinFunc(m.Rails, func(x, y RailShare) int { return cmp.Compare(x.Gbps/x.AloneGbps, y.Gbps/y.AloneGbps) })
	switch {
	case share >= bands.PassShare:
		m.Verdict = VerdictPass
		return
	case blind != "" && m.AchievedGbps >= bands.PassShare*sure:
		m.Verdict, m.Hint = VerdictUnknown, blind
		return
	case share >= bands.WarnShare:
		m.Verdict = VerdictWarn
	default:
		m.Verdict = VerdictFail
	}
	m.Hint = fmt.Sprintf("the rails take bandwidth from each other, most from %s (%.1f of %.1f Gb/s): check the PCIe links and switches "+
		"that they share, the NUMA node of the VM, and spines that are narrower than their leaves", least.Rail, least.Gbps, least.AloneGbps)
}

// ceiling returns the throughput that the PCIe links of one end allow for all rails together, and the link that limits it: two
// ports of 100 Gb/s need more than Gen3 x16 (ConnectX-5 VPI User Manual, "Specifications"; NVIDIA/nccl issue 452). unknown names
// a link that several rails share and whose width is not known; sure is what all links carry at least, because one rail alone
// reached it. The uplink of a PCIe switch is assumed to be as wide as the widest card below it (unverified: no interface of
// vSphere shows it, and NVIDIA/nccl issue 439 describes a switch for which its owner says otherwise); data of GPU memory does not
// use it if only PCIe switches are between GPU and card (NVIDIA, GPUDirect RDMA, "Supported Systems").
func ceiling(b bond, end func(Pair) Node, of func(Pair) float64, gpu bool) (gbps, sure float64, why, unknown string) {
	type link struct {
		rails        []string
		sum, widest  float64
		sure, most   float64 // of the links below: the certain sum, and the largest
		slot         Slot
		host, behind string
		below        bool // all data stays below the switch
	}
	cards := map[string]*link{}
	var order []string
	for _, p := range b {
		n := end(p)
		key := cmp.Or(n.Card, "rail "+n.Rail) // its card may not be known
		if cards[key] == nil {
			cards[key] = &link{slot: n.Slot, host: n.Host, behind: n.PCIeSwitch, below: gpu}
			order = append(order, key)
		}
		c := cards[key]
		c.rails, c.below = append(c.rails, n.Rail), c.below && n.GPU != nil && n.GPU.near()
		c.sum, c.most = c.sum+of(p), max(c.most, of(p))
	}
	switches := map[string]*link{}
	var limits []string
	for _, key := range order {
		c := cards[key]
		usable := sizing.PCIeUsable * c.slot.Gbps()
		carried, certain := c.sum, c.sum
		switch {
		case len(c.rails) == 1: // its link carries what the rail reached alone
		case usable > 0 && usable < c.sum:
			carried, certain = usable, usable
			limits = append(limits, fmt.Sprintf("%s share Gen%d x%d at %s of %s, which carries %.1f", joined(c.rails), c.slot.Gen, c.slot.Lanes, key,
				c.host, usable))
		case usable == 0:
			certain = c.most
			unknown = fmt.Sprintf(
				"%s are ports of the card at %s of %s, and the width of its PCIe link is not known: Gen3 x16 carries %.0f Gb/s for both",
				joined(c.rails), key, c.host, sizing.PCIeUsable*sizing.PCIeGbps(3, 16))
		}
		at := c.behind
		if at == "" || c.below {
			at = "card " + key
		}
		if switches[at] == nil {
			switches[at] = &link{host: c.host, behind: c.behind}
		}
		s := switches[at]
		s.rails, s.sum, s.widest = append(s.rails, c.rails...), s.sum+carried, max(s.widest, usable)
		s.sure, s.most = s.sure+certain, max(s.most, certain)
	}
	for _, at := range slices.Sorted(maps.Keys(switches)) {
		s := switches[at]
		switch {
		case strings.HasPrefix(at, "card ") || len(s.rails) < 2:
			gbps, sure = gbps+s.sum, sure+s.sure
		case s.widest == 0:
			gbps, sure = gbps+s.sum, sure+s.most
			if unknown != "" {
				continue // of one card, as far as is known
			}
			unknown = fmt.Sprintf("%s are below the PCIe switch at %s of %s, and the width of its uplink is not known", joined(s.rails), at, s.host)
		default:
			gbps, sure = gbps+min(s.sum, s.widest), sure+min(s.sure, s.widest)
			if s.widest < s.sum {
				limits = append(limits, fmt.Sprintf("%s share the uplink of the PCIe switch at %s of %s, taken to be as wide as a card below it: %.1f",
					joined(s.rails), at, s.host, s.widest))
			}
		}
	}
	return gbps, sure, strings.Join(limits, "; "), unknown
}

// joined joins names: "rail-1 and rail-2", "rail-1 to rail-8" if there are many.
func joined(names []string) string {
	if len(names) > 3 {
		return fmt.Sprintf("%s to %s (%d rails)", names[0], names[len(names)-1], len(names))
	}
	return strings.Join(names, " and ")
}
