package checks

// LinkOf is the place of a row in the chain, "" where the catalogue does not hold it.
func LinkOf(id string) LinkName {
	for _, c := range Catalogue() {
		if c.ID == id {
			return c.Link
		}
	}
	return ""
}

// Chain gathers findings by link, in the order of the chain. Findings of rows that the catalogue does not hold are
// left out.
func Chain(findings []Finding) []Link {
	where := map[string]LinkName{}
	for _, c := range Catalogue() {
		where[c.ID] = c.Link
	}
	out := make([]Link, 0, len(Links()))
	for _, name := range Links() {
		l := Link{Name: name, Worst: Unknown, Count: map[Status]int{}}
		for i := range findings {
			if f := &findings[i]; where[f.ID] == name {
				add(&l, f)
			}
		}
		if l.First == nil && l.Count[Pass] > 0 {
			l.Worst = Pass
		}
		out = append(out, l)
	}
	return out
}

// weight says how much a finding breaks: quiet ones and passes nothing.
func weight(f *Finding) int {
	if f.Quiet {
		return 0
	}
	return f.Status.Weight()
}

// FirstBroken is where to look first: the first failure in the order of the chain, so that a closed firewall on a host
// comes before what guests suffer from it. Without a failure it is the first warning, then the first row that should
// have been answered and was not; nil when nothing is amiss.
func FirstBroken(findings []Finding) *Finding {
	var best *Finding
	for _, l := range Chain(findings) {
		if l.First != nil && (best == nil || weight(l.First) > weight(best)) {
			best = l.First
		}
	}
	return best
}

// add counts a finding of a link, and keeps the first of the worst.
func add(l *Link, f *Finding) {
	l.Count[f.Status]++
	if weight(f) > 0 && (l.First == nil || weight(f) > weight(l.First)) {
		l.First, l.Worst = f, f.Status
	}
}
