package wire

import (
	"strconv"
	"strings"
)

// newer reports whether version a is newer than b; both are dotted numbers.
func newer(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(as), len(bs)) {
		x, y := part(as, i), part(bs, i)
		if x != y {
			return x > y
		}
	}
	return false
}

func part(s []string, i int) int {
	if i >= len(s) {
		return 0
	}
	n, err := strconv.Atoi(s[i])
	if err != nil {
		return 0
	}
	return n
}
