package catalogue

import "github.com/rdma-setup/rdma-setup/checks"

// LinkOf is the place of a row in the chain, "" where the catalogue does not hold it.
func LinkOf(id string) checks.LinkName {
	for _, c := range Checks() {
		if c.ID == id {
			return c.Link
		}
	}
	return ""
}

// Chain gathers findings by link, in the order of the chain. Findings of rows that the catalogue does not hold are
// left out.
func Chain(findings []checks.Finding) []checks.Link {
	where := map[string]checks.LinkName{}
	for _, c := range Checks() {
		where[c.ID] = c.Link
	}
	out := make([]checks.Link, 0, len(checks.Links()))
	for _, name := range checks.Links() {
		l := checks.Link{Name: name, Worst: checks.Unknown, Count: map[checks.Status]int{}}
		for i := range findings {
			if f := &findings[i]; where[f.ID] == name {
				add(&l, f)
			}
		}
		if l.First == nil && l.Count[checks.Pass] > 0 {
			l.Worst = checks.Pass
		}
		out = append(out, l)
	}
	return out
}

// weight says how much a finding breaks: quiet ones and passes nothing.
func weight(f *checks.Finding) int {
	if f.Quiet {
		return 0
	}
	return f.Status.Weight()
}

// FirstBroken is where to look first: the first failure in the order of the chain, so that a closed firewall on a host
// comes before what guests suffer from it. Without a failure it is the first warning, then the first row that should
// have been answered and was not; nil when nothing is amiss.
func FirstBroken(findings []checks.Finding) *checks.Finding {
	var best *checks.Finding
	for _, l := range Chain(findings) {
		if l.First != nil && (best == nil || weight(l.First) > weight(best)) {
			best = l.First
		}
	}
	return best
}

// add counts a finding of a link, and keeps the first of the worst.
func add(l *checks.Link, f *checks.Finding) {
	l.Count[f.Status]++
	if weight(f) > 0 && (l.First == nil || weight(f) > weight(l.First)) {
		l.First, l.Worst = f, f.Status
	}
}
