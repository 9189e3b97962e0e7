//go:build !race

package engine_test

// raced: the race detector is off.
const raced = false
