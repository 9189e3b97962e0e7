//go:build race

package engine_test

// raced: the race detector is on.
const raced = true
