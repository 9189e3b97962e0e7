package plain

import (
	"cmp"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Names lists all names in a short form: four or more consecutive names become "esx-001 to esx-100".
func Names(names []string) string { return FewNames(names, len(names)) }

// FewNames is like Names, but ends with "and 88 more" after so many names and ranges.
func FewNames(names []string, most int) string {
	var parts []string
	for i := 0; i < len(names); {
		if len(parts) == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(names)-i))
			break
		}
		end := i + 1
		for end < len(names) && follows(names[end-1], names[end]) {
			end++
		}
		if end-i >= 4 {
			parts = append(parts, names[i]+" to "+names[end-1])
		} else {
			end = i + 1
			parts = append(parts, names[i])
		}
		i = end
	}
	return backends.Clean(strings.Join(parts, ", "))
}

// follows reports whether b is a with its number increased by one, with as many digits: esx-09.lab, esx-10.lab.
func follows(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	from := 0
	for from < len(a) && a[from] == b[from] {
		from++
	}
	for from > 0 && digit(a[from-1]) {
		from--
	}
	to := from
	for to < len(a) && digit(a[to]) && digit(b[to]) {
		to++
	}
	if to-from > 9 || a[to:] != b[to:] {
		return false
	}
	x, errX := strconv.Atoi(a[from:to])
	y, errY := strconv.Atoi(b[from:to])
	return errX == nil && errY == nil && y == x+1
}

// Natural compares names in natural order: vm-2 before vm-10.
func Natural(a, b string) int {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		if !digit(a[i]) || !digit(b[j]) {
			if a[i] != b[j] {
				return cmp.Compare(a[i], b[j])
			}
			i, j = i+1, j+1
			continue
		}
		x, y := leadingDigits(a[i:]), leadingDigits(b[j:])
		p, q := strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		if c := cmp.Or(cmp.Compare(len(p), len(q)), strings.Compare(p, q)); c != 0 {
			return c
		}
		i, j = i+len(x), j+len(y)
	}
	return cmp.Or(cmp.Compare(len(a)-i, len(b)-j), strings.Compare(a, b))
}

func leadingDigits(s string) string {
	n := 0
	for n < len(s) && digit(s[n]) {
		n++
	}
	return s[:n]
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// Counted is a number of things: "1 host", "4 hosts", "2 switches".
func Counted(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "ch"):
		return fmt.Sprintf("%d %ses", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// A Gathered holds values by what they have in common; both keep the order in which they first appear.
type Gathered[K comparable, V any] struct {
	Keys []K
	By   map[K][]V
}

// Add adds a value to those with the same key.
func (g *Gathered[K, V]) Add(key K, value V) {
	if g.By == nil {
		g.By = map[K][]V{}
	}
	if g.By[key] == nil {
		g.Keys = append(g.Keys, key)
	}
	g.By[key] = append(g.By[key], value)
}

// All returns the keys in order, each with its values.
func (g Gathered[K, V]) All() iter.Seq2[K, []V] {
	return func(yield func(K, []V) bool) {
		for _, k := range g.Keys {
			if !yield(k, g.By[k]) {
				return
			}
		}
	}
}

// Mapped returns what of returns for each item, nil for none.
func Mapped[T, U any](items []T, of func(T) U) []U {
	var out []U
	for _, item := range items {
		out = append(out, of(item))
	}
	return out
}
