package catalogue

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
)

// A Root is a finding that is not a consequence of another, with its consequences.
type Root struct {
	Finding *checks.Finding
	Follows []*checks.Finding // in the order of the chain
}

// Roots groups problems by cause: roots with a failure first, then in the order of the chain. Findings of unknown
// rows are left out.
func Roots(findings []checks.Finding) []Root {
	t := newTree(findings)
	var out []Root
	at := map[int]int{}
	for _, i := range t.order {
		root := t.root(i)
		if _, known := at[root]; !known {
			at[root] = len(out)
			out = append(out, Root{Finding: &t.all[root]})
		}
		if i != root {
			r := &out[at[root]]
			r.Follows = append(r.Follows, &t.all[i])
		}
	}
	slices.SortStableFunc(out, func(a, b Root) int {
		return cmp.Or(cmp.Compare(b.fails(), a.fails()), cmp.Compare(t.place[a.Finding.ID], t.place[b.Finding.ID]))
	})
	return out
}

// fails is 1 if a root or a consequence of it failed. Warnings and what could not be read stand together: the chain orders them.
func (r Root) fails() int {
	if weight(r.Finding) == checks.Fail.Weight() ||
		slices.ContainsFunc(r.Follows, func(f *checks.Finding) bool { return weight(f) == checks.Fail.Weight() }) {
		return 1
	}
	return 0
}

// A tree records which finding is a consequence of which.
type tree struct {
	all   []checks.Finding
	order []int          // problems, in the order of the chain
	place map[string]int // of a row in the chain
	needs map[string][]string
	amiss map[string]bool // rows with a problem
	seen  map[spot]int    // the first finding of a row about a target
	words map[spot]int    // the first finding with this evidence about a target
	above map[int]int     // the cause of a finding
}

// A spot is a row at a target, or evidence about one.
type spot struct{ what, target string }

func newTree(findings []checks.Finding) *tree {
	t := &tree{all: findings, place: map[string]int{}, needs: map[string][]string{}, amiss: map[string]bool{}, seen: map[spot]int{},
		words: map[spot]int{}, above: map[int]int{}}
	rows := Checks()
	for i, c := range rows {
		t.place[c.ID] = slices.Index(checks.Links(), c.Link)*len(rows) + i
		t.needs[c.ID] = needs(c)
	}
	for i := range findings {
		f := &findings[i]
		if _, known := t.place[f.ID]; known && weight(f) > 0 {
			t.order = append(t.order, i)
			t.amiss[f.ID] = true
		}
	}
	slices.SortStableFunc(t.order, func(a, b int) int {
		return cmp.Compare(t.place[findings[a].ID], t.place[findings[b].ID])
	})
	for _, i := range t.order {
		f := &findings[i]
		for _, name := range places(f) {
			keep(t.seen, spot{f.ID, name}, i)
		}
		keep(t.words, spot{f.Evidence, f.Target.String()}, i)
	}
	for _, i := range t.order {
		if from, follows := t.from(&findings[i], reach(&findings[i]), t.needs[findings[i].ID], map[string]bool{}); follows {
			t.above[i] = from
		}
	}
	for _, i := range t.order {
		first := t.words[spot{findings[i].Evidence, findings[i].Target.String()}]
		if _, follows := t.above[i]; !follows && findings[i].Status == checks.Unknown && t.root(first) != i {
			t.above[i] = first // the same reason for several unknowns of one target
		}
	}
	return t
}

func keep(m map[spot]int, k spot, i int) {
	if _, known := m[k]; !known {
		m[k] = i
	}
}

// from returns the nearest problem among the rows that f depends on.
func (t *tree) from(f *checks.Finding, near, rows []string, tried map[string]bool) (int, bool) {
	for _, id := range rows {
		if !t.amiss[id] {
			continue
		}
		for _, name := range near {
			if i, amiss := t.seen[spot{id, name}]; amiss && explains(&t.all[i], f) {
				return i, true
			}
		}
	}
	for _, id := range rows { // a dependency may have no finding of its own and depend on something that is broken
		if tried[id] {
			continue
		}
		tried[id] = true
		if i, amiss := t.from(f, near, t.needs[id], tried); amiss {
			return i, true
		}
	}
	return 0, false
}

// explains reports whether a finding is severe enough to cause another: a warning is not.
func explains(cause, f *checks.Finding) bool {
	return cause != f && (cause.Status != checks.Warn || f.Status != checks.Fail)
}

// root follows a finding to its root cause.
func (t *tree) root(i int) int {
	for range t.all {
		up, follows := t.above[i]
		if !follows {
			break
		}
		i = up
	}
	return i
}

// Places that match every target, or any target of a type.
const (
	everywhere = "*"
	anyHost    = "host/*"
	anyVM      = "vm/*"
)

// places returns the places of a finding, as reach looks for them.
func places(f *checks.Finding) []string {
	switch f.Target.Type {
	case backends.TypeHost:
		return []string{"host/" + f.Target.Name, anyHost}
	case backends.TypeVM, backends.TypeGuest:
		return []string{"vm/" + f.Target.Name, anyVM}
	case backends.TypePair:
		return []string{f.Target.String()}
	}
	return []string{everywhere}
}

// reach returns the places where the cause of a finding can be: its own, and those below it.
func reach(f *checks.Finding) []string {
	hosts := []string{anyHost}
	if f.Host != "" {
		hosts = nil
		for _, h := range strings.Split(f.Host, checks.Between) {
			hosts = append(hosts, "host/"+h)
		}
	}
	switch f.Target.Type {
	case backends.TypeHost:
		return []string{"host/" + f.Target.Name, everywhere}
	case backends.TypeVM, backends.TypeGuest:
		return append([]string{"vm/" + f.Target.Name, everywhere}, hosts...)
	case backends.TypePair:
		out := []string{f.Target.String(), everywhere}
		for _, vm := range strings.Split(f.Target.Name, checks.Between) {
			out = append(out, "vm/"+vm)
		}
		return append(out, hosts...)
	}
	return []string{everywhere, anyHost, anyVM}
}
