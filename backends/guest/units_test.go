package guest_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The lab keeps units in memory as long as systemd does. Witness: systemd 252 of Debian 12 prints the same (make e2e).
func TestUnitsInMemory(t *testing.T) {
	script, err := os.ReadFile("testdata/systemd/units.sh")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/systemd/units.txt")
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(t, config{os: "debian-12"})
	if d := cmp.Diff(string(want), m.root(t, string(script))); d != "" {
		t.Errorf("the lab differs from systemd (-systemd +lab):\n%s", d)
	}
}
