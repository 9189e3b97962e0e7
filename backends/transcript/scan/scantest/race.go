//go:build race

package scantest

// Race tells whether the race detector is built in: it makes regular expressions 20 times slower.
const Race = true
