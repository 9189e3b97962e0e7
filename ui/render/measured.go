package render

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/render/page"
	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// A pair is the measurements between two guests in one direction.
type pair struct {
	tests []perftest.Measurement
	mark  theme.Mark // the worst
}

// If there are more than manyPairs pairs, the good ones share one line, and the worst keepBad of the others are listed.
const (
	manyPairs = 16
	keepBad   = 10
)

func (p *printer) measurements(all []perftest.Measurement) {
	if len(all) == 0 {
		return
	}
	between := all
	all = perftest.SameRail(all)
	pairs, good := byPair(all)
	p.title("Measured", fmt.Sprintf("%d of %d pairs at expected line rate", good, len(pairs)-unjudged(pairs)))
	class, lossless := perftest.Proofs(all)
	if class != nil && lossless != nil {
		p.line("  %s %s", p.t.Symbol(theme.MarkOf(class.Verdict)), class.Words("class"))
		p.line("  %s %s", p.t.Symbol(theme.MarkOf(lossless.Verdict)), lossless.Words("lossless"))
	}
	said := map[string]bool{}
	p.wide = 12
	for _, m := range all {
		p.wide = max(p.wide, len(m.Test))
	}
	if !p.table(pairs, said) {
		p.list(pairs, good, said)
	}
	p.expected(all, said)
	p.rails(between)
}

// list prints for each pair one line per test; if there are many pairs, only the worst.
func (p *printer) list(pairs []*pair, good int, said map[string]bool) {
	shown, kept := 0, worstFirst(pairs)
	for _, pr := range pairs {
		if len(pairs) > manyPairs && (pr.mark == theme.Pass || !kept[pr]) {
			continue
		}
		shown++
		m := pr.tests[0]
		p.line("  %s %s", p.t.Symbol(pr.mark), fmt.Sprintf("%s  (%s -> %s)", m.Pair(), m.FromHost, m.ToHost))
		for _, m := range pr.tests {
			p.test(m, said)
		}
	}
	if bad := len(pairs) - good - shown; bad > 0 && len(pairs) > manyPairs {
		p.line("  %s %d more pairs that are not: rdma-setup report -o html has their map, -o json all figures", p.t.Symbol(theme.Warn), bad)
	}
	if good > 0 && len(pairs) > manyPairs {
		p.line("  %s %d more pairs: %s", p.t.Symbol(theme.Pass), good, spread(pairs))
	}
}

// expected returns where the expected value of each test comes from, unless an earlier pair already stated it.
func (p *printer) expected(all []perftest.Measurement, said map[string]bool) {
	const most = 4
	for n, i := 0, 0; i < len(all) && n < most; i++ {
		m := all[i]
		if m.Why == "" || m.GPU != nil || m.Verdict == perftest.VerdictNotApplicable || said[m.Why] {
			continue
		}
		said[m.Why] = true
		n++
		p.line("  %-*s expected: %s", p.wide, m.Test, m.Why)
	}
}

func (p *printer) rails(all []perftest.Measurement) {
	rails, cells := perftest.RailMatrix(all)
	if len(rails) > 0 {
		p.title("Rails", "from the rail of the row")
	}
	for _, from := range rails {
		for _, to := range rails {
			if c, there := cells[[2]string{from, to}]; there {
				p.line("  %s %s", p.t.Symbol(theme.MarkOf(c.Verdict)), from+" -> "+to+": "+c.Text)
			}
		}
	}
}

// loaded prints what each receiver received from all senders together, compared with the capacity of its port.
func (p *printer) loaded(all []perftest.Measurement) {
	crowds := perftest.Crowds(all)
	if len(crowds) > 0 {
		p.title("Under load", "several senders to one receiver")
	}
	for _, c := range crowds {
		p.line("  %s %s: %.1f of %.1f Gb/s  %s", p.t.Symbol(theme.MarkOf(c.Verdict)), c.To, c.SumGbps, c.ExpectedGbps,
			p.t.Bar(min(1, c.SumGbps/max(c.ExpectedGbps, 0.001)), 20))
		p.line("      %s, %d lost, losslessness %s", page.Fair(c), c.Lost, page.Lossless(c))
	}
}

// byPair groups measurements by pair, sorted by name, because tests end in any order.
func byPair(all []perftest.Measurement) (pairs []*pair, good int) {
	var by plain.Gathered[string, perftest.Measurement]
	for _, m := range all {
		by.Add(m.Pair(), m)
	}
	slices.SortFunc(by.Keys, plain.Natural)
	for _, tests := range by.All() {
		p := &pair{tests, theme.Skipped}
		for _, m := range tests {
			if mark := theme.MarkOf(m.Verdict); rank(mark) > rank(p.mark) {
				p.mark = mark
			}
		}
		if pairs = append(pairs, p); p.mark == theme.Pass {
			good++
		}
	}
	return pairs, good
}

// unjudged counts the pairs that do not use RDMA because a host has no RDMA card.
func unjudged(pairs []*pair) int {
	n := 0
	for _, p := range pairs {
		if p.mark == theme.Skipped && p.tests[0].Instead != "" {
			n++
		}
	}
	return n
}

// worstFirst selects the pairs to list if there are many: the worst of those that are not good.
func worstFirst(pairs []*pair) map[*pair]bool {
	bad := slices.DeleteFunc(slices.Clone(pairs), func(p *pair) bool { return p.mark == theme.Pass })
	slices.SortStableFunc(bad, func(a, b *pair) int {
		return cmp.Or(rank(b.mark)-rank(a.mark), cmp.Compare(a.tests[0].AchievedGbps, b.tests[0].AchievedGbps))
	})
	kept := map[*pair]bool{}
	for _, p := range bad[:min(len(bad), keepBad)] {
		kept[p] = true
	}
	return kept
}

// rank orders marks, the worst highest.
func rank(m theme.Mark) int {
	return map[theme.Mark]int{theme.Skipped: 0, theme.Pass: 1, theme.Unknown: 2, theme.Warn: 3, theme.Fail: 4}[m]
}

// test prints one line, "ib_send_bw    96.1 Gb/s  [bar]  98 % of 98.0 expected", and below it the explanation of a bad figure.
// An explanation that an earlier pair already had is not repeated.
func (p *printer) test(m perftest.Measurement, said map[string]bool) {
	p.line("      %-*s %s", p.wide, m.Test, p.figure(m))
	if curve := page.ShapeOf(m).Line(p.t); curve != "" {
		p.line("        %s", curve)
	}
	if repeated := m.Repeated(); repeated != "" {
		p.line("        %s", repeated)
	}
	if m.GPU != nil {
		p.line("        %s%s", m.GPU, ofHost(m))
	}
	if class := page.Proven(m.Class); class != "" {
		p.line("        class %s, packets lost: %s", class, page.LostLabel(m))
	}
	p.trouble(m, said)
}

// trouble returns the explanation of a figure that is not good.
func (p *printer) trouble(m perftest.Measurement, said map[string]bool) {
	if m.Verdict == perftest.VerdictPass {
		return
	}
	if m.Error != "" {
		p.line("        %s", p.t.Bad.Render(m.Error))
	}
	why := m.Why
	if m.GPU != nil && ofHost(m) != "" {
		why = "" // already printed
	}
	for _, l := range []struct{ label, text string }{{"", why}, {"hint: ", m.Hint}} {
		if l.text != "" && !said[l.text] {
			said[l.text] = true
			p.line("        %s%s", l.label, l.text)
		}
	}
}

func ofHost(m perftest.Measurement) string {
	switch {
	case m.HostGbps > 0 && m.AchievedGbps > 0:
		return fmt.Sprintf(": %.0f %% of host memory's %.1f Gb/s", 100*m.AchievedGbps/m.HostGbps, m.HostGbps)
	case m.HostUs > 0 && m.AchievedUs > 0:
		return fmt.Sprintf(": host memory takes %.2f us", m.HostUs)
	}
	return ""
}

func (p *printer) figure(m perftest.Measurement) string {
	switch {
	case m.Instead != "":
		return m.Figure() + ", not judged"
	case m.Verdict == perftest.VerdictNotApplicable:
		return "n/a: the traffic never reaches the fabric"
	case m.AchievedGbps > 0 && m.ExpectedGbps > 0:
		share := m.AchievedGbps / m.ExpectedGbps
		return fmt.Sprintf("%6.1f Gb/s  %s %3.0f %% of %.1f expected", m.AchievedGbps, p.t.Bar(share, 10), share*100, m.ExpectedGbps)
	case m.AchievedGbps > 0:
		return fmt.Sprintf("%6.1f Gb/s", m.AchievedGbps)
	case m.AchievedUs > 0 && m.ExpectedUs > 0:
		return fmt.Sprintf("%6.2f us    good up to %.0f us", m.AchievedUs, m.ExpectedUs)
	case m.AchievedUs > 0:
		return fmt.Sprintf("%6.2f us", m.AchievedUs)
	}
	return "not measured"
}

// spread formats the range of the good pairs, from slowest to fastest: "94.2 to 97.9 Gb/s, 2.01 to 2.40 us".
func spread(pairs []*pair) string {
	var low, high [2]float64
	for _, pr := range pairs {
		if pr.mark != theme.Pass {
			continue
		}
		for _, m := range pr.tests {
			for i, v := range [2]float64{m.AchievedGbps, m.AchievedUs} {
				if v > 0 && (low[i] == 0 || v < low[i]) {
					low[i] = v
				}
				high[i] = max(high[i], v)
			}
		}
	}
	s := ""
	if high[0] > 0 {
		s = fmt.Sprintf("%.1f to %.1f Gb/s", low[0], high[0])
	}
	if high[1] > 0 {
		if s != "" {
			s += ", "
		}
		s += fmt.Sprintf("%.2f to %.2f us", low[1], high[1])
	}
	return s
}
