//go:build race

package testclass

// Race reports whether the race detector is built in.
const Race = true
