package checks

import (
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Rails returns the facts as each rail sees them, in the order of the answers: Ask passes them to the rows one after the other.
func (f *Facts) Rails() []*Facts { return f.all }

// rails returns the facts as each rail sees them: the answers for it alone, and the pairs that were measured on it. With one rail
// these are the facts themselves.
func (f *Facts) rails() []*Facts {
	if f.Answers == nil {
		own := *f
		own.found = nil
		return []*Facts{&own}
	}
	var out []*Facts
	for i, view := range f.Answers.Views() {
		own := *f
		own.found, own.Answers = nil, view
		if f.Answers.Several() && f.Pairs != nil {
			name := f.Answers.Rails[i].Name
			own.Pairs = slices.DeleteFunc(slices.Clone(f.Pairs), func(p PairFacts) bool { return p.Rail != name })
		}
		out = append(out, &own)
	}
	for _, own := range out {
		own.all = out
	}
	return out
}

// leavesOut reports whether a host has no port for an optional rail: then nothing of the rail is judged there. A host on the
// rail's switch has the rail, even while its port is down.
func (f *Facts) leavesOut(h *backends.Host) bool {
	if len(f.Answers.Rails) != 1 || !f.Answers.Rails[0].Optional || f.PassedOn(h) {
		return false
	}
	if sw := f.Inventory.Switch(f.Answers.Switch.Name); sw != nil {
		if _, on := sw.Members[h.Name]; on {
			return false
		}
	}
	return f.choice(h).Chosen == nil
}

// merged combines the answers of all rails. An answer that is identical for every rail of the target is reported once, else each
// answer names its rail.
func merged(views []*Facts, all [][]Answer) []Answer {
	if len(all) == 1 {
		return all[0]
	}
	by := map[backends.Ref][][]Answer{} // by rail
	var order []backends.Ref
	for i, answers := range all {
		for _, a := range answers {
			if by[a.Target] == nil {
				order = append(order, a.Target)
				by[a.Target] = make([][]Answer, len(all))
			}
			by[a.Target][i] = append(by[a.Target][i], a)
		}
	}
	var out []Answer
	for _, t := range order {
		first := -1
		same := true
		for i, some := range by[t] {
			switch {
			case len(some) == 0:
			case first < 0:
				first = i
			default:
				same = same && slices.Equal(some, by[t][first])
			}
		}
		if same {
			out = append(out, by[t][first]...)
			continue
		}
		for i, some := range by[t] {
			for _, a := range some {
				a.Evidence = views[i].Answers.Rails[0].Name + ": " + a.Evidence
				out = append(out, a)
			}
		}
	}
	return out
}
