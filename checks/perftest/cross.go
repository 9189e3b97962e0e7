package perftest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/assets"
)

// CrossRail is the test between two rails: whether an address of one rail is reachable on layer 2 from a port of the other. It
// generates no load.
const CrossRail = "cross_rail"

// The expectation between two rails.
const (
	MustReach    = "must reach"     // they share a VLAN and a subnet
	MustNotReach = "must not reach" // they have different VLANs
	MayReach     = "may reach"      // one VLAN, different subnets: neither separation nor connection is required
)

const (
	crossParallel = 16              // concurrent tests
	crossTime     = 3 * time.Second // per test: arping waits two seconds for replies
	crossFrames   = 4               // requests per test, each in the smallest Ethernet frame
	smallestFrame = 64              // bytes
)

// CrossCost estimates how long that many tests between rails take, and how many bytes their requests have.
func CrossCost(tests int) (time.Duration, int) {
	return time.Duration((tests+crossParallel-1)/crossParallel) * crossTime, tests * crossFrames * smallestFrame
}

// A CrossPair is an end on one rail, one on another, and the expectation.
type CrossPair struct {
	Pair
	Expect string
}

// CrossPairs pairs the ends of each VM with those of the next VM on every other rail; expect gets the names of two rails.
func CrossPairs(rails [][]Node, expect func(from, to string) string) []CrossPair {
	var out []CrossPair
	for _, from := range rails {
		for _, to := range rails {
			for i, n := range interleave(from) {
				k := slices.IndexFunc(to, func(o Node) bool { return o.VM == n.VM })
				if len(to) == 0 || n.Rail == to[0].Rail {
					continue
				}
				laid := interleave(to)
				peer := laid[(i+1)%len(laid)]
				if k >= 0 {
					at := slices.IndexFunc(laid, func(o Node) bool { return o.VM == n.VM })
					peer = laid[(at+1)%len(laid)]
				}
				if peer.VM != n.VM {
					out = append(out, CrossPair{Pair{n, peer}, expect(n.Rail, peer.Rail)})
				}
			}
		}
	}
	return out
}

// Cross runs the tests between rails. If ctx is cancelled, it returns the results so far with ctx's error.
func (r *Runner) Cross(ctx context.Context, pairs []CrossPair) ([]Measurement, error) {
	var mu sync.Mutex
	var all []Measurement
	tell := func(p Pair, m *Measurement) {
		mu.Lock()
		defer mu.Unlock()
		if m != nil {
			all = append(all, *m)
		}
		if r.Progress != nil {
			left, _ := CrossCost(len(pairs) - len(all))
			r.Progress(Progress{Pairs: len(pairs), Left: left, Round: 1, Rounds: 1, Done: len(all), Total: len(pairs), Pair: p, Test: CrossRail,
				Result: m})
		}
	}
	err := inRounds(ctx, [][]CrossPair{pairs}, crossParallel, func(_, _ int, p CrossPair) error {
		tell(p.Pair, nil)
		m := r.cross(ctx, p)
		if err := ctx.Err(); err != nil {
			return err // an interrupted test has no result
		}
		tell(p.Pair, &m)
		return nil
	})
	slices.SortStableFunc(all, func(a, b Measurement) int { return strings.Compare(a.Pair(), b.Pair()) })
	return all, err
}

func (r *Runner) cross(ctx context.Context, p CrossPair) Measurement {
	m := r.blank(p.Pair, CrossRail)
	m.Expected, m.Verdict = p.Expect, VerdictUnknown
	if p.Client.Device == "" || p.Server.Device == "" {
		m.Error, m.Hint = p.missingDevice().noDevice()
		return m
	}
	line := fmt.Sprintf("set -- %s %d %s %s\n", quote(p.Client.Device), p.Client.GID, quote(p.Server.IP), quote(p.Server.MAC)) +
		assets.Script("cross-rail.sh")
	out, err := r.Shell.Exec(ctx, p.Client.VM, Command{Line: line, Sudo: true})
	word, why, _ := strings.Cut(strings.TrimSpace(out.Stdout), " ")
	switch {
	case err != nil:
		m.Error = err.Error()
		return m
	case word != "answered" && word != "silent":
		m.Error, m.Hint = "could not be tested: "+why, "the guests need arping of iputils (Debian and Ubuntu: iputils-arping)"
		return m
	}
	reached := word == "answered"
	m.Reached = &reached
	switch {
	case p.Expect == MayReach:
		m.Verdict, m.Why = VerdictNotApplicable, "the rails share a VLAN and have different subnets: nothing is expected"
	case reached == (p.Expect == MustReach):
		m.Verdict = VerdictPass
	case reached:
		m.Verdict, m.Error = VerdictFail, "the rails have different VLANs, and "+p.Server.IP+" answers nevertheless"
		m.Hint = "find a port of the physical switch that carries the VLANs of both rails untagged, or swapped cables (rdma-setup check, " +
			"SW-RAIL-015)"
	default:
		m.Verdict, m.Error = VerdictFail, "the rails share a VLAN and a subnet, and "+p.Server.IP+" does not answer"
		m.Hint = "check the VLAN on the ports of the physical switches and on the links between them"
	}
	return m
}

// SameRail returns the measurements without the tests between rails.
func SameRail(all []Measurement) []Measurement {
	return slices.DeleteFunc(slices.Clone(all), func(m Measurement) bool { return m.Test == CrossRail })
}

// A RailCell is the result from one rail to another, or within one.
type RailCell struct {
	From    string  `json:"from"`
	To      string  `json:"to"`
	Verdict Verdict `json:"verdict"` // the worst
	Text    string  `json:"text"`    // "0 reached, 2 not, 0 not tested; must not reach", "8 of 8 pairs as expected"
}

// RailMatrix returns the results by rail: rows are the clients' rails; nil if there is one rail.
func RailMatrix(all []Measurement) (rails []string, cells map[[2]string]RailCell) {
	type sum struct {
		pairs                  map[string]bool // by pair: all is as expected
		reached, silent, blind int
		expect                 string
		worst                  Verdict
	}
	order := []Verdict{VerdictFail, VerdictUnknown, VerdictWarn, VerdictPass, VerdictNotApplicable}
	sums := map[[2]string]*sum{}
	for _, m := range all {
		if m.RailFrom == "" || m.Load != "" {
			continue
		}
		for _, r := range []string{m.RailFrom, m.RailTo} {
			if !slices.Contains(rails, r) {
				rails = append(rails, r)
			}
		}
		at := [2]string{m.RailFrom, m.RailTo}
		s := sums[at]
		if s == nil {
			s = &sum{pairs: map[string]bool{}, worst: VerdictNotApplicable}
			sums[at] = s
		}
		if slices.Index(order, m.Verdict) < slices.Index(order, s.worst) {
			s.worst = m.Verdict
		}
		switch {
		case m.Test != CrossRail:
			fine := m.Verdict == VerdictPass || m.Verdict == VerdictNotApplicable
			if before, seen := s.pairs[m.Pair()]; !seen || before {
				s.pairs[m.Pair()] = fine
			}
		case m.Reached == nil:
			s.blind++
		case *m.Reached:
			s.reached++
		default:
			s.silent++
		}
		s.expect = m.Expected
	}
	if len(rails) < 2 {
		return nil, nil
	}
	slices.Sort(rails)
	cells = map[[2]string]RailCell{}
	for at, s := range sums {
		text := fmt.Sprintf("%d reached, %d not, %d not tested; %s", s.reached, s.silent, s.blind, s.expect)
		if len(s.pairs) > 0 {
			good := 0
			for _, fine := range s.pairs {
				if fine {
					good++
				}
			}
			text = fmt.Sprintf("%d of %d pairs as expected", good, len(s.pairs))
		}
		cells[at] = RailCell{From: at[0], To: at[1], Verdict: s.worst, Text: text}
	}
	return rails, cells
}
