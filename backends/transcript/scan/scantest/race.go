//go:build race

package scantest

// Race reports whether the race detector is built in: it makes regular expressions 20 times slower.
const Race = true
