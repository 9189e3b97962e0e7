// Package testclass says in a test which runs of the suite it belongs to. `make test` is what every edit needs: go test -short,
// without the race detector. `make test-full` is what CI runs: each package with the race detector if it has goroutines, otherwise
// without. `make e2e-full` asks for everything. .ci/marked finds the calls of a class in the sources, so that no list names tests.
package testclass

import (
	"os"
	"testing"
)

// All asks for matrices in full and for every size; make e2e-full sets RDMA_SETUP_TEST_ALL.
var All = os.Getenv("RDMA_SETUP_TEST_ALL") != ""

// Small reports whether one case of each kind is enough: in make test, and with the race detector, which makes everything several
// times as slow.
func Small() bool { return Race || testing.Short() }

// Full is a test that make test leaves out: mostly a whole run, of which it has others.
func Full(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("in make test-full")
	}
}

// Plain is a test that runs without the race detector in a package that runs with it: it draws many screens, counts calls, or uses one
// setter after the other, mostly in one goroutine, and takes minutes with the detector. make e2e-full uses it for them too.
func Plain(testing.TB) {}

// Raced is a test that runs with the race detector in a package that runs without it, whose tests are complete runs on labs and take
// four times as long: it has the most concurrent goroutines.
func Raced(testing.TB) {}

// Both is a test that runs with the race detector and without.
func Both(testing.TB) {}

// Sized is a test that is larger in make e2e-full: it reports whether that asks.
func Sized(testing.TB) bool { return All }

// Alone is a test that compares durations, which others beside it and the race detector would lengthen.
func Alone(testing.TB) {}

// Long is a test of real guests for which make e2e has no time: make e2e-full runs it.
func Long(testing.TB) {}

// OK ends the test if there is an error.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Read returns what a file holds.
func Read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	OK(t, err)
	return b
}

// Write writes a file that only its owner may read.
func Write(t testing.TB, name, text string) {
	t.Helper()
	OK(t, os.WriteFile(name, []byte(text), 0o600))
}
