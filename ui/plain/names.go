package plain

import (
	"fmt"
	"strconv"
	"strings"
)

// Names lists names so that a hundred of them can be read and none is left out: four or more that only count up stand
// as "esx-001 to esx-100".
func Names(names []string) string {
	var parts []string
	for i := 0; i < len(names); {
		end := i + 1
		for end < len(names) && follows(names[end-1], names[end]) {
			end++
		}
		if end-i >= 4 {
			parts = append(parts, Clean(names[i])+" to "+Clean(names[end-1]))
		} else {
			for _, n := range names[i:end] {
				parts = append(parts, Clean(n))
			}
		}
		i = end
	}
	return strings.Join(parts, ", ")
}

// follows tells whether b is a with its number one higher, as wide as before: esx-09.lab, esx-10.lab.
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

func digit(c byte) bool { return c >= '0' && c <= '9' }

func count(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "ch"):
		return fmt.Sprintf("%d %ses", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
