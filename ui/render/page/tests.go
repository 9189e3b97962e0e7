package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/plain"
)

// A Test is one kind of measurement over all pairs.
type Test struct {
	Name    string // ib_send_bw
	Latency bool
	Chart   *Chart // nil if no message size was measured
	Sizes   Table  // the data of the chart as a table
	Map     *Map   // nil if too few of the possible pairs were measured
	Shape   Shape  // over all pairs
	Pairs   []Pair
	Curved  bool      // a pair has a curve
	Classed bool      // a pair has Class or Lost
	More    int       // pairs that Pairs leaves out
	All     []Figures // every pair, if Pairs leaves any out
}

// Figures are the results of one client with each of its servers, in one line.
type Figures struct{ From, To string }

// A Pair is the result of one test between two guests, from the client to the server.
type Pair struct {
	Test      string // ib_send_bw
	From, To  string
	Hosts     string
	Result    string
	Shape     Shape // its curve; without values if too few message sizes were measured
	Expected  string
	Share     float64 // of the expected value, 0 to 1; bandwidth only
	P99, P999 string  // latency only
	Class     string  // proven, not proven, disproven; "" if no class is configured
	Lost      string  // packets that were lost or retransmitted; "" if not read
	Status    checks.Status
	Word      string // the verdict as a word: pass, warn, fail, unknown, "n/a: one host"
	Remarks   []string
}

// keepPairs is the largest number of rows of a table of pairs. If there are more, the worst are shown, but only a few of each suspect.
const (
	keepPairs    = 40
	keepSuspects = 3
	keepGood     = 5 // if all are good
	keepWorst    = 3 // at the top of the page
)

// tests groups measurements by test, in the order in which they first appear.
func tests(all []perftest.Measurement) []Test {
	var out []Test
	for name, some := range byTest(all).All() {
		t := Test{Name: name, Latency: isLatency(some[0])}
		t.Chart, t.Sizes = curve(t.Name, some, t.Latency)
		t.Map = heat(t.Name, some, t.Latency)
		t.Shape = ShapeOf(some...)
		if t.Pairs, t.More = pairs(some, t.Latency); t.More > 0 {
			t.All = lines(some)
		}
		t.Curved = slices.ContainsFunc(t.Pairs, func(p Pair) bool { return len(p.Shape.Values) > 0 })
		t.Classed = slices.ContainsFunc(t.Pairs, func(p Pair) bool { return p.Class != "" || p.Lost != "" })
		out = append(out, t)
	}
	return out
}

// worstPairs returns the worst pairs of each test on the fabric, for the top of the page.
func worstPairs(all []perftest.Measurement) (out []Pair) {
	for _, some := range byTest(all).All() {
		some = slices.DeleteFunc(slices.Clone(some), func(m perftest.Measurement) bool { return m.Verdict == perftest.VerdictNotApplicable })
		if len(some) == 0 {
			continue
		}
		sorted := worst(some, isLatency(some[0]))
		for _, m := range sorted[:min(keepWorst, len(sorted))] {
			out = append(out, pair(m))
		}
	}
	return out
}

func byTest(all []perftest.Measurement) (by plain.Gathered[string, perftest.Measurement]) {
	for _, m := range all {
		by.Add(m.Test, m)
	}
	return by
}

// byPair returns measurements in the order of the names of their pairs.
func byPair(some []perftest.Measurement) []perftest.Measurement {
	return slices.SortedStableFunc(slices.Values(some), func(a, b perftest.Measurement) int { return plain.Natural(a.Pair(), b.Pair()) })
}

// pairs returns a row for each measurement by name; when there are too many, the worst.
func pairs(some []perftest.Measurement, latency bool) ([]Pair, int) {
	sorted := byPair(some)
	if len(sorted) > keepPairs {
		sorted = worst(sorted, latency)
	}
	var out []Pair
	said := []string(nil)
	for _, m := range sorted {
		p := pair(m)
		again := len(p.Remarks) > 0 && slices.Equal(p.Remarks, said)
		said = p.Remarks
		if again {
			p.Remarks = []string{"as above"}
		}
		out = append(out, p)
	}
	return out, len(some) - len(out)
}

// lines returns the figure of every pair, by client. It adds the verdict where that is not pass.
func lines(some []perftest.Measurement) []Figures {
	var out []Figures
	for _, m := range byPair(some) {
		p := pair(m)
		word := p.To
		if v := achieved(m); v > 0 {
			word += " " + three(v)
		}
		if m.Verdict != perftest.VerdictPass {
			word += " " + p.Word
		}
		if n := len(out); n > 0 && out[n-1].From == p.From {
			out[n-1].To += ", " + word
		} else {
			out = append(out, Figures{p.From, word})
		}
	}
	return out
}

// worst returns the measurements that are not good, the worst first; of each suspect only a few, because they have one cause.
func worst(some []perftest.Measurement, latency bool) []perftest.Measurement {
	suspect, told := suspects(some, outliers(some, latency)), map[string]int{}
	sorted := slices.SortedStableFunc(slices.Values(some), func(a, b perftest.Measurement) int {
		return cmp.Or(severity(checks.StatusOf(b.Verdict))-severity(checks.StatusOf(a.Verdict)), cmp.Compare(goodness(a), goodness(b)))
	})
	var out []perftest.Measurement
	for _, m := range sorted {
		name, to := m.Names()
		if suspect[name] == "" {
			name = to
		}
		if suspect[name] != "" {
			told[name]++
		}
		good := m.Verdict == perftest.VerdictPass || m.Verdict == perftest.VerdictNotApplicable
		if told[name] > keepSuspects || good && len(out) >= keepGood || len(out) >= keepPairs {
			continue
		}
		out = append(out, m)
	}
	return out
}

// goodness returns a number by which measurements of one test are sorted, the worst first.
func goodness(m perftest.Measurement) float64 {
	if isLatency(m) {
		return -m.AchievedUs
	}
	return m.AchievedGbps
}

func pair(m perftest.Measurement) Pair {
	from, to := m.Names()
	p := Pair{
		Test: m.Test, From: from, To: to, Hosts: m.FromHost + " -> " + m.ToHost,
		Result: "not measured", Status: checks.StatusOf(m.Verdict), Word: string(m.Verdict),
	}
	if m.AchievedGbps > 0 || m.AchievedUs > 0 {
		p.Result = figure(m)
		if repeated := m.Repeated(); repeated != "" {
			p.Result += ", " + repeated
		}
	}
	p.Shape = ShapeOf(m)
	if m.GPU != nil {
		p.Hosts += ", " + m.GPU.String()
	}
	switch {
	case m.ExpectedGbps > 0:
		p.Expected, p.Share = fmt.Sprintf("%.1f Gb/s", m.ExpectedGbps), min(1, m.AchievedGbps/m.ExpectedGbps)
	case m.ExpectedUs > 0:
		p.Expected = fmt.Sprintf("up to %g us", m.ExpectedUs)
	}
	if isLatency(m) && len(m.Rows) > 0 {
		p.P99, p.P999 = three(m.Rows[0].P99Us), three(m.Rows[0].P999Us)
	}
	p.Class, p.Lost = Proven(m.Class), LostLabel(m)
	switch m.Verdict {
	case perftest.VerdictPass:
	case perftest.VerdictNotApplicable:
		p.Word = map[string]string{perftest.InsteadTCP: "n/a: TCP", perftest.InsteadMemory: "n/a: memory"}[m.Instead]
		p.Word = cmp.Or(p.Word, "n/a: one host")
	default:
		for _, s := range []string{m.Error, m.Hint} {
			if s != "" {
				p.Remarks = append(p.Remarks, s)
			}
		}
	}
	return p
}

// Proven describes in a word what a test proved, about its class for example; "" if none is configured.
func Proven(p *perftest.Proof) string {
	switch {
	case p == nil:
		return ""
	case p.Verdict == perftest.VerdictPass:
		return "proven"
	case p.Verdict == perftest.VerdictFail:
		return "disproven"
	}
	return "not proven"
}

// LostLabel returns how many packets were lost or retransmitted; "" if no class is configured, - if no counter was read.
func LostLabel(m perftest.Measurement) string {
	lost, _, read := m.Lost()
	switch {
	case m.Class == nil:
		return ""
	case !read:
		return "-"
	}
	return fmt.Sprint(lost)
}

// pairTally counts the pairs in which every test is good; pairs on one host do not count.
func pairTally(all []perftest.Measurement) string {
	worst := map[string]checks.Status{}
	for _, m := range all {
		k := m.Pair()
		if s := checks.StatusOf(m.Verdict); s != "" && (worst[k] == "" || severity(s) > severity(worst[k])) {
			worst[k] = s
		}
	}
	good := 0
	for _, s := range worst {
		if s == checks.Pass {
			good++
		}
	}
	return fmt.Sprintf("%d of %d pairs at expected line rate", good, len(worst))
}

// method describes how the figures were measured.
func method(all []perftest.Measurement) []Fact {
	if len(all) == 0 {
		return nil
	}
	var facts []Fact
	started := plain.Mapped(all, func(m perftest.Measurement) time.Time { return m.Started })
	first, last := slices.MinFunc(started, time.Time.Compare), slices.MaxFunc(started, time.Time.Compare)
	if !first.IsZero() {
		facts = append(facts,
			Fact{"when", first.Format("2006-01-02 15:04:05 -0700") + " to " + last.Format("15:04:05") + " (start of the last test)"})
	}
	for name, some := range byTest(all).All() {
		facts = append(facts, testFacts(name, some)...)
	}
	return append(facts,
		Fact{"bandwidth", "the best average of the messages from 64 KiB to 1 MiB, compared with the line rate minus the RoCE v2 headers"},
		Fact{"latency",
			"the typical (median) time of the smallest message, half of a round trip; 99.9 % values are meaningful from 10000 messages on"},
		Fact{"pairs",
			"measured in rounds in which each guest and each host port is used only once; a pair on one host is n/a, because its traffic never " +
				"reaches the fabric"})
}

func testFacts(name string, some []perftest.Measurement) []Fact {
	var facts []Fact
	for _, m := range some {
		if len(m.Rows) == 0 {
			continue
		}
		a, b := m.Rows[0], m.Rows[len(m.Rows)-1]
		text := fmt.Sprintf("%d message sizes from %s to %s", len(m.Rows), size(a.Bytes), size(b.Bytes))
		each := cmp.Or(b.Iterations, a.Iterations)
		if each > 0 {
			text += fmt.Sprintf(", %d messages of each", each)
		}
		if a.Iterations > each {
			text += fmt.Sprintf(", %d of the smallest", a.Iterations)
		}
		if m.MTU > 0 {
			text += fmt.Sprintf(", RDMA MTU %d", m.MTU)
		}
		facts = append(facts, Fact{name, text})
		if m.Command != "" {
			facts = append(facts, Fact{"on " + m.From, m.Command})
		}
		break
	}
	seen := map[string]bool{}
	for _, m := range some {
		if m.Why != "" && m.Verdict != perftest.VerdictNotApplicable && !seen[m.Why] && len(seen) < 4 {
			seen[m.Why] = true
			facts = append(facts, Fact{name + " expected", m.Why})
		}
	}
	return facts
}
